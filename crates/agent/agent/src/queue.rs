//! Messages of the user that wait for the agent: for its next step, or until it has finished.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::{QueueKind, QueueUpdate};
use thiserror::Error;

use crate::hooks::Hooks;
use crate::run_report::Prompt;

/// The maximum number of messages in one queue.
const MAX_QUEUED: usize = 64;

/// The error of a message that was dropped because its queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the queue `{queue}` is full: {MAX_QUEUED} messages are waiting")]
pub struct QueueFull {
    /// The queue.
    pub queue: QueueKind,
}

#[derive(Debug, Default)]
struct QueuedMessages {
    steering: VecDeque<Prompt>,
    follow_up: VecDeque<Prompt>,
}

impl QueuedMessages {
    fn queue_mut(&mut self, kind: QueueKind) -> &mut VecDeque<Prompt> {
        if kind == QueueKind::Steering {
            &mut self.steering
        } else {
            &mut self.follow_up
        }
    }
}

/// Both queues of one agent. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputQueues(Arc<Mutex<QueuedMessages>>);

impl InputQueues {
    fn change<T>(
        &self,
        kind: QueueKind,
        change: impl FnOnce(&mut VecDeque<Prompt>) -> T,
    ) -> (T, Vec<String>) {
        let mut waiting = self.0.lock();
        let queue = waiting.queue_mut(kind);
        let result = change(queue);
        (
            result,
            queue.iter().map(|message| message.text.clone()).collect(),
        )
    }

    pub(crate) async fn add(
        &self,
        kind: QueueKind,
        message: Prompt,
        hooks: &Hooks,
    ) -> Result<(), QueueFull> {
        let text = message.text.clone();
        let (is_added, messages) = self.change(kind, |queue| {
            let has_room = queue.len() < MAX_QUEUED;
            if has_room {
                queue.push_back(message);
            }
            has_room
        });
        if !is_added {
            return Err(QueueFull { queue: kind });
        }
        let build = || QueueUpdate::new(kind, messages).with_message(text);
        hooks.announce(build).await;
        Ok(())
    }

    /// Fails if a queue is full.
    pub(crate) fn check_room(&self, kind: QueueKind) -> Result<(), QueueFull> {
        let mut waiting = self.0.lock();
        let has_room = waiting.queue_mut(kind).len() < MAX_QUEUED;
        has_room.then_some(()).ok_or(QueueFull { queue: kind })
    }

    pub(crate) fn waiting(&self) -> usize {
        let waiting = self.0.lock();
        waiting.steering.len() + waiting.follow_up.len()
    }

    /// Returns whether a message for the next step is waiting.
    pub(crate) fn is_steered(&self) -> bool {
        let waiting = self.0.lock();
        !waiting.steering.is_empty()
    }

    /// Takes the steering messages that `is_wanted` selects by their `extra`.
    pub(crate) async fn take_steering(
        &self,
        is_wanted: impl Fn(&JsonObject) -> bool,
        hooks: &Hooks,
    ) -> Vec<Prompt> {
        let (taken, messages) = self.change(QueueKind::Steering, |queue| {
            let (taken, kept): (VecDeque<_>, _) = std::mem::take(queue)
                .into_iter()
                .partition(|message| is_wanted(&message.extra));
            *queue = kept;
            Vec::from(taken)
        });
        announce_removal(QueueKind::Steering, taken.is_empty(), messages, hooks).await;
        taken
    }

    /// Takes the oldest follow-up.
    pub(crate) async fn take_follow_up(&self, hooks: &Hooks) -> Option<Prompt> {
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
    let build = || QueueUpdate::new(queue, messages);
    hooks.announce(build).await;
}
