//! The frontend of a chat's agent: turns what the agent does into frames of the turn that runs.
//!
//! Text that hooks of `message_deliver` may change is not shown before they have answered. The agent waits while a
//! message is delivered, so frames have the order in which things happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{self, BoxFuture};
use parking_lot::Mutex;
use serde_json::Value;
use tenterhook_agent::frontend::{
    Approval, ApprovalRequest, Denial, Frontend, HookFailure, ScriptDisplay, ScriptQuestion,
};
use tenterhook_agent::{CancellationToken, SessionTail, UnsyncedTail};
use tenterhook_protocol::event::{DeliveryKind, NotificationLevel, SenderRole};
use tenterhook_protocol::{JsonObject, Message, SessionId, ToolCall, ToolResult, ToolUseId};

use crate::conversations::approvals::AskingChat;
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::deliver::{Content, Delivery, Recipient};
use crate::conversations::reply::publish;
use crate::conversations::turn_control::message_id_of;
use tenterhook_channel::chat::SessionKey;
use tenterhook_channel::frame::{Chunk, EndReason, Frame, Retry};
use tenterhook_channel::publisher::{InboxUpdate, PublishError};
use tenterhook_channel::store::DocumentKind;

/// The maximum length of a tool result in a frame, and of a text in the stored arguments of a call, in characters.
const MAX_RESULT_CHARS: usize = 300;

/// The maximum number of ended calls that wait to be stored. The oldest are dropped.
const MAX_CALLS: usize = 100;

/// The maximum number of frames that wait until the turn begins. Later ones are dropped.
const MAX_EARLY: usize = 100;

/// The frontend of one agent. It shows the turn that runs, if one does.
#[derive(Default)]
pub(crate) struct ChatFrontend {
    turn: Mutex<Option<Arc<TurnView>>>,
    /// The session that was stored for the key, so that it is not stored again for each turn.
    stored: Mutex<Option<SessionId>>,
    /// Whether an owner has allowed something for the rest of the session.
    has_grant: AtomicBool,
}

/// A turn as its chat sees it.
pub(crate) struct TurnView {
    pub(crate) parts: Arc<ConversationParts>,
    pub(crate) key: SessionKey,
    /// The session. `None` if the agent cannot be opened.
    pub(crate) session: Option<SessionId>,
    /// What the session's file may not have on the disk yet.
    pub(crate) tail: UnsyncedTail,
    /// The name of the main agent. Text of other agents is not shown.
    pub(crate) agent: String,
    pub(crate) turn: String,
    pub(crate) to: Recipient,
    /// Who wrote the messages that the turn answers.
    pub(crate) asked_by: String,
    pub(crate) role: SenderRole,
    pub(crate) is_direct: bool,
    pub(crate) delivery: Delivery,
    /// Whether the last answer is held back until it is known whether it is spoken.
    pub(crate) is_voice_only: bool,
    /// Cancelled when the agent is about to ask the model for the first time, or has ended.
    pub(crate) asks_model: CancellationToken,
    /// Cancelled once it is known whether the beginning of the turn is stored.
    pub(crate) start: CancellationToken,
    /// What is shown once the turn begins. `None` afterwards.
    pub(crate) early: Mutex<Option<Vec<Frame>>>,
    pub(crate) shown: Mutex<Shown>,
    /// The gate events that stopped something because a hook failed.
    pub(crate) failed_gates: Mutex<BTreeSet<&'static str>>,
}

/// What the chat has seen of a turn.
#[derive(Default)]
pub(crate) struct Shown {
    /// The text of the message that is being written, as far as it was shown.
    partial: String,
    /// A delivered message that is the last one of the turn, unless the agent continues.
    held: Option<Content>,
    /// The text of the last delivered answer.
    answer: String,
    /// The calls that were denied and whose end is still to come. The chat has seen the end already.
    denied: BTreeSet<ToolUseId>,
    /// The arguments of calls that run, as hooks left them.
    arguments: BTreeMap<ToolUseId, JsonObject>,
    /// The calls that have ended and are not stored yet.
    calls: Vec<Frame>,
    /// Whether the chat has seen a text.
    has_text: bool,
    /// The messages that the agent has heard while the turn ran.
    heard: Vec<String>,
}

impl ChatFrontend {
    /// Shows a turn from now on. `None` shows nothing.
    pub(crate) fn show(&self, turn: Option<Arc<TurnView>>) {
        *self.turn.lock() = turn;
    }

