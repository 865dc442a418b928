//! A worker and the scripts that it serves.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::calls::CallNotes;
use super::connection::Connection;
use super::error::WorkerError;
use super::host::{Host, NoHost};
use super::load_request::request_load;
use super::protocol::{PROTOCOL_VERSION, hello};
use super::refusal::Refusal;
use super::requests::{LateRegistration, Requests, Sender};
use super::script::{Registered, Script, ScriptHook, ScriptTool, ToolAnswer, result_for_script};
use super::script_server::{Rendered, ScriptAddition, ScriptServer, ScriptToolCall, ToolUpdates};
use super::script_session::CallRole;
use super::script_sessions::{EndInProgress, Replay, ScriptSessions, Use};
use super::supervisor::{Peer, Supervisor, ask};
use super::version::ScriptVersion;
use super::wire::Wire;

/// A worker, which is started when it is first needed. Clones share one worker. It ends when the
/// last clone is dropped.
#[derive(Debug, Clone)]
pub struct Worker {
    pub(super) inner: Arc<Supervisor<Scripts>>,
}

/// A call of a hook.
#[derive(Debug)]
pub(super) struct HookCall<'a> {
    /// The number of the script and the index of the hook.
    pub(super) place: (usize, usize),
    /// The session whose state of the script is used.
    pub(super) session: Option<&'a str>,
    /// Whether the hook has handled the event before, in a process that has ended.
    pub(super) is_replay: bool,
    /// The event as JSON.
    pub(super) event: &'a [u8],
    /// The end of a session that the event reports.
    pub(super) session_end: Option<EndInProgress>,
}

/// The scripts that a worker serves, by number.
#[derive(Debug)]
pub(super) struct Scripts {
    /// A script that was unloaded leaves `None` behind, because a number is never given to another script.
    served: Vec<Option<Served>>,
    pub(super) host: Arc<dyn Host>,
    late: Arc<LateScripts>,
}

/// The scripts that may register something after they were loaded.
#[derive(Debug)]
pub(super) struct LateScripts {
    worker: Weak<Supervisor<Scripts>>,
    /// The leases of the scripts, by number.
    leases: Mutex<BTreeMap<usize, Weak<Leased>>>,
}

/// The parameters of `script/register`.
#[derive(Deserialize)]
struct RegisterParams {
    script: usize,
    tool: Option<ScriptTool>,
    session: Option<String>,
}

impl LateScripts {
    /// Makes the table of a program that serves no scripts.
    pub(super) fn none() -> Self {
        Self {
            worker: Weak::new(),
            leases: Mutex::default(),
        }
    }

    /// Remembers the lease of a script, and forgets leases that no longer exist.
    fn remember(&self, number: usize, lease: &Arc<Leased>) {
        let mut known = self.leases.lock();
        known.retain(|_, lease| lease.strong_count() > 0);
        known.insert(number, Arc::downgrade(lease));
    }
}

impl LateRegistration for LateScripts {
    fn register(&self, host: &dyn Host, params: &Value) -> Result<Value, Refusal> {
        let RegisterParams {
            script,
            tool,
            session,
        } = Deserialize::deserialize(params)
            .map_err(|error| Refusal::Invalid(format!("{error}")))?;
        let lease = self.leases.lock().get(&script).and_then(Weak::upgrade);
        let worker = self.worker.upgrade();
        let (Some(lease), Some(inner)) = (lease, worker) else {
            return Err(Refusal::Failed(
                "the script is not part of a session".to_owned(),
            ));
        };
        let server = LeasedScript {
            worker: Worker { inner },
            lease: Lease(lease),
        };
        let addition = tool.map_or(ScriptAddition::Footer, ScriptAddition::Tool);
        host.add(Arc::new(server), addition, session.as_deref())?;
        Ok(json!({}))
    }
}

/// How long a script may take to render something.
const RENDER: Duration = Duration::from_secs(1);

/// A script with its worker.
#[derive(Debug)]
struct LeasedScript {
    worker: Worker,
    lease: Lease,
}

impl LeasedScript {
    /// Returns the connection, once the script has what it prepared when the session began.
    async fn reach_for(
        &self,
        session: Option<&str>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, WorkerError> {
        let number = self.lease.number();
        let connection = self.worker.reach(number, deadline, cancel).await?;
        if let Some(session) = session {
            let used = Use {
                session,
                role: CallRole::Other,
                deadline,
                cancel,
            };
            self.lease.restore(used, &connection).await?;
        }
        Ok(connection)
    }
}

#[derive(Deserialize)]
struct RenderAnswer {
    lines: Option<Vec<String>>,
}

impl ScriptServer for LeasedScript {
    fn run_tool<'a>(
        &'a self,
        tool: &'a str,
        call: ScriptToolCall<'a>,
        updates: Option<ToolUpdates>,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolAnswer, WorkerError>> {
        let tool = (self.lease.number(), tool);
        let state = call.session.and_then(|session| self.lease.session(session));
        let deadline = Instant::now() + within;
        Box::pin(async move {
            let connection = self.reach_for(call.session, deadline, cancel).await?;
            let session = state.as_deref();
            let call = ScriptToolCall { session, ..call };
            Worker::run_tool(&connection, tool, call, updates, (deadline, cancel)).await
        })
    }

