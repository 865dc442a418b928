//! Starts the async runtime, or reports which limit of the system prevents that.
//!
//! Tokio panics, and may then wait forever, if it cannot start a thread or open the pipe for signals. So this module
//! first tries to start threads and open files. A failure here is an error with a next step.

use std::fs::File;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;
use crate::exit::Exit;

/// The maximum number of worker threads. More would gain nothing, because the program mostly waits for processes,
/// files and the network.
const MAX_WORKERS: usize = 8;

/// How many threads the program needs in addition to its workers: for blocking work, the journal, stdin and the
/// reaper.
const MORE_THREADS: usize = 4;

/// How many open files the program must be able to have. A call without hooks has fewer open at once.
const FILES: usize = 12;

const FEW_FILES: &str = "raise the limit of open files (`ulimit -n`)";
const FEW_THREADS: &str = "raise the limit of processes (`ulimit -u`), or end other programs";

/// The stack size of a thread that only waits, in bytes.
const STACK: usize = 64 << 10;

/// How long idle threads are kept. They are kept long, because a thread that ended could not be started again if the
/// limit was reached meanwhile.
const KEEP_ALIVE: Duration = Duration::from_hours(24);

/// How long the first blocking task may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the runtime, with at least one thread for blocking work.
///
/// # Errors
/// Fails if a limit of the system leaves too few threads or open files.
pub fn start() -> Result<Runtime, CliError> {
    let workers = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MAX_WORKERS);
    let error = |hint: &str, error: &io::Error| {
        CliError::new(Exit::Failed, "cannot start the async runtime")
            .cause(error)
            .hint(hint)
    };
    try_files(FILES).map_err(|source| error(FEW_FILES, &source))?;
    try_threads(workers + MORE_THREADS).map_err(|source| error(FEW_THREADS, &source))?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_keep_alive(KEEP_ALIVE)
        .enable_all()
        .build()
        .map_err(|source| error(FEW_FILES, &source))?;
    // Without a thread, blocking work would wait forever.
    let (sender, started) = mpsc::channel();
    runtime.spawn_blocking(move || sender.send(()).ok());
    if started.recv_timeout(PATIENCE).is_err() {
        runtime.shutdown_background();
        let source = io::Error::other("no thread for blocking work was started");
        return Err(error(FEW_THREADS, &source));
    }
    Ok(runtime)
}

/// Opens `count` files at once.
fn try_files(count: usize) -> io::Result<()> {
    let first = File::open(if cfg!(windows) { "NUL" } else { "/dev/null" })?;
    let files: io::Result<Vec<File>> = (1..count).map(|_| first.try_clone()).collect();
    files.map(drop)
}

/// Starts `count` threads at once, and returns when the system no longer counts them.
fn try_threads(count: usize) -> io::Result<()> {
    let (all_started, waiting) = mpsc::channel::<()>();
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        let wait = || {
            // Each thread waits until all are started. Then the other end of the channel is dropped.
            let waiting = waiting.lock();
            waiting.recv().ok();
        };
        let mut started = Vec::new();
        let mut failure = None;
        for _ in 0..count {
            let thread = thread::Builder::new().stack_size(STACK);
            match thread.spawn_scoped(scope, wait) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        drop(all_started);
        for thread in started {
            // The thread only waited, so it cannot have panicked.
            thread.join().ok();
        }
        failure.map_or(Ok(()), Err)
    })?;
    wait_for_end_of_threads();
    Ok(())
}

/// Waits until the trial threads are gone. Linux still counts a thread for a moment after it was joined. A worker of
/// the runtime that hits the limit in that moment is never started.
fn wait_for_end_of_threads() {
    let own_threads = || std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    let deadline = Instant::now() + PATIENCE;
    while own_threads() > 1 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
}