    /// Forgets what an owner has allowed, because the agent is closed.
    pub(crate) fn forget_grant(&self) {
        self.has_grant.store(false, Ordering::Release);
    }

    /// Returns whether an owner has allowed something for the rest of the session.
    pub(crate) fn has_grant(&self) -> bool {
        self.has_grant.load(Ordering::Acquire)
    }

    /// Returns the turn that runs.
    pub(crate) fn turn(&self) -> Option<Arc<TurnView>> {
        self.turn.lock().clone()
    }

    /// Stores which session the key has, once the session itself is stored.
    async fn store_session(&self, turn: &TurnView) {
        if *self.stored.lock() == turn.session {
            return;
        }
        let (store, session) = (&turn.parts.store, turn.session.clone());
        if store.set_session(&turn.key, session.clone()).await.is_ok() {
            *self.stored.lock() = session;
        }
    }

    fn chunk(&self, chunk: impl FnOnce(&TurnView) -> Option<Chunk>) {
        if let Some(turn) = self.turn()
            && let Some(chunk) = chunk(&turn)
        {
            turn.live_chunk(chunk);
        }
    }
}

impl TurnView {
    fn live_chunk(&self, chunk: Chunk) {
        let turn = self.turn.clone();
        let replace = false;
        self.live(&Frame::Chunk {
            turn,
            chunk,
            replace,
        });
    }

    /// Shows a frame that is not durable. Until the turn begins, it waits.
    pub(crate) fn live(&self, frame: &Frame) {
        match &mut *self.early.lock() {
            Some(early) if early.len() < MAX_EARLY => early.push(frame.clone()),
            Some(_) => {}
            None => self.parts.publisher.live(&self.to.chat, frame),
        }
    }

    /// Shows that the turn begins, and what has waited for that.
    pub(crate) fn show_start(&self) {
        let start = Frame::Start {
            turn: self.turn.clone(),
            in_reply_to: self.to.in_reply_to.clone(),
        };
        let mut early = self.early.lock();
        for frame in std::iter::once(start).chain(early.take().into_iter().flatten()) {
            self.parts.publisher.live(&self.to.chat, &frame);
        }
    }

    /// Stores and shows durable frames, after the calls that have ended since the last ones.
    pub(crate) async fn publish(&self, frames: Vec<Frame>, update: InboxUpdate) {
        // A failure has been reported to the chat.
        let _reported = self.try_publish(frames, update).await;
    }

    /// Does the same with the last frames of the turn, and keeps the end of the session's file in the same transaction.
    pub(crate) async fn publish_last(&self, frames: Vec<Frame>, update: InboxUpdate) {
        let publish = |update| self.try_publish(frames, update);
        let _reported = self.with_tail(update, publish).await;
    }

