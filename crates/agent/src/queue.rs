//! What the user says while the agent works: to be heard at the next step, or when it is done.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tenterhook_protocol::event::{InputSource, QueueKind, QueueUpdate, UserInput};

use crate::hooks::Hooks;

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

    async fn add(&self, kind: QueueKind, text: String, hooks: &Hooks) {
        let ((), messages) = self.change(kind, |queue| queue.push_back(text.clone()));
        let build = || QueueUpdate {
            queue: kind,
            message: Some(text),
            messages,
        };
        hooks.tell(build).await;
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

/// Speaks to an agent that is at work. Clones speak to the same one.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    queues: Queues,
    hooks: Hooks,
}

impl AgentHandle {
    pub(crate) fn new(queues: Queues, hooks: Hooks) -> Self {
        Self { queues, hooks }
    }

    #[cfg(unix)]
    pub(crate) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Returns how many messages wait for the agent.
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Lets hooks judge a message of a script as they judge every input, and returns what they made of it; nothing where they
    /// dealt with it or do not want it.
    pub(crate) async fn submit_for_script(&self, text: String) -> Option<String> {
        let build = || UserInput {
            text: text.clone(),
            images: None,
            source: InputSource::Extension,
        };
        let outcome = self.hooks.fire(build).await;
        if outcome.is_handled() || outcome.stopped().is_some() {
            return None;
        }
        Some(outcome.into_rewritten().map_or(text, |event| event.text))
    }

    /// Gives the agent a message for its next step.
    pub async fn steer(&self, text: impl Into<String>) {
        self.queues
            .add(QueueKind::Steering, text.into(), &self.hooks)
            .await;
    }

    /// Gives the agent a message for when it is done.
    pub async fn follow_up(&self, text: impl Into<String>) {
        self.queues
            .add(QueueKind::FollowUp, text.into(), &self.hooks)
            .await;
    }
}
