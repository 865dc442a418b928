//! Workers: long-lived processes that serve many hooks, so that a script costs its own work and no interpreter's start.
//!
//! `docs/worker-protocol.md` says what a worker is told and what it answers. This module starts one when it is first needed, matches its
//! answers to the calls, and starts it again when it ends:
//!
//! | what goes wrong | what happens |
//! |---|---|
//! | a call is not answered in time | the call fails, the worker is told to give it up, a late answer is dropped |
//! | it goes on with such a call for two seconds, or two calls in a row are not answered and nothing else is said | the worker is killed |
//! | a script cannot be loaded when the worker is started again, has changed, or has other hooks then | calls of its hooks fail; the other scripts go on |
//! | a line that is no message, or longer than 16 MiB, or an answer to nothing that was asked | the worker is killed |
//! | the worker ends or is killed | every call under way fails; the next one starts it again, after 100 ms, 200 ms, … 2 s |
//! | it fails three times before it lived for a minute | calls fail at once for 30 seconds |
//!
//! An [`Extension`] is a worker too: one of kodelet, whose messages are framed otherwise. It may go on with a call that it was told to give up.
//!
//! What a failed call means is the hook's policy, as with every other handler.

mod check;
mod connection;
mod extension;
mod handler;
mod host;
mod node;
mod python;
mod script;
mod supervisor;
mod version;
mod watched;
mod wire;

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command};
use tokio::runtime::Handle;
use tokio::time::Instant;

use self::connection::Connection;
use self::supervisor::{Peer, Supervisor, ask};
use self::watched::Updates;
use self::wire::Wire;

pub use check::{Step, check};
pub use extension::{
    CommandOutput, EXTENSION_PROTOCOL, Extension, ExtensionCommand, ExtensionTool, Invocation,
    LONGEST_CALL, Registration, Subscription, ToolOutput, ToolSnapshot, ToolSnapshots,
};
pub use handler::WorkerHandler;
pub use host::{Host, NoHost, Refusal};
pub use node::node;
pub use python::python;
pub use script::{
    Registered, Script, ScriptCommand, ScriptFlag, ScriptHook, ScriptTool, ToolAnswer,
};
pub use version::ScriptVersion;

/// Hears what a tool has so far.
pub type ToolUpdates = Arc<dyn Fn(ToolAnswer) + Send + Sync>;

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;
/// The longest message, in bytes.
pub const LONGEST_LINE: usize = 16 << 20;

/// How long a worker may take to start, and to load one file.
const START: Duration = Duration::from_secs(30);
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

/// A worker, started when it is first needed. Clones are the same worker; with the last one it ends.
#[derive(Debug, Clone)]
pub struct Worker {
    inner: Arc<Supervisor<Scripts>>,
}

/// The scripts that a worker serves, by their numbers.
#[derive(Debug)]
struct Scripts {
    /// Those that were unloaded leave their places empty: a number is one script's for ever.
    served: Vec<Option<Served>>,
    host: Arc<dyn Host>,
}

/// A script that a worker serves, and the hooks that the host knows of it: calls name them by their places.
#[derive(Debug)]
struct Served {
    script: Script,
    hooks: Vec<ScriptHook>,
    version: Option<ScriptVersion>,
    /// A newer version of it has a number of its own.
    is_old: bool,
    lease: Weak<Leased>,
}

/// Keeps a script in its worker: when nobody has a clone any more, the worker unloads it.
#[derive(Debug, Clone)]
pub struct Lease(Arc<Leased>);

#[derive(Debug)]
struct Leased {
    worker: Weak<Supervisor<Scripts>>,
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
        if let (Some(inner), Ok(runtime)) = (self.worker.upgrade(), Handle::try_current()) {
            let number = self.number;
            runtime.spawn(async move { Worker { inner }.unload(number).await });
        }
    }
}

