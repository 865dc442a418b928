//! Conversations: all messages with one session key, in order.
//!
//! A conversation is one task. It receives messages one after another, while at most one turn runs. Requests to cancel
//! or stop do not wait behind messages.

mod actor;
mod backlog;
mod pause;
mod script_prompts;
mod step;
mod stored_busy;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_agent::CancellationToken;
use tenterhook_protocol::EventId;
use tenterhook_protocol::event::{DeliveryKind, SenderRole};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::actor::{Actor, Request};
use self::step::MailboxMessage;
use crate::conversations::chat_command::of_extension;
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::deliver::Delivery;
use crate::conversations::places::{MAX_WAITING, Place, Places};
use crate::conversations::reply::{Reply, publish, recipient};
use crate::conversations::turn::INTERRUPTED;
use tenterhook_channel::chat::{ChatRef, Sender, SessionKey};
use tenterhook_channel::frame::{EndReason, Frame, TurnStatus};
use tenterhook_channel::message::IncomingPart;
use tenterhook_channel::publisher::InboxUpdate;
use tenterhook_channel::settings::RestartMode;
use tenterhook_channel::store::{InboxRecord, InboxState};

/// The maximum number of requests that wait for a conversation.
const MAX_REQUESTS: usize = 16;

/// How long a cancelled turn and the end of a session may take.
const MAX_ENDING: Duration = Duration::from_mins(1);

/// How many of the last frames of a chat are searched for the answer of an interrupted turn.
const LAST_FRAMES: usize = 64;

/// The error of a message for which a conversation has no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{MAX_WAITING} messages of this conversation wait already")]
pub struct MailboxFull;

/// Returns whether a request to cancel removes a message that waits: a sender removes their own, an owner all.
pub fn may_remove(record: &InboxRecord, sender: &Sender, role: SenderRole) -> bool {
    record.message.sender.id == sender.id || role == SenderRole::Owner
}

/// Finishes a message that was removed before a conversation had it, and reports that to its chat.
pub async fn report_removed(parts: &ConversationParts, record: &InboxRecord) {
    let delivery = Delivery::new(parts.events.dispatcher(), parts.media.clone());
    Reply::new(&parts.publisher, &delivery, record)
        .cancelled()
        .await;
}

/// The task of one session key.
#[derive(Debug)]
pub struct ChatTask {
    parts: Arc<ConversationParts>,
    /// Messages are boxed, because a channel has room for many from its start.
    mailbox: mpsc::Sender<Box<MailboxMessage>>,
    places: Places,
    requests: mpsc::Sender<Request>,
    idle_since: Arc<Mutex<Option<Instant>>>,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
    task: JoinHandle<()>,
}

impl ChatTask {
    /// Starts a conversation.
    pub fn start(parts: Arc<ConversationParts>, key: SessionKey) -> Self {
        let (mailbox, messages) = mpsc::channel(MAX_WAITING);
        let (requests, received) = mpsc::channel(MAX_REQUESTS);
        let idle_since = Arc::new(Mutex::new(Some(Instant::now())));
        let places = Places::new();
        let actor = Actor::new(
            Arc::clone(&parts),
            key,
            (messages, received),
            (places.clone(), Arc::clone(&idle_since)),
        );
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        let task = tokio::spawn(async move {
            let _end = end;
            actor.run().await;
        });
        Self {
            parts,
            mailbox,
            places,
            requests,
            idle_since,
            ended,
            task,
        }
    }

    /// Gives the conversation a recorded message. Messages are processed in this order.
    ///
    /// # Errors
    ///
    /// Fails if 64 messages wait already, or if the conversation has stopped.
    pub fn offer(&self, record: InboxRecord) -> Result<(), MailboxFull> {
        let place = self.place(&record)?;
        self.send(MailboxMessage { record, place })
    }

    /// Stops the turn of a chat, and removes waiting messages of the sender; an owner removes all messages of the chat.
    /// Returns `false` if nothing ran or waited.
    pub async fn cancel(&self, chat: &ChatRef, sender: &Sender, role: SenderRole) -> bool {
        let (reply, cancelled) = oneshot::channel();
        let request = Request::Cancel {
            chat: chat.clone(),
            sender: sender.id.clone(),
            role,
            reply,
        };
        self.requests.send(request).await.is_ok() && cancelled.await.unwrap_or(false)
    }

    /// Returns whether a message of a chat waits here or is worked on.
    pub fn has_work_of(&self, chat: &ChatRef) -> bool {
        self.places.holds(chat)
    }

    /// Returns since when nothing runs or waits. `None` if something does.
    pub fn is_idle_since(&self) -> Option<Instant> {
        *self.idle_since.lock()
    }

    /// Stops the conversation: a turn may continue for `drain`, and is cancelled then. Messages that wait are processed
    /// after the next start. The session ends. A second call can shorten the time; a turn that ignores its end for a
    /// minute is abandoned.
    pub async fn stop(&self, drain: Duration) {
        let stopping = async {
            // If the task has ended already, there is nothing to stop.
            let _sent = self.requests.send(Request::Stop { drain }).await;
            self.ended.cancelled().await;
        };
        let patience = drain.saturating_add(MAX_ENDING);
        if tokio::time::timeout(patience, stopping).await.is_err() {
            self.task.abort();
        }
    }

