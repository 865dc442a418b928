//! What the user says while the agent works: to be heard at the next step, or when it is done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tenterhook_protocol::Decision;
use tenterhook_protocol::event::{
    InputSource, QueueKind, QueueUpdate, SessionInfoChange, UserInput,
};
use thiserror::Error;

use crate::hooks::Hooks;
use crate::life::Setup;

/// The most messages of one queue.
const MOST_WAITING: usize = 64;

/// A message that was not taken: too many of its queue wait already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{MOST_WAITING} messages of the queue `{queue}` wait already")]
pub struct QueueFull {
    /// The queue.
    pub queue: QueueKind,
}

#[derive(Debug, Default)]
struct Waiting {
    steering: VecDeque<String>,
    follow_up: VecDeque<String>,
}

impl Waiting {
    fn of(&mut self, kind: QueueKind) -> &mut VecDeque<String> {
        if kind == QueueKind::Steering {
            &mut self.steering
        } else {
            &mut self.follow_up
        }
    }
}

/// Both queues of one agent. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Waiting>>);

impl Queues {
    fn change<T>(
        &self,
        kind: QueueKind,
        change: impl FnOnce(&mut VecDeque<String>) -> T,
    ) -> (T, Vec<String>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = waiting.of(kind);
        let result = change(queue);
        (result, queue.iter().cloned().collect())
    }

    async fn add(&self, kind: QueueKind, text: String, hooks: &Hooks) -> Result<(), QueueFull> {
        let (is_added, messages) = self.change(kind, |queue| {
            let has_room = queue.len() < MOST_WAITING;
            if has_room {
                queue.push_back(text.clone());
            }
            has_room
        });
        if !is_added {
            return Err(QueueFull { queue: kind });
        }
        let build = || QueueUpdate {
            queue: kind,
            message: Some(text),
            messages,
        };
        hooks.tell(build).await;
        Ok(())
    }

    /// Fails if a queue takes no more.
    fn check_room(&self, kind: QueueKind) -> Result<(), QueueFull> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.of(kind).len() < MOST_WAITING;
        has_room.then_some(()).ok_or(QueueFull { queue: kind })
    }

    fn waiting(&self) -> usize {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.steering.len() + waiting.follow_up.len()
    }

    /// Says whether the user has said something for the next step.
    pub(crate) fn is_steered(&self) -> bool {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !waiting.steering.is_empty()
    }

    /// Takes all steering messages.
    pub(crate) async fn take_steering(&self, hooks: &Hooks) -> Vec<String> {
        let (taken, messages) = self.change(QueueKind::Steering, |queue| {
            queue.drain(..).collect::<Vec<_>>()
        });
        announce_removal(QueueKind::Steering, taken.is_empty(), messages, hooks).await;
        taken
    }

    /// Takes the oldest follow-up.
    pub(crate) async fn take_follow_up(&self, hooks: &Hooks) -> Option<String> {
        let (taken, messages) = self.change(QueueKind::FollowUp, VecDeque::pop_front);
        announce_removal(QueueKind::FollowUp, taken.is_none(), messages, hooks).await;
        taken
    }
}

async fn announce_removal(
    queue: QueueKind,
    is_unchanged: bool,
    messages: Vec<String>,
    hooks: &Hooks,
) {
    if is_unchanged {
        return;
    }
    let build = || QueueUpdate {
        queue,
        message: None,
        messages,
    };
    hooks.tell(build).await;
}

/// What became of something that was said to an agent at work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Submitted {
    /// It waits for the agent.
    Queued,
    /// A hook dealt with it.
    Handled,
    /// A hook does not want it.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Speaks to an agent that is at work. Clones speak to the same one.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    setup: Arc<Setup>,
    hooks: Hooks,
}

impl AgentHandle {
    pub(crate) fn new(setup: Arc<Setup>, hooks: Hooks) -> Self {
        Self { setup, hooks }
    }

    #[cfg(unix)]
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Returns how many messages wait for the agent.
    pub fn waiting(&self) -> usize {
        self.setup.queues.waiting()
    }

    /// Takes what somebody says the way that every input goes: hooks of `user_input` judge it, a template or skill that it names
    /// stands for it, and then it waits in a queue. What a script says is never taken for a template.
    ///
    /// # Errors
    ///
    /// Fails if too many wait already; the message is not taken then.
    pub async fn submit(
        &self,
        text: impl Into<String>,
        source: InputSource,
        queue: QueueKind,
    ) -> Result<Submitted, QueueFull> {
        // Hooks are not asked of what cannot be taken.
        self.setup.queues.check_room(queue)?;
        let text = text.into();
        let build = || UserInput {
            text: text.clone(),
            images: None,
            source,
        };
        let outcome = self.hooks.fire(build).await;
        if outcome.is_handled() {
            return Ok(Submitted::Handled);
        }
        if let Decision::Ask { reason, .. } | Decision::Stop { reason, .. } = outcome.decision() {
            return Ok(Submitted::Refused { reason });
        }
        let text = outcome.into_rewritten().map_or(text, |event| event.text);
        let text = self.setup.expand(text, source);
        self.setup.queues.add(queue, text, &self.hooks).await?;
        Ok(Submitted::Queued)
    }

    /// Lets hooks know the session's new name.
    pub(crate) async fn announce_name(&self, name: String) {
        self.hooks.tell(|| SessionInfoChange { name }).await;
    }

    /// Gives the agent a message for its next step.
    ///
    /// # Errors
    ///
    /// Fails if too many wait already; the message is not taken then.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), QueueFull> {
        self.setup
            .queues
            .add(QueueKind::Steering, text.into(), &self.hooks)
            .await
    }

    /// Gives the agent a message for when it is done.
    ///
    /// # Errors
    ///
    /// Fails if too many wait already; the message is not taken then.
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<(), QueueFull> {
        self.setup
            .queues
            .add(QueueKind::FollowUp, text.into(), &self.hooks)
            .await
    }
}
