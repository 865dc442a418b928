//! The agent: one session at a time, under the hooks of an engine.

#[cfg(unix)]
mod apply_request;
mod session_switch;

use std::path::{self, Path};
use std::sync::Arc;

use crate::resource::Resources;
use crate::sessions::{Session, UnknownEntry, UnsyncedTail};
use tenterhook_engine::{Dispatcher, Engine};
use tenterhook_protocol::event::{
    DiscoverReason, ModelSelectSource, SessionEndReason, SessionSource,
};
use tenterhook_protocol::{EntryId, JsonObject, Role, SessionId};
use tenterhook_providers::{ModelId, ThinkingLevel};
use tenterhook_tools::{
    Agents, TRANSFER_TASK, TransferTask, UnmatchedRuleError, add_background_tools,
};
use tokio_util::sync::CancellationToken;

use crate::active_session::ActiveSession;
use crate::compaction::{CompactionError, CompactionReport};
use crate::config::{AgentConfig, BuildError, DEFAULT_NAME, fresh_session};
#[cfg(unix)]
use crate::extension::ScriptHost;
use crate::handle::AgentHandle;
use crate::models::{SelectError, SelectedModel};
use crate::run_report::{Prompt, RunReport};
use crate::user_command::{UserCommand, UserCommandError, UserCommandRun};

#[cfg(unix)]
pub use self::apply_request::SessionRequestError;
pub use self::session_switch::{SessionSwitchError, SessionSwitched};

impl AgentConfig {
    /// Builds an agent under the hooks of `engine`. Nothing is dispatched yet.
    ///
    /// # Errors
    ///
    /// Fails without a model, if two agents have the same name, if a list names an unknown tool, and if
    /// `max_iterations` or `compact_at` is 0.
    pub fn build(mut self, engine: Engine) -> Result<Agent, BuildError> {
        let provider = self.model.clone().ok_or(BuildError::NoModel)?;
        self.check()?;
        if let Ok(cwd) = path::absolute(&self.cwd) {
            self.cwd = cwd;
        }
        if !self.agents.is_empty() {
            let named = self
                .agents
                .iter()
                .map(|agent| (agent.name.clone(), agent.description.clone()));
            let agents: Agents = named.collect();
            let transfer = TransferTask::for_agents(agents.clone());
            self.toolbox = self.toolbox.with(transfer);
            if self.has_background_tasks {
                self.toolbox = add_background_tools(self.toolbox, &agents);
            }
        }
        let name = self.model_name.take();
        let name = name.unwrap_or_else(|| provider.id().to_string());
        self.models.add(&name, &provider);
        let model = SelectedModel {
            name,
            provider,
            thinking: self.thinking,
        };
        let session = self.session.take().unwrap_or_else(fresh_session);
        let config = Arc::new(self);
        let permissions = config.permissions.clone();
        let state = (model.clone(), model);
        Ok(Agent {
            active: ActiveSession::begin(&engine, &config, state, permissions, session),
            engine,
            config,
            is_started: false,
        })
    }
}

/// An agent and its session.
///
/// To end a run early, cancel its token. Do not drop its future, because then the events that close the run would not
/// fire.
#[derive(Debug)]
pub struct Agent {
    engine: Engine,
    config: Arc<AgentConfig>,
    active: ActiveSession,
    is_started: bool,
}

impl Agent {
    /// The default name of the main agent.
    pub const DEFAULT_NAME: &'static str = DEFAULT_NAME;

    /// Returns the configuration that the agent was built from.
    pub(crate) fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Returns the main agent's name. If a [`Frontend`](crate::Frontend) method is called with any other name, a
    /// subagent called it.
    pub fn name(&self) -> &str {
        &self.active.agent.identity.name
    }

    /// Returns the permission rules that no tool call can match. `transfer_task` counts as a tool even if there is no
    /// agent to give tasks to.
    pub fn unmatched_rules(&self) -> Vec<UnmatchedRuleError> {
        let toolbox = &self.config.toolbox;
        let is_missing = toolbox.get(TRANSFER_TASK).is_none();
        let also = is_missing.then_some(TRANSFER_TASK);
        let permissions = &self.active.agent.state.permissions;
        permissions.unmatched(toolbox, also)
    }

    /// Returns the selected model.
    pub fn model(&self) -> ModelId {
        self.active.agent.state.selected().provider.id().clone()
    }

    /// Returns the names of the models through which [`next_model`](Self::next_model) cycles, in order.
    pub fn models(&self) -> &[String] {
        self.config.models.names()
    }

