//! Workers: long-lived processes that serve many hooks, so that a script costs its own work and no interpreter's start.
//!
//! `docs/worker-protocol.md` says what a worker is told and what it answers. This module starts one when it is first needed, matches its
//! answers to the calls, and starts it again when it ends:
//!
//! | what goes wrong | what happens |
//! |---|---|
//! | a call is not answered in time | the call fails, the worker is told to give it up, a late answer is dropped |
//! | it goes on with such a call for two seconds, or two calls in a row are not answered and nothing else is said | the worker is killed |
//! | a script cannot be loaded when the worker is started again, or has other hooks then | calls of its hooks fail; the other scripts go on |
//! | a line that is no message, or longer than 16 MiB, or an answer to nothing that was asked | the worker is killed |
//! | the worker ends or is killed | every call under way fails; the next one starts it again, after 100 ms, 200 ms, … 2 s |
//! | it fails three times before it lived for a minute | calls fail at once for 30 seconds |
//!
//! What a failed call means is the hook's policy, as with every other handler.

mod check;
mod connection;
mod handler;
mod node;
mod python;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenterhook_process::{CancellationToken, Command};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use self::connection::Connection;

pub use check::{Step, check};
pub use handler::WorkerHandler;
pub use node::node;
pub use python::python;

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;
/// The longest message, in bytes.
pub const LONGEST_LINE: usize = 16 << 20;

/// How long a worker may take to start, and to load one file.
const START: Duration = Duration::from_secs(20);
/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause of a worker that is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Failures in a row after which no start is tried for a while.
const MOST_FAILURES: u32 = 3;
/// How long that is.
const BREAK: Duration = Duration::from_secs(30);
/// A worker that lived this long makes up for the failures before it.
const LONG_LIFE: Duration = Duration::from_mins(1);
/// Calls in a row that are not answered, after which a worker that says nothing is given up.
const MOST_UNANSWERED: u32 = 2;
/// How long a worker may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// The most memory that the shipped runtimes take, in bytes.
const MEMORY: u64 = 2 << 30;

/// Why a worker gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// It could not be started, or did not say that it is ready.
    #[error("worker `{worker}` could not be started: {problem}")]
    Start {
        /// The worker.
        worker: String,
        /// Why.
        problem: String,
    },
    /// It ended, or was killed for what it did.
    #[error("worker `{worker}` ended: {problem}")]
    Ended {
        /// The worker.
        worker: String,
        /// Why.
        problem: String,
    },
    /// It failed too often.
    #[error(
        "worker `{worker}` failed {failures} times in a row, the next start is in {seconds} s; last: {problem}"
    )]
    Broken {
        /// The worker.
        worker: String,
        /// How often.
        failures: u32,
        /// When it is tried again, in seconds.
        seconds: u64,
        /// Why, the last time.
        problem: String,
    },
    /// It said that the call failed.
    #[error("{message}")]
    Call {
        /// What it said.
        message: String,
    },
    /// The deadline passed.
    #[error("timed out")]
    TimedOut,
    /// The call was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// A script that a worker serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Script {
    /// The file that is loaded.
    pub path: PathBuf,
    /// Whose API it is written for: `tenterhook`, or another one that the worker knows.
    pub api: &'static str,
}

/// A hook of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptHook {
    /// What it is called in its file.
    pub name: String,
    /// The event, by its name in the API of the script.
    pub event: String,
    /// Which events of that name.
    #[serde(default)]
    pub matcher: Option<String>,
    /// Higher runs first.
    #[serde(default)]
    pub priority: i32,
}

/// A worker, started when it is first needed. Clones are the same worker; with the last one it ends.
#[derive(Debug, Clone)]
pub struct Worker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    command: Command,
    state: Mutex<State>,
    unanswered: AtomicU32,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// The scripts that the worker serves, by their numbers. Those that were unloaded leave their places empty: a number is
    /// one script's for ever.
    scripts: Vec<Option<Served>>,
    failures: u32,
    not_before: Option<Instant>,
    problem: String,
}

