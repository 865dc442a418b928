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
mod wire;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command};
use tokio::time::Instant;

use self::connection::Connection;
use self::supervisor::{Peer, Supervisor, ask};
use self::wire::Wire;

pub use check::{Step, check};
pub use extension::{
    CommandOutput, EXTENSION_PROTOCOL, Extension, ExtensionCommand, ExtensionTool, Invocation,
    LONGEST_CALL, Registration, Subscription, ToolOutput,
};
pub use handler::WorkerHandler;
pub use host::{Host, NoHost, Refusal};
pub use node::node;
pub use python::python;
pub use script::{
    Registered, Script, ScriptCommand, ScriptFlag, ScriptHook, ScriptTool, ToolAnswer,
};

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

/// A worker, started when it is first needed. Clones are the same worker; with the last one it ends.
#[derive(Debug, Clone)]
pub struct Worker {
    inner: Arc<Supervisor<Scripts>>,
}

/// The scripts that a worker serves, by their numbers.
#[derive(Debug)]
struct Scripts {
    served: Vec<Served>,
    host: Arc<dyn Host>,
}

/// A script that a worker serves, and the hooks that the host knows of it: calls name them by their places.
#[derive(Debug)]
struct Served {
    script: Script,
    hooks: Vec<ScriptHook>,
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
        let Scripts { served, host } = &mut state.peer;
        let number = served
            .iter()
            .position(|known| known.script == *script)
            .unwrap_or(served.len());
        let registered = load(&connection, number, script, &**host).await?;
        connection.accept(number);
        let loaded = Served {
            script: script.clone(),
            hooks: registered.hooks.clone(),
        };
        match served.get_mut(number) {
            Some(known) => *known = loaded,
            None => served.push(loaded),
        }
        Ok((number, registered))
    }

    /// Notes a script whose hooks are known already, and returns its number. The worker loads it when it is started; where it has
    /// other hooks then, calls of them fail.
    pub async fn expect(&self, script: &Script, hooks: Vec<ScriptHook>) -> usize {
        let mut state = self.inner.state().await;
        let scripts = &mut state.peer.served;
        if let Some(number) = scripts.iter().position(|known| known.script == *script) {
            return number;
        }
        scripts.push(Served {
            script: script.clone(),
            hooks,
        });
        let number = scripts.len() - 1;
        // A worker that runs already has to be told.
        state.let_go();
        number
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

    /// Runs a tool of a script: the script's number, the tool's name, the id of the call and the arguments as JSON.
    ///
    /// # Errors
    /// When there is no answer, it is none, or the tool failed.
    pub async fn run_tool(
        &self,
        (script, tool): (usize, &str),
        (call, input): (&str, &Value),
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolAnswer, WorkerError> {
        let params = json!({ "script": script, "tool": tool, "tool_use_id": call, "input": input });
        let params = params.to_string();
        let answer = self
            .call("tool/run", script, &[params.as_bytes()], within, cancel)
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
        let connection = self.inner.connected(deadline, cancel).await?;
        if let Some(message) = connection.refusal(script) {
            return Err(WorkerError::Call { message });
        }
        self.inner
            .call(&connection, (method, params), deadline, cancel)
            .await
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
        for (number, Served { script, hooks }) in self.served.iter().enumerate() {
            let problem = match load(connection, number, script, &*self.host).await {
                Ok(registered) if registered.hooks == *hooks => continue,
                Ok(_) => format!(
                    "`{}` registers other hooks than it did when it was asked",
                    script.path.display()
                ),
                Err(error) => error.to_string(),
            };
            if let Some(death) = connection.death() {
                return Err(death);
            }
            // The other scripts are none the worse for it.
            connection.refuse(number, problem);
        }
        Ok(())
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
