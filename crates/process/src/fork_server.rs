//! Runs an unmodified Python script without starting Python for it.
//!
//! A long-lived interpreter loads what the script imports and compiles it; each run is a fork of that. The run
//! itself is driven by the code that drives every other one: the same deadline, pipes, limits and process group.
//!
//! A server is never needed. While there is none, or where it cannot do what is asked, the command is run as if
//! there were no such thing; [`ForkServer::counts`] says how often that was.

mod server;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::command::Launch;
use crate::run::drive;
use crate::slots::Slot;
use crate::sys::{Child, Forked};
use crate::{Command, Finished, Limits, PythonScript, SpawnError};

use server::{Seat, Server, Spot, Stamp};

/// How many servers one process runs at once. Scripts beyond that run without one.
const MAX_SERVERS: usize = 8;

/// How long a fork may take, at most a quarter of the timeout. A server that needs longer is no help.
const FORK_PATIENCE: Duration = Duration::from_secs(1);

/// The time between two starts, and the pause after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Failures after which no server is started any more, unless the script changes.
const MAX_FAILURES: u32 = 5;

/// A server that lived this long makes up for the failures before it.
const LONG_LIFE: Duration = Duration::from_mins(1);

/// Runs one Python script by forking an interpreter that has loaded it.
///
/// The first run starts the interpreter in the background and does not wait for it. The script, its modules and
/// the environment are looked at before each run: what has changed is loaded anew, in a new interpreter. An
/// interpreter that fails is started again after a pause of 250 ms, doubled each time, and not again after five
/// failures until the script changes. One process has at most eight.
///
/// Dropping the last clone ends the interpreter.
#[derive(Debug, Clone)]
pub struct ForkServer {
    inner: Arc<Inner>,
}

/// How the runs of a [`ForkServer`] went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ForkCounts {
    /// Runs that were forked.
    pub forked: u64,
    /// Runs in a fresh process, because there was no server that fitted.
    pub cold: u64,
    /// Interpreters that were started.
    pub starts: u64,
    /// The last reason for which an interpreter could not be used.
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
    /// What the script was at the last failure. Another script may fare better.
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

    /// Returns how the runs went until now.
    pub fn counts(&self) -> ForkCounts {
        ForkCounts {
            forked: self.inner.forked.load(Ordering::Relaxed),
            cold: self.inner.cold.load(Ordering::Relaxed),
            starts: self.inner.starts.load(Ordering::Relaxed),
            problem: self.inner.state().problem.clone(),
        }
    }

    /// Starts the interpreter, if there is none, and waits until it is ready, at most `within`.
    ///
    /// # Errors
    ///
    /// Says why there is none. Runs work nevertheless.
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
                    return Err(problem.unwrap_or_else(|| "it was started a moment ago".to_owned()));
                }
                changed.await;
            }
        };
        let late = |_| Err("it is still starting".to_owned());
        timeout(within, waiting).await.unwrap_or_else(late)
    }

    /// Runs `command`, which is the script of this server, like [`Command::run`] does.
    ///
    /// A run that has not begun when the server fails is run in a fresh process. One that has begun is not
    /// repeated: it fails as lost.
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
            let slot = cancel.run_until_cancelled(command.slots_or_shared().take());
            let slot = slot.await.ok_or(SpawnError::Cancelled)?;
            let began = Instant::now();
            let mut rest = stdin;
            let patience = FORK_PATIENCE.min(limits.timeout / 4);
            let beginning = begin(&server, &spot, &mut rest, slot);
            let child = cancel.run_until_cancelled(timeout(patience, beginning));
            match child.await.ok_or(SpawnError::Cancelled)? {
                Ok(Ok(child)) => {
                    self.inner.forked.fetch_add(1, Ordering::Relaxed);
                    let finished = drive(child, rest, began, &limits, cancel).await;
                    return self.inner.conclude(&server, finished);
                }
                Ok(Err(error)) => self.inner.lose(&server, &error.to_string()),
                Err(_) => self.inner.lose(&server, "the server does not answer"),
            }
            limits.timeout = limits.timeout.saturating_sub(began.elapsed());
        }
        self.inner.cold.fetch_add(1, Ordering::Relaxed);
        command.run(stdin, &limits, cancel).await
    }
}

/// Gets a child and lets it begin. After an error nothing has begun.
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
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_starting(&self) -> bool {
        matches!(self.state().phase, Phase::Starting)
    }

    /// Returns the server that fits a launch, and sees to it that there will be one if there is none.
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

    /// Starts a server in the place of `old`, unless it is too early for that.
    fn replace(self: &Arc<Self>, old: Option<Arc<Server>>, launch: &Launch, spot: Spot) {
        let mut state = self.state();
        if !state.holds(old.as_ref()) {
            // Another run was faster.
            return;
        }
        state.phase = Phase::Idle;
        // Its seat is free for the next one.
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
        let Some(seat) = Seat::take() else {
            state.problem = Some(format!("{MAX_SERVERS} fork servers run already"));
            return;
        };
        state.not_before = Some(now + FIRST_PAUSE);
        let (inner, launch, flags) = (Arc::downgrade(self), launch.clone(), self.script.flags);
        let start = move || {
            let started = Server::start(&launch, spot, flags, seat);
            // Nobody is left to use the server otherwise, and it ends here.
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

    /// Takes a server that was started, or the reason for which there is none.
    fn settle(&self, started: Result<Server, String>, script: Option<Stamp>) {
        let mut state = self.state();
        match started {
            Ok(server) => state.phase = Phase::Ready(Arc::new(server)),
            Err(problem) => state.fail(problem, script),
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Prepares for the run after one that came to its end, or gives up the server that it was lost with.
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
    /// Tells whether this server, or none, is the one that is held.
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