    fn run_command<'a>(
        &'a self,
        (command, args): (&'a str, &'a str),
        session: &'a str,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), WorkerError>> {
        let command = (self.lease.number(), command, args);
        let state = self.lease.session(session);
        let deadline = Instant::now() + within;
        Box::pin(async move {
            let connection = self.reach_for(Some(session), deadline, cancel).await?;
            Worker::run_command(&connection, command, state.as_deref(), deadline, cancel).await
        })
    }

    fn render<'a>(
        &'a self,
        rendered: Rendered<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, WorkerError>> {
        let script = self.lease.number();
        let params = match rendered {
            Rendered::ToolCall(tool, input) => {
                json!({ "script": script, "what": "tool_call", "tool": tool, "input": input })
            }
            Rendered::ToolResult(tool, result) => json!({
                "script": script, "what": "tool_result", "tool": tool, "result": result_for_script(result),
            }),
            Rendered::Footer => json!({ "script": script, "what": "footer" }),
        };
        Box::pin(async move {
            let params = params.to_string();
            let params = [params.as_bytes()];
            let worker = &self.worker;
            let answer = worker.call("script/render", script, &params, RENDER, cancel);
            let answer: RenderAnswer =
                serde_json::from_slice(&answer.await?).map_err(|error| WorkerError::Call {
                    message: format!("invalid answer to `script/render`: {error}"),
                })?;
            Ok(answer.lines)
        })
    }
}

/// A script that a worker serves, with the hooks that it registered. Calls refer to hooks by their index.
#[derive(Debug)]
struct Served {
    script: Script,
    hooks: Vec<ScriptHook>,
    version: Option<ScriptVersion>,
    /// Whether this is an old version. A newer version of the script gets its own number.
    is_old: bool,
    lease: Weak<Leased>,
}

/// Keeps a script loaded in its worker. When the last clone is dropped, the worker unloads the script.
#[derive(Debug, Clone)]
pub struct Lease(Arc<Leased>);

#[derive(Debug)]
struct Leased {
    worker: Weak<Supervisor<Scripts>>,
    number: usize,
    sessions: Arc<ScriptSessions>,
}

impl Lease {
    /// Returns the number of the script.
    pub fn number(&self) -> usize {
        self.0.number
    }

    /// Returns the session whose state of the script is used for a call of `session`. `None` if there is only one state.
    pub(super) fn session(&self, session: &str) -> Option<String> {
        self.sessions().state_of(session)
    }

    /// Returns the sessions that the script has started.
    pub(super) fn sessions(&self) -> &Arc<ScriptSessions> {
        &self.0.sessions
    }

    /// Lets the script make its state for a session, if it has a state for each. Without it, its gates do not work.
    async fn begin(&self, used: &Use<'_>, connection: &Connection) -> Result<(), WorkerError> {
        let number = self.number();
        let state = self.session(used.session);
        let state = state.filter(|_| connection.separates_sessions());
        let Some(state) = state.filter(|state| !connection.has_begun(number, state)) else {
            return Ok(());
        };
        let params = json!({ "script": number, "session": state }).to_string();
        let request: (&str, &[&[u8]]) = ("script/begin", &[params.as_bytes()]);
        let notes = CallNotes::default();
        let begun = connection.call_once(request, notes, used.deadline, used.cancel);
        match begun.await {
            Ok(_) => {
                connection.note_begun(number, &state);
                Ok(())
            }
            Err(WorkerError::Cancelled) => Err(WorkerError::Cancelled),
            Err(error) => Err(self.sessions().not_begun(&error)),
        }
    }

    /// Records that the host reports a session as over. If it continues nevertheless, it still has its start.
    pub fn end_session(&self, session: &str) {
        self.sessions().mark_over(session);
    }

