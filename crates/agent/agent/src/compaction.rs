//! Compaction: replaces the conversation with a summary.
//!
//! ```text
//! pre_compact (block; context steers the summary) → before_compaction (block; supply the summary)
//!   → compaction_start → context, before_llm_call → the model → after_compaction | compaction_failed
//! ```
//!
//! The model gets a single message that quotes the conversation. So it cannot call tools, and no provider's rules on
//! the order of messages apply. If a hook stops the compaction, the session does not change.

mod quote;

use tenterhook_protocol::event::{
    AfterCompaction, AfterLlmCall, BeforeCompaction, BeforeLlmCall, CompactionFailed,
    CompactionPreparation, CompactionReason, CompactionSource, CompactionStart, Context,
    NotificationLevel, PreCompact, SessionEntry,
};
use tenterhook_protocol::{Decision, EntryId, Event, Message, Messages, Role};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use self::quote::quote;
use crate::agent_session::AgentSession;
use crate::hooks::{Hooks, reason_or_none};
use crate::model_call::{ModelAnswer, ModelCall, ModelCallError};
use crate::models::SelectedModel;
use crate::sessions::Session;
use tenterhook_providers::{ModelRequest, ProviderError, ProviderErrorKind, Purpose};

/// The instruction for the model that writes the summary.
pub(crate) const INSTRUCTION: &str = "You summarise a conversation between a user and an agent, so that the agent can continue from the summary alone. Keep the user's goals and requests, decisions and their reasons, names of files and commands, results, errors, and what is still to do. Write the summary only.";

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionReport {
    /// The summary.
    pub summary: String,
    /// Whether a hook supplied the summary.
    pub from_hook: bool,
    /// The context's size before the compaction, in tokens.
    pub tokens_before: u64,
}

/// Why a compaction did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// There is nothing to summarise.
    #[error("there is nothing to compact")]
    Nothing,
    /// A hook blocked the compaction.
    #[error("a {event} hook blocked the compaction: {reason}")]
    Blocked {
        /// The event whose hook blocked it.
        event: &'static str,
        /// The hook's reason.
        reason: String,
    },
    /// The compaction was cancelled.
    #[error("the compaction was cancelled")]
    Cancelled,
    /// The model could not write the summary.
    #[error("the summary could not be made")]
    Model(#[source] ProviderError),
}

/// Why a compaction is requested, and the user's instructions for it.
#[derive(Debug, Clone)]
pub(crate) struct CompactionRequest {
    source: CompactionSource,
    reason: CompactionReason,
    instructions: Option<String>,
}

impl CompactionRequest {
    /// Returns the request for a context that has reached the threshold, by tool results or otherwise.
    pub(crate) fn for_threshold(session: &Session) -> Self {
        let newest = session
            .live_entries()
            .next_back()
            .and_then(|entry| entry.message.as_ref());
        let is_tool = newest.is_some_and(|message| message.role == Role::Tool);
        Self {
            source: if is_tool {
                CompactionSource::ToolOverflow
            } else {
                CompactionSource::Auto
            },
            reason: CompactionReason::Threshold,
            instructions: None,
        }
    }

    /// Returns the request for a context that the model refused as too long.
    pub(crate) fn for_overflow() -> Self {
        Self {
            source: CompactionSource::Overflow,
            reason: CompactionReason::Overflow,
            instructions: None,
        }
    }

    fn for_user(instructions: Option<String>) -> Self {
        Self {
            source: CompactionSource::Manual,
            reason: CompactionReason::Manual,
            instructions,
        }
    }
}

/// The messages to summarise, and the first entry to keep.
struct CompactionPlan {
    messages: Vec<Message>,
    kept: Option<EntryId>,
    tokens: u64,
}

impl CompactionPlan {
    fn source(&self) -> SummarySource<'_> {
        SummarySource {
            messages: &self.messages,
            instruction: INSTRUCTION,
        }
    }
}

/// The input of a summary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SummarySource<'a> {
    pub(crate) messages: &'a [Message],
    /// The instruction for the model.
    pub(crate) instruction: &'a str,
}