    /// Handles a message whose turn ran when the program was killed. The turn is never run again, because its tools
    /// may have run.
    pub async fn resume_interrupted(&self, record: InboxRecord) {
        if let Some(turn) = self.answered_turn(&record).await {
            return self.end_answered(&record, turn).await;
        }
        match self.parts.settings.current().on_restart {
            RestartMode::Resume => {
                if !self.is_command(&record) && self.offer(record.clone()).is_ok() {
                    return;
                }
                self.tell_interrupted(&record).await;
            }
            RestartMode::Tell => self.tell_interrupted(&record).await,
            RestartMode::Quiet => {
                let update = self
                    .parts
                    .store
                    .set_inbox_state(vec![record.id], InboxState::Failed);
                // If the state cannot be stored, the message is found again at the next start.
                let _stored = update.await;
            }
        }
    }

    /// Returns whether a message calls a command of an extension. The agent does not know what such a turn did, so it
    /// cannot continue it.
    fn is_command(&self, record: &InboxRecord) -> bool {
        let profile = self.parts.profile.current();
        let commands = profile.commands();
        record.message.parts.iter().any(|part| match part {
            IncomingPart::Text { text } => {
                of_extension(text, record.role, commands).is_ok_and(|command| command.is_some())
            }
            IncomingPart::Media(_)
            | IncomingPart::Reference(_)
            | IncomingPart::Unreadable { .. } => false,
        })
    }

    /// Returns the turn that a message began, if its chat has the final answer already.
    ///
    /// A message that was added to a turn is not known to be heard, so it does not count.
    async fn answered_turn(&self, record: &InboxRecord) -> Option<String> {
        let chat = &record.message.chat;
        let page = self.parts.store.frames_before(chat, u64::MAX, LAST_FRAMES);
        let (mut first, mut answered) = (None, None);
        for stored in page.await.ok()?.frames {
            match stored.frame {
                Frame::Said { message_id, .. } if first.is_none() => first = Some(message_id),
                Frame::End {
                    turn,
                    is_final: true,
                    reason: EndReason::Stop,
                    ..
                } => answered = Some(turn),
                Frame::Done { .. } => (first, answered) = (None, None),
                Frame::Said { .. }
                | Frame::Call { .. }
                | Frame::End { .. }
                | Frame::Message { .. }
                | Frame::Error { .. }
                | Frame::Queued { .. }
                | Frame::Start { .. }
                | Frame::Chunk { .. }
                | Frame::Approve { .. }
                | Frame::Question { .. }
                | Frame::Resolved { .. }
                | Frame::Notice { .. } => {}
            }
        }
        answered.filter(|_| first.as_ref() == Some(&record.message.message_id))
    }

    /// Ends a turn of which only the end is missing.
    async fn end_answered(&self, record: &InboxRecord, turn: String) {
        let parts = &self.parts;
        let delivery = Delivery::new(parts.events.dispatcher(), parts.media.clone());
        let done = Frame::Done {
            turn,
            status: TurnStatus::Completed,
            usage: None,
        };
        let update = InboxUpdate {
            ids: vec![record.id],
            state: InboxState::Answered,
            tail: None,
        };
        let chat = &record.message.chat;
        // A failure has been reported to the chat.
        let _reported = publish(&parts.publisher, &delivery, chat, vec![done], update).await;
    }

    async fn tell_interrupted(&self, record: &InboxRecord) {
        let parts = &self.parts;
        let delivery = Delivery::new(parts.events.dispatcher(), parts.media.clone());
        let (to, turn) = (recipient(&record.message), EventId::generate().to_string());
        let content = INTERRUPTED.to_owned().into();
        let content = delivery.deliver(&to, DeliveryKind::Error, content).await;
        let start = Frame::Start {
            turn: turn.clone(),
            in_reply_to: to.in_reply_to,
        };
        parts.publisher.live(&to.chat, &start);
        let error = Frame::Error {
            turn: Some(turn.clone()),
            message_id: Some(record.message.message_id.clone()),
            code: "interrupted".to_owned(),
            text: content.text,
            retry: None,
        };
        let done = Frame::Done {
            turn,
            status: TurnStatus::Failed,
            usage: None,
        };
        let update = InboxUpdate {
            ids: vec![record.id],
            state: InboxState::Failed,
            tail: None,
        };
        let _reported = publish(
            &parts.publisher,
            &delivery,
            &to.chat,
            vec![error, done],
            update,
        )
        .await;
    }

    fn place(&self, record: &InboxRecord) -> Result<Place, MailboxFull> {
        let place = self.places.take(&record.message.chat).ok_or(MailboxFull)?;
        *self.idle_since.lock() = None;
        Ok(place)
    }

    fn send(&self, message: MailboxMessage) -> Result<(), MailboxFull> {
        let message = Box::new(message);
        self.mailbox.try_send(message).map_err(|_| MailboxFull)
    }
}
