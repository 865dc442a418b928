//! The messages of a conversation that wait for the job that runs, in order.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::conversations::turn_control::Pending;
use tenterhook_channel::frame::QueuedHow;
use tenterhook_channel::store::InboxRecord;

/// How long no message may arrive before collected messages become a prompt.
const QUIET: Duration = Duration::from_millis(500);

/// The maximum number of collected messages in one prompt.
const MAX_COLLECTED: usize = 20;

/// Something that waits.
pub(super) enum Work {
    /// A message for the agent.
    Turn(Pending),
    /// A request to begin a new session.
    NewSession(Pending),
}

impl Work {
    fn message(&self) -> &Pending {
        match self {
            Self::Turn(message) | Self::NewSession(message) => message,
        }
    }

    fn is_collected(&self) -> bool {
        matches!(self, Self::Turn(message) if message.how == Some(QueuedHow::Collect))
    }
}

/// What waits, in order.
#[derive(Default)]
pub(super) struct Backlog {
    work: VecDeque<Work>,
    /// When the last collected message arrived.
    collected_at: Option<Instant>,
}

impl Backlog {
    pub(super) fn len(&self) -> usize {
        self.work.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    pub(super) fn push(&mut self, work: Work) {
        if work.is_collected() {
            self.collected_at = Some(Instant::now());
        }
        self.work.push_back(work);
    }

    /// Puts messages in front, in the order of the inbox.
    pub(super) fn put_back(&mut self, mut messages: Vec<Pending>) {
        messages.sort_by_key(|message| message.record.id);
        for message in messages.into_iter().rev() {
            self.work.push_front(Work::Turn(message));
        }
    }

    /// Returns when the collected messages in front become a prompt. `None` if there are none, or if something else is
    /// in front.
    pub(super) fn quiet_at(&self) -> Option<Instant> {
        let count = self.collected_in_front();
        let is_full = count >= MAX_COLLECTED || count < self.work.len();
        let at = self.collected_at.filter(|_| count > 0)?;
        Some(if is_full { at } else { at + QUIET })
    }

    /// Takes what is next, unless it is a collected message and more may follow soon.
    pub(super) fn next(&mut self) -> Option<Work> {
        if self.quiet_at().is_some_and(|at| Instant::now() < at) {
            return None;
        }
        self.work.pop_front()
    }

    /// Returns a message together with the collected messages that follow it, if it was collected.
    pub(super) fn collect_with(&mut self, first: Pending) -> Vec<Pending> {
        let is_collected = first.how == Some(QueuedHow::Collect);
        let chat = first.chat().clone();
        let mut messages = vec![first];
        while is_collected && messages.len() < MAX_COLLECTED {
            let belongs = |work: &Work| work.is_collected() && *work.message().chat() == chat;
            if !self.work.front().is_some_and(belongs) {
                break;
            }
            let Some(Work::Turn(message)) = self.work.pop_front() else {
                break;
            };
            messages.push(message);
        }
        messages
    }

    /// Removes messages.
    pub(super) fn remove(&mut self, is_wanted: impl Fn(&InboxRecord) -> bool) -> Vec<Pending> {
        let (removed, kept): (VecDeque<_>, _) = std::mem::take(&mut self.work)
            .into_iter()
            .partition(|work| is_wanted(&work.message().record));
        self.work = kept;
        let removed = removed.into_iter();
        let message = |work| match work {
            Work::Turn(message) | Work::NewSession(message) => message,
        };
        removed.map(message).collect()
    }

    fn collected_in_front(&self) -> usize {
        self.work
            .iter()
            .take_while(|work| work.is_collected())
            .count()
    }
}
