//! Measures a script's hook in its worker. It is compared with an interpreter that starts for each
//! event, and with a native worker that does nothing, both through the same client and through bare
//! pipes.
//!
//! Compare only the ratios within one run. On a busy machine, compare the lower quartiles. On a
//! system with few processors, waking an idle processor takes longer than a call; `taskset -c 0`
//! avoids that. `--quick` takes fewer rounds.

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
    println!("workers run on Unix only");
}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::path::{Path, PathBuf};
    use std::process::{Child, ChildStdin, ChildStdout, Stdio};
    use std::time::{Duration, Instant};

    use serde_json::json;
    use tenterhook_process::{CancellationToken, Command, Program};
    use tenterhook_runners::worker::{Script, Worker, node, python};
    use tokio::runtime::Runtime;

    use super::floor::{compare_both, current_thread, multi_thread, raw};

    /// Calls of one measurement. One call alone would be too short for the clock.
    const CALLS: u32 = 100;
    /// Calls before a measurement, because the previous row has filled the caches.
    const AGAIN: u32 = 20;
    /// Calls before the first measurement, because Node keeps compiling hot code for thousands of calls.
    const WARM_UP: u32 = 5_000;
    /// The pause before each call of the measurement with pauses.
    const PAUSE: Duration = Duration::from_millis(20);
    /// The number of concurrent lanes, and the number of calls of each lane.
    const LANES: (u32, u32) = (32, 200);
    /// Runs this program as the native worker.
    const ECHO: &str = "--echo";

    const PYTHON: &str = "from tenterhook import deny, on\n\n@on('pre_tool_use')\ndef guard(event):\n    \
                          if event.tool_input['cmd'].startswith('sudo'):\n        return deny('no')\n";
    const NODE: &str = "import { deny, on } from 'tenterhook';\n\
                        on('pre_tool_use', (event) => { if (event.tool_input.cmd.startsWith('sudo')) return deny('no'); });\n";
    /// The same work in a separate interpreter.
    const PYTHON_ALONE: &str = "import json, sys\nevent = json.load(sys.stdin)\nprint('no' if event['tool_input']['cmd'].startswith('sudo') else '{}')\n";
    const NODE_ALONE: &str = "const e = JSON.parse(require('fs').readFileSync(0)); console.log(e.tool_input.cmd.startsWith('sudo') ? 'no' : '{}');";

    /// A worker to compare.
    struct Candidate {
        name: &'static str,
        make: fn(&Path) -> Worker,
        script: (&'static str, &'static str),
        /// The option that runs source code, source code that prints the interpreter's path, and
        /// the work of the script.
        alone: (&'static str, &'static str, &'static str),
        /// The targets: speed relative to the interpreter, microseconds per call, and calls per second.
        goals: (u32, u32, u32),
    }

    const CANDIDATES: [Candidate; 2] = [
        Candidate {
            name: "python3",
            make: python,
            script: ("a.py", PYTHON),
            alone: ("-c", "import sys; print(sys.executable)", PYTHON_ALONE),
            goals: (500, 40, 50_000),
        },
        Candidate {
            name: "node",
            make: node,
            script: ("a.mjs", NODE),
            alone: ("-e", "console.log(process.execPath)", NODE_ALONE),
            goals: (1_000, 35, 100_000),
        },
    ];

    pub(super) fn main() {
        let mut arguments = std::env::args();
        if arguments.any(|argument| argument == ECHO) {
            return echo();
        }
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if is_quick { 9 } else { 31 };
        let dir = tempfile::tempdir().unwrap();
        let mut summary = Vec::new();
        for (threads, runtime) in [
            // Caller and pipes share one thread, so that the time to wake other threads is not measured.
            ("one thread", current_thread()),
            ("two threads", multi_thread()),
        ] {
            for candidate in &CANDIDATES {
                let line = measure(candidate, &runtime, (threads, rounds), dir.path());
                summary.push(line);
            }
        }
        println!("{}", summary.join("\n"));
    }

    /// Prints the rows of a worker, and returns its line of the summary.
    fn measure(
        candidate: &Candidate,
        runtime: &Runtime,
        (threads, rounds): (&str, usize),
        dir: &Path,
    ) -> String {
        let name = candidate.name;
        let (file, text) = candidate.script;
        let path = dir.join(file);
        std::fs::write(&path, text).unwrap();
        let event = event();
        let worker = loaded(runtime, (candidate.make)(dir), &path);
        let floor = loaded(runtime, native(), &path);
        let mut pipes = Pipes::start();
        let (flag, itself, alone) = candidate.alone;
        let interpreter = interpreter(name, flag, itself);
        for worker in [&worker, &floor] {
            one_by_one(runtime, worker, &event, (WARM_UP, Duration::ZERO));
        }
        let often = (CALLS, Duration::ZERO);
        let seldom = (3, PAUSE);
        let (medians, lower) = compare_both(
            &format!("{name}, caller in {threads}: 1 KiB event, one at a time"),
            rounds,
            &mut [
                ("native worker", &mut || {
                    one_by_one(runtime, &floor, &event, often)
                }),
                ("worker", &mut || {
                    one_by_one(runtime, &worker, &event, often)
                }),
                ("native worker, after a pause", &mut || {
                    one_by_one(runtime, &floor, &event, seldom)
                }),
                ("worker, after a pause", &mut || {
                    one_by_one(runtime, &worker, &event, seldom)
                }),
                ("native worker, bare pipes", &mut || pipes.measure(&event)),
                ("interpreter for each event", &mut || {
                    raw(&interpreter, &[flag, alone], &event)
                }),
            ],
        );
        let mut rates: Vec<f64> = (0..rounds)
            .map(|_| at_once(runtime, &worker, &event))
            .collect();
        rates.sort_unstable_by(f64::total_cmp);
        let (faster, time, rate) = candidate.goals;
        format!(
            "{name}, caller in {threads}: {:.1} us, lower quartile {:.1} (wanted {time}), {:.1} times the native worker, lower quartile {:.1} \
             (wanted 3), {:.0} times as fast as an interpreter for each event (wanted {faster}), \
             {:.0} calls a second with {} under way (wanted {rate})",
            medians[1],
            lower[1],
            medians[1] / medians[0],
            lower[1] / lower[0],
            medians[medians.len() - 1] / medians[1],
            rates[rates.len() / 2],
            LANES.0,
        )
    }

    /// Returns the path of the interpreter itself. The one in `PATH` may be a wrapper script, which
    /// would slow down each start.
    fn interpreter(name: &str, flag: &str, itself: &str) -> String {
        let mut command = std::process::Command::new(name);
        let output = command.args([flag, itself]).output().unwrap();
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

    fn loaded(runtime: &Runtime, worker: Worker, path: &Path) -> Worker {
        let script = Script {
            path: path.to_owned(),
            api: "tenterhook",
            approved: None,
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

    /// Returns the mean time of one call. With a `pause`, each call comes after it.
    fn one_by_one(
        runtime: &Runtime,
        worker: &Worker,
        event: &[u8],
        (calls, pause): (u32, Duration),
    ) -> Duration {
        let (worker, event) = (worker.clone(), event.to_vec());
        let all = async move {
            for _ in 0..AGAIN {
                call(&worker, &event).await;
            }
            let mut sum = Duration::ZERO;
            for _ in 0..calls {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                let start = Instant::now();
                call(&worker, &event).await;
                sum += start.elapsed();
            }
            sum / calls
        };
        // An agent calls from a task.
        runtime.block_on(runtime.spawn(all)).unwrap()
    }

    /// Returns the number of calls per second with many concurrent calls.
    fn at_once(runtime: &Runtime, worker: &Worker, event: &[u8]) -> f64 {
        let (lanes, each) = LANES;
        let start = Instant::now();
        let lanes_at_once = (0..lanes).map(|_| {
            let (worker, event) = (worker.clone(), event.to_vec());
            runtime.spawn(async move {
                for _ in 0..each {
                    call(&worker, &event).await;
                }
            })
        });
        for ended in runtime.block_on(futures_util::future::join_all(lanes_at_once)) {
            ended.unwrap();
        }
        f64::from(lanes * each) / start.elapsed().as_secs_f64()
    }

    fn this_program() -> PathBuf {
        std::env::current_exe().unwrap()
    }

    /// Returns a worker whose handlers do nothing, called by the same client as the measured workers.
    fn native() -> Worker {
        let program = this_program();
        let command = Command::new(Program::exec([program.to_str().unwrap(), ECHO]));
        Worker::new("native", command)
    }

    /// Serves the protocol, but reads only the id of each call.
    fn echo() {
        let mut input = std::io::stdin().lock();
        // A raw write: the line buffer of `stdout` would add to the time.
        let output = std::io::stdout().as_fd().try_clone_to_owned().unwrap();
        let mut output = std::fs::File::from(output);
        let mut read = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        loop {
            match input.read(&mut chunk).unwrap() {
                0 => return,
                count => read.extend_from_slice(&chunk[..count]),
            }
            let Some(end) = memchr::memrchr(b'\n', &read) else {
                continue;
            };
            let mut answers = Vec::new();
            for line in read
                .drain(..=end)
                .as_slice()
                .split_inclusive(|byte| *byte == b'\n')
            {
                answer(line, &mut answers);
            }
            output.write_all(&answers).unwrap();
        }
    }

    fn answer(line: &[u8], answers: &mut Vec<u8>) {
        let head = &line[..line.len().min(80)];
        let text = String::from_utf8_lossy(head);
        let Some((_, behind)) = text.split_once("\"id\":") else {
            return;
        };
        let Some((id, _)) = behind.split_once(',') else {
            return;
        };
        let result = if text.contains("\"initialize\"") {
            r#"{"protocol_version":1,"worker":{"name":"native","version":"1"}}"#
        } else if text.contains("\"script/load\"") {
            r#"{"hooks":[{"name":"guard","event":"pre_tool_use"}]}"#
        } else {
            "null"
        };
        writeln!(
            answers,
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        )
        .unwrap();
    }

    /// The same process, with nothing between it and the waiting thread.
    struct Pipes {
        child: Child,
        stdin: ChildStdin,
        stdout: BufReader<ChildStdout>,
    }

    impl Drop for Pipes {
        fn drop(&mut self) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }

    impl Pipes {
        fn start() -> Self {
            let mut child = std::process::Command::new(this_program())
                .arg(ECHO)
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
            let mut line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"event\":".to_vec();
            line.extend_from_slice(event);
            line.extend_from_slice(b"}\n");
            let mut back = Vec::new();
            let mut start = Instant::now();
            for call in 0..AGAIN + CALLS {
                if call == AGAIN {
                    start = Instant::now();
                }
                self.stdin.write_all(&line).unwrap();
                back.clear();
                self.stdout.read_until(b'\n', &mut back).unwrap();
            }
            start.elapsed() / CALLS
        }
    }
}