impl AgentSession {
    /// Compacts at the user's request.
    pub(crate) async fn compact_for_user(
        &mut self,
        instructions: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<CompactionReport, CompactionError> {
        let hooks = self.hooks.for_run(cancel);
        let compacted = self
            .compact(&CompactionRequest::for_user(instructions), &hooks, cancel)
            .await?;
        self.save().await;
        Ok(compacted)
    }

    pub(crate) async fn compact(
        &mut self,
        request: &CompactionRequest,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<CompactionReport, CompactionError> {
        let plan = self.plan_compaction()?;
        let guidance = self.ask_pre_compact(request, hooks, cancel).await?;
        let supplied = self
            .ask_before_compaction(request, &plan, hooks, cancel)
            .await?;
        let started = || CompactionStart::new(plan.tokens);
        hooks.announce(started).await;
        let from_hook = supplied.is_some();
        let summary = match supplied {
            Some(summary) => summary,
            None => match self
                .summarise(plan.source(), &guidance, hooks, cancel)
                .await
            {
                Ok(summary) => summary,
                Err(error) => return Err(fail(error, hooks).await),
            },
        };
        let compacted = CompactionReport {
            summary,
            from_hook,
            tokens_before: plan.tokens,
        };
        self.apply(request, &plan, &compacted, hooks).await;
        Ok(compacted)
    }

    /// Plans to summarise everything except the user's last messages that are not answered yet.
    fn plan_compaction(&self) -> Result<CompactionPlan, CompactionError> {
        let is_user = |entry: &&SessionEntry| {
            entry
                .message
                .as_ref()
                .is_some_and(|message| message.role == Role::User)
        };
        let unanswered: Vec<&SessionEntry> = self
            .session
            .live_entries()
            .rev()
            .take_while(is_user)
            .collect();
        let mut messages = self.session.conversation();
        messages.truncate(messages.len().saturating_sub(unanswered.len()));
        if messages.is_empty() {
            return Err(CompactionError::Nothing);
        }
        Ok(CompactionPlan {
            messages,
            kept: unanswered.last().map(|entry| entry.id.clone()),
            tokens: self.context_tokens(),
        })
    }

    /// Asks hooks of `pre_compact` whether to compact. Returns instructions for the summary.
    async fn ask_pre_compact(
        &self,
        request: &CompactionRequest,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, CompactionError> {
        let build = || {
            PreCompact::new(request.source).with_custom_instructions(request.instructions.clone())
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Cancelled);
        }
        if let Some(reason) = outcome.decision().reason() {
            let text = format!("a pre_compact hook blocked the compaction: {reason}");
            hooks
                .frontend()
                .notification(NotificationLevel::Warning, &text);
            return Err(blocked::<PreCompact>(reason));
        }
        let guidance = request.instructions.iter().chain(outcome.context());
        Ok(guidance.cloned().collect())
    }

    /// Asks hooks of `before_compaction` whether to compact. Returns the summary if a hook supplies it.
    async fn ask_before_compaction(
        &self,
        request: &CompactionRequest,
        plan: &CompactionPlan,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, CompactionError> {
        let build = || {
            BeforeCompaction::new(request.reason)
                .with_preparation(CompactionPreparation {
                    messages_to_summarize: plan.messages.clone(),
                    first_kept_entry_id: plan.kept.clone(),
                    tokens_before: plan.tokens,
                    previous_summary: self.session.summary().map(str::to_owned),
                })
                .with_branch_entries(self.session.entries().to_vec())
                .with_custom_instructions(request.instructions.clone())
                .with_input_tokens(self.input_tokens(plan))
                .with_output_tokens(self.context_usage.usage.output_tokens)
                .with_context_limit(self.state.context_window())
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Cancelled);
        }
        match outcome.decision() {
            Decision::Proceed => Ok(outcome.supplied().filter(|summary| !summary.is_empty())),
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => {
                Err(blocked::<BeforeCompaction>(&reason))
            }
        }
    }

    /// Returns the input tokens, or an estimate if the provider did not count them.
    fn input_tokens(&self, plan: &CompactionPlan) -> u64 {
        let counted = self.context_usage.usage;
        if counted.input_tokens == 0 && counted.output_tokens == 0 {
            plan.tokens
        } else {
            counted.input_tokens
        }
    }

    /// Lets a model summarise a part of the conversation.
    pub(crate) async fn summarise(
        &self,
        source: SummarySource<'_>,
        guidance: &[String],
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<String, CompactionError> {
        let selected = self.state.selected();
        let messages = self
            .rewrite_context(source.messages.to_vec().into(), hooks, cancel)
            .await?;
        let mut texts = vec![quote(&messages, self.state.context_window())];
        texts.extend_from_slice(guidance);
        let messages = self
            .run_before_llm_call(
                &selected,
                vec![
                    Message::system(source.instruction),
                    Message::user(texts.join("\n\n")),
                ]
                .into(),
                hooks,
                cancel,
            )
            .await?;
        let request = ModelRequest {
            messages,
            purpose: Purpose::Summary,
            subagent: self.identity.subagent().map(str::to_owned),
            ..ModelRequest::default()
        };
        let call = ModelCall {
            state: &self.state,
            selected: &selected,
            agent: &self.identity.name,
            hooks,
            cancel,
        };
        let answer = call.ask(&request).await.map_err(|error| match error {
            ModelCallError::Cancelled => CompactionError::Cancelled,
            ModelCallError::Failed(error) => CompactionError::Model(error),
        })?;
        self.announce_after_llm_call(&selected, &answer, hooks)
            .await;
        match answer.message.content.trim() {
            "" => Err(CompactionError::Model(ProviderError::new(
                ProviderErrorKind::Broken,
                "the model wrote an empty summary",
            ))),
            summary => Ok(summary.to_owned()),
        }
    }

    /// Lets hooks of `context` rewrite the conversation before it is quoted, as before every other model call. So
    /// text that hooks hide from the model does not reach it in the quotation.
    async fn rewrite_context(
        &self,
        messages: Messages,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Messages, CompactionError> {
        let build = || Context::new(messages.clone());
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Cancelled);
        }
        Ok(outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages))
    }

    /// Runs the hooks of `before_llm_call`, because a summary is a model call like any other.
    async fn run_before_llm_call(
        &self,
        selected: &SelectedModel,
        messages: Messages,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Messages, CompactionError> {
        // This call is not part of a turn, so it gets the number of the current or next turn.
        let build = || {
            BeforeLlmCall::new()
                .with_model_id(selected.id())
                .with_iteration(self.turns.max(1))
                .with_messages(messages.clone())
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Cancelled);
        }
        if let Some(reason) = outcome.decision().reason() {
            return Err(blocked::<BeforeLlmCall>(reason));
        }
        Ok(outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages))
    }

