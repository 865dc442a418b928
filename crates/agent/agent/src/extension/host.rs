//! The host through which scripts reach the current agent.
//!
//! What scripts can read and change is in [`script_view`](crate::script_view).

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tenterhook_engine::ToolInputError;
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{JsonObject, SessionId};
use tenterhook_runners::worker::{Host, NoHost, Refusal, ScriptAddition, ScriptServer};
use tokio::sync::Notify;

use super::ForeignCommand;
use super::session_request::{PendingRequest, SessionRequests};
use crate::run_report::Prompt;

/// The maximum number of script prompts that may wait for the agent.
const MAX_PROMPTS: usize = 64;

/// One of the agent's tools that a script can replace: its name, and the arguments that the script can receive.
pub type ReplacedTool = (&'static str, Vec<&'static str>);

/// How scripts name the agent's tools and write its session entries. The default is the agent's own spelling.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    /// Writes an entry of the session.
    pub entry: fn(&SessionEntry) -> Value,
    /// Translates the agent's name of a tool to the name that scripts use.
    pub tool: fn(&str) -> &str,
    /// Translates the name that scripts use to the agent's name of the tool.
    pub own_tool: fn(&str) -> &str,
    /// Returns the agent's tool that a script replaces when it registers a tool with this name, and the arguments of
    /// the agent's tool that the script can receive.
    pub replaced: fn(&str) -> Option<ReplacedTool>,
    /// Translates the arguments of a call of the agent's tool for the script that replaces it. The last argument is the
    /// schema of the script's tool.
    pub replaced_input: fn(&str, &JsonObject, &Value) -> Result<JsonObject, ToolInputError>,
}

impl Default for Spelling {
    fn default() -> Self {
        Self {
            entry: |entry| json!(entry),
            tool: |name| name,
            own_tool: |name| name,
            replaced: |_| None,
            replaced_input: |_, input, _| Ok(input.clone()),
        }
    }
}

/// The agent that is attached to a host.
pub(crate) trait ScriptedAgent: Send + Sync + fmt::Debug {
    /// Answers a request of a script.
    fn serve<'a>(
        &'a self,
        host: &'a ScriptHost,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>>;

    /// Returns the agent's session.
    fn session(&self) -> SessionId;

    /// Shows a line that a script printed.
    fn show_output(&self, worker: &str, line: &str);

    /// Adds something that a script registers after it was loaded.
    fn add(
        &self,
        host: &ScriptHost,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
    ) -> Result<(), Refusal>;
}

/// The host through which scripts reach the agent.
///
/// Scripts are loaded before there is an agent. Their requests are answered once an agent is built with this host as
/// its [`scripts`](crate::AgentConfig::scripts).
#[derive(Debug)]
pub struct ScriptHost {
    has_ui: bool,
    is_strict: bool,
    flags: JsonObject,
    spelling: Spelling,
    agent: Mutex<Option<Arc<dyn ScriptedAgent>>>,
    /// The commands of extensions, as scripts see them.
    commands: Mutex<Vec<Value>>,
    /// The script prompts that wait for the agent.
    prompts: Mutex<VecDeque<Prompt>>,
    /// The requests of scripts about the session.
    session_requests: SessionRequests,
    /// Notified when a script queues a prompt or requests the end of the program.
    work: Notify,
    /// Notified when a run is over.
    idle: Notify,
    /// Whether a script has requested the end of the program.
    is_over: AtomicBool,
    /// The sessions of the subagents that work for the agent.
    subagents: Mutex<BTreeSet<String>>,
    /// What is dropped with the host.
    #[expect(dead_code, reason = "it is only held")]
    kept: Option<Arc<dyn fmt::Debug + Send + Sync>>,
}

/// The session of a subagent that works. Dropping it ends the session for scripts.
#[derive(Debug)]
pub(crate) struct SubagentSession {
    host: Arc<ScriptHost>,
    session: String,
}

impl Drop for SubagentSession {
    fn drop(&mut self) {
        self.host.subagents.lock().remove(&self.session);
    }
}

impl ScriptHost {
    /// Creates the host for an agent that is built later. `has_ui` says whether someone sees the messages of scripts
    /// and answers their questions. `flags` are the user's flags for scripts, by name.
    pub fn new(has_ui: bool, flags: JsonObject, spelling: Spelling) -> Self {
        Self {
            has_ui,
            is_strict: false,
            flags,
            spelling,
            agent: Mutex::default(),
            commands: Mutex::default(),
            prompts: Mutex::default(),
            session_requests: SessionRequests::default(),
            work: Notify::new(),
            idle: Notify::new(),
            is_over: AtomicBool::new(false),
            subagents: Mutex::default(),
            kept: None,
        }
    }

    /// Keeps a value until the host is dropped.
    #[must_use]
    pub fn keep(self, value: Arc<dyn fmt::Debug + Send + Sync>) -> Self {
        Self {
            kept: Some(value),
            ..self
        }
    }

    /// Lets scripts know the session of a subagent that works for the agent.
    pub(crate) fn begin_subagent(self: &Arc<Self>, session: &SessionId) -> SubagentSession {
        let session = session.to_string();
        self.subagents.lock().insert(session.clone());
        SubagentSession {
            host: Arc::clone(self),
            session,
        }
    }

