//! Runs an unmodified Python script without starting Python for it.
//!
//! A long-lived interpreter compiles the script and loads the modules that it imports. Each run is
//! a fork of this interpreter. The same code drives it as any other run, with the same deadline,
//! pipes, limits and process group.
//!
//! The server is only an optimization. If no server runs, or if it cannot run the script, the
//! command runs in a fresh process. [`ForkServer::counts`] returns how often that happened.

mod server;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::launch::Launch;
use crate::run::drive;
use crate::slots::Slot;
use crate::sys::{Child, Forked};
use crate::{Command, Finished, Limits, PythonScript, SpawnError};

use server::{MAX_SERVERS, Server, ServerPermit, Spot, Stamp};

/// How long a fork may take, but at most a quarter of the timeout. A slower server saves no time.
const FORK_PATIENCE: Duration = Duration::from_secs(1);

/// If a run waits longer than this for a slot, the files of the server are checked again after the wait.
const LONG_WAIT: Duration = Duration::from_millis(2);

/// The time between two starts, and the pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// After this many failures, no server is started any more until the script changes.
const MAX_FAILURES: u32 = 5;

/// A server that ran for this long resets the count of failures.
const LONG_LIFE: Duration = Duration::from_mins(1);

/// Runs one Python script by forking an interpreter that has loaded it.
///
/// The first run starts the interpreter in the background and does not wait for it. Before each
/// run, the script, its modules and the environment are checked. If one of them has changed, a new
/// interpreter is started. An interpreter that fails is restarted after a pause of 250 ms, which
/// doubles each time. After five failures, it is not restarted until the script changes. One
/// process has at most eight interpreters.
///
/// Dropping the last clone ends the interpreter.
#[derive(Debug, Clone)]
pub struct ForkServer {
    inner: Arc<Inner>,
    /// How long a fork may take.
    patience: Duration,
}

impl From<PythonScript> for ForkServer {
    fn from(script: PythonScript) -> Self {
        Self::new(script)
    }
}

/// How many runs of a [`ForkServer`] were forked, and why others were not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ForkCounts {
    /// Runs that were forked.
    pub forked: u64,
    /// Runs in a fresh process, because no suitable server was ready.
    pub cold: u64,
    /// How many interpreters were started.
    pub starts: u64,
    /// The last reason why an interpreter could not be used.
    pub problem: Option<String>,
}

#[derive(Debug)]
struct Inner {
    script: PythonScript,
    state: Mutex<State>,
    changed: Notify,
    forked: AtomicU64,
    cold: AtomicU64,
    starts: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    failures: u32,
    /// The version of the script at the last failure. A changed script may work.
    failed_with: Option<Stamp>,
    not_before: Option<Instant>,
    problem: Option<String>,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Starting,
    Ready(Arc<Server>),
}

impl ForkServer {
    /// Creates the server of a script. Nothing is started yet.
    pub fn new(script: PythonScript) -> Self {
        Self {
            patience: FORK_PATIENCE,
            inner: Arc::new(Inner {
                script,
                state: Mutex::default(),
                changed: Notify::new(),
                forked: AtomicU64::new(0),
                cold: AtomicU64::new(0),
                starts: AtomicU64::new(0),
            }),
        }
    }

    /// Waits longer or shorter for a fork than one second. A fork never takes more than a quarter of the timeout.
    #[must_use]
    pub fn fork_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Returns the counts of all runs so far.
    pub fn counts(&self) -> ForkCounts {
        ForkCounts {
            forked: self.inner.forked.load(Ordering::Relaxed),
            cold: self.inner.cold.load(Ordering::Relaxed),
            starts: self.inner.starts.load(Ordering::Relaxed),
            problem: self.inner.state().problem.clone(),
        }
    }

    /// Starts the interpreter if it does not run yet, and waits at most `within` until it is ready.
    ///
    /// # Errors
    ///
    /// Returns why no interpreter is ready. Runs work without it.
    pub async fn warm(&self, command: &Command, within: Duration) -> Result<(), String> {
        let launch = command.launch().map_err(|error| error.to_string())?;
        let waiting = async {
            loop {
                let mut changed = std::pin::pin!(self.inner.changed.notified());
                changed.as_mut().enable();
                if self.inner.ready(&launch).is_some() {
                    return Ok(());
                }
                if !self.inner.is_starting() {
                    let problem = self.inner.state().problem.clone();
                    return Err(problem.unwrap_or_else(|| {
                        "an interpreter was started only a moment ago".to_owned()
                    }));
                }
                changed.await;
            }
        };
        let late = |_| Err("the interpreter is still starting".to_owned());
        timeout(within, waiting).await.unwrap_or_else(late)
    }

    /// Runs `command` like [`Command::run`]. The command must run the script of this server.
    ///
    /// If the server fails before the script has started, the script runs in a fresh process. If
    /// the server fails later, the run is not repeated and fails with [`SpawnError::Lost`].
    ///
    /// # Errors
    ///
    /// Fails if no child could be started, or if the server was lost while the script ran.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn run(
        &self,
        command: &Command,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        let mut limits = *limits;
        if let Ok(launch) = command.launch()
            && let Some((server, spot)) = self.inner.ready(&launch)
        {
            let asked = Instant::now();
            let slot = cancel.run_until_cancelled(command.slots_or_shared().take());
            let slot = slot.await.ok_or(SpawnError::Cancelled)?;
            let began = Instant::now();
            if began - asked > LONG_WAIT && !server.is_fresh() {
                drop(slot);
                return self.cold(command, stdin, &limits, cancel).await;
            }
            let mut rest = stdin;
            let patience = self.patience.min(limits.timeout / 4);
            let beginning = begin(&server, &spot, &mut rest, slot);
            let child = cancel.run_until_cancelled(timeout(patience, beginning));
            match child.await.ok_or(SpawnError::Cancelled)? {
                Ok(Ok(child)) => {
                    self.inner.forked.fetch_add(1, Ordering::Relaxed);
                    let finished = drive(child, rest, began, &limits, cancel).await;
                    return self.inner.conclude(&server, finished);
                }
                Ok(Err(error)) => self.inner.lose(&server, &error.to_string()),
                Err(_) => self
                    .inner
                    .lose(&server, "the server did not answer in time"),
            }
            limits.timeout = limits.timeout.saturating_sub(began.elapsed());
        }
        self.cold(command, stdin, &limits, cancel).await
    }

    async fn cold(
        &self,
        command: &Command,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        self.inner.cold.fetch_add(1, Ordering::Relaxed);
        command.run(stdin, limits, cancel).await
    }
}

