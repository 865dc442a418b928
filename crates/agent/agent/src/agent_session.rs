//! An agent with its session: begins, ends and stores the session, and tracks how full its context is.
//!
//! Other modules add the methods for what an agent does in a session: [`run`](crate::run),
//! [`compaction`](crate::compaction), [`selection`](crate::selection) and [`user_command`](crate::user_command).

use std::error::Error as _;
use std::sync::Arc;

use crate::resource::{ResourcePlaces, Resources};
use crate::sessions::{Session, SessionError, estimate_tokens};
use tenterhook_protocol::event::{
    DiscoverReason, NotificationLevel, ResourcesDiscover, SavePoint, SessionEnd, SessionEndReason,
    SessionInfoChange, SessionSource, SessionStart,
};
use tenterhook_protocol::{Message, SessionId, Usage};
use tokio_util::sync::CancellationToken;

use crate::background::BackgroundTasks;
use crate::handle::AgentHandle;
use crate::hooks::Hooks;
use crate::identity::AgentIdentity;
use crate::session_name::one_line;
use crate::state::AgentState;

/// The maximum number of unusable files that are reported one by one.
const MAX_REPORTED: usize = 20;

/// How much of the model's context is used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContextUsage {
    /// The provider's token counts of the last call.
    pub(crate) usage: Usage,
    /// How many live messages of the session those counts cover.
    covered: usize,
}

/// An agent and its session.
#[derive(Debug)]
pub(crate) struct AgentSession {
    pub(crate) state: Arc<AgentState>,
    pub(crate) identity: AgentIdentity,
    pub(crate) hooks: Hooks,
    pub(crate) session: Session,
    pub(crate) turns: u32,
    pub(crate) context_usage: ContextUsage,
    /// The background tasks of its subagents.
    pub(crate) tasks: BackgroundTasks,
    /// The size of the context, in tokens, at which a failed compaction is retried.
    compaction_threshold_after_failure: Option<u64>,
    /// Whether storing failed and the user was notified.
    has_storage_failed: bool,
}

impl AgentSession {
    pub(crate) fn new(
        state: Arc<AgentState>,
        identity: AgentIdentity,
        hooks: Hooks,
        session: Session,
    ) -> Self {
        Self {
            turns: session.answer_count(),
            state,
            identity,
            hooks,
            session,
            context_usage: ContextUsage::default(),
            tasks: BackgroundTasks::default(),
            compaction_threshold_after_failure: None,
            has_storage_failed: false,
        }
    }

    /// Returns a handle for sending messages to the agent while it works.
    pub(crate) fn handle(&self) -> AgentHandle {
        AgentHandle::new(Arc::clone(&self.state), self.hooks.clone())
    }

    /// Begins the session.
    pub(crate) async fn start(&mut self, source: SessionSource, previous: Option<SessionId>) {
        let build = || SessionStart::new(source).with_previous_session(previous);
        let outcome = self.hooks.fire_always(build).await;
        for text in outcome.context() {
            self.session.push_context(text.clone());
        }
    }

    /// Looks for templates and skills, in `places` and in the places that hooks name.
    pub(crate) async fn discover(&mut self, reason: DiscoverReason, mut places: ResourcePlaces) {
        let outcome = self
            .hooks
            .fire_always(|| ResourcesDiscover::new(reason))
            .await;
        let (prompts, skills) = (outcome.prompt_paths(), outcome.skill_paths());
        places.add_from_hooks(prompts, skills, &self.state.config.cwd);
        self.load_resources(places).await;
        let resources = self.state.resources();
        for problem in resources.problems().iter().take(MAX_REPORTED) {
            let text = problem.to_string();
            self.hooks
                .notify(NotificationLevel::Warning, "resource_problem", &text)
                .await;
        }
        if let Some(more @ 1..) = resources.problems().len().checked_sub(MAX_REPORTED) {
            let text = format!("{more} more files of templates and skills cannot be used");
            self.hooks
                .notify(NotificationLevel::Warning, "resource_problem", &text)
                .await;
        }
    }

    /// Loads the templates and skills in `places`, without the places that hooks name.
    pub(crate) async fn load_resources(&mut self, places: ResourcePlaces) {
        let loading = tokio::task::spawn_blocking(move || Resources::load(&places));
        self.state.set_resources(loading.await.unwrap_or_default());
    }

    /// Replaces the conversation with the summary that a hook asked for.
    pub(crate) fn apply_context_swap(&mut self) {
        let slot = self.state.swap_slot.as_ref();
        let Some(summary) = slot.and_then(|slot| slot.take(self.session.id())) else {
            return;
        };
        let tokens = self.context_tokens();
        self.session.replace_conversation(summary, tokens);
        self.reset_context_usage();
    }

    /// Gives the session a name and lets hooks know.
    pub(crate) async fn name_session(&mut self, name: &str) {
        let name = one_line(name);
        if !self.session.set_name(&name) {
            return;
        }
        self.hooks.announce(|| SessionInfoChange::new(name)).await;
        self.save().await;
    }

    /// Stores the user's messages before a model is called, so that they are not lost if the program is killed.
    pub(crate) async fn store_before_model_call(&mut self) {
        self.write().await;
    }

