//! How a turn is steered and cancelled from outside, and the messages that wait for one.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_agent::extension::ForeignCommand;
use tenterhook_agent::{AgentHandle, CancellationToken, Prompt, SubmitOutcome};
use tenterhook_protocol::event::{InputSource, MessageCancelReason, QueueKind, SenderRole};
use tenterhook_protocol::{EventId, JsonObject};

use crate::conversations::places::Place;
use crate::conversations::receive::Heard;
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::current_role::rank;
use tenterhook_channel::frame::{Frame, QueuedHow};
use tenterhook_channel::store::{InboxRecord, InboxState};

/// The key of a message's `extra` that holds its number in the inbox.
const INBOX_ID: &str = "inbox_id";

/// The key of a message's `extra` that holds its id in the channel. Channels do not know what scripts have sent.
const MESSAGE_ID: &str = "message_id";

/// A message that waits for a turn, or that a turn answers.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) record: InboxRecord,
    pub(crate) heard: Heard,
    /// How it was taken, if the agent worked when it arrived.
    pub(crate) how: Option<QueuedHow>,
    /// Whether the chat has seen it.
    pub(crate) is_said: bool,
    /// The command of an extension with which it begins. Such a message has a turn of its own.
    pub(crate) command: Option<ForeignCommand>,
    /// Its place in the mailbox, which becomes free when it is answered.
    #[expect(dead_code, reason = "it is only held")]
    pub(crate) place: Place,
}

impl Pending {
    pub(crate) fn chat(&self) -> &ChatRef {
        &self.record.message.chat
    }

    pub(crate) fn said(&self) -> Frame {
        Frame::Said {
            message_id: self.record.message.message_id.clone(),
            sender: self.record.message.sender.id.clone(),
            text: self.heard.text.clone(),
            media: self.heard.media.clone(),
            is_transcript: self.heard.is_transcript,
        }
    }

    /// Returns what the session keeps about the message in addition to its text.
    pub(crate) fn extra(&self) -> JsonObject {
        let mut extra = self.record.script.clone().unwrap_or_default();
        extra.insert(INBOX_ID.to_owned(), json!(self.record.id.0));
        if self.record.script.is_none() {
            let id = &self.record.message.message_id;
            extra.insert(MESSAGE_ID.to_owned(), json!(id));
        }
        extra
    }

    /// Returns where the message comes from, for hooks.
    pub(crate) fn source(&self) -> InputSource {
        match self.record.script {
            Some(_) => InputSource::Extension,
            None => InputSource::Channel,
        }
    }

    fn prompt(&self) -> Prompt {
        Prompt {
            text: self.heard.prompt.clone(),
            images: self.heard.images.clone(),
            source: self.source(),
            extra: self.extra(),
        }
    }
}

/// Returns what the session keeps about one prompt made of several messages. It is about the first one, and names all.
pub(crate) fn extra_of(messages: &[Pending]) -> JsonObject {
    let mut extra = messages.first().map(Pending::extra).unwrap_or_default();
    if messages.len() > 1 {
        let ids: Vec<_> = messages.iter().map(|message| message.record.id.0).collect();
        extra.insert(INBOX_ID.to_owned(), json!(ids));
    }
    extra
}

/// Returns whether the `extra` of a message in a session names a message of the inbox.
pub(crate) fn is_of_record(extra: &JsonObject, record: &InboxRecord) -> bool {
    let id = json!(record.id.0);
    match extra.get(INBOX_ID) {
        Some(Value::Array(ids)) => ids.contains(&id),
        Some(only) => *only == id,
        None => false,
    }
}

/// Returns the id in the channel of a message of the inbox, from the message's `extra`.
pub(crate) fn message_id_of(extra: &JsonObject) -> Option<&str> {
    extra.get(MESSAGE_ID)?.as_str()
}

/// Why a turn was cancelled, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cancellation {
    pub(crate) reason: MessageCancelReason,
    /// The sender who cancelled it. Empty if no one in the chat did.
    pub(crate) user: String,
    pub(crate) role: SenderRole,
}

impl Cancellation {
    /// Returns whether a waiting message is cancelled too: a sender removes their own, an owner all.
    pub(crate) fn covers(&self, record: &InboxRecord) -> bool {
        let is_own = record.message.sender.id == self.user;
        self.reason == MessageCancelReason::User && (is_own || self.role == SenderRole::Owner)
    }
}

/// Steers and cancels a turn from outside.
#[derive(Debug)]
pub(crate) struct TurnControl {
    /// The id of the turn.
    pub(crate) turn: String,
    pub(crate) chat: ChatRef,
    /// The least role of all senders whose words the turn holds.
    pub(crate) role: SenderRole,
    senders: Vec<String>,
    is_started: AtomicBool,
    cancel: CancellationToken,
    cancellation: Mutex<Option<Cancellation>>,
    steered: Mutex<Steered>,
}

/// The messages that were submitted to a turn while it ran.
#[derive(Debug, Default)]
struct Steered {
    /// Whether the agent's run is over, so that it hears nothing any more.
    is_over: bool,
    messages: Vec<Pending>,
}