/// A script that a worker serves, and the hooks that the host knows of it: calls name them by their places.
#[derive(Debug)]
struct Served {
    script: Script,
    hooks: Vec<ScriptHook>,
    /// A newer version of it has a number of its own.
    is_old: bool,
    lease: Weak<Leased>,
}

impl Served {
    fn new(script: &Script, hooks: Vec<ScriptHook>) -> Self {
        Self {
            script: script.clone(),
            hooks,
            is_old: false,
            lease: Weak::new(),
        }
    }
}

/// Keeps a script in its worker: when nobody has a clone any more, the worker unloads it.
#[derive(Debug, Clone)]
pub struct Lease(Arc<Leased>);

#[derive(Debug)]
struct Leased {
    worker: Weak<Inner>,
    number: usize,
}

impl Lease {
    /// Returns the number of the script.
    pub fn number(&self) -> usize {
        self.0.number
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // With the worker, or with the program, the script goes anyway.
        if let (Some(worker), Ok(runtime)) = (self.worker.upgrade(), Handle::try_current()) {
            let number = self.number;
            runtime.spawn(async move { worker.unload(number).await });
        }
    }
}

impl Worker {
    /// Makes a worker of a command that speaks the protocol. `name` is for people.
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self {
            inner: Arc::new(Inner {
                name: name.into(),
                command,
                state: Mutex::default(),
                unanswered: AtomicU32::new(0),
            }),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the command that starts it.
    pub fn command(&self) -> &Command {
        &self.inner.command
    }

    /// Loads a script, or loads it anew, and returns its number and its hooks.
    ///
    /// # Errors
    /// When the worker cannot be started, or the script cannot be loaded.
    pub async fn load(&self, script: &Script) -> Result<(usize, Vec<ScriptHook>), WorkerError> {
        let mut state = self.inner.state.lock().await;
        let connection = self.inner.connect(&mut state).await?;
        let number = state.number_of(script).unwrap_or(state.scripts.len());
        let hooks = load(&connection, number, script).await?;
        connection.accept(number);
        state.put(number, script, hooks.clone());
        Ok((number, hooks))
    }

    /// Notes a script whose hooks are known already, and keeps it. The worker loads it when it is started; where it has
    /// other hooks then, calls of them fail.
    pub async fn expect(&self, script: &Script, hooks: Vec<ScriptHook>) -> Lease {
        let mut state = self.inner.state.lock().await;
        let number = match state.number_of(script) {
            Some(number) => number,
            None => self.inner.note(&mut state, script, hooks).await,
        };
        self.inner.lease(&mut state, number)
    }

    /// Says that a script is another one now. Who uses it goes on with the one that was loaded; the next load has a number of its own.
    pub async fn renew(&self, script: &Script) {
        let mut state = self.inner.state.lock().await;
        for served in state.scripts.iter_mut().flatten() {
            served.is_old |= served.script == *script;
        }
    }

    /// Says whether anybody else has this worker.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Calls a hook of a script: its number, the hook's place in the script, and the event as JSON.
    ///
    /// # Errors
    /// When there is no answer, or the hook failed.
    pub async fn handle(
        &self,
        (script, hook): (usize, usize),
        event: &[u8],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(WorkerError::Cancelled),
            connected = tokio::time::timeout_at(deadline, self.connected()) => {
                connected.map_err(|_| WorkerError::TimedOut)??
            }
        };
        if let Some(message) = connection.refusal(script) {
            return Err(WorkerError::Call { message });
        }
        let mut params = format!("{{\"script\":{script},\"hook\":{hook},\"event\":").into_bytes();
        params.extend_from_slice(event);
        params.push(b'}');
        let answered = connection
            .call("event/handle", &params, deadline, cancel)
            .await;
        match &answered {
            Err(WorkerError::TimedOut) => self.inner.note_silence(&connection),
            _ => self.inner.unanswered.store(0, Ordering::Relaxed),
        }
        answered
    }