impl Worker {
    /// Makes a worker of a command that speaks the protocol. `name` is for people.
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self::make(name.into(), command, Arc::new(NoHost))
    }

    /// Makes a worker of the same command whose scripts may ask this host.
    #[must_use]
    pub fn hosted_by(&self, host: Arc<dyn Host>) -> Self {
        Self::make(self.inner.name.clone(), self.inner.command.clone(), host)
    }

    fn make(name: String, command: Command, host: Arc<dyn Host>) -> Self {
        let scripts = Scripts {
            served: Vec::new(),
            host: Arc::clone(&host),
        };
        Self {
            inner: Arc::new(Supervisor::new(name, command, scripts, host)),
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

    /// Loads a script, or loads it anew, and returns its number and what it registers.
    ///
    /// # Errors
    /// When the worker cannot be started, or the script cannot be loaded.
    pub async fn load(&self, script: &Script) -> Result<(usize, Registered), WorkerError> {
        let mut state = self.inner.state().await;
        let connection = self.inner.connect(&mut state).await?;
        let scripts = &mut state.peer;
        let number = scripts.number_of(script).unwrap_or(scripts.served.len());
        let registered = load(&connection, number, script, &*scripts.host).await?;
        connection.accept(number);
        scripts.put(number, script, registered.hooks.clone());
        Ok((number, registered))
    }

    /// Notes a script whose hooks are known already, and keeps it. The worker loads it when it is started, or at once where it runs.
    /// Where the script has other hooks then, or is not this version any more, calls of its hooks fail.
    pub async fn expect(
        &self,
        script: &Script,
        hooks: Vec<ScriptHook>,
        version: Option<ScriptVersion>,
    ) -> Lease {
        let mut state = self.inner.state().await;
        let running = state.running();
        let scripts = &mut state.peer;
        scripts.retire_other_versions(script, version.as_ref());
        let known = scripts.number_of(script);
        let number = known.unwrap_or(scripts.served.len());
        if known.is_none() {
            scripts.put(number, script, hooks);
        }
        if let Some(served) = scripts.served.get_mut(number).and_then(Option::as_mut) {
            served.version = version;
        }
        if let (None, Some(connection)) = (known, running) {
            scripts.load_known(&connection, number).await;
        }
        scripts.lease(&self.inner, number)
    }

    /// Says that a script is another one now. Who uses it goes on with the one that was loaded; the next load has a number of its own.
    pub async fn renew(&self, script: &Script) {
        let mut state = self.inner.state().await;
        for served in state.peer.served.iter_mut().flatten() {
            served.is_old |= served.script == *script;
        }
    }

    /// Takes a script from the worker, unless somebody has come for it since.
    async fn unload(&self, number: usize) {
        let running = {
            let mut state = self.inner.state().await;
            let served = state.peer.served.get_mut(number);
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
        let head = format!("{{\"script\":{script},\"hook\":{hook},\"event\":");
        let params = [head.as_bytes(), event, b"}"];
        self.call("event/handle", script, &params, within, cancel)
            .await
    }

    /// Runs a tool of a script: the script's number, the tool's name, the id of the call and the arguments as JSON. `updates`
    /// hears what the tool has so far, in order and before its answer; it must not block.
    ///
    /// # Errors
    /// When there is no answer, it is none, or the tool failed.
    pub async fn run_tool(
        &self,
        (script, tool): (usize, &str),
        (call, input): (&str, &Value),
        updates: Option<ToolUpdates>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolAnswer, WorkerError> {
        let params = json!({
            "script": script,
            "tool": tool,
            "tool_use_id": call,
            "input": input,
            "updates": updates.is_some(),
        });
        let params = params.to_string();
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let updates = updates.map(|updates| -> Updates {
            Arc::new(move |partial| {
                let partial = serde_json::from_value(partial);
                partial.map(&*updates).map_err(|error| error.to_string())
            })
        });
        let answer = self
            .inner
            .call_watched(
                &connection,
                ("tool/run", &[params.as_bytes()]),
                updates,
                deadline,
                cancel,
            )
            .await?;
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Call {
            message: format!("the answer of tool `{tool}` is none: {error}"),
        })
    }

    /// Runs a command of a script: the script's number, the command's name, and what stands behind it.
    ///
    /// # Errors
    /// When there is no answer, or the command failed.
    pub async fn run_command(
        &self,
        (script, command): (usize, &str),
        args: &str,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), WorkerError> {
        let params = json!({ "script": script, "command": command, "args": args });
        let params = params.to_string();
        self.call("command/run", script, &[params.as_bytes()], within, cancel)
            .await
            .map(drop)
    }

    async fn call(
        &self,
        method: &str,
        script: usize,
        params: &[&[u8]],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        self.inner
            .call(&connection, (method, params), deadline, cancel)
            .await
    }

    /// Returns the process, if a script in it can be called.
    async fn reach(
        &self,
        script: usize,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, WorkerError> {
        let connection = self.inner.connected(deadline, cancel).await?;
        match connection.refusal(script) {
            Some(message) => Err(WorkerError::Call { message }),
            None => Ok(connection),
        }
    }

    /// Asks the worker to end, waits for it, and kills it where it does not.
    pub async fn shutdown(&self) {
        self.inner.shutdown().await;
    }

    /// Returns the process id, if the worker runs.
    pub async fn pid(&self) -> Option<u32> {
        self.inner.pid().await
    }
}

impl Peer for Scripts {
    const WIRE: Wire = Wire::WORKER;

    async fn greet(&mut self, connection: &Connection) -> Result<(), String> {
        let answer = ask(connection, "initialize", &check::hello(self.host.has_ui())).await?;
        let hello: Hello = serde_json::from_slice(&answer)
            .map_err(|error| format!("its answer to `initialize` is none: {error}"))?;
        if hello.protocol_version != PROTOCOL_VERSION {
            return Err(format!(
                "it speaks version {} of the protocol, expected {PROTOCOL_VERSION}",
                hello.protocol_version
            ));
        }
        for number in 0..self.served.len() {
            self.load_known(connection, number).await;
            if let Some(death) = connection.death() {
                return Err(death);
            }
        }
        Ok(())
    }
}

impl Scripts {
    /// Returns the number of a script.
    fn number_of(&self, script: &Script) -> Option<usize> {
        let mut served = self.served.iter();
        served.position(|served| {
            let served = served.as_ref();
            served.is_some_and(|served| served.script == *script && !served.is_old)
        })
    }

    /// Marks a script as old where it is in force in another version.
    fn retire_other_versions(&mut self, script: &Script, version: Option<&ScriptVersion>) {
        let Some(version) = version else { return };
        for served in self.served.iter_mut().flatten() {
            let is_other = |known: &ScriptVersion| !known.is_same(version);
            served.is_old |=
                served.script == *script && served.version.as_ref().is_some_and(is_other);
        }
    }

    /// Keeps what is known of a script, and who has a lease of it.
    fn put(&mut self, number: usize, script: &Script, hooks: Vec<ScriptHook>) {
        let served = |lease| {
            Some(Served {
                script: script.clone(),
                hooks,
                version: None,
                is_old: false,
                lease,
            })
        };
        match self.served.get_mut(number) {
            Some(place) => {
                let lease = place.take().map(|before| before.lease);
                *place = served(lease.unwrap_or_default());
            }
            None => self.served.push(served(Weak::new())),
        }
    }

    fn lease(&mut self, worker: &Arc<Supervisor<Self>>, number: usize) -> Lease {
        let mut served = self.served.get_mut(number).and_then(Option::as_mut);
        let known = served.as_ref().and_then(|served| served.lease.upgrade());
        let leased = known.unwrap_or_else(|| {
            Arc::new(Leased {
                worker: Arc::downgrade(worker),
                number,
            })
        });
        if let Some(served) = &mut served {
            served.lease = Arc::downgrade(&leased);
        }
        Lease(leased)
    }

    /// Loads a script whose hooks are known. Where that fails, it is not called; other scripts are not affected.
    async fn load_known(&self, connection: &Connection, number: usize) {
        let Some(served) = self.served.get(number).and_then(Option::as_ref) else {
            return;
        };
        if let Err(problem) = self.try_load_known(connection, number, served).await {
            connection.refuse(number, problem);
        }
    }

    async fn try_load_known(
        &self,
        connection: &Connection,
        number: usize,
        served: &Served,
    ) -> Result<(), String> {
        let script = &served.script;
        ScriptVersion::check(served.version.as_ref()).await?;
        let registered = load(connection, number, script, &*self.host)
            .await
            .map_err(|error| error.to_string())?;
        if registered.hooks != served.hooks {
            return Err(format!(
                "`{}` registers other hooks than it did when it was asked",
                script.path.display()
            ));
        }
        // The worker read the file after the first check.
        ScriptVersion::check(served.version.as_ref()).await
    }
}

#[derive(Deserialize)]
struct Hello {
    protocol_version: u32,
}

async fn load(
    connection: &Connection,
    number: usize,
    script: &Script,
    host: &dyn Host,
) -> Result<Registered, WorkerError> {
    let params = json!({
        "script": number,
        "path": script.path.to_string_lossy(),
        "api": script.api,
        "flags": host.flags(),
    });
    let call = |message: String| WorkerError::Call { message };
    let answer = ask(connection, "script/load", &params)
        .await
        .map_err(call)?;
    serde_json::from_slice(&answer)
        .map_err(|error| call(format!("its answer to `script/load` is none: {error}")))
}