    async fn try_publish(
        &self,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> Result<(), PublishError> {
        let (publisher, chat) = (&self.parts.publisher, &self.to.chat);
        let mut calls = std::mem::take(&mut self.shown.lock().calls);
        calls.extend(frames);
        publish(publisher, &self.delivery, chat, calls, update).await
    }

    /// Publishes together with the end of the session's file, if the store does not have it yet. Only one caller may do
    /// this or [`keep_tail`](Self::keep_tail) at a time, so that a newer end is not replaced with an older one.
    pub(crate) async fn with_tail<F: Future<Output = Result<(), PublishError>>>(
        &self,
        mut update: InboxUpdate,
        publish: impl FnOnce(InboxUpdate) -> F,
    ) -> F::Output {
        let tail = self.tail.unkept();
        update.tail = tail.as_ref().and_then(|tail| self.document(tail));
        let published = publish(update).await;
        if let Some(tail) = tail.filter(|_| published.is_ok()) {
            self.tail.note_kept(&tail);
        }
        published
    }

    /// Keeps the end of the session's file in the store, unless it has it.
    async fn keep_tail(&self) {
        let Some(tail) = self.tail.unkept() else {
            return;
        };
        let Some((key, value)) = self.document(&tail) else {
            return;
        };
        let kind = DocumentKind::SessionTail;
        let stored = self.parts.store.set_document(kind, &key.0, Some(value));
        // If it cannot be stored, it is tried again with the next frames, whose failure is reported.
        if stored.await.is_ok() {
            self.tail.note_kept(&tail);
        }
    }

    fn document(&self, tail: &SessionTail) -> Option<(SessionKey, Value)> {
        let value = serde_json::to_value(tail).ok()?;
        Some((self.key.clone(), value))
    }

    /// Notes the end of a call, for clients that read the conversation later. Other channels show calls only while they
    /// run.
    fn note_call(&self, call: &ToolCall, end: &Chunk) {
        let Chunk::ToolEnd {
            id,
            name,
            is_error,
            result,
            denied_by,
        } = end
        else {
            return;
        };
        let capabilities = self.parts.publisher.capabilities(&self.to.chat);
        if !capabilities.is_some_and(|capabilities| capabilities.speaks_frames) {
            return;
        }
        let mut shown = self.shown.lock();
        let arguments = shown.arguments.remove(&call.id);
        let arguments = arguments.or_else(|| call.arguments.as_object().cloned());
        let frame = Frame::Call {
            turn: self.turn.clone(),
            id: id.clone(),
            name: name.clone(),
            args: Box::new(self.ungated(|| arguments.map(shortened).unwrap_or_default())),
            is_error: *is_error,
            result: result.clone(),
            denied_by: denied_by.clone(),
        };
        if shown.calls.len() >= MAX_CALLS {
            shown.calls.remove(0);
        }
        shown.calls.push(frame);
    }

    fn show_text(&self, text: &str) -> Option<Chunk> {
        if self.delivery.is_gated() || self.is_voice_only {
            return None;
        }
        self.shown.lock().partial.push_str(text);
        let text = text.to_owned();
        Some(Chunk::Text { text })
    }

    /// Returns what a call reads or writes. It is empty if hooks decide what may leave, because they see only messages.
    fn ungated<T: Default>(&self, shown: impl FnOnce() -> T) -> T {
        if self.delivery.is_gated() {
            T::default()
        } else {
            shown()
        }
    }

    fn shows_tools(&self) -> bool {
        let channel = self.parts.channel(&self.to.chat.channel);
        channel.is_none_or(|channel| channel.show.tools)
    }

    fn shows_thinking(&self) -> bool {
        let channel = self.parts.channel(&self.to.chat.channel);
        channel.is_some_and(|channel| channel.show.thinking) && !self.delivery.is_gated()
    }

    /// Returns whether everyone who sees the chat may read why something failed: causes can name private paths.
    pub(crate) fn shows_causes(&self) -> bool {
        self.is_direct && self.role == SenderRole::Owner
    }

    /// Returns whether a reason of an event must not be shown, because it tells why a hook failed.
    pub(crate) fn hides_failure_of(&self, event: &str) -> bool {
        !self.shows_causes() && self.failed_gates.lock().contains(event)
    }

    fn asking(&self) -> AskingChat {
        AskingChat {
            chat: self.to.chat.clone(),
            asked_by: self.asked_by.clone(),
            is_owner_direct: self.shows_causes(),
        }
    }

    async fn deliver_message(&self, message: &Message) {
        let has_calls = !message.tool_calls.is_empty();
        let text = message.content.clone();
        if text.trim().is_empty() {
            return;
        }
        let kind = if has_calls {
            DeliveryKind::Intermediate
        } else {
            DeliveryKind::Answer
        };
        let content = self
            .delivery
            .deliver(&self.recipient(), kind, text.into())
            .await;
        {
            let mut shown = self.shown.lock();
            shown.partial.clear();
            shown.answer.clone_from(&content.text);
            shown.held = Some(content);
            shown.has_text = true;
        }
        if has_calls {
            self.end_message(EndReason::Tools, false).await;
        }
    }

    /// Returns who gets a text now. It answers also the messages that the agent has heard while the turn ran.
    pub(crate) fn recipient(&self) -> Recipient {
        let mut to = self.to.clone();
        to.in_reply_to.extend_from_slice(&self.shown.lock().heard);
        to
    }

    /// Returns whether the chat has seen a text of this turn, or will see one.
    pub(crate) fn has_shown(&self) -> bool {
        self.shown.lock().has_text
    }

    /// Delivers the output of a command, which is the last text of the turn unless the agent runs.
    pub(crate) async fn deliver_output(&self, text: String) {
        let kind = DeliveryKind::Command;
        let to = self.recipient();
        let content = self.delivery.deliver(&to, kind, text.into()).await;
        let mut shown = self.shown.lock();
        shown.answer.clone_from(&content.text);
        shown.held = Some(content);
        shown.has_text = true;
    }

    /// Publishes the message that is held back, if there is one.
    async fn end_message(&self, reason: EndReason, is_final: bool) {
        let held = self.shown.lock().held.take();
        if let Some(content) = held {
            let frames = self.end_frames(content, reason, is_final);
            self.publish(frames, InboxUpdate::default()).await;
        }
    }

    fn end_frames(&self, mut content: Content, reason: EndReason, is_final: bool) -> Vec<Frame> {
        let text = std::mem::take(&mut content.text);
        let end = Frame::End {
            turn: self.turn.clone(),
            text,
            is_final,
            reason,
        };
        let mut frames = vec![end];
        frames.extend(content.into_frames(Some(&self.turn), None));
        frames
    }

    /// Returns the frames that end the last message of the turn: the message that is held back, or the part of an
    /// unfinished one that was shown. There may be none.
    pub(crate) async fn last_end(&self, reason: EndReason) -> Vec<Frame> {
        let (held, partial) = {
            let mut shown = self.shown.lock();
            (shown.held.take(), std::mem::take(&mut shown.partial))
        };
        let content = match held {
            Some(content) => content,
            None if partial.is_empty() && reason != EndReason::Cancelled => return Vec::new(),
            None if partial.is_empty() => Content::default(),
            None => {
                let kind = DeliveryKind::Intermediate;
                let to = self.recipient();
                self.delivery.deliver(&to, kind, partial.into()).await
            }
        };
        self.end_frames(content, reason, true)
    }

    /// Returns the text of the last answer, as it was delivered.
    pub(crate) fn answer(&self) -> String {
        self.shown.lock().answer.clone()
    }
}

impl Frontend for ChatFrontend {
    fn text_delta(&self, agent: &str, text: &str) {
        self.chunk(|turn| {
            let is_main = turn.agent == agent;
            is_main.then(|| turn.show_text(text)).flatten()
        });
    }