    /// Returns the worker that runs, or starts one. A start goes on when the call that asked for it has no more time, or calls with
    /// little time would never see its end.
    async fn connected(&self) -> Result<Arc<Connection>, WorkerError> {
        let running = self.inner.state.lock().await.running();
        if let Some(connection) = running {
            return Ok(connection);
        }
        let inner = Arc::clone(&self.inner);
        let starting = tokio::spawn(async move {
            let mut state = inner.state.lock().await;
            inner.connect(&mut state).await
        });
        starting.await.unwrap_or(Err(WorkerError::Cancelled))
    }

    /// Asks the worker to end, waits for it, and kills it where it does not.
    pub async fn shutdown(&self) {
        let connection = self.inner.state.lock().await.connection.take();
        if let Some(connection) = connection {
            connection.shutdown(GRACE).await;
        }
    }

    /// Returns the process id, if the worker runs.
    pub async fn pid(&self) -> Option<u32> {
        let running = self.inner.state.lock().await.running();
        running.map(|connection| connection.pid())
    }
}

impl Inner {
    /// Takes a script whose hooks are known. A worker that runs already loads it at once.
    async fn note(&self, state: &mut State, script: &Script, hooks: Vec<ScriptHook>) -> usize {
        let number = state.scripts.len();
        if let Some(connection) = state.running() {
            load_known(&connection, number, script, &hooks).await;
        }
        state.put(number, script, hooks);
        number
    }

    fn lease(self: &Arc<Self>, state: &mut State, number: usize) -> Lease {
        let mut served = state.scripts.get_mut(number).and_then(Option::as_mut);
        let known = served.as_ref().and_then(|served| served.lease.upgrade());
        let leased = known.unwrap_or_else(|| {
            Arc::new(Leased {
                worker: Arc::downgrade(self),
                number,
            })
        });
        if let Some(served) = &mut served {
            served.lease = Arc::downgrade(&leased);
        }
        Lease(leased)
    }

    /// Takes a script from the worker, unless somebody has come for it since.
    async fn unload(&self, number: usize) {
        let running = {
            let mut state = self.state.lock().await;
            let served = state.scripts.get_mut(number);
            let Some(served) = served.filter(|served| {
                let mut leases = served.iter().map(|served| served.lease.strong_count());
                leases.all(|count| count == 0)
            }) else {
                return;
            };
            *served = None;
            state.running()
        };
        if let Some(connection) = running {
            // What a worker does not forget is never called again.
            let _forgotten = ask(&connection, "script/unload", &json!({ "script": number })).await;
        }
    }

    /// Returns the worker that runs, or starts one.
    async fn connect(&self, state: &mut State) -> Result<Arc<Connection>, WorkerError> {
        if let Some(connection) = &state.connection {
            match connection.death() {
                None => return Ok(Arc::clone(connection)),
                Some(problem) => {
                    let lived = connection.age();
                    state.connection = None;
                    state.fail(problem, lived);
                }
            }
        }
        if let Some(at) = state.not_before {
            if state.failures >= MOST_FAILURES && Instant::now() < at {
                return Err(WorkerError::Broken {
                    worker: self.name.clone(),
                    failures: state.failures,
                    seconds: at.duration_since(Instant::now()).as_secs() + 1,
                    problem: state.problem.clone(),
                });
            }
            sleep_until(at).await;
        }
        match self.start(&state.scripts).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                self.unanswered.store(0, Ordering::Relaxed);
                Ok(connection)
            }
            Err(problem) => {
                state.fail(problem.clone(), Duration::ZERO);
                Err(WorkerError::Start {
                    worker: self.name.clone(),
                    problem,
                })
            }
        }
    }

    async fn start(&self, scripts: &[Option<Served>]) -> Result<Connection, String> {
        let connection = Connection::start(&self.name, &self.command)?;
        let answer = ask(&connection, "initialize", &check::hello()).await?;
        let hello: Hello = serde_json::from_slice(&answer)
            .map_err(|error| format!("its answer to `initialize` is none: {error}"))?;
        if hello.protocol_version != PROTOCOL_VERSION {
            return Err(format!(
                "it speaks version {} of the protocol, expected {PROTOCOL_VERSION}",
                hello.protocol_version
            ));
        }
        for (number, served) in scripts.iter().enumerate() {
            let Some(Served { script, hooks, .. }) = served else {
                continue;
            };
            load_known(&connection, number, script, hooks).await;
            if let Some(death) = connection.death() {
                return Err(death);
            }
        }
        Ok(connection)
    }

    /// Counts a call without an answer. A worker that answers nobody any more is of no use.
    fn note_silence(&self, connection: &Connection) {
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed) + 1;
        if unanswered >= MOST_UNANSWERED && connection.is_silent_for_calls() {
            connection.kill("it does not answer any more");
        }
    }
}

