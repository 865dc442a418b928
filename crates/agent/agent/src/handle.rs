//! Sends messages to an agent while it works.

use std::sync::Arc;

use tenterhook_protocol::event::{InputSource, QueueKind, SessionInfoChange, UserInput};
use tenterhook_protocol::{Decision, JsonObject};

use crate::hooks::Hooks;
use crate::queue::QueueFull;
use crate::run_report::Prompt;
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
        let prompt = Prompt {
            source,
            ..Prompt::from(text.into())
        };
        self.submit_prompt(prompt, queue).await
    }

    /// Submits a message with images, or with an `extra`, like [`submit`](Self::submit).
    ///
    /// # Errors
    ///
    /// Fails if the queue is full. Then the message is dropped.
    pub async fn submit_prompt(
        &self,
        prompt: Prompt,
        queue: QueueKind,
    ) -> Result<SubmitOutcome, QueueFull> {
        // Hooks must not judge a message that would be dropped afterwards.
        self.state.queues.check_room(queue)?;
        let message = match self.judge(prompt).await {
            Ok(message) => message,
            Err(outcome) => return Ok(outcome),
        };
        self.state.queues.add(queue, message, &self.hooks).await?;
        Ok(SubmitOutcome::Queued)
    }

    /// Takes back the steering messages that the agent has not heard yet and that `is_wanted` selects by their `extra`.
    pub async fn withdraw(&self, is_wanted: impl Fn(&JsonObject) -> bool) -> Vec<Prompt> {
        let queues = &self.state.queues;
        queues.take_steering(is_wanted, &self.hooks).await
    }

    /// Lets hooks of `user_input` judge a message. Returns the message to use, or why it is not used.
    pub(crate) async fn judge(&self, mut message: Prompt) -> Result<Prompt, SubmitOutcome> {
        let build = || {
            let images = (!message.images.is_empty()).then(|| message.images.clone());
            UserInput::new(message.text.clone())
                .with_images(images)
                .with_source(message.source)
        };
        let outcome = self.hooks.fire(build).await;
        if outcome.is_handled() {
            return Err(SubmitOutcome::Handled);
        }
        if let Decision::Ask { reason, .. } | Decision::Stop { reason, .. } = outcome.decision() {
            return Err(SubmitOutcome::Refused { reason });
        }
        if let Some(event) = outcome.into_rewritten() {
            message.text = event.text;
            // A rewritten event without images means that a hook removed them.
            message.images = event.images.unwrap_or_default();
        }
        message.text = self.state.expand(message.text, message.source);
        Ok(message)
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
