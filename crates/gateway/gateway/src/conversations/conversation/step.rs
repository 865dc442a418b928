//! The steps of a conversation: what is done with one message at a time.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_agent::AgentHandle;
use tenterhook_protocol::Event as _;
use tenterhook_protocol::event::{SessionEndReason, UserPromptSubmit};

use crate::conversations::agent_slot::AgentSlot;
use crate::conversations::chat_frontend::TurnView;
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::deliver::Delivery;
use crate::conversations::places::Place;
use crate::conversations::receive::{Heard, NOT_CHECKED, Reception};
use crate::conversations::reply::{Reply, publish};
use crate::conversations::turn::TurnResult;
use crate::conversations::turn_control::{Pending, SteerOutcome, TurnControl};
use tenterhook_channel::frame::{Frame, QueuedHow, TurnStatus};
use tenterhook_channel::message::IncomingPart;
use tenterhook_channel::publisher::InboxUpdate;
use tenterhook_channel::store::{InboxRecord, InboxState};

/// The prompt with which the agent continues after a crash.
const CONTINUE: &str = "The program was restarted while you worked on the last message. Its tools may have run \
                        already: check before you run them again. Continue.";

/// What the chat reads if the program has a bug.
const CRASHED: &str = "I could not finish because of a bug in this program. Tools may have run.";

/// A recorded message in the mailbox of a conversation.
pub(super) struct MailboxMessage {
    pub(super) record: InboxRecord,
    pub(super) place: Place,
}

/// The result of a step.
pub(super) enum StepEnd {
    /// The message was refused or answered.
    Over,
    /// The message was received.
    Received(Pending),
    /// The message was submitted to the turn.
    Steered(SteerOutcome),
    /// The work panicked.
    Crashed,
}

/// The work on one message.
pub(super) struct Step {
    pub(super) record: InboxRecord,
    /// Whether the message is being submitted to the agent. Such a step is not dropped.
    pub(super) is_steering: bool,
    pub(super) work: BoxFuture<'static, StepEnd>,
}