impl State {
    /// Returns the number of a script.
    fn number_of(&self, script: &Script) -> Option<usize> {
        let mut scripts = self.scripts.iter();
        scripts.position(|served| {
            served
                .as_ref()
                .is_some_and(|served| served.script == *script && !served.is_old)
        })
    }

    /// Keeps what is known of a script, and who has a lease of it.
    fn put(&mut self, number: usize, script: &Script, hooks: Vec<ScriptHook>) {
        let served = Served::new(script, hooks);
        match self.scripts.get_mut(number) {
            Some(place) => {
                let lease = place.take().map(|before| before.lease).unwrap_or_default();
                *place = Some(Served { lease, ..served });
            }
            None => self.scripts.push(Some(served)),
        }
    }

    /// Returns the worker, if it runs.
    fn running(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.as_ref();
        connection
            .filter(|connection| connection.death().is_none())
            .map(Arc::clone)
    }

    fn fail(&mut self, problem: String, lived: Duration) {
        if lived >= LONG_LIFE {
            self.failures = 0;
        }
        self.failures += 1;
        self.problem = problem;
        let pause = if self.failures >= MOST_FAILURES {
            BREAK
        } else {
            let doubled = FIRST_PAUSE * 2_u32.pow(self.failures - 1);
            doubled.min(LONGEST_PAUSE)
        };
        self.not_before = Some(Instant::now() + pause);
    }
}

#[derive(Deserialize)]
struct Hello {
    protocol_version: u32,
}

#[derive(Deserialize)]
struct Loaded {
    hooks: Vec<ScriptHook>,
}

async fn load(
    connection: &Connection,
    number: usize,
    script: &Script,
) -> Result<Vec<ScriptHook>, WorkerError> {
    let params = json!({
        "script": number,
        "path": script.path.to_string_lossy(),
        "api": script.api,
    });
    let call = |message: String| WorkerError::Call { message };
    let answer = ask(connection, "script/load", &params)
        .await
        .map_err(call)?;
    let loaded: Loaded = serde_json::from_slice(&answer)
        .map_err(|error| call(format!("its answer to `script/load` is none: {error}")))?;
    Ok(loaded.hooks)
}

/// Loads a script whose hooks are known. Where it cannot be loaded, or has others, it is not called; the other scripts are none
/// the worse for it.
async fn load_known(connection: &Connection, number: usize, script: &Script, hooks: &[ScriptHook]) {
    let problem = match load(connection, number, script).await {
        Ok(loaded) if loaded == *hooks => return,
        Ok(_) => format!(
            "`{}` registers other hooks than it did when it was asked",
            script.path.display()
        ),
        Err(error) => error.to_string(),
    };
    connection.refuse(number, problem);
}

async fn ask(
    connection: &Connection,
    method: &str,
    params: &serde_json::Value,
) -> Result<Bytes, String> {
    let never = CancellationToken::new();
    let params = params.to_string();
    let deadline = Instant::now() + START;
    let answer = connection.call(method, params.as_bytes(), deadline, &never);
    match timeout(START, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(WorkerError::TimedOut)) | Err(_) => Err(format!(
            "no answer to `{method}` within {} seconds",
            START.as_secs()
        )),
        Ok(Err(error)) => Err(error.to_string()),
    }
}