    /// Lets the script hear the starts of a session again that the process behind a connection has not heard. Returns
    /// whether there were any.
    pub(super) async fn restore(
        &self,
        used: Use<'_>,
        connection: &Arc<Connection>,
    ) -> Result<bool, WorkerError> {
        self.begin(&used, connection).await?;
        let replay = || -> Replay {
            let (leased, connection) = (Arc::clone(&self.0), Arc::clone(connection));
            Box::new(move |start| {
                let (leased, connection) = (Arc::clone(&leased), Arc::clone(&connection));
                Box::pin(async move {
                    let session = leased.sessions.state_of(&start.session);
                    let call = HookCall {
                        place: (leased.number, start.hook),
                        session: session.as_deref(),
                        is_replay: true,
                        event: &start.event,
                        session_end: None,
                    };
                    let deadline = Instant::now() + start.within;
                    let never = CancellationToken::new();
                    let handled = Worker::handle_on(&connection, call, deadline, &never);
                    handled.await.map(drop)
                })
            })
        };
        self.sessions()
            .restore(used, connection.number(), replay)
            .await
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // If the worker or the runtime is gone, there is nothing to unload.
        if let (Some(inner), Ok(runtime)) = (self.worker.upgrade(), Handle::try_current()) {
            let number = self.number;
            runtime.spawn(async move { Worker { inner }.unload(number).await });
        }
    }
}

impl Worker {
    /// Makes a worker from a command that speaks the protocol. Messages show the worker as `name`.
    pub fn new(name: impl Into<String>, command: Command) -> Self {
        Self::make(name.into(), command, Arc::new(NoHost))
    }

    /// Makes a new worker with the same command, whose scripts can send requests to this host.
    #[must_use]
    pub fn hosted_by(&self, host: Arc<dyn Host>) -> Self {
        Self::make(self.inner.name.clone(), self.inner.command.clone(), host)
    }

    /// Makes a new worker with the same command, which looks for programs in these folders.
    #[must_use]
    pub fn search_path(&self, search: &OsStr) -> Self {
        let command = self.inner.command.clone().env("PATH", search);
        Self::make(self.inner.name.clone(), command, Arc::new(NoHost))
    }

    fn make(name: String, command: Command, host: Arc<dyn Host>) -> Self {
        let inner = Arc::new_cyclic(|worker| {
            let late = Arc::new(LateScripts {
                worker: Weak::clone(worker),
                leases: Mutex::default(),
            });
            let requests =
                Requests::new(Arc::clone(&host), Sender::Scripts(Arc::clone(&late) as _));
            let scripts = Scripts {
                served: Vec::new(),
                host,
                late,
            };
            Supervisor::new(name, command, scripts, requests)
        });
        Self { inner }
    }

    /// Returns a script of this worker, which the lease keeps loaded.
    pub fn script(&self, lease: Lease) -> Arc<dyn ScriptServer> {
        Arc::new(LeasedScript {
            worker: self.clone(),
            lease,
        })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the command that starts it.
    pub fn command(&self) -> &Command {
        &self.inner.command
    }

    /// Loads or reloads a script, and returns its number and what it registers.
    ///
    /// # Errors
    /// Fails if the worker cannot be started, or if the script cannot be loaded.
    pub async fn load(&self, script: &Script) -> Result<(usize, Registered), WorkerError> {
        let mut state = self.inner.state().await;
        let connection = self.inner.connect(&mut state).await?;
        let scripts = &mut state.peer;
        let number = scripts.number_of(script).unwrap_or(scripts.served.len());
        let registered = request_load(&connection, number, script, None, &*scripts.host).await?;
        connection.accept(number);
        scripts.put(number, script, registered.hooks.clone());
        Ok((number, registered))
    }

    /// Adds a script whose hooks are already known, and keeps it loaded. The worker loads the
    /// script when it starts, or at once if it is running. If the script then has other hooks or
    /// another version, calls of its hooks fail.
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

    /// Records that a script has changed. Existing handlers keep the version that was loaded. The
    /// next load gets a new number.
    pub async fn renew(&self, script: &Script) {
        let mut state = self.inner.state().await;
        for served in state.peer.served.iter_mut().flatten() {
            served.is_old |= served.script == *script;
        }
    }

    /// Unloads a script, unless it has a new lease.
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
            // A failure does not matter, because the script is never called again.
            let _forgotten = ask(&connection, "script/unload", &json!({ "script": number })).await;
        }
    }

    /// Returns whether other clones of this worker exist.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Calls a hook of a script with an event, and returns the answer. Both are JSON. The hook is
    /// given by the number of its script and its index in the script.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the hook failed.
    pub async fn handle(
        &self,
        hook: (usize, usize),
        event: &[u8],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(hook.0, deadline, cancel).await?;
        let call = HookCall {
            place: hook,
            session: None,
            is_replay: false,
            event,
            session_end: None,
        };
        Self::handle_on(&connection, call, deadline, cancel).await
    }

    /// Does the same on a connection.
    pub(super) async fn handle_on(
        connection: &Connection,
        call: HookCall<'_>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let (script, hook) = call.place;
        let session = call.session.filter(|_| connection.separates_sessions());
        let session = session.map(|session| format!("\"session\":{},", Value::from(session)));
        let session = session.unwrap_or_default();
        let replay = if call.is_replay {
            "\"replay\":true,"
        } else {
            ""
        };
        let head = format!("{{\"script\":{script},\"hook\":{hook},{session}{replay}\"event\":");
        let params = [head.as_bytes(), call.event, b"}"];
        let notes = CallNotes {
            session_end: call.session_end,
            ..CallNotes::default()
        };
        let request: (&str, &[&[u8]]) = ("event/handle", &params);
        connection.call(request, notes, deadline, cancel).await
    }

    /// Lets the scripts forget the state that they have for a session. Does nothing if the worker does not run.
    pub async fn end_session(&self, session: &str) {
        let state = self.inner.state().await;
        let served = state.peer.served.iter().flatten();
        for lease in served.filter_map(|served| served.lease.upgrade()) {
            lease.sessions.forget(session);
        }
        let running = state.running();
        drop(state);
        if let Some(connection) = running.filter(|it| it.separates_sessions()) {
            connection.end_session(session).await;
        }
    }

    pub(super) async fn call(
        &self,
        method: &str,
        script: usize,
        params: &[&[u8]],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let notes = CallNotes::default();
        connection
            .call((method, params), notes, deadline, cancel)
            .await
    }

    /// Returns the connection, if the script can be called.
    pub(super) async fn reach(
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

    /// Asks the worker to end, and kills it if it does not end in time.
    pub async fn shutdown(&self) {
        self.inner.shutdown().await;
    }

    /// Returns the process id, if the worker runs.
    pub async fn pid(&self) -> Option<u32> {
        self.inner.pid().await
    }
}

