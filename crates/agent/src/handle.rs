//! Sends messages to an agent while it works.

use std::sync::Arc;

use tenterhook_protocol::Decision;
use tenterhook_protocol::event::{InputSource, QueueKind, SessionInfoChange, UserInput};

use crate::hooks::Hooks;
use crate::queue::{QueueFull, QueuedMessage};
use crate::state::AgentState;

/// The outcome of [`AgentHandle::submit`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitOutcome {
    /// The message waits for the agent.
    Queued,
    /// A hook handled the message.
    Handled,
    /// A hook refused the message.
    Refused {
        /// The hook's reason.
        reason: String,
    },
}

/// Sends messages to an agent while it works. Clones send to the same agent.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    state: Arc<AgentState>,
    hooks: Hooks,
}

impl AgentHandle {
    pub(crate) fn new(state: Arc<AgentState>, hooks: Hooks) -> Self {
        Self { state, hooks }
    }

    #[cfg(unix)]
    pub(crate) fn state(&self) -> &Arc<AgentState> {
        &self.state
    }

    #[cfg(unix)]
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Returns how many messages wait for the agent.
    pub fn waiting(&self) -> usize {
        self.state.queues.waiting()
    }

    /// Submits a message like any other input. Hooks of `user_input` judge it, a template or skill that it names is
    /// expanded, and then it waits in a queue. Messages of scripts are never expanded.
    ///
    /// # Errors
    ///
    /// Fails if the queue is full. Then the message is dropped.
    pub async fn submit(
        &self,
        text: impl Into<String>,
        source: InputSource,
        queue: QueueKind,
    ) -> Result<SubmitOutcome, QueueFull> {
        self.submit_message(text.into().into(), source, queue).await
    }

    /// Submits a message of which more is known than its text.
    pub(crate) async fn submit_message(
        &self,
        message: QueuedMessage,
        source: InputSource,
        queue: QueueKind,
    ) -> Result<SubmitOutcome, QueueFull> {
        // Hooks must not judge a message that would be dropped afterwards.
        self.state.queues.check_room(queue)?;
        let judged = self.judge(message, source).await;
        let message = match judged {
            Ok(message) => message,
            Err(outcome) => return Ok(outcome),
        };
        self.state.queues.add(queue, message, &self.hooks).await?;
        Ok(SubmitOutcome::Queued)
    }

    /// Lets hooks of `user_input` judge a message. Returns the message to use, or why it is not used.
    pub(crate) async fn judge(
        &self,
        message: QueuedMessage,
        source: InputSource,
    ) -> Result<QueuedMessage, SubmitOutcome> {
        let QueuedMessage { text, extra } = message;
        let build = || UserInput::new(text.clone()).with_source(source);
        let outcome = self.hooks.fire(build).await;
        if outcome.is_handled() {
            return Err(SubmitOutcome::Handled);
        }
        if let Decision::Ask { reason, .. } | Decision::Stop { reason, .. } = outcome.decision() {
            return Err(SubmitOutcome::Refused { reason });
        }
        let text = outcome.into_rewritten().map_or(text, |event| event.text);
        let text = self.state.expand(text, source);
        Ok(QueuedMessage { text, extra })
    }

    /// Sends the session's new name to hooks.
    pub(crate) async fn announce_name(&self, name: String) {
        self.hooks.announce(|| SessionInfoChange::new(name)).await;
    }

    /// Queues a message for the agent's next step.
    ///
    /// # Errors
    ///
    /// Fails if the queue is full. Then the message is dropped.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), QueueFull> {
        self.state
            .queues
            .add(QueueKind::Steering, text.into().into(), &self.hooks)
            .await
    }

    /// Queues a message for the agent when it has finished its current work.
    ///
    /// # Errors
    ///
    /// Fails if the queue is full. Then the message is dropped.
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<(), QueueFull> {
        self.state
            .queues
            .add(QueueKind::FollowUp, text.into().into(), &self.hooks)
            .await
    }
}
