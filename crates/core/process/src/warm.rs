//! Starts the next instance of a command ahead of time. The instance waits for its standard input,
//! so that a run does not have to wait for the program to start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};

use crate::command::Command;
use crate::launch::Launch;
use crate::slots::Slot;
use crate::sys::{Child, Waiting};

/// How many instances may wait in this process. Further commands are started when they are needed.
pub const MAX_WAITING: usize = 8;

/// How long an instance may wait. An older instance is not used, because files that it has read may
/// be out of date.
pub const MAX_WAIT: Duration = Duration::from_mins(10);

/// How many instances in a row may end before they get their input. After that, the command is not
/// started ahead of time any more, because it does not wait for input.
const MAX_EARLY_ENDS: u32 = 3;

/// How many instances are waiting.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Starts the next instance of one command ahead of time.
///
/// An instance is used once, and only for exactly the same command: program, arguments, directory
/// and variables. It is not used if it has ended, if it waited for more than [`MAX_WAIT`], or if
/// the program or a file among the arguments has changed since it was started. The run then starts
/// a new child. At most [`MAX_WAITING`] instances wait in the process. Dropping this kills the
/// waiting instance with its group.
///
/// Anything that an instance prints before it gets its input is part of its output, as in any run.
#[derive(Debug, Default)]
pub struct Prewarmed {
    shared: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    ready: Option<Ready>,
    is_starting: bool,
    early_ends: u32,
    warm_runs: u64,
    cold_runs: u64,
}

/// A waiting instance.
#[derive(Debug)]
struct Ready {
    waiting: Waiting,
    launch: Launch,
    since: Instant,
    files: Vec<(PathBuf, Option<Mark>)>,
    _permit: Permit,
}

/// The size, modification time and inode of a file. They tell two versions of it apart.
type Mark = (u64, SystemTime, u64);

/// The right to keep one waiting instance.
#[derive(Debug)]
struct Permit;

impl Permit {
    fn take() -> Option<Self> {
        let more = |count: usize| (count < MAX_WAITING).then_some(count + 1);
        let taken = WAITING.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many runs of a command used a waiting instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WarmCounts {
    /// Runs that used a waiting instance.
    pub warm: u64,
    /// Runs that started a new child.
    pub cold: u64,
}

impl Prewarmed {
    /// Creates an empty value. Nothing is started yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an instance in the background, unless one is already waiting.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub fn arm(&self, command: &Command) {
        let mut state = lock(&self.shared);
        if state.is_starting || state.early_ends >= MAX_EARLY_ENDS {
            return;
        }
        let Ok(launch) = command.launch() else {
            return;
        };
        if state
            .ready
            .as_ref()
            .is_some_and(|ready| ready.launch == *launch)
        {
            return;
        }
        let launch = launch.into_owned();
        // An instance for another launch gives its permit back before the new one needs it.
        let unused = state.ready.take();
        state.is_starting = true;
        drop(state);
        let shared = Arc::downgrade(&self.shared);
        tokio::task::spawn_blocking(move || {
            drop(unused);
            let ready = Ready::start(launch);
            put(&shared, ready.ok().flatten());
        });
    }

    /// Returns whether an instance is waiting. It may still be loading.
    pub fn is_ready(&self) -> bool {
        lock(&self.shared).ready.is_some()
    }

    /// Returns the process id of the waiting instance.
    pub fn waiting_pid(&self) -> Option<u32> {
        lock(&self.shared)
            .ready
            .as_ref()
            .map(|ready| ready.waiting.pid())
    }

    /// Returns how many runs used a waiting instance, and how many did not.
    pub fn counts(&self) -> WarmCounts {
        let state = lock(&self.shared);
        WarmCounts {
            warm: state.warm_runs,
            cold: state.cold_runs,
        }
    }

    /// Takes the waiting instance for a run, if it can be used. Takes the slot only in that case.
    pub(crate) fn take(
        &self,
        command: &Command,
        slot: &mut Option<Slot>,
    ) -> Option<(Child, PathBuf)> {
        let mut state = lock(&self.shared);
        let woken = state.usable(command).and_then(|ready| {
            let program = ready.launch.executable.clone();
            Some((ready.waiting.wake(slot).ok()?, program))
        });
        match woken {
            Some(_) => state.warm_runs += 1,
            None => state.cold_runs += 1,
        }
        woken
    }
}

impl State {
    /// Takes the waiting instance, if it can be used for a run of the command. Otherwise drops it,
    /// which kills it.
    fn usable(&mut self, command: &Command) -> Option<Ready> {
        let mut ready = self.ready.take()?;
        if ready.waiting.has_exited().unwrap_or(true) {
            self.early_ends += 1;
            return None;
        }
        self.early_ends = 0;
        let launch = command.launch().ok()?;
        (ready.launch == *launch && ready.is_current()).then_some(ready)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock()
}

/// Stores an instance that was started, unless its owner was dropped.
fn put(shared: &Weak<Mutex<State>>, ready: Option<Ready>) {
    if let Some(shared) = shared.upgrade() {
        let mut state = lock(&shared);
        state.is_starting = false;
        state.ready = ready;
    }
}

impl Ready {
    /// Starts an instance. Returns `None` if too many are waiting.
    fn start(launch: Launch) -> io::Result<Option<Self>> {
        let Some(permit) = Permit::take() else {
            return Ok(None);
        };
        let files = files(&launch);
        Ok(Some(Self {
            waiting: Waiting::start(&launch)?,
            launch,
            since: Instant::now(),
            files,
            _permit: permit,
        }))
    }

    fn is_current(&self) -> bool {
        self.since.elapsed() < MAX_WAIT
            && self
                .files
                .iter()
                .all(|(path, known)| known.is_some() && mark(path) == *known)
    }
}

/// Returns the files that an instance depends on: the program, and the files among its arguments.
fn files(launch: &Launch) -> Vec<(PathBuf, Option<Mark>)> {
    let dir = launch.dir.as_deref().unwrap_or(Path::new(""));
    let arguments = launch.arguments.iter().map(|argument| dir.join(argument));
    [launch.executable.clone()]
        .into_iter()
        .chain(arguments.filter(|path| path.is_file()))
        .map(|path| {
            let known = mark(&path);
            (path, known)
        })
        .collect()
}

fn mark(path: &Path) -> Option<Mark> {
    let found = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let id = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let id = 0;
    Some((found.len(), found.modified().ok()?, id))
}