impl Peer for Scripts {
    fn wire(&self) -> Wire {
        Wire::WORKER
    }

    async fn greet(&mut self, connection: &Connection) -> Result<(), String> {
        let answer = ask(connection, "initialize", &hello(self.host.has_ui())).await?;
        let hello: Hello = serde_json::from_slice(&answer)
            .map_err(|error| format!("cannot read its answer to `initialize`: {error}"))?;
        if hello.protocol_version != PROTOCOL_VERSION {
            return Err(format!(
                "it speaks version {} of the protocol, expected {PROTOCOL_VERSION}",
                hello.protocol_version
            ));
        }
        if hello.sessions {
            connection.separate_sessions();
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

    /// Marks loaded scripts with another version as old.
    fn retire_other_versions(&mut self, script: &Script, version: Option<&ScriptVersion>) {
        let Some(version) = version else { return };
        for served in self.served.iter_mut().flatten() {
            let is_other = |known: &ScriptVersion| !known.is_same(version);
            served.is_old |=
                served.script == *script && served.version.as_ref().is_some_and(is_other);
        }
    }

    /// Returns the number under which a script is to be loaded. Each call for a new script returns another number.
    pub(super) fn reserve(&mut self, script: &Script) -> usize {
        self.number_of(script).unwrap_or_else(|| {
            self.served.push(None);
            self.served.len() - 1
        })
    }

    /// Stores a script and its hooks. An existing lease of the number is kept.
    pub(super) fn put(&mut self, number: usize, script: &Script, hooks: Vec<ScriptHook>) {
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
        let name = served.as_ref().map(|served| served.script.file_name());
        let leased = known.unwrap_or_else(|| {
            let sessions = ScriptSessions::new(name.unwrap_or_default(), Arc::clone(&self.host));
            Arc::new(Leased {
                worker: Arc::downgrade(worker),
                number,
                sessions: Arc::new(sessions),
            })
        });
        if let Some(served) = &mut served {
            served.lease = Arc::downgrade(&leased);
            self.late.remember(number, &leased);
        }
        Lease(leased)
    }

    /// Loads a script whose hooks are known. If that fails, the script cannot be called. Other
    /// scripts are not affected.
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
        let registered = request_load(connection, number, script, None, &*self.host)
            .await
            .map_err(|error| error.to_string())?;
        if registered.hooks != served.hooks {
            return Err(format!(
                "`{}` does not register the same hooks as when it was first loaded",
                script.path.display()
            ));
        }
        // Checked again, because the file may have changed after the first check and before the
        // worker read it.
        ScriptVersion::check(served.version.as_ref()).await
    }
}

#[derive(Deserialize)]
struct Hello {
    protocol_version: u32,
    #[serde(default)]
    sessions: bool,
}
