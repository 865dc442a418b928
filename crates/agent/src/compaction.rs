//! Compaction: a summary takes the conversation's place.
//!
//! ```text
//! pre_compact (block; context steers the summary) → before_compaction (block; supply the summary)
//!   → compaction_start → context, before_llm_call → the model → after_compaction | compaction_failed
//! ```
//!
//! The model that summarises gets one message that quotes the conversation, so that no tool is called
//! and no provider's rules on the order of messages apply. What a hook stops leaves the session as it
//! was.

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
use crate::ask::{Answer, AskError, Asker};
use crate::hooks::{Hooks, reason_or_none};
use crate::life::Life;
use crate::model::Selected;
use crate::provider::{ModelError, ModelErrorKind, ModelRequest, Purpose};
use crate::session::Session;

/// What the summarising model is told.
pub(crate) const INSTRUCTION: &str = "You summarise a conversation between a user and an agent, so that the agent can go on with the summary alone. Keep the user's goals and wishes, decisions and their reasons, names of files and commands, results, errors, and what is still to do. Write the summary only.";

/// A compaction that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Compacted {
    /// The summary.
    pub summary: String,
    /// The summary came from a hook.
    pub from_hook: bool,
    /// The context's size in tokens before.
    pub tokens_before: u64,
}

/// A compaction that did not happen.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// There is nothing to summarise.
    #[error("there is nothing to compact")]
    Nothing,
    /// A hook does not want it.
    #[error("a {event} hook does not want the compaction: {reason}")]
    Blocked {
        /// The event whose hook it was.
        event: &'static str,
        /// Why.
        reason: String,
    },
    /// It was cancelled.
    #[error("the compaction was cancelled")]
    Canceled,
    /// The summary could not be made.
    #[error("the summary could not be made")]
    Model(#[source] ModelError),
}

/// Why a compaction is wanted, and how.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    source: CompactionSource,
    reason: CompactionReason,
    instructions: Option<String>,
}

impl Order {
    /// The threshold was reached, by tool results or otherwise.
    pub(crate) fn for_threshold(session: &Session) -> Self {
        let newest = session
            .live()
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

    /// The model refused the context.
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

/// What is summarised, and what stays.
struct Plan {
    messages: Vec<Message>,
    kept: Option<EntryId>,
    tokens: u64,
}

impl Plan {
    fn source(&self) -> Source<'_> {
        Source {
            messages: &self.messages,
            instruction: INSTRUCTION,
        }
    }
}

/// What a summary is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) messages: &'a [Message],
    /// What the model is told to do.
    pub(crate) instruction: &'a str,
}

