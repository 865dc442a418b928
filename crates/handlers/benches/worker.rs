//! What a hook of a script costs in its worker, beside an interpreter that is started for each event, and beside a worker that only echoes.
//!
//! Only the ratios of one run compare. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has nobody to return an error to"
)]

#[cfg(unix)]
#[path = "../../process/benches/floor.rs"]
#[expect(dead_code, reason = "only the comparison is needed here")]
mod floor;

#[cfg(not(unix))]
fn main() {
    println!("workers run on Unix only");
}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::path::Path;
    use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
    use std::time::{Duration, Instant};

    use serde_json::json;
    use tenterhook_handlers::worker::{Script, Worker, node, python};
    use tenterhook_process::CancellationToken;
    use tokio::runtime::Runtime;

    use super::floor::{compare, raw};

    /// Calls of one measurement, so that a clock can see it.
    const CALLS: u32 = 100;

    const PYTHON: &str = "from tenterhook import deny, on\n\n@on('pre_tool_use')\ndef guard(event):\n    \
                          if event.tool_input['cmd'].startswith('sudo'):\n        return deny('no')\n";
    const NODE: &str = "import { deny, on } from 'tenterhook';\n\
                        on('pre_tool_use', (event) => { if (event.tool_input.cmd.startsWith('sudo')) return deny('no'); });\n";
    /// The same work in an interpreter of its own.
    const PYTHON_ALONE: &str = "import json, sys\nevent = json.load(sys.stdin)\nprint('no' if event['tool_input']['cmd'].startswith('sudo') else '{}')\n";
    const NODE_ALONE: &str = "const e = JSON.parse(require('fs').readFileSync(0)); console.log(e.tool_input.cmd.startsWith('sudo') ? 'no' : '{}');";
    /// Reads lines and writes them back.
    const PYTHON_ECHO: &str = "import os\nwhile True:\n    data = os.read(0, 1 << 16)\n    if not data: break\n    os.write(1, data)\n";

    pub(super) fn main() {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if is_quick { 5 } else { 30 };
        let dir = tempfile::tempdir().unwrap();
        // One thread for caller and worker's pipes: what is measured is the worker, not how threads wake each other.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let event = event();
        let mut echo = Echo::start();
        let mut summary = Vec::new();
        for (name, worker, file, text, alone, goals) in [
            (
                "python3",
                python(dir.path()),
                "a.py",
                PYTHON,
                PYTHON_ALONE,
                (500.0, 50_000.0),
            ),
            (
                "node",
                node(dir.path()),
                "a.mjs",
                NODE,
                NODE_ALONE,
                (1_000.0, 100_000.0),
            ),
        ] {
            let worker = loaded(&runtime, worker, &dir.path().join(file), text);
            let (flag, itself) = if name == "node" {
                ("-e", "console.log(process.execPath)")
            } else {
                ("-c", "import sys; print(sys.executable)")
            };
            let interpreter = interpreter(name, flag, itself);
            let medians = compare(
                &format!("{name}: 1 KiB event, one at a time"),
                rounds,
                &mut [
                    ("echo over two pipes", &mut || echo.measure(&event)),
                    ("worker", &mut || one_by_one(&runtime, &worker, &event)),
                    ("interpreter for each event", &mut || {
                        raw(&interpreter, &[flag, alone], &event)
                    }),
                ],
            );
            let rates: Vec<f64> = (0..rounds)
                .map(|_| at_once(&runtime, &worker, &event))
                .collect();
            let best = rates.iter().copied().fold(0.0, f64::max);
            let (faster, rate) = goals;
            summary.push(format!(
                "{name}: {:.0} times as fast as an interpreter for each event (wanted {faster}), {:.1} times the echo (wanted 3), \
                 {best:.0} calls a second with 32 under way (wanted {rate})",
                medians[2] / medians[1],
                medians[1] / medians[0],
            ));
        }
        println!("{}", summary.join("\n"));
    }

    /// Returns the interpreter itself: what stands in the search path may be a script that looks for it, and the start of each event
    /// would be charged with that.
    fn interpreter(name: &str, flag: &str, itself: &str) -> String {
        let output = Command::new(name).args([flag, itself]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn event() -> Vec<u8> {
        let filler = "x".repeat(800);
        let event = json!({
            "session_id": "s", "hook_event_name": "pre_tool_use", "tool_name": "shell",
            "tool_input": {"cmd": "ls", "text": filler},
        });
        event.to_string().into_bytes()
    }

    fn loaded(runtime: &Runtime, worker: Worker, path: &Path, text: &str) -> Worker {
        std::fs::write(path, text).unwrap();
        let script = Script {
            path: path.to_owned(),
            api: "tenterhook",
        };
        runtime.block_on(worker.load(&script)).unwrap();
        worker
    }

    async fn call(worker: &Worker, event: &[u8]) {
        let never = CancellationToken::new();
        let within = Duration::from_secs(20);
        let answer = worker.handle((0, 0), event, within, &never).await.unwrap();
        assert_eq!(&answer[..], b"null");
    }

    /// Returns the time of one call.
    fn one_by_one(runtime: &Runtime, worker: &Worker, event: &[u8]) -> Duration {
        runtime.block_on(async {
            let start = Instant::now();
            for _ in 0..CALLS {
                call(worker, event).await;
            }
            start.elapsed() / CALLS
        })
    }

    /// Returns the calls of a second with 32 under way.
    fn at_once(runtime: &Runtime, worker: &Worker, event: &[u8]) -> f64 {
        let each = 200_u32;
        let start = Instant::now();
        runtime.block_on(async {
            let lanes = (0..32).map(|_| async {
                for _ in 0..each {
                    call(worker, event).await;
                }
            });
            futures_util::future::join_all(lanes).await;
        });
        f64::from(32 * each) / start.elapsed().as_secs_f64()
    }

    /// A child that writes back what it reads.
    struct Echo {
        child: Child,
        stdin: ChildStdin,
        stdout: BufReader<ChildStdout>,
    }

    impl Drop for Echo {
        fn drop(&mut self) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }

    impl Echo {
        fn start() -> Self {
            let mut child = Command::new("python3")
                .args(["-I", "-c", PYTHON_ECHO])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            Self {
                stdin: child.stdin.take().unwrap(),
                stdout: BufReader::new(child.stdout.take().unwrap()),
                child,
            }
        }

        fn measure(&mut self, event: &[u8]) -> Duration {
            let mut line = event.to_vec();
            line.push(b'\n');
            let mut back = Vec::new();
            let start = Instant::now();
            for _ in 0..CALLS {
                self.stdin.write_all(&line).unwrap();
                back.clear();
                self.stdout.read_until(b'\n', &mut back).unwrap();
            }
            start.elapsed() / CALLS
        }
    }
}