/// An answer without a turn.
pub(super) enum Answer {
    Output(String),
    Refuse(&'static str, String),
}

/// Returns the delivery of the open session, or of the gateway if none is open.
pub(super) async fn delivery_of(parts: &ConversationParts, slot: &AgentSlot) -> Delivery {
    let dispatcher = match slot.open_view().await {
        Some(view) => view.dispatcher,
        None => parts.events.dispatcher(),
    };
    Delivery::new(dispatcher, parts.media.clone())
}

async fn receive(
    parts: &ConversationParts,
    slot: &AgentSlot,
    record: InboxRecord,
    place: Place,
    is_busy: bool,
) -> StepEnd {
    let channel = &record.message.chat.channel;
    let access = parts.access(&record.message.chat, record.role);
    let dispatcher = match slot.view(&access).await {
        Ok(view) => view.dispatcher,
        // The turn will report why the agent cannot be opened.
        Err(_) => parts.events.dispatcher(),
    };
    let delivery = Delivery::new(dispatcher, parts.media.clone());
    let reception = Reception {
        publisher: &parts.publisher,
        media: &parts.media,
        delivery: &delivery,
        limits: &parts.receives,
        is_busy,
        stt_enabled: parts
            .channel(channel)
            .and_then(|channel| channel.stt_enabled),
    };
    let is_said = record.state == InboxState::Unheard;
    match reception.receive(&record).await {
        Some(heard) => StepEnd::Received(Pending {
            record,
            heard,
            how: None,
            is_said,
            command: None,
            place,
        }),
        None => StepEnd::Over,
    }
}

/// Ends the session of a key, so that the next message begins a new one.
pub(super) async fn begin_session(
    parts: Arc<ConversationParts>,
    slot: Arc<AgentSlot>,
    message: Pending,
) -> TurnResult {
    slot.close(SessionEndReason::New).await;
    let delivery = delivery_of(&parts, &slot).await;
    let reply = Reply::new(&parts.publisher, &delivery, &message.record);
    if parts.store.set_session(slot.key(), None).await.is_ok() {
        reply.output("A new conversation begins.".to_owned()).await;
    } else {
        let problem = "A new conversation cannot begin, because the store cannot be written.";
        reply.refuse("store", problem).await;
    }
    TurnResult::Ended(Vec::new())
}

/// Opens the agent of a key again after a reload. If that fails, the next message reports why.
pub(super) async fn reopen(parts: Arc<ConversationParts>, slot: Arc<AgentSlot>) -> TurnResult {
    // Nothing closes the semaphore.
    let _permit = parts.profile.reopening().acquire().await;
    let _reported_later = slot.renew(None).await;
    TurnResult::Ended(Vec::new())
}

pub(super) fn queued(message: &Pending, how: QueuedHow, waiting: usize) -> Frame {
    Frame::Queued {
        message_id: message.record.message.message_id.clone(),
        how,
        waiting,
    }
}

/// Works on a message from the mailbox. If a crash interrupted its turn, the agent is asked to continue.
pub(super) async fn open(
    parts: &ConversationParts,
    slot: &AgentSlot,
    message: MailboxMessage,
    is_busy: bool,
) -> StepEnd {
    let MailboxMessage { record, place } = message;
    if record.state == InboxState::Running {
        StepEnd::Received(without_reception(record, CONTINUE.to_owned(), place))
    } else if record.script.is_some() {
        let prompt = prompt_of_script(&record);
        StepEnd::Received(without_reception(record, prompt, place))
    } else {
        receive(parts, slot, record, place, is_busy).await
    }
}

/// Returns the prompt of a script.
fn prompt_of_script(record: &InboxRecord) -> String {
    let texts = record.message.parts.iter().filter_map(|part| match part {
        IncomingPart::Text { text } => Some(text.as_str()),
        IncomingPart::Media(_) | IncomingPart::Reference(_) | IncomingPart::Unreadable { .. } => {
            None
        }
    });
    texts.collect()
}

/// Returns a message whose prompt no person has written. Hooks of `message_receive` do not see it, and its chat does not
/// show it.
fn without_reception(record: InboxRecord, prompt: String, place: Place) -> Pending {
    Pending {
        record,
        heard: Heard {
            prompt: prompt.clone(),
            text: prompt,
            ..Heard::default()
        },
        how: None,
        is_said: true,
        command: None,
        place,
    }
}

/// Answers a message without a turn.
pub(super) async fn give_answer(
    parts: &ConversationParts,
    slot: &AgentSlot,
    message: Pending,
    answer: Answer,
) -> StepEnd {
    let delivery = delivery_of(parts, slot).await;
    let reply = Reply::new(&parts.publisher, &delivery, &message.record);
    match answer {
        Answer::Output(text) => reply.output(text).await,
        Answer::Refuse(code, text) => reply.refuse(code, &text).await,
    }
    StepEnd::Over
}

/// Submits a message to the agent while its turn runs.
pub(super) async fn submit(
    parts: Arc<ConversationParts>,
    (control, turn): (Arc<TurnControl>, Option<Arc<TurnView>>),
    handle: AgentHandle,
    mut message: Pending,
) -> StepEnd {
    let update = InboxUpdate {
        ids: vec![message.record.id],
        state: InboxState::Running,
        tail: None,
    };
    let publisher = &parts.publisher;
    let said = (!message.is_said).then(|| message.said());
    let said = said.into_iter().collect();
    let stored = publisher.publish(message.chat(), said, update).await;
    if stored.is_err() {
        return StepEnd::Steered(SteerOutcome::Unheard(message));
    }
    message.is_said = true;
    publisher.live(message.chat(), &queued(&message, QueuedHow::Steer, 1));
    let mut outcome = control.steer(&handle, message).await;
    if let SteerOutcome::Finished(_, Some(reason)) = &mut outcome
        && turn.is_some_and(|turn| turn.hides_failure_of(UserPromptSubmit::INFO.name))
    {
        NOT_CHECKED.clone_into(reason);
    }
    StepEnd::Steered(outcome)
}

/// Reports messages whose work panicked, so that no one waits for an answer.
pub(super) async fn tell_crashed(
    parts: &Arc<ConversationParts>,
    slot: &Arc<AgentSlot>,
    turn: Option<&Arc<TurnControl>>,
    records: Vec<InboxRecord>,
) {
    let (parts, slot, turn) = (Arc::clone(parts), Arc::clone(slot), turn.cloned());
    let telling = async move {
        let delivery = delivery_of(&parts, &slot).await;
        for record in &records {
            let reply = Reply::new(&parts.publisher, &delivery, record);
            reply.fail("crashed", CRASHED).await;
        }
        if let Some(control) = turn {
            let done = Frame::Done {
                turn: control.turn.clone(),
                status: TurnStatus::Failed,
                usage: None,
            };
            let (chat, update) = (&control.chat, InboxUpdate::default());
            // A failure has been reported to the chat.
            let _reported = publish(&parts.publisher, &delivery, chat, vec![done], update).await;
        }
    };
    // If this panics as well, the next start reports the messages as interrupted.
    let _notified = tokio::spawn(telling).await;
}