    /// Selects the model for the next turn and later ones. Returns whether the model changed.
    ///
    /// # Errors
    ///
    /// Fails if there is no such model or it cannot be opened. Then the selected model does not change.
    pub async fn set_model(&mut self, name: &str) -> Result<bool, SelectError> {
        self.choose(Some(name), ModelSelectSource::Set).await
    }

    /// Selects the next model in the list. Returns whether the model changed.
    ///
    /// # Errors
    ///
    /// Fails if there is no other model or it cannot be opened. Then the selected model does not change.
    pub async fn next_model(&mut self) -> Result<bool, SelectError> {
        self.choose(None, ModelSelectSource::Cycle).await
    }

    async fn choose(
        &mut self,
        name: Option<&str>,
        source: ModelSelectSource,
    ) -> Result<bool, SelectError> {
        self.start_session(SessionSource::Startup).await;
        let is_other = self.active.agent.select_model(name, source).await?;
        self.active.agent.save().await;
        Ok(is_other)
    }

    /// Returns how much the model thinks. `None` means that the model service decides.
    pub fn thinking(&self) -> Option<ThinkingLevel> {
        self.active.agent.state.selected().thinking
    }

    /// Selects how much the model thinks in the next turn and later ones. Returns whether the level changed.
    pub async fn set_thinking(&mut self, level: ThinkingLevel) -> bool {
        self.start_session(SessionSource::Startup).await;
        let is_other = self.active.agent.select_thinking(level, true).await;
        self.active.agent.save().await;
        is_other
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.active.agent.session
    }

    /// Lets runs continue before the end of the session's file is on the disk. The embedding program keeps the returned
    /// tail elsewhere before the model is asked, and when a run has ended. At its end, the session waits for the disk.
    pub fn defer_session_sync(&mut self) -> UnsyncedTail {
        self.active.agent.session.defer_sync()
    }

    /// Returns the dispatcher of the session's events, for events of the program that embeds the agent.
    pub fn dispatcher(&self) -> &Dispatcher {
        self.active.agent.hooks.dispatcher()
    }

    /// Stores what scripts have added to the session since its last entry.
    pub async fn save_script_entries(&mut self) {
        self.add_script_entries();
        self.active.agent.save().await;
    }

    /// Adds to the session what scripts have added since its last entry.
    pub fn add_script_entries(&mut self) {
        self.active.agent.session.add_notes();
    }

    /// Removes the newest message from the conversation if it is a prompt, no model has answered it, and `is_own`
    /// accepts its [`extra`](tenterhook_protocol::Message::extra). Returns whether it was removed.
    ///
    /// Use it before you repeat a prompt whose run could not begin.
    pub fn take_back_prompt(&mut self, is_own: impl Fn(&JsonObject) -> bool) -> bool {
        let session = &mut self.active.agent.session;
        let newest = session.entries().iter().rev().find_map(|entry| {
            let message = entry.message.as_ref()?;
            Some((entry.id.clone(), message))
        });
        let prompt = newest
            .filter(|(_, message)| message.role == Role::User && is_own(&message.extra))
            .map(|(id, _)| id);
        if let Some(id) = &prompt {
            session.take_back(std::slice::from_ref(id));
        }
        prompt.is_some()
    }

    /// Returns the directory that the agent works in.
    pub fn cwd(&self) -> &Path {
        &self.config.cwd
    }

    /// Returns the size of the model's context in tokens: the provider's last count, and an estimate of newer
    /// messages.
    pub fn context_tokens(&self) -> u64 {
        self.active.agent.context_tokens()
    }

    /// Returns the host through which scripts reach the agent, if it has one.
    #[cfg(unix)]
    pub fn scripts(&self) -> Option<&Arc<ScriptHost>> {
        self.config.scripts.as_ref()
    }

    /// Returns a handle for sending messages to the agent while it works.
    pub fn handle(&self) -> AgentHandle {
        self.active.agent.handle()
    }

    /// Begins the session. Context that hooks add at its start stays in the session as system messages.
    ///
    /// A session begins only once, so later calls do nothing. Without a call, the first prompt begins it.
    pub async fn start_session(&mut self, source: SessionSource) {
        if !std::mem::replace(&mut self.is_started, true) {
            self.begin(source, None).await;
            if !self.config.keeps_model {
                self.active.agent.restore_selection().await;
            }
        }
    }

    /// Returns whether the session has begun.
    pub fn is_started(&self) -> bool {
        self.is_started
    }

    /// Sends the start of the session to hooks, and looks for templates and skills.
    pub(crate) async fn begin(&mut self, source: SessionSource, previous: Option<SessionId>) {
        let reason = if source == SessionSource::Reload {
            DiscoverReason::Reload
        } else {
            DiscoverReason::Startup
        };
        let agent = &mut self.active.agent;
        // Scripts can list templates and skills when the session starts.
        #[cfg(unix)]
        if self.config.scripts.is_some() {
            agent.load_resources(self.config.resources.clone()).await;
        }
        agent.start(source, previous).await;
        agent.discover(reason, self.config.resources.clone()).await;
    }

