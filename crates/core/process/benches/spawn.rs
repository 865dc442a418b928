//! Compares a run with the fastest way to do the same work, in one process.
//!
//! The baseline is `posix_spawn` through `std::process::Command` with two pipes: the payload is
//! written, the answer is read to its end, and the child is reaped. A run of this crate also reads
//! standard error and has a process group, a deadline and a cancellation. Compare only the ratios
//! within one run, not times of different machines or runs. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

mod floor;

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenterhook_process::{CancellationToken, Command, End, Limits, Program};
use tokio::runtime::Runtime;

use floor::{child, compare, current_thread, multi_thread, raw, resident_memory};

const PAYLOAD: usize = 1024;
const LARGE_PAYLOAD: usize = 1024 * 1024;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let bench = Bench {
        dir: tempfile::tempdir().unwrap(),
        rounds: if is_quick { 40 } else { 400 },
        bursts: if is_quick { 3 } else { 21 },
    };
    println!("child: {}", Path::new(&child(bench.dir.path())).display());
    println!("floor: posix_spawn through std::process::Command with two pipes\n");
    let small = bench.exec("G1 direct exec, 1 KiB in, ~99 B out");
    {
        let resident = resident_memory();
        let large = bench.exec("G2 the same, 1 GiB resident");
        println!("   against the small parent: {:.2}\n", large / small);
        black_box(&resident);
    }
    bench.shell();
    bench.large_payload();
    bench.burst();
}

struct Bench {
    dir: TempDir,
    rounds: usize,
    bursts: usize,
}

impl Bench {
    /// Returns the median time of a run in microseconds.
    fn exec(&self, title: &str) -> f64 {
        let child = child(self.dir.path());
        let payload = vec![b'x'; PAYLOAD];
        let command = Command::new(Program::exec([&child]));
        let (current, multi) = (current_thread(), multi_thread());
        let medians = compare(
            title,
            self.rounds,
            &mut [
                ("floor", &mut || raw(&child, &[], &payload)),
                ("run, current_thread", &mut || {
                    run(&current, &command, &payload)
                }),
                ("run, task of multi_thread (2)", &mut || {
                    run_in_task(&multi, &command, &payload)
                }),
            ],
        );
        medians[1]
    }

    fn shell(&self) {
        let child = child(self.dir.path());
        let payload = vec![b'x'; PAYLOAD];
        let plain = child.clone();
        let line = format!("{child}; exit 0");
        let shell = Command::new(Program::shell(&line));
        let direct = Command::new(Program::shell(&plain));
        assert!(shell.resolve().unwrap().shell.is_some());
        assert!(direct.resolve().unwrap().shell.is_none());
        let current = current_thread();
        compare(
            "G3 through sh -c",
            self.rounds,
            &mut [
                ("floor: sh -c", &mut || {
                    raw("/bin/sh", &["-c", &line], &payload)
                }),
                ("run of the same line", &mut || {
                    run(&current, &shell, &payload)
                }),
                ("run of a plain line: no shell", &mut || {
                    run(&current, &direct, &payload)
                }),
            ],
        );
    }

    fn large_payload(&self) {
        let child = child(self.dir.path());
        let payload = vec![b'x'; LARGE_PAYLOAD];
        let command = Command::new(Program::exec([&child]));
        let current = current_thread();
        compare(
            "G15 1 MiB in (the floor keeps the default pipe)",
            self.rounds,
            &mut [
                ("floor", &mut || raw(&child, &[], &payload)),
                ("run", &mut || run(&current, &command, &payload)),
            ],
        );
    }

    fn burst(&self) {
        const HOOKS: usize = 1000;
        let child = child(self.dir.path());
        let payload = vec![b'x'; PAYLOAD];
        let command = Command::new(Program::exec([&child]));
        let multi = multi_thread();
        let two_threads = || {
            let start = Instant::now();
            std::thread::scope(|scope| {
                let spawn_half = || (0..HOOKS / 2).map(|_| raw(&child, &[], &payload)).max();
                scope.spawn(spawn_half);
                scope.spawn(spawn_half);
            });
            start.elapsed()
        };
        let all_at_once = || {
            let start = Instant::now();
            let runs: Vec<_> = (0..HOOKS)
                .map(|_| {
                    let (command, payload) = (command.clone(), payload.clone());
                    multi.spawn(async move { answer(&command, &payload).await })
                })
                .collect();
            multi.block_on(async {
                for run in runs {
                    run.await.unwrap();
                }
            });
            start.elapsed()
        };
        compare(
            "G13 1,000 at once (times of 1,000)",
            self.bursts,
            &mut [
                ("floor: two threads", &mut || two_threads()),
                ("run, multi_thread (2)", &mut || all_at_once()),
            ],
        );
    }
}

/// Runs the command on the calling thread.
fn run(runtime: &Runtime, command: &Command, payload: &[u8]) -> Duration {
    runtime.block_on(answer(command, payload))
}

/// Runs the command in a task of the runtime, as a server would.
fn run_in_task(runtime: &Runtime, command: &Command, payload: &[u8]) -> Duration {
    let (command, payload) = (command.clone(), payload.to_vec());
    let task = runtime.spawn(async move { answer(&command, &payload).await });
    runtime.block_on(task).unwrap()
}

async fn answer(command: &Command, payload: &[u8]) -> Duration {
    let start = Instant::now();
    let (limits, cancel) = (Limits::default(), CancellationToken::new());
    let finished = command.run(payload, &limits, &cancel).await.unwrap();
    assert_eq!(finished.end, End::Exited(0));
    assert!(!finished.stdout.bytes.is_empty());
    start.elapsed()
}
