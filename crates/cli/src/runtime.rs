//! Starts the async runtime, or says which limit of the system is in the way.
//!
//! Tokio panics, and may then wait for ever, where it cannot start a thread or open the pipe for signals. So threads and
//! files are tried out first: what fails here is an error with a next step.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::CliError;
use crate::exit::Exit;

/// More worker threads gain nothing: the program waits for processes, files and the network.
const MAX_WORKERS: usize = 8;

/// Threads that the program needs in addition to its workers: for blocking work, the journal, standard input and the
/// reaper.
const MORE_THREADS: usize = 4;

/// Files that the program needs before it opens its first one. Fewer are open at once in a call without hooks.
const FILES: usize = 12;

const FEW_FILES: &str = "raise the limit of open files (`ulimit -n`)";
const FEW_THREADS: &str = "raise the limit of processes (`ulimit -u`), or end other programs";

/// The stack of a thread that only waits.
const STACK: usize = 64 << 10;

/// Idle threads stay: one that ended could not be started again where the limit was reached meanwhile.
const KEEP_ALIVE: Duration = Duration::from_hours(24);

/// How long the first blocking task may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts the runtime, with at least one thread for blocking work.
pub(crate) fn start() -> Result<Runtime, CliError> {
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
    // Without a thread for it blocking work would wait for ever.
    let (sender, started) = mpsc::channel();
    runtime.spawn_blocking(move || sender.send(()).ok());
    if started.recv_timeout(PATIENCE).is_err() {
        runtime.shutdown_background();
        let source = io::Error::other("no thread for blocking work was started");
        return Err(error(FEW_THREADS, &source));
    }
    Ok(runtime)
}

/// Opens so many files at once.
fn try_files(count: usize) -> io::Result<()> {
    let first = File::open(if cfg!(windows) { "NUL" } else { "/dev/null" })?;
    let files: io::Result<Vec<File>> = (1..count).map(|_| first.try_clone()).collect();
    files.map(drop)
}

/// Starts so many threads at once.
fn try_threads(count: usize) -> io::Result<()> {
    let (all_started, waiting) = mpsc::channel::<()>();
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        let wait = || {
            // Every thread waits until all were started, which is when the other end is dropped.
            let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.recv().ok();
        };
        let started: io::Result<Vec<_>> = (0..count)
            .map(|_| {
                let thread = thread::Builder::new().stack_size(STACK);
                thread.spawn_scoped(scope, wait)
            })
            .collect();
        drop(all_started);
        started.map(drop)
    })
}
