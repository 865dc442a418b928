//! Waits for the answer to a message. The turn does not depend on it: a client that goes away cancels nothing.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::answer::{self, Answer, AnswerCollector};
use super::http_error::HttpError;
use super::state::SharedState;
use crate::hub::{Followed, Follower};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::ChatFrame;
use tenterhook_channel::message::IncomingMessage;
use tenterhook_channel::store::{Store, StoreError};

/// How long to wait for frames of a message before the store is asked whether it is finished. The time doubles up to the
/// maximum.
const FIRST_CHECK: Duration = Duration::from_secs(1);
const MAX_CHECK: Duration = Duration::from_secs(30);

/// How long a message may wait for its turn, and the turn for its end, beyond the time that turns may take.
const EXTRA_TIME: Duration = Duration::from_mins(10);

/// How many frames are read from the store at once.
const PAGE: usize = 100;

/// What happened while waiting.
#[derive(Debug)]
pub(crate) enum Progress {
    /// A frame of the chat.
    Frame(ChatFrame),
    /// The wait is over.
    Ended(Answer),
}

/// Waits for the answer to one message.
pub(crate) struct AnswerWait {
    state: SharedState,
    chat: ChatRef,
    dedupe: String,
    follower: Follower,
    collector: AnswerCollector,
    ended: Option<Answer>,
    check_at: Instant,
    check_interval: Duration,
    deadline: Instant,
}

impl AnswerWait {
    /// `follower` must have begun before the message was offered, or read the chat from its first frame. `dedupe`
    /// identifies the message.
    pub(crate) fn new(
        state: SharedState,
        chat: ChatRef,
        dedupe: String,
        follower: Follower,
        collector: AnswerCollector,
    ) -> Self {
        let now = Instant::now();
        let limit = state.parts.settings.turns.timeout + EXTRA_TIME;
        Self {
            state,
            chat,
            dedupe,
            follower,
            collector,
            ended: None,
            check_at: now + FIRST_CHECK,
            check_interval: FIRST_CHECK,
            deadline: now + limit,
        }
    }

    /// Returns the answer.
    pub(crate) async fn answer(mut self) -> Answer {
        loop {
            if let Progress::Ended(answer) = self.next().await {
                return answer;
            }
        }
    }

    pub(crate) fn message_id(&self) -> &str {
        self.collector.message_id()
    }

    /// Returns whether frames belong to the message: a turn has taken it.
    pub(crate) fn is_heard(&self) -> bool {
        self.collector.is_heard()
    }

    /// Returns what happens next. After [`Progress::Ended`] it must not be called again.
    pub(crate) async fn next(&mut self) -> Progress {
        if let Some(answer) = self.ended.take() {
            return Progress::Ended(answer);
        }
        let state = self.state.clone();
        loop {
            let wake = self.check_at.min(self.deadline);
            tokio::select! {
                // An answer that was given while the gateway stopped comes before its end.
                biased;
                followed = self.follower.next() => match followed {
                    Some(Followed::Frame(frame)) => {
                        self.ended = self.collector.add(&frame);
                        return Progress::Frame(frame);
                    }
                    Some(Followed::Gap { .. }) => {}
                    None => return Progress::Ended(interrupted()),
                },
                () = sleep_until(wake) => {
                    if Instant::now() >= self.deadline {
                        return Progress::Ended(interrupted());
                    }
                    if let Some(answer) = self.check().await {
                        return Progress::Ended(answer);
                    }
                }
                () = state.stop.cancelled() => return Progress::Ended(interrupted()),
            }
        }
    }

    /// Looks whether the message ended without a frame. A message and its last frames are finished in one transaction,
    /// so if it is finished, its answer is stored, or no answer follows.
    async fn check(&mut self) -> Option<Answer> {
        self.check_interval = (self.check_interval * 2).min(MAX_CHECK);
        self.check_at = Instant::now() + self.check_interval;
        let store = &self.state.parts.store;
        let is_ours =
            |message: &IncomingMessage| message.dedupe == self.dedupe && message.chat == self.chat;
        // The store works again later, or the deadline comes.
        let records = store.unfinished().await.ok()?;
        if records.iter().any(|record| is_ours(&record.message)) {
            return None;
        }
        let fresh = self.collector.restarted();
        find_answer(store, &self.chat, fresh).await.ok()
    }
}

/// Returns the answer to a finished message, from the stored frames of its chat.
async fn find_answer(
    store: &Store,
    chat: &ChatRef,
    mut collector: AnswerCollector,
) -> Result<Answer, StoreError> {
    let mut after = 0;
    loop {
        let page = store.frames_after(chat, after, PAGE).await?;
        for frame in &page.frames {
            after = frame.seq.unwrap_or(after).max(after);
            if let Some(answer) = collector.add(frame) {
                return Ok(answer);
            }
        }
        if !page.has_more {
            return Ok(collector.finished());
        }
    }
}

fn interrupted() -> Answer {
    Answer::Refused(HttpError::unavailable(
        "interrupted",
        "the message was taken, but its answer was not awaited; send it again with the same `Idempotency-Key`",
        answer::RETRY_AFTER,
    ))
}
