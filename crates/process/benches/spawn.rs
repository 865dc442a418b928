//! Compares a run with the least that the system allows for the same work, in one process.
//!
//! The floor is `posix_spawn` through `std::process::Command` with two pipes: the payload is written,
//! the answer is read to its end, the child is reaped. A run of this crate also reads standard error,
//! has a process group, a deadline and a cancellation. Only the ratios of one run mean something; times
//! of different machines and moments do not compare. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has nobody to return an error to"
)]

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command as StdCommand, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenterhook_process::{CancellationToken, Command, End, Limits, Program};
use tokio::runtime::{Builder, Runtime};

const PAYLOAD: usize = 1024;
const LARGE_PAYLOAD: usize = 1024 * 1024;
const GIB: usize = 1024 * 1024 * 1024;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let bench = Bench {
        dir: tempfile::tempdir().unwrap(),
        rounds: if is_quick { 40 } else { 400 },
        bursts: if is_quick { 3 } else { 21 },
    };
    println!("child: {}", Path::new(&bench.child()).display());
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
        let child = self.child();
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
        let child = self.child();
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
        let child = self.child();
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
        let child = self.child();
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

    /// Returns a child that reads its input to the end and answers with 99 bytes.
    fn child(&self) -> String {
        let path = self.dir.path().join("tiny");
        if !path.exists() {
            match tiny() {
                Some(program) => write_program(&path, &program),
                None => return "/bin/cat".to_owned(),
            }
        }
        path.into_os_string().into_string().unwrap()
    }
}

/// Runs the rows in turns and prints their medians. The first row is the floor.
fn compare(
    title: &str,
    rounds: usize,
    rows: &mut [(&str, &mut dyn FnMut() -> Duration)],
) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(rounds); rows.len()];
    let warm_up = rounds.div_ceil(20);
    for round in 0..rounds + warm_up {
        for (row, times) in rows.iter_mut().zip(&mut times) {
            let time = (row.1)();
            if round >= warm_up {
                times.push(time);
            }
        }
    }
    let lower: Vec<f64> = times.iter_mut().map(|times| quantile(times, 1)).collect();
    let medians: Vec<f64> = times.iter_mut().map(|times| quantile(times, 2)).collect();
    println!("{title}, {rounds} rounds");
    println!(
        "   {:<32} {:>10} {:>6} {:>10} {:>6}",
        "", "median us", "ratio", "quartile", "ratio"
    );
    for (index, (name, _)) in rows.iter().enumerate() {
        let (median, low) = (medians[index], lower[index]);
        println!(
            "   {name:<32} {median:>10.1} {:>6.2} {low:>10.1} {:>6.2}",
            median / medians[0],
            low / lower[0],
        );
    }
    println!();
    medians
}

/// Returns a quartile in microseconds: the second is the median.
fn quantile(times: &mut [Duration], quarter: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * quarter / 4].as_secs_f64() * 1e6
}

fn raw(program: &str, arguments: &[&str], payload: &[u8]) -> Duration {
    let start = Instant::now();
    let mut child = StdCommand::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(payload).unwrap();
    let mut answer = Vec::with_capacity(4096);
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut answer)
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!answer.is_empty());
    start.elapsed()
}

/// Runs the command on the thread that asks for it.
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

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

fn resident_memory() -> Vec<u8> {
    let mut memory = vec![0; GIB];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    memory
}

fn write_program(path: &Path, program: &[u8]) {
    fs::write(path, program).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Assembles a static program without a C library, so that the floor holds nothing but the system.
fn tiny() -> Option<Vec<u8>> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    #[rustfmt::skip]
    const CODE: &[u8] = &[
        0x48, 0x81, 0xec, 0x00, 0x00, 0x01, 0x00, //       sub rsp, 0x10000
        0x31, 0xc0, //                               more: xor eax, eax (read)
        0x31, 0xff, //                                     xor edi, edi
        0x48, 0x89, 0xe6, //                               mov rsi, rsp
        0xba, 0x00, 0x00, 0x01, 0x00, //                   mov edx, 0x10000
        0x0f, 0x05, //                                     syscall
        0x48, 0x85, 0xc0, //                               test rax, rax
        0x7f, 0xed, //                                     jg more
        0xb8, 0x01, 0x00, 0x00, 0x00, //                   mov eax, 1 (write)
        0xbf, 0x01, 0x00, 0x00, 0x00, //                   mov edi, 1
        0x48, 0x8d, 0x35, 0x10, 0x00, 0x00, 0x00, //       lea rsi, [rip + 16]
        0xba, 0x63, 0x00, 0x00, 0x00, //                   mov edx, 99
        0x0f, 0x05, //                                     syscall
        0xb8, 0xe7, 0x00, 0x00, 0x00, //                   mov eax, 231 (exit_group)
        0x31, 0xff, //                                     xor edi, edi
        0x0f, 0x05, //                                     syscall
    ];
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return None;
    }
    let answer = format!("{:<98}\n", r#"{"decision":"allow","reason":"checked"}"#);
    let size = HEADERS + (CODE.len() + answer.len()) as u64;
    let mut program = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    for word in [BASE + HEADERS, 64, 0] {
        program.extend(word.to_le_bytes());
    }
    program.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        program.extend(half.to_le_bytes());
    }
    for part in [1_u32, 5] {
        program.extend(part.to_le_bytes());
    }
    for word in [0, BASE, BASE, size, size, 0x1000] {
        program.extend(word.to_le_bytes());
    }
    program.extend(CODE);
    program.extend(answer.as_bytes());
    Some(program)
}