    /// Stores new entries, if the session is stored at all.
    pub(crate) async fn save(&mut self) {
        if !self.write().await {
            return;
        }
        // Hooks of `save_point` rely on the disk.
        if self.hooks.dispatcher().is_hooked::<SavePoint>() {
            self.sync().await;
        }
        self.hooks.announce(SavePoint::new).await;
    }

    /// Waits until the file of the session is on the disk, if saving does not wait for that.
    async fn sync(&mut self) {
        if let Err(error) = self.session.sync().await {
            self.report_not_stored(error).await;
        }
    }

    /// Returns whether new entries were stored. Entries that could not be stored are stored with the next ones.
    async fn write(&mut self) -> bool {
        let error = match self.session.save().await {
            Ok(is_written) => {
                self.has_storage_failed &= !is_written;
                return is_written;
            }
            Err(error) => error,
        };
        self.report_not_stored(error).await;
        false
    }

    async fn report_not_stored(&mut self, error: SessionError) {
        // The user is notified only once, because a full disk stays full.
        if !std::mem::replace(&mut self.has_storage_failed, true) {
            let cause = error.source().map(|cause| format!(": {cause}"));
            let cause = cause.unwrap_or_default();
            let text = format!("cannot store the session: {error}{cause}");
            self.hooks
                .notify(NotificationLevel::Error, "session_not_stored", &text)
                .await;
        }
    }

    /// Pauses the agent until the next prompt, so that no agent asks the user meanwhile. A cancelled run also stops
    /// all background tasks.
    pub(crate) async fn pause(&self, cancel: &CancellationToken) {
        if cancel.is_cancelled() {
            self.tasks.stop_all().await;
        }
        // Wait until an open question is answered.
        let _asked = cancel.run_until_cancelled(self.state.question.lock()).await;
        self.state.attention.set(false);
    }

    /// Stops the background tasks, and waits until they have ended.
    pub(crate) async fn stop_tasks(&self) {
        self.tasks.stop_all().await;
    }

    /// Ends the session.
    pub(crate) async fn end(&mut self, reason: SessionEndReason, target: Option<SessionId>) {
        // A reload does not end the session, so its tasks continue.
        if reason != SessionEndReason::Reload {
            self.stop_tasks().await;
        }
        self.save().await;
        let build = || SessionEnd::new(reason).with_target_session(target);
        self.hooks.announce(build).await;
        // Hooks of `session_end` may have added entries.
        self.write().await;
        self.sync().await;
    }

    /// Returns whether the agent may have this tool at all.
    pub(crate) fn may_use(&self, name: &str) -> bool {
        self.state.may_use(&self.identity, name)
    }

    /// Returns the names of the agent's tools, in the toolbox's order.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let toolbox = self.state.toolbox();
        let names = toolbox.names();
        names
            .filter(|name| self.may_use(name))
            .map(str::to_owned)
            .collect()
    }

    /// Returns whether the context should be compacted before the next model call.
    pub(crate) fn wants_compaction(&self) -> bool {
        let threshold = self
            .compaction_threshold()
            .max(self.compaction_threshold_after_failure);
        threshold.is_some_and(|threshold| self.context_tokens() >= threshold)
    }

    /// Postpones compaction after a failure. Neither hooks nor a model are asked again until the context has grown.
    pub(crate) fn postpone_compaction(&mut self) {
        let step = self.compaction_threshold().unwrap_or_default() / 10;
        self.compaction_threshold_after_failure =
            Some(self.context_tokens().saturating_add(step.max(1)));
    }

    fn compaction_threshold(&self) -> Option<u64> {
        let threshold = self.state.config.limits.compact_at;
        threshold.or_else(|| Some(self.state.context_window()?.saturating_mul(9) / 10))
    }

    /// Records the provider's token counts for a call whose answer is stored next.
    pub(crate) fn note_usage(&mut self, usage: Usage) {
        self.state.spend(&usage);
        self.context_usage = ContextUsage {
            usage,
            covered: self.session.live_entries().count() + 1,
        };
    }

    /// Charges an estimate for a call that the provider did not count, so that the token budget still holds.
    pub(crate) fn spend_estimate(&self, answer: &Message) {
        let usage = Usage::new(self.session.estimated_tokens(), estimate_tokens([answer]));
        self.state.spend(&usage);
    }

    /// Resets the count and the retry threshold, because the counted messages are no longer in the context.
    pub(crate) fn reset_context_usage(&mut self) {
        self.context_usage = ContextUsage::default();
        self.compaction_threshold_after_failure = None;
    }

    /// Returns the context's size in tokens: the provider's last count, and an estimate of newer messages.
    pub(crate) fn context_tokens(&self) -> u64 {
        let counted = self
            .context_usage
            .usage
            .input_tokens
            .saturating_add(self.context_usage.usage.output_tokens);
        if counted == 0 {
            return self.session.estimated_tokens();
        }
        let newer = self
            .session
            .live_entries()
            .skip(self.context_usage.covered)
            .filter_map(|entry| entry.message.as_ref());
        counted.saturating_add(estimate_tokens(newer))
    }
}
