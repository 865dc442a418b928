//! A worker and the scripts that it serves.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::future::ready;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command};
use tenterhook_protocol::JsonObject;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connection::Connection;
use super::error::WorkerError;
use super::host::{Host, NoHost};
use super::load_request::request_load;
use super::progress::{CallNotes, Updates};
use super::protocol::{PROTOCOL_VERSION, hello};
use super::refusal::Refusal;
use super::script::{
    Registered, Script, ScriptCredentials, ScriptHook, ScriptModelEnd, ScriptModelPart, ScriptTool,
    ToolAnswer, result_for_script,
};
use super::script_server::{Rendered, ScriptAddition, ScriptServer, ScriptToolCall, ToolUpdates};
use super::starts::SessionStarts;
use super::supervisor::{Peer, Supervisor, ask};
use super::version::ScriptVersion;
use super::wire::Wire;

/// Receives the parts of a model's answer.
pub type ModelUpdates = Arc<dyn Fn(ScriptModelPart) + Send + Sync>;

/// A worker, which is started when it is first needed. Clones share one worker. It ends when the
/// last clone is dropped.
#[derive(Debug, Clone)]
pub struct Worker {
    pub(super) inner: Arc<Supervisor<Scripts>>,
}

/// The scripts that a worker serves, by number.
#[derive(Debug)]
pub(super) struct Scripts {
    /// A script that was unloaded leaves `None` behind, because a number is never given to another script.
    served: Vec<Option<Served>>,
    pub(super) host: Arc<dyn Host>,
    desk: Arc<ScriptDesk>,
}

/// The host of one worker. It knows which script makes a request, and passes all other requests on.
#[derive(Debug)]
struct ScriptDesk {
    host: Arc<dyn Host>,
    worker: OnceLock<Weak<Supervisor<Scripts>>>,
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

impl ScriptDesk {
    fn new(host: Arc<dyn Host>) -> Self {
        Self {
            host,
            worker: OnceLock::new(),
            leases: Mutex::default(),
        }
    }

    /// Remembers the lease of a script, and forgets leases that no longer exist.
    fn remember(&self, number: usize, lease: &Arc<Leased>) {
        let mut known = self.leases.lock();
        known.retain(|_, lease| lease.strong_count() > 0);
        known.insert(number, Arc::downgrade(lease));
    }

    /// Adds what a script registers after it was loaded. This must not wait, because the script waits for it.
    fn register(&self, params: &Value) -> Result<Value, Refusal> {
        let RegisterParams {
            script,
            tool,
            session,
        } = Deserialize::deserialize(params)
            .map_err(|error| Refusal::Invalid(format!("{error}")))?;
        let lease = self.leases.lock().get(&script).and_then(Weak::upgrade);
        let worker = self.worker.get().and_then(Weak::upgrade);
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
        self.host
            .add(Arc::new(server), addition, session.as_deref())?;
        Ok(json!({}))
    }
}

impl Host for ScriptDesk {
    fn has_ui(&self) -> bool {
        self.host.has_ui()
    }

    fn is_strict(&self) -> bool {
        self.host.is_strict()
    }

    fn flags(&self) -> JsonObject {
        self.host.flags()
    }

    fn on_output(&self, worker: &str, line: &str) {
        self.host.on_output(worker, line);
    }

    fn script_session(&self, session: &str) -> Option<String> {
        self.host.script_session(session)
    }

    fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        session: Option<&str>,
    ) -> Result<(), Refusal> {
        self.host.add(script, addition, session)
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        if method == "script/register" {
            return Box::pin(ready(self.register(params)));
        }
        self.host.answer(method, params)
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
        let session = call.session.and_then(|session| self.lease.session(session));
        Box::pin(async move {
            let session = session.as_deref();
            let call = ScriptToolCall { session, ..call };
            let ran = self.worker.run_tool(tool, call, updates, within, cancel);
            ran.await
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
        let session = self.lease.session(session);
        Box::pin(async move {
            let session = session.as_deref();
            let ran = self.worker.run_command(command, session, within, cancel);
            ran.await
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
    host: Arc<dyn Host>,
    starts: Mutex<SessionStarts>,
}

impl Lease {
    /// Returns the number of the script.
    pub fn number(&self) -> usize {
        self.0.number
    }

    /// Returns the session whose state of the script is used for a call of `session`. `None` if there is only one state.
    pub(super) fn session(&self, session: &str) -> Option<String> {
        self.0.host.script_session(session)
    }

    /// Records how a hook of the script handled the start of a session. If it failed, the user is warned, because
    /// other hooks of the script may lack what it prepares.
    pub(super) async fn record_start(
        &self,
        (hook, session): (usize, Option<&str>),
        name: &str,
        end: Result<&Arc<Connection>, String>,
    ) {
        let failure = end.as_ref().err().cloned();
        self.0.starts.lock().record((session, hook), end);
        if let Some(failure) = failure {
            let message = format!(
                "`{name}` failed, so the other hooks of its script may not work: {failure}"
            );
            self.warn(session, &message).await;
        }
    }

    /// Records that a call of a session uses a connection. If the script has lost what it prepared for the session, the
    /// user is warned.
    pub(super) async fn use_connection(
        &self,
        session: Option<&str>,
        name: &str,
        connection: &Arc<Connection>,
    ) {
        let lost = self.0.starts.lock().use_connection(session, connection);
        if let Some(lost) = lost {
            let message = format!("the hooks of the script of `{name}` may not work: {lost}");
            self.warn(session, &message).await;
        }
    }

    async fn warn(&self, session: Option<&str>, message: &str) {
        let notice = json!({ "message": message, "level": "error", "session": session });
        // Without a user interface, the journal and the list of hooks still have the failure.
        let _shown = self.0.host.answer("ui/notify", &notice).await;
    }

    /// Returns what is wrong with the script because a hook failed when a session started.
    pub(super) fn start_problem(&self) -> Option<String> {
        self.0.starts.lock().failure().map(str::to_owned)
    }

    /// Returns why a gate of the script must not be asked in a session.
    pub(super) fn refusal(&self, session: Option<&str>) -> Option<String> {
        let starts = self.0.starts.lock();
        let problem = starts.failure_in(session).map(str::to_owned);
        problem.filter(|_| self.0.host.is_strict())
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
        let desk = Arc::new(ScriptDesk::new(Arc::clone(&host)));
        let scripts = Scripts {
            served: Vec::new(),
            host,
            desk: Arc::clone(&desk),
        };
        let host = Arc::clone(&desk) as Arc<dyn Host>;
        let inner = Arc::new(Supervisor::new(name, command, scripts, host));
        desk.worker.get_or_init(|| Arc::downgrade(&inner));
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
        self.handle_in(None, hook, event, within, cancel).await
    }

    /// Does the same with the state that the script has for a session.
    pub(super) async fn handle_in(
        &self,
        session: Option<&str>,
        (script, hook): (usize, usize),
        event: &[u8],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let request = (session, (script, hook), event);
        self.handle_on(&connection, request, deadline, cancel).await
    }

    /// Does the same on a connection.
    pub(super) async fn handle_on(
        &self,
        connection: &Connection,
        (session, (script, hook), event): (Option<&str>, (usize, usize), &[u8]),
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let session = session.filter(|_| connection.separates_sessions());
        let session = session.map(|session| format!("\"session\":{},", Value::from(session)));
        let session = session.unwrap_or_default();
        let head = format!("{{\"script\":{script},\"hook\":{hook},{session}\"event\":");
        let params = [head.as_bytes(), event, b"}"];
        let request: (&str, &[&[u8]]) = ("event/handle", &params);
        self.inner.call(connection, request, deadline, cancel).await
    }

    /// Lets the scripts forget the state that they have for a session. Does nothing if the worker does not run.
    pub async fn end_session(&self, session: &str) {
        let state = self.inner.state().await;
        let served = state.peer.served.iter().flatten();
        for lease in served.filter_map(|served| served.lease.upgrade()) {
            lease.starts.lock().forget(session);
        }
        let running = state.running();
        drop(state);
        if let Some(connection) = running.filter(|it| it.separates_sessions()) {
            connection.end_session(session);
        }
    }

    /// Runs a tool of a script. The tool is given by the number of its script and its name. `updates` receives the
    /// tool's output so far, in order and before the answer. It must not block.
    ///
    /// # Errors
    /// Fails if there is no answer, if the answer is invalid, or if the tool failed.
    pub async fn run_tool(
        &self,
        (script, tool): (usize, &str),
        call: ScriptToolCall<'_>,
        updates: Option<ToolUpdates>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolAnswer, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let mut params = json!({
            "script": script,
            "tool": tool,
            "tool_use_id": call.id,
            "input": call.input,
            "updates": updates.is_some(),
        });
        add_session(&mut params, call.session, &connection);
        let params = params.to_string();
        let updates = updates.map(|updates| -> Updates {
            Arc::new(move |partial| {
                let partial = serde_json::from_value(partial);
                partial.map(&*updates).map_err(|error| error.to_string())
            })
        });
        let answer = self
            .inner
            .call_with(
                &connection,
                ("tool/run", &[params.as_bytes()]),
                CallNotes::listening(updates),
                deadline,
                cancel,
            )
            .await?;
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Call {
            message: format!("invalid answer of tool `{tool}`: {error}"),
        })
    }

    /// Returns the key and the headers with which a model of a script's provider is called. The script resolves them,
    /// because they may come from its environment or from a command.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the script has no such provider.
    pub async fn credentials(
        &self,
        (script, provider, model): (usize, &str, &str),
        within: Duration,
    ) -> Result<ScriptCredentials, WorkerError> {
        let params = json!({ "script": script, "provider": provider, "model": model }).to_string();
        let never = CancellationToken::new();
        let params = [params.as_bytes()];
        let answer = self.call("provider/credentials", script, &params, within, &never);
        // The cause could quote the key.
        serde_json::from_slice(&answer.await?).map_err(|_| WorkerError::Call {
            message: format!("the credentials of the provider `{provider}` are invalid"),
        })
    }

    /// Lets a script call a model of its provider. `updates` receives the parts of the answer, in order. It must not
    /// block.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the answer is invalid.
    pub async fn run_model(
        &self,
        script: usize,
        request: &Value,
        updates: ModelUpdates,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ScriptModelEnd, WorkerError> {
        let params = json!({ "script": script, "request": request }).to_string();
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let updates: Updates = Arc::new(move |part| {
            let part = ScriptModelPart::deserialize(part);
            part.map(&*updates).map_err(|error| error.to_string())
        });
        let request: (&str, &[&[u8]]) = ("provider/stream", &[params.as_bytes()]);
        let answer = self
            .inner
            .call_with(
                &connection,
                request,
                CallNotes::listening(Some(updates)),
                deadline,
                cancel,
            )
            .await?;
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Call {
            message: format!("invalid answer of a model: {error}"),
        })
    }

    /// Runs a command of a script, with the state that the script has for a session, if it has one for each. The command
    /// is given by the number of its script, its name and the text after the name.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the command failed.
    pub async fn run_command(
        &self,
        (script, command, args): (usize, &str, &str),
        session: Option<&str>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let mut params = json!({ "script": script, "command": command, "args": args });
        add_session(&mut params, session, &connection);
        let params = params.to_string();
        let request: (&str, &[&[u8]]) = ("command/run", &[params.as_bytes()]);
        let ran = self.inner.call(&connection, request, deadline, cancel);
        ran.await.map(drop)
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

/// Adds the session to the parameters of a call, if there is one and the worker keeps a state for each.
fn add_session(params: &mut Value, session: Option<&str>, connection: &Connection) {
    let session = session.filter(|_| connection.separates_sessions());
    if let (Some(params), Some(session)) = (params.as_object_mut(), session) {
        params.insert("session".to_owned(), session.into());
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
        let host = Arc::clone(&self.host);
        let mut served = self.served.get_mut(number).and_then(Option::as_mut);
        let known = served.as_ref().and_then(|served| served.lease.upgrade());
        let leased = known.unwrap_or_else(|| {
            Arc::new(Leased {
                worker: Arc::downgrade(worker),
                number,
                host,
                starts: Mutex::default(),
            })
        });
        if let Some(served) = &mut served {
            served.lease = Arc::downgrade(&leased);
            self.desk.remember(number, &leased);
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