    /// Returns the templates and skills of the session. There are none before it begins.
    pub fn resources(&self) -> Arc<Resources> {
        self.active.agent.state.resources()
    }

    /// Runs the agent on a prompt until the model has nothing left to do.
    pub async fn prompt(
        &mut self,
        prompt: impl Into<Prompt>,
        cancel: &CancellationToken,
    ) -> RunReport {
        self.start_session(SessionSource::Startup).await;
        let run = cancel.child_token();
        #[cfg(unix)]
        let _working = self
            .active
            .attachment
            .as_ref()
            .map(|attachment| attachment.begin_run(run.clone()));
        self.active.agent.state.attention.set(true);
        let report = Box::pin(self.active.agent.prompt(prompt.into(), &run)).await;
        self.active.agent.pause(&run).await;
        self.show_footer(cancel).await;
        report
    }

    /// Shows the footer that scripts render, because the run may have changed its text.
    async fn show_footer(&self, cancel: &CancellationToken) {
        #[cfg(unix)]
        if let Some(lines) = self.config.additions.footer(cancel).await {
            let footer = crate::frontend::ScriptDisplay::Widget {
                key: "footer".to_owned(),
                lines: Some(lines),
                placement: crate::frontend::WidgetPlacement::Footer,
            };
            self.config.frontend.display(&footer).await;
        }
    }

    /// Replaces the conversation with a summary of it, at the user's request.
    ///
    /// # Errors
    ///
    /// Fails if a hook blocks it or the summary cannot be created. Then the conversation does not change.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<CompactionReport, CompactionError> {
        self.start_session(SessionSource::Startup).await;
        Box::pin(self.active.agent.compact_for_user(instructions, cancel)).await
    }

    /// Runs a shell command of the user. The model sees it with the next prompt, unless the user excludes it.
    ///
    /// # Errors
    ///
    /// Fails if the command is empty, if it is cancelled before it starts, and if it cannot be started.
    pub async fn run_command(
        &mut self,
        command: UserCommand,
        cancel: &CancellationToken,
    ) -> Result<UserCommandRun, UserCommandError> {
        self.start_session(SessionSource::Startup).await;
        Box::pin(self.active.agent.run_for_user(command, cancel)).await
    }

    /// Names the session for lists. An empty name removes it.
    pub async fn name_session(&mut self, name: &str) {
        self.start_session(SessionSource::Startup).await;
        self.active.agent.name_session(name).await;
    }

    /// Labels an entry of the session; `None` removes its label.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry. Then nothing changes.
    pub async fn label(
        &mut self,
        entry: &EntryId,
        label: Option<&str>,
    ) -> Result<(), UnknownEntry> {
        self.active.agent.session.label(entry, label)?;
        self.active.agent.save().await;
        Ok(())
    }

    /// Reloads hooks, and everything else that `reloading` loads, within the session. For the old hooks the session ends,
    /// and for the new ones it starts. Templates and skills are reloaded too.
    pub async fn reload<T>(&mut self, reloading: impl Future<Output = T>) -> T {
        self.start_session(SessionSource::Startup).await;
        self.active.agent.end(SessionEndReason::Reload, None).await;
        // Scripts register their tools again when the session starts.
        #[cfg(unix)]
        self.config.additions.clear();
        let loaded = reloading.await;
        self.begin(SessionSource::Reload, None).await;
        loaded
    }

    /// Ends the session. Its hooks run even after a cancellation.
    pub async fn end_session(mut self, reason: SessionEndReason) {
        if self.is_started {
            // A reload within a session keeps them, but here the agent is gone.
            self.active.agent.stop_tasks().await;
            self.active.agent.end(reason, None).await;
        }
    }

    /// Ends the session and continues with `next`. Returns the id of the ended session.
    async fn replace(&mut self, next: Session, reason: SessionEndReason) -> SessionId {
        let target = next.id().clone();
        self.active.agent.end(reason, Some(target)).await;
        let state = &self.active.agent.state;
        let state = (state.selected(), state.initial_model.clone());
        // Scripts see only one agent at a time, so the old one must be detached first.
        #[cfg(unix)]
        drop(self.active.attachment.take());
        let permissions = self.config.permissions.for_new_session();
        let next = ActiveSession::begin(&self.engine, &self.config, state, permissions, next);
        let ended = std::mem::replace(&mut self.active, next);
        ended.agent.session.id().clone()
    }
}
