//! Measures a command whose next instance was started ahead of time, compared with a fresh instance.
//!
//! The time runs from the event to the outcome, with the child reaped. Between two events, the next
//! instance has time to load. Compare only the ratios within one run. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

#[cfg(unix)]
#[path = "../../../core/process/benches/floor.rs"]
#[expect(dead_code, reason = "only the comparison is needed here")]
mod floor;

#[cfg(not(unix))]
fn main() {
    println!("commands are started ahead of time on Unix only");
}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use serde_json::json;
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{Dispatcher, Engine, EventKind, HookSpec, Origin};
    use tenterhook_process::{Command, Program, WarmCounts};
    use tenterhook_runners::CommandHandler;
    use tenterhook_systems::native::Native;
    use tokio::runtime::Runtime;

    use super::floor::{compare, multi_thread};

    const PYTHON: &str = r#"
import json, sys

event = json.load(sys.stdin)
refused = event["tool_input"].get("cmd", "").startswith("sudo")
print(json.dumps({"decision": "deny" if refused else "allow", "reason": "checked"}), flush=True)
"#;

    const NODE: &str = r#"
const event = JSON.parse(require("fs").readFileSync(0, "utf8"));
const refused = (event.tool_input.cmd || "").startsWith("sudo");
console.log(JSON.stringify({ decision: refused ? "deny" : "allow", reason: "checked" }));
"#;

    const SH: &str = r#"
read -r event
case "$event" in
  *'"sudo'*) echo '{"decision":"deny","reason":"checked"}' ;;
  *) echo '{"decision":"allow","reason":"checked"}' ;;
esac
"#;

    pub(super) fn main() {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if is_quick { 8 } else { 40 };
        let dir = tempfile::tempdir().unwrap();
        println!("1 KiB in, one object out; one event at a time\n");
        let mut summary = Vec::new();
        for (program, name, text, goal) in [
            (python(), "hook.py", PYTHON, 4.5),
            (
                real("node", &["-p", "process.execPath"]),
                "hook.js",
                NODE,
                4.0,
            ),
            ("/bin/sh".to_owned(), "hook.sh", SH, 1.8),
        ] {
            let script = dir.path().join(name);
            std::fs::write(&script, text).unwrap();
            let bench = Bench::new(&program, &script);
            summary.push(format!("{name} {}", bench.measure(name, goal, rounds)));
        }
        println!("G9: times as fast as a fresh one\n{}", summary.join("\n"));
    }

    /// Returns the path of the interpreter itself. A wrapper script in front of it would improve
    /// the ratio unfairly.
    fn python() -> String {
        real("python3", &["-c", "import sys; print(sys.executable)"])
    }

    fn real(program: &str, arguments: &[&str]) -> String {
        let output = std::process::Command::new(program).args(arguments).output();
        output.map_or_else(
            |_| program.to_owned(),
            |output| String::from_utf8(output.stdout).unwrap().trim().to_owned(),
        )
    }

    /// The same hook in three forms.
    struct Bench {
        runtime: Runtime,
        cold: Dispatcher,
        warm: (Dispatcher, Arc<CommandHandler>),
    }

    impl Bench {
        fn new(program: &str, script: &Path) -> Self {
            let handler = |prewarm| {
                let command = Command::new(Program::exec([Path::new(program), script]));
                let handler = CommandHandler::new(command, "hook", Native::new());
                Arc::new(handler.prewarm(prewarm))
            };
            let dispatcher = |handler: &Arc<CommandHandler>| {
                let engine = Engine::new();
                engine.register(HookSpec::new(
                    EventKind::PreToolUse,
                    "hook",
                    Arc::clone(handler) as _,
                ));
                engine.dispatcher(Origin::new("", std::env::temp_dir()))
            };
            let cold = handler(false);
            let warm = handler(true);
            Self {
                runtime: multi_thread(),
                cold: dispatcher(&cold),
                warm: (dispatcher(&warm), warm),
            }
        }

        fn measure(&self, name: &str, goal: f64, rounds: usize) -> String {
            let medians = compare(
                name,
                rounds,
                &mut [
                    ("fresh, to reaped", &mut || self.rested(&self.cold)),
                    ("prewarmed, to reaped", &mut || self.rested(&self.warm.0)),
                ],
            );
            let [fresh, warm] = medians[..] else {
                return String::new();
            };
            format!("{:.1} (goal {goal})", fresh / warm)
        }

        /// Waits until every started instance has loaded. An instance that loads during a
        /// measurement would slow it down.
        fn rested(&self, hooks: &Dispatcher) -> Duration {
            let warm = self.warm.1.prewarmed().unwrap();
            while warm.counts() != WarmCounts::default()
                && warm.waiting_pid().is_none_or(|pid| !is_waiting(pid))
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.time(hooks)
        }

        fn time(&self, hooks: &Dispatcher) -> Duration {
            let input = json!({ "cmd": "x".repeat(760) });
            let event = PreToolUse::new("shell")
                .with_tool_input(input.as_object().cloned().unwrap_or_default());
            let began = Instant::now();
            let outcome = self.runtime.block_on(hooks.dispatch(event));
            let time = began.elapsed();
            assert!(outcome.is_allowed(), "{outcome:?}");
            time
        }
    }

    /// Returns whether a process waits in a read of its standard input.
    #[cfg(target_os = "linux")]
    fn is_waiting(pid: u32) -> bool {
        let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        call.starts_with("0 0x0 ")
    }

    /// Gives the next instance time to load.
    #[cfg(not(target_os = "linux"))]
    fn is_waiting(_pid: u32) -> bool {
        std::thread::sleep(Duration::from_millis(200));
        true
    }
}