/// Gets a child and starts its work. After an error, the script has not run.
async fn begin(server: &Server, at: &Spot, stdin: &mut &[u8], slot: Slot) -> io::Result<Child> {
    if server.has_ended() {
        return Err(io::Error::other("the server has ended"));
    }
    let forked = match server.take_idle() {
        Some(conn) => Forked::accept(conn).await.ok(),
        None => None,
    };
    let forked = match forked {
        Some(forked) => forked,
        None => Forked::accept(server.fork()?).await?,
    };
    let pwd = at.pwd.as_ref().map(|pwd| pwd.as_encoded_bytes());
    forked.begin(&at.dir, pwd, stdin, slot)
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn is_starting(&self) -> bool {
        matches!(self.state().phase, Phase::Starting)
    }

    /// Returns the server for a launch. If there is no suitable one, starts it in the background.
    fn ready(self: &Arc<Self>, launch: &Launch) -> Option<(Arc<Server>, Spot)> {
        let spot = Spot::of(launch, self.script.flags)?;
        let server = match &self.state().phase {
            Phase::Ready(server) => Some(Arc::clone(server)),
            Phase::Starting => return None,
            Phase::Idle => None,
        };
        if let Some(server) = &server
            && server.place == spot.place
            && server.is_fresh()
        {
            return spot.dir.is_dir().then(|| (Arc::clone(server), spot));
        }
        self.replace(server, launch, spot);
        None
    }

    /// Replaces `old` with a new server, unless the pause after the last start is not over.
    fn replace(self: &Arc<Self>, old: Option<Arc<Server>>, launch: &Launch, spot: Spot) {
        let mut state = self.state();
        if !state.holds(old.as_ref()) {
            // Another run has replaced it already.
            return;
        }
        state.phase = Phase::Idle;
        // Frees its permit for the new server.
        drop(old);
        let script = Stamp::of(&spot.place.script);
        if state.failures > 0 && state.failed_with != script {
            state.failures = 0;
            state.not_before = None;
        }
        let now = Instant::now();
        if state.failures >= MAX_FAILURES || state.not_before.is_some_and(|moment| now < moment) {
            return;
        }
        let Some(permit) = ServerPermit::acquire() else {
            state.problem = Some(format!("{MAX_SERVERS} fork servers are already running"));
            return;
        };
        state.not_before = Some(now + FIRST_PAUSE);
        let (inner, launch, flags) = (Arc::downgrade(self), launch.clone(), self.script.flags);
        let start = move || {
            let started = Server::start(&launch, spot, flags, permit);
            // If the owner was dropped, no one needs the server, and it ends here.
            if let Some(inner) = Weak::upgrade(&inner) {
                inner.settle(started, script);
            }
        };
        let thread = thread::Builder::new().name("fork-server".to_owned());
        if thread.spawn(start).is_ok() {
            self.starts.fetch_add(1, Ordering::Relaxed);
            state.phase = Phase::Starting;
        }
    }

    /// Stores the server that was started, or the reason why it could not be started.
    fn settle(&self, started: Result<Server, String>, script: Option<Stamp>) {
        let mut state = self.state();
        match started {
            Ok(server) => state.phase = Phase::Ready(Arc::new(server)),
            Err(problem) => state.fail(problem, script),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Ends a run. Prepares the child of the next run, or gives up the server if the run was lost.
    fn conclude(
        &self,
        server: &Arc<Server>,
        finished: io::Result<Finished>,
    ) -> Result<Finished, SpawnError> {
        match &finished {
            Ok(_) => server.fork_ahead(),
            Err(error) => self.lose(server, &error.to_string()),
        }
        finished.map_err(|source| SpawnError::Lost {
            program: server.place.executable.clone(),
            source,
        })
    }

    /// Gives up a server that failed.
    fn lose(&self, server: &Arc<Server>, problem: &str) {
        let mut state = self.state();
        if state.holds(Some(server)) {
            if server.began.elapsed() > LONG_LIFE {
                state.failures = 0;
            }
            state.fail(problem.to_owned(), Stamp::of(&server.place.script));
        }
    }
}

impl State {
    /// Returns whether `server` is the current server. With `None`, returns whether there is no server.
    fn holds(&self, server: Option<&Arc<Server>>) -> bool {
        match (&self.phase, server) {
            (Phase::Ready(held), Some(server)) => Arc::ptr_eq(held, server),
            (Phase::Idle, None) => true,
            _ => false,
        }
    }

    fn fail(&mut self, problem: String, script: Option<Stamp>) {
        self.phase = Phase::Idle;
        self.not_before =
            Some(Instant::now() + FIRST_PAUSE * (1 << self.failures.min(MAX_FAILURES)));
        self.failures += 1;
        self.failed_with = script;
        self.problem = Some(problem);
    }
}