    /// Returns whether a session belongs to a subagent that works for the agent.
    pub(crate) fn has_subagent(&self, session: &str) -> bool {
        self.subagents.lock().contains(session)
    }

    /// Makes the gates of a script deny if the script failed when the session started.
    #[must_use]
    pub fn strict(self, is_strict: bool) -> Self {
        Self { is_strict, ..self }
    }

    /// Sets the commands of extensions, which scripts can list.
    pub fn list_commands(&self, commands: &[ForeignCommand]) {
        // A command keeps its script loaded, and the script's worker has this host, so the commands are not kept.
        *self.commands.lock() = commands.iter().map(listed).collect();
    }

    /// Returns the commands of extensions, in pi's format.
    pub(crate) fn commands(&self) -> Vec<Value> {
        self.commands.lock().clone()
    }

    /// Takes the next prompt of a script.
    pub fn take_prompt(&self) -> Option<Prompt> {
        self.prompts().pop_front()
    }

    /// Waits until a script's prompt is waiting, or a script has requested the end of the program. Call this while the
    /// agent is idle, so that prompts do not wait for the user.
    pub async fn has_work(&self) {
        while self.prompts().is_empty() && !self.is_over() {
            self.work.notified().await;
        }
    }

    /// Drops the waiting script prompts, and returns how many there were.
    pub fn forget_prompts(&self) -> usize {
        self.prompts().drain(..).count()
    }

    /// Takes the next session request of a script.
    pub fn take_request(&self) -> Option<PendingRequest> {
        self.session_requests.take()
    }

    /// Waits for the next session request of a script. A command that sends a request waits until the request is
    /// done. Therefore, apply requests while a command runs, and call this again after each of them.
    pub async fn next_request(&self) -> PendingRequest {
        self.session_requests.next().await
    }

    /// Returns whether a script has requested the end of the program.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn prompts(&self) -> MutexGuard<'_, VecDeque<Prompt>> {
        self.prompts.lock()
    }

    fn agent(&self) -> MutexGuard<'_, Option<Arc<dyn ScriptedAgent>>> {
        self.agent.lock()
    }

    /// Lets scripts reach `agent` from now on.
    pub(crate) fn attach(&self, agent: Arc<dyn ScriptedAgent>) {
        *self.agent() = Some(agent);
    }

    /// Detaches the agent, so that scripts cannot reach it any more.
    pub(crate) fn detach(&self) {
        *self.agent() = None;
    }

    /// Returns whether someone answers the questions of scripts.
    pub(crate) fn has_user(&self) -> bool {
        self.has_ui
    }

    /// Returns how scripts name the agent's tools and write its session entries.
    pub(crate) fn spelling(&self) -> &Spelling {
        &self.spelling
    }

    /// Returns the session requests of scripts.
    pub(crate) fn requests(&self) -> &SessionRequests {
        &self.session_requests
    }

    /// Queues a prompt of a script.
    ///
    /// # Errors
    ///
    /// Fails if too many prompts are waiting.
    pub(crate) fn queue_prompt(&self, prompt: Prompt) -> Result<(), Refusal> {
        let mut prompts = self.prompts();
        if prompts.len() == MAX_PROMPTS {
            return Err(Refusal::Failed(format!(
                "too many prompts are waiting; the limit is {MAX_PROMPTS}"
            )));
        }
        prompts.push_back(prompt);
        drop(prompts);
        self.work.notify_one();
        Ok(())
    }

    /// Returns the notifier for the end of a run.
    pub(crate) fn idle(&self) -> &Notify {
        &self.idle
    }

    /// Records that a script has requested the end of the program.
    pub(crate) fn end_program(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.work.notify_one();
    }

    async fn serve(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let agent = self.agent().clone();
        match agent {
            Some(agent) => agent.serve(self, method, params).await,
            None => NoHost.answer(method, params).await,
        }
    }
}

/// Describes a command in pi's format.
fn listed(command: &ForeignCommand) -> Value {
    json!({
        "name": command.names.first(),
        "description": command.description,
        "source": "extension",
        "path": command.path,
    })
}

impl Host for ScriptHost {
    fn has_ui(&self) -> bool {
        self.has_ui
    }

    fn is_strict(&self) -> bool {
        self.is_strict
    }

    fn flags(&self) -> JsonObject {
        self.flags.clone()
    }

    fn script_session(&self, _session: &str) -> Option<String> {
        None
    }

    fn main_session(&self, session: &str) -> Option<String> {
        let is_subagent = self.has_subagent(session);
        let agent = is_subagent.then(|| self.agent().clone()).flatten()?;
        Some(agent.session().to_string())
    }

    fn on_output(&self, worker: &str, line: &str) {
        let agent = self.agent().clone();
        if let Some(agent) = agent {
            agent.show_output(worker, line);
        }
    }

    fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        session: Option<&str>,
    ) -> Result<(), Refusal> {
        let agent = self.agent().clone();
        match agent {
            Some(agent) => agent.add(self, script, addition),
            None => NoHost.add(script, addition, session),
        }
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(self.serve(method, params))
    }
}