impl Life {
    /// Compacts because the user asked for it.
    pub(crate) async fn compact_for_user(
        &mut self,
        instructions: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<Compacted, CompactionError> {
        let hooks = self.hooks.for_run(cancel);
        let compacted = self
            .compact(&Order::for_user(instructions), &hooks, cancel)
            .await?;
        self.save().await;
        Ok(compacted)
    }

    pub(crate) async fn compact(
        &mut self,
        order: &Order,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Compacted, CompactionError> {
        let plan = self.plan_compaction()?;
        let guidance = self.ask_pre_compact(order, hooks, cancel).await?;
        let supplied = self
            .ask_before_compaction(order, &plan, hooks, cancel)
            .await?;
        let started = || CompactionStart {
            tokens_before: plan.tokens,
        };
        hooks.tell(started).await;
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
        let compacted = Compacted {
            summary,
            from_hook,
            tokens_before: plan.tokens,
        };
        self.apply(order, &plan, &compacted, hooks).await;
        Ok(compacted)
    }

    /// Everything is summarised but what the user said last, if nobody answered it yet.
    fn plan_compaction(&self) -> Result<Plan, CompactionError> {
        let is_user = |entry: &&SessionEntry| {
            entry
                .message
                .as_ref()
                .is_some_and(|message| message.role == Role::User)
        };
        let unanswered: Vec<&SessionEntry> =
            self.session.live().rev().take_while(is_user).collect();
        let mut messages = self.session.conversation();
        messages.truncate(messages.len().saturating_sub(unanswered.len()));
        if messages.is_empty() {
            return Err(CompactionError::Nothing);
        }
        Ok(Plan {
            messages,
            kept: unanswered.last().map(|entry| entry.id.clone()),
            tokens: self.context_tokens(),
        })
    }

    /// Asks whether it may happen; returns what steers the summary.
    async fn ask_pre_compact(
        &self,
        order: &Order,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, CompactionError> {
        let build = || PreCompact {
            source: order.source,
            custom_instructions: order.instructions.clone(),
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Canceled);
        }
        if let Some(reason) = outcome.decision().reason() {
            let text = format!("a pre_compact hook stopped the compaction: {reason}");
            hooks
                .frontend()
                .notification(NotificationLevel::Warning, &text);
            return Err(blocked::<PreCompact>(reason));
        }
        let guidance = order.instructions.iter().chain(outcome.context());
        Ok(guidance.cloned().collect())
    }

    /// Asks whether it may happen; returns the summary if a hook made it.
    async fn ask_before_compaction(
        &self,
        order: &Order,
        plan: &Plan,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, CompactionError> {
        let build = || BeforeCompaction {
            preparation: CompactionPreparation {
                messages_to_summarize: plan.messages.clone(),
                first_kept_entry_id: plan.kept.clone(),
                tokens_before: plan.tokens,
                previous_summary: self.session.summary().map(str::to_owned),
            },
            branch_entries: self.session.entries().to_vec(),
            custom_instructions: order.instructions.clone(),
            input_tokens: self.input_tokens(plan),
            output_tokens: self.gauge.usage.output_tokens,
            context_limit: self.setup.context_window(),
            reason: order.reason,
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Canceled);
        }
        match outcome.decision() {
            Decision::Proceed => Ok(outcome.supplied().filter(|summary| !summary.is_empty())),
            Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => {
                Err(blocked::<BeforeCompaction>(&reason))
            }
        }
    }

    /// Returns the input tokens, estimated where nobody counted.
    fn input_tokens(&self, plan: &Plan) -> u64 {
        let counted = self.gauge.usage;
        if counted.input_tokens == 0 && counted.output_tokens == 0 {
            plan.tokens
        } else {
            counted.input_tokens
        }
    }

    /// Has a model summarise a part of the conversation.
    pub(crate) async fn summarise(
        &self,
        source: Source<'_>,
        guidance: &[String],
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<String, CompactionError> {
        let selected = self.setup.selected();
        let messages = self
            .pass_context(source.messages.to_vec().into(), hooks, cancel)
            .await?;
        let mut text = quote(&messages, self.setup.context_window());
        for fragment in guidance {
            text.push_str("\n\n");
            text.push_str(fragment);
        }
        let messages = self
            .pass_before_llm_call(
                &selected,
                vec![Message::system(source.instruction), Message::user(text)].into(),
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
        let asker = Asker {
            setup: &self.setup,
            selected: &selected,
            agent: &self.identity.name,
            hooks,
            cancel,
        };
        let answer = asker.ask(&request).await.map_err(|error| match error {
            AskError::Canceled => CompactionError::Canceled,
            AskError::Failed(error) => CompactionError::Model(error),
        })?;
        self.tell_after_llm_call(&selected, &answer, hooks).await;
        let summary = answer.message.content.trim().to_owned();
        if summary.is_empty() {
            let error = ModelError::new(ModelErrorKind::Broken, "the model wrote an empty summary");
            return Err(CompactionError::Model(error));
        }
        Ok(summary)
    }

    /// Shows hooks the conversation before it is quoted, as they see it before every other model call: what they keep
    /// from the model, they keep from this one.
    async fn pass_context(
        &self,
        messages: Messages,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Messages, CompactionError> {
        let build = || Context {
            messages: messages.clone(),
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Canceled);
        }
        Ok(outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages))
    }

    /// A summary is a model call like any other: what keeps text from the model keeps it from this one.
    async fn pass_before_llm_call(
        &self,
        selected: &Selected,
        messages: Messages,
        hooks: &Hooks,
        cancel: &CancellationToken,
    ) -> Result<Messages, CompactionError> {
        let build = || BeforeLlmCall {
            model_id: selected.id(),
            // The call is none of a turn's; it counts with the turn that it is made for or after.
            iteration: self.turns.max(1),
            messages: messages.clone(),
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(CompactionError::Canceled);
        }
        if let Some(reason) = outcome.decision().reason() {
            return Err(blocked::<BeforeLlmCall>(reason));
        }
        Ok(outcome
            .into_rewritten()
            .map_or(messages, |event| event.messages))
    }

    async fn tell_after_llm_call(&self, selected: &Selected, answer: &Answer, hooks: &Hooks) {
        match &answer.usage {
            Some(usage) => self.setup.spend(usage),
            None => self.spend_estimate(&answer.message),
        }
        let build = || AfterLlmCall {
            model_id: selected.id(),
            response: answer.message.content.clone(),
            last_user_message: self
                .session
                .last_of(Role::User)
                .map(|message| message.content.clone()),
            usage: answer.usage,
            cost: selected.cost(answer.usage.as_ref()),
        };
        hooks.tell(build).await;
    }

    async fn apply(&mut self, order: &Order, plan: &Plan, compacted: &Compacted, hooks: &Hooks) {
        let entry = self
            .session
            .compact(&compacted.summary, plan.kept.as_ref(), plan.tokens);
        let build = || AfterCompaction {
            compaction_entry: Some(entry),
            summary: compacted.summary.clone(),
            from_hook: compacted.from_hook,
            reason: order.reason,
            input_tokens: self.input_tokens(plan),
            output_tokens: self.gauge.usage.output_tokens,
            context_limit: self.setup.context_window(),
        };
        hooks.tell(build).await;
        self.reset_gauge();
    }
}

fn blocked<E: Event>(reason: &str) -> CompactionError {
    CompactionError::Blocked {
        event: E::INFO.name,
        reason: reason_or_none(reason),
    }
}

/// Makes a failure known. The conversation goes on as it was.
async fn fail(error: CompactionError, hooks: &Hooks) -> CompactionError {
    let text = match &error {
        CompactionError::Model(cause) => format!("{error}: {cause}"),
        CompactionError::Nothing | CompactionError::Blocked { .. } | CompactionError::Canceled => {
            error.to_string()
        }
    };
    let build = || CompactionFailed {
        error: text.clone(),
    };
    hooks.tell(build).await;
    if error != CompactionError::Canceled {
        hooks
            .notify(NotificationLevel::Warning, "compaction_failed", &text)
            .await;
    }
    error
}