/// The result of steering a message.
pub(crate) enum SteerOutcome {
    /// The agent will hear it, or it waits for another turn if the run ends first.
    Taken,
    /// The run had ended, so the message needs a turn of its own.
    Unheard(Pending),
    /// The turn was cancelled, and the message with it.
    Cancelled(Pending),
    /// A hook handled it or refused it, with a reason; or the run heard it and ended before it was registered.
    Finished(Pending, Option<String>),
}

impl TurnControl {
    /// Creates the control of a turn for messages of one chat.
    pub(crate) fn new(messages: &[Pending]) -> Option<Self> {
        let first = messages.first()?;
        let records = || messages.iter().map(|message| &message.record);
        let role = records()
            .map(|record| record.role)
            .min_by_key(|role| rank(*role))?;
        Some(Self {
            turn: EventId::generate().to_string(),
            chat: first.chat().clone(),
            role,
            senders: records()
                .map(|record| record.message.sender.id.clone())
                .collect(),
            is_started: AtomicBool::new(false),
            cancel: CancellationToken::new(),
            cancellation: Mutex::default(),
            steered: Mutex::default(),
        })
    }

    /// Returns whether a sender may cancel the turn.
    pub(crate) fn may_cancel(&self, sender: &str, role: SenderRole) -> bool {
        rank(role) >= rank(self.role) || self.senders.iter().any(|own| own == sender)
    }

    /// Returns whether a message may be added to the turn while it runs. Someone with fewer rights than the turn may
    /// not steer it. A message whose own turn was interrupted needs a turn, which looks whether the agent knows it.
    pub(crate) fn may_steer(&self, record: &InboxRecord) -> bool {
        record.message.chat == self.chat
            && record.state != InboxState::Running
            && rank(record.role) >= rank(self.role)
            && !self.cancel.is_cancelled()
    }

    pub(crate) fn is_started(&self) -> bool {
        self.is_started.load(Ordering::Acquire)
    }

    /// Notes that the turn begins.
    pub(crate) fn start(&self) {
        self.is_started.store(true, Ordering::Release);
    }

    /// Returns the token that cancels the agent's run.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Cancels the turn. The first cancellation counts.
    pub(crate) fn cancel(&self, cancellation: Cancellation) {
        self.cancellation.lock().get_or_insert(cancellation);
        self.cancel.cancel();
    }

    /// Returns why the turn was cancelled, if it was.
    pub(crate) fn cancellation(&self) -> Option<Cancellation> {
        self.cancellation.lock().clone()
    }

    /// Submits a message to the running agent.
    pub(crate) async fn steer(&self, handle: &AgentHandle, message: Pending) -> SteerOutcome {
        let (id, prompt) = (message.record.id, message.prompt());
        let submitted = handle.submit_prompt(prompt, QueueKind::Steering).await;
        match submitted {
            Ok(SubmitOutcome::Queued) => {}
            Ok(SubmitOutcome::Refused { reason }) => {
                return SteerOutcome::Finished(message, Some(reason));
            }
            Ok(_) => return SteerOutcome::Finished(message, None),
            Err(_full) => return self.unheard(message),
        }
        {
            let mut steered = self.steered.lock();
            if !steered.is_over {
                steered.messages.push(message);
                return SteerOutcome::Taken;
            }
        }
        // The run ended while hooks judged the message. No turn begins before this returns, so the
        // message is still queued, unless that run heard it.
        let is_own = |extra: &JsonObject| extra.get(INBOX_ID) == Some(&json!(id.0));
        if handle.withdraw(is_own).await.is_empty() {
            return SteerOutcome::Finished(message, None);
        }
        self.unheard(message)
    }

    fn unheard(&self, message: Pending) -> SteerOutcome {
        let cancellation = self.cancellation();
        if cancellation.is_some_and(|cancellation| cancellation.covers(&message.record)) {
            SteerOutcome::Cancelled(message)
        } else {
            SteerOutcome::Unheard(message)
        }
    }

    /// Ends steering after a crash. Returns all messages that were submitted.
    pub(crate) fn abandon(&self) -> Vec<Pending> {
        let mut steered = self.steered.lock();
        steered.is_over = true;
        std::mem::take(&mut steered.messages)
    }

    /// Ends steering. Returns the messages that the run heard, and those that it did not hear.
    pub(crate) async fn close(&self, handle: &AgentHandle) -> (Vec<Pending>, Vec<Pending>) {
        let messages = {
            let mut steered = self.steered.lock();
            steered.is_over = true;
            std::mem::take(&mut steered.messages)
        };
        let ids: Vec<_> = messages
            .iter()
            .map(|message| json!(message.record.id.0))
            .collect();
        let is_own = |extra: &JsonObject| extra.get(INBOX_ID).is_some_and(|id| ids.contains(id));
        let withdrawn = handle.withdraw(is_own).await;
        let is_heard = |message: &Pending| {
            let id = json!(message.record.id.0);
            let is_same = |prompt: &Prompt| prompt.extra.get(INBOX_ID) == Some(&id);
            !withdrawn.iter().any(is_same)
        };
        messages.into_iter().partition(is_heard)
    }
}
