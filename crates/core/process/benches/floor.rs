//! The baseline: the fastest way to run a child process, and how rows are compared with it.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

const GIB: usize = 1024 * 1024 * 1024;

/// Returns a child that reads its input to the end and answers with 99 bytes.
pub(crate) fn child(dir: &Path) -> String {
    let path = dir.join("tiny");
    if !path.exists() {
        match tiny() {
            Some(program) => write_program(&path, &program),
            None => return "/bin/cat".to_owned(),
        }
    }
    path.into_os_string().into_string().unwrap()
}

/// Runs the rows in turns, prints their medians and lower quartiles, and returns the medians. The
/// first row is the baseline.
pub(crate) fn compare(
    title: &str,
    rounds: usize,
    rows: &mut [(&str, &mut dyn FnMut() -> Duration)],
) -> Vec<f64> {
    compare_both(title, rounds, rows).0
}

/// Like `compare`, but returns the lower quartiles too.
pub(crate) fn compare_both(
    title: &str,
    rounds: usize,
    rows: &mut [(&str, &mut dyn FnMut() -> Duration)],
) -> (Vec<f64>, Vec<f64>) {
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
    (medians, lower)
}

/// Returns a quartile in microseconds. The second quartile is the median.
fn quantile(times: &mut [Duration], quarter: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() - 1) * quarter / 4].as_secs_f64() * 1e6
}

/// Spawns, writes, reads and reaps, and does nothing else.
pub(crate) fn raw(program: &str, arguments: &[&str], payload: &[u8]) -> Duration {
    let start = Instant::now();
    let mut child = Command::new(program)
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

pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn multi_thread() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Returns memory that is really resident.
pub(crate) fn resident_memory() -> Vec<u8> {
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

/// Assembles a static program without a C library, so that the baseline measures only the system.
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