    async fn announce_after_llm_call(
        &self,
        selected: &SelectedModel,
        answer: &ModelAnswer,
        hooks: &Hooks,
    ) {
        match &answer.usage {
            Some(usage) => self.state.spend(usage),
            None => self.spend_estimate(&answer.message),
        }
        let build = || {
            AfterLlmCall::new()
                .with_model_id(selected.id())
                .with_response(answer.message.content.clone())
                .with_last_user_message(
                    self.session
                        .last_message_of(Role::User)
                        .map(|message| message.content.clone()),
                )
                .with_usage(answer.usage)
                .with_cost(selected.cost(answer.usage.as_ref()))
        };
        hooks.announce(build).await;
    }

    async fn apply(
        &mut self,
        request: &CompactionRequest,
        plan: &CompactionPlan,
        compacted: &CompactionReport,
        hooks: &Hooks,
    ) {
        let entry = self
            .session
            .compact(&compacted.summary, plan.kept.as_ref(), plan.tokens);
        let build = || {
            AfterCompaction::new(compacted.summary.clone(), request.reason)
                .with_compaction_entry(entry)
                .with_from_hook(compacted.from_hook)
                .with_input_tokens(self.input_tokens(plan))
                .with_output_tokens(self.context_usage.usage.output_tokens)
                .with_context_limit(self.state.context_window())
        };
        hooks.announce(build).await;
        self.reset_context_usage();
    }
}

fn blocked<E: Event>(reason: &str) -> CompactionError {
    CompactionError::Blocked {
        event: E::INFO.name,
        reason: reason_or_none(reason),
    }
}

/// Reports a failure to hooks and the user. The conversation does not change.
async fn fail(error: CompactionError, hooks: &Hooks) -> CompactionError {
    let text = match &error {
        CompactionError::Model(cause) => format!("{error}: {cause}"),
        CompactionError::Nothing | CompactionError::Blocked { .. } | CompactionError::Cancelled => {
            error.to_string()
        }
    };
    let build = || CompactionFailed::new(text.clone());
    hooks.announce(build).await;
    if error != CompactionError::Cancelled {
        hooks
            .notify(NotificationLevel::Warning, "compaction_failed", &text)
            .await;
    }
    error
}
