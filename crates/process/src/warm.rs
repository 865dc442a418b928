//! The next instance of a command, started ahead of time: it waits in its read of standard input, so that a run
//! pays only for the command's own work.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use crate::command::Launch;
use crate::run::{self, Until};
use crate::slots::Slot;
use crate::sys::{Child, Waiting};
use crate::{CancellationToken, Command, Early, Finished, Limits, SpawnError};

/// How many instances wait in this process at most; a command beyond that is started when it is needed.
pub const MOST_WAITING: usize = 8;

/// How long an instance may wait. An older one is not used: what it read when it started may be out of date.
pub const LONGEST_WAIT: Duration = Duration::from_mins(10);

/// How many instances in a row may end before they got their input. Such a command does not wait for it, and is
/// not started ahead any more.
const MOST_EARLY_ENDS: u32 = 3;

/// How many instances wait.
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Starts the next instance of one command ahead of time.
///
/// An instance is used once, for a run of the very same command: program, arguments, directory and variables. It is
/// not used when it has ended, when it waited for more than [`LONGEST_WAIT`], or when the program or a file among
/// the arguments has changed since it was started; the run is then started afresh. At most [`MOST_WAITING`] instances
/// wait in the process. Dropping this kills the waiting instance with its group.
///
/// What an instance prints before it gets its input is part of its output, as it is for any run.
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

/// An instance that waits.
#[derive(Debug)]
struct Ready {
    waiting: Waiting,
    launch: Launch,
    since: Instant,
    files: Vec<(PathBuf, Option<Mark>)>,
    _permit: Permit,
}

/// What tells two versions of a file apart.
type Mark = (u64, SystemTime, u64);

/// The right to have an instance wait.
#[derive(Debug)]
struct Permit;

impl Permit {
    fn take() -> Option<Self> {
        let more = |count: usize| (count < MOST_WAITING).then_some(count + 1);
        let taken = WAITING.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        taken.ok().map(|_| Self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How the runs of a command were started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WarmCounts {
    /// With an instance that waited.
    pub warm: u64,
    /// Afresh.
    pub cold: u64,
}

impl Prewarmed {
    /// Makes a place for one instance. Nothing is started yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs the command like [`Command::run`], with the waiting instance if there is one, and starts the next one
    /// when the run is over.
    ///
    /// # Errors
    /// As [`Command::run`].
    pub async fn run(
        &self,
        command: &Command,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        let finished = run::run(command, Some(self), stdin, limits, cancel).await;
        self.arm(command);
        finished
    }

    /// Runs the command like [`Command::run_early`], with the waiting instance if there is one, and starts the next
    /// one when there is an answer.
    ///
    /// # Errors
    /// As [`Command::run`].
    pub async fn run_early(
        &self,
        command: &Command,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
        until: Until<'_>,
    ) -> Result<Early, SpawnError> {
        let early = run::run_early(command, Some(self), stdin, limits, cancel, until).await;
        self.arm(command);
        early
    }

    /// Starts an instance in the background, unless one waits already.
    ///
    /// # Panics
    /// Panics outside a tokio runtime.
    pub fn arm(&self, command: &Command) {
        let mut state = lock(&self.shared);
        if state.is_starting || state.early_ends >= MOST_EARLY_ENDS {
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
        // An instance for another directory makes room before the next one asks for it.
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

    /// Says whether an instance waits. It may still be loading.
    pub fn is_ready(&self) -> bool {
        lock(&self.shared).ready.is_some()
    }

    /// Returns the process id of the instance that waits.
    pub fn waiting_pid(&self) -> Option<u32> {
        lock(&self.shared)
            .ready
            .as_ref()
            .map(|ready| ready.waiting.pid())
    }

    /// Returns how runs were started.
    pub fn counts(&self) -> WarmCounts {
        let state = lock(&self.shared);
        WarmCounts {
            warm: state.warm_runs,
            cold: state.cold_runs,
        }
    }

    /// Takes the waiting instance for a run, if it can be used. The slot stays where it is if not.
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
    /// Takes the instance that waits, if it can be used for a run of the command. One that cannot ends here.
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
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands over an instance that was started, unless nobody wants it any more.
fn put(shared: &Weak<Mutex<State>>, ready: Option<Ready>) {
    if let Some(shared) = shared.upgrade() {
        let mut state = lock(&shared);
        state.is_starting = false;
        state.ready = ready;
    }
}

impl Ready {
    /// Starts an instance; `None` is one too many.
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
        self.since.elapsed() < LONGEST_WAIT
            && self
                .files
                .iter()
                .all(|(path, known)| known.is_some() && mark(path) == *known)
    }
}

/// Returns the files that make the instance what it is: the program, and files among its arguments.
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