    fn reasoning_delta(&self, agent: &str, text: &str) {
        self.chunk(|turn| {
            let is_shown = turn.agent == agent && turn.shows_thinking();
            let text = text.to_owned();
            is_shown.then_some(Chunk::Thinking { text })
        });
    }

    fn deliver<'a>(&'a self, agent: &'a str, message: &'a Message) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(turn) = self.turn().filter(|turn| turn.agent == agent) {
                turn.deliver_message(message).await;
            }
        })
    }

    fn turn_starting<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(turn) = self.turn().filter(|turn| turn.agent == agent) {
                turn.end_message(EndReason::Stop, false).await;
                turn.asks_model.cancel();
                // Both share one wait for the disk.
                tokio::join!(turn.start.cancelled(), self.store_session(&turn));
                turn.keep_tail().await;
            }
        })
    }

    fn heard(&self, agent: &str, extra: &JsonObject) {
        let turn = self.turn().filter(|turn| turn.agent == agent);
        if let (Some(turn), Some(id)) = (turn, message_id_of(extra)) {
            turn.shown.lock().heard.push(id.to_owned());
        }
    }

    fn model_retry(&self, agent: &str, number: u32, max: u32, error: Option<&str>) {
        let Some(turn) = self.turn().filter(|turn| turn.agent == agent) else {
            return;
        };
        let text = match error {
            Some(error) if turn.shows_causes() => {
                format!("The model call failed and is tried again: {error}")
            }
            Some(_) => "The model call failed and is tried again.".to_owned(),
            None => "The model answers again.".to_owned(),
        };
        let retry = Retry {
            attempt: number,
            max: max.saturating_add(1),
            is_recovered: error.is_none(),
        };
        turn.live(&Frame::Error {
            turn: Some(turn.turn.clone()),
            message_id: None,
            code: "model_error".to_owned(),
            text,
            retry: Some(retry),
        });
    }

    fn tool_start(&self, _agent: &str, call: &ToolCall) {
        let args = call.arguments.as_object().cloned().unwrap_or_default();
        let shown = |turn: &TurnView| tool_start(call, turn.ungated(|| args));
        self.chunk(|turn| turn.shows_tools().then(|| shown(turn)));
    }

    fn tool_rewritten(&self, _agent: &str, call: &ToolCall, input: &JsonObject) {
        if let Some(turn) = self.turn() {
            let mut shown = turn.shown.lock();
            shown.arguments.insert(call.id.clone(), input.clone());
        }
        let shown = |turn: &TurnView| tool_start(call, turn.ungated(|| input.clone()));
        self.chunk(|turn| turn.shows_tools().then(|| shown(turn)));
    }

    fn shows_progress(&self) -> bool {
        self.turn().is_some_and(|turn| turn.shows_tools())
    }

    fn tool_update(&self, _agent: &str, call: &ToolCall, partial: &ToolResult) {
        self.chunk(|turn| {
            let is_shown = turn.shows_tools() && !turn.delivery.is_gated();
            is_shown.then(|| Chunk::ToolUpdate {
                id: call.id.to_string(),
                name: call.name.clone(),
                text: shorten(&partial.joined_text()),
            })
        });
    }

    fn tool_end(&self, _agent: &str, call: &ToolCall, result: &ToolResult) {
        self.chunk(|turn| {
            let is_shown = !turn.shown.lock().denied.remove(&call.id) && turn.shows_tools();
            let end = is_shown.then(|| Chunk::ToolEnd {
                id: call.id.to_string(),
                name: call.name.clone(),
                is_error: result.is_error,
                result: turn.ungated(|| shorten(&result.joined_text())),
                denied_by: None,
            })?;
            turn.note_call(call, &end);
            Some(end)
        });
    }

    fn tool_denied(&self, _agent: &str, denial: &Denial<'_>) {
        self.chunk(|turn| {
            turn.shown.lock().denied.insert(denial.call.id.clone());
            let end = turn.shows_tools().then(|| Chunk::ToolEnd {
                id: denial.call.id.to_string(),
                name: denial.call.name.clone(),
                is_error: true,
                result: if turn.shows_causes() {
                    shorten(denial.reason)
                } else {
                    // A reason can name private paths.
                    "The call was denied.".to_owned()
                },
                denied_by: Some(denial.event.unwrap_or("permission").to_owned()),
            })?;
            turn.note_call(denial.call, &end);
            Some(end)
        });
    }

    fn hook_notice(&self, event: &'static str, text: &str) {
        self.chunk(|turn| {
            (!turn.delivery.is_gated()).then(|| Chunk::Hook {
                event: event.to_owned(),
                text: text.to_owned(),
                is_failure: false,
            })
        });
    }

    fn hook_failure(&self, event: &'static str, failure: &HookFailure<'_>) {
        if let Some(turn) = self.turn().filter(|_| !failure.let_through) {
            turn.failed_gates.lock().insert(event);
        }
        // The cause is in the journal. It may name private paths, which people in the chat must not see.
        self.chunk(|_| {
            Some(Chunk::Hook {
                event: event.to_owned(),
                text: format!("A hook of {event} failed."),
                is_failure: true,
            })
        });
    }

    fn display<'a>(&'a self, display: &'a ScriptDisplay) -> BoxFuture<'a, ()> {
        // Errors can name private paths.
        let is_shown = |turn: &TurnView, level: NotificationLevel| {
            !turn.delivery.is_gated() && (level != NotificationLevel::Error || turn.shows_causes())
        };
        if let ScriptDisplay::Notice { level, message } = display
            && let Some(turn) = self.turn().filter(|turn| is_shown(turn, *level))
        {
            turn.shown.lock().has_text = true;
            let text = message.clone();
            turn.live(&Frame::Notice { text });
        }
        Box::pin(future::ready(()))
    }

    fn is_interactive(&self) -> bool {
        self.turn.lock().is_some()
    }

    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            match self.turn() {
                Some(turn) => {
                    let approvals = &turn.parts.approvals;
                    let approval = approvals.approve(&turn.asking(), &request).await;
                    if approval == Approval::AllowSession {
                        self.has_grant.store(true, Ordering::Release);
                    }
                    approval
                }
                None => Approval::Unavailable,
            }
        })
    }

    fn question<'a>(&'a self, question: &'a ScriptQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let turn = self.turn()?;
            let approvals = &turn.parts.approvals;
            approvals.question(&turn.asking(), question).await
        })
    }
}

fn tool_start(call: &ToolCall, args: JsonObject) -> Chunk {
    Chunk::ToolStart {
        id: call.id.to_string(),
        name: call.name.clone(),
        args,
    }
}

/// Returns arguments whose long texts are shortened: a call may write whole files.
fn shortened(arguments: JsonObject) -> JsonObject {
    let arguments = arguments.into_iter().map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let is_short = text.chars().nth(MAX_RESULT_CHARS).is_none();
        (
            name,
            if is_short {
                value
            } else {
                shorten(&text).into()
            },
        )
    });
    arguments.collect()
}

/// Returns the beginning of a text.
fn shorten(text: &str) -> String {
    text.chars().take(MAX_RESULT_CHARS).collect()
}
