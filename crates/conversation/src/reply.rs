//! Answers to one message that are not part of a turn: refusals, errors and the output of commands.

use std::sync::Arc;
use std::time::Duration;

use tenterhook_protocol::event::DeliveryKind;

use crate::deliver::{Content, Delivery, Recipient};
use crate::gateway_events::{GatewayFailure, report_failure};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::Frame;
use tenterhook_channel::message::IncomingMessage;
use tenterhook_channel::outlet::{Outlet, PublishError, Settled};
use tenterhook_channel::store::{InboxId, InboxRecord, InboxState};

/// Answers one message.
pub(crate) struct Reply<'a> {
    outlet: &'a Arc<dyn Outlet>,
    delivery: &'a Delivery,
    record: &'a InboxRecord,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(
        outlet: &'a Arc<dyn Outlet>,
        delivery: &'a Delivery,
        record: &'a InboxRecord,
    ) -> Self {
        Self {
            outlet,
            delivery,
            record,
        }
    }

    /// Shows an error, and keeps the state of the message.
    pub(crate) async fn error(&self, code: &str, text: &str) {
        self.show_error(code, text, Settled::default()).await;
    }

    /// Refuses the message with an error.
    pub(crate) async fn refuse(&self, code: &str, text: &str) {
        let state = InboxState::Refused(code.to_owned());
        self.show_error(code, text, self.settled(state)).await;
    }

    /// Shows why the message failed.
    pub(crate) async fn fail(&self, code: &str, text: &str) {
        self.show_error(code, text, self.settled(InboxState::Failed))
            .await;
    }

    /// Refuses the message without a word.
    pub(crate) async fn refuse_silently(&self, code: &str) {
        let state = InboxState::Refused(code.to_owned());
        self.publish(Vec::new(), self.settled(state)).await;
    }

    /// Shows that the message was removed before the agent heard it.
    pub(crate) async fn cancelled(&self) {
        let settled = self.settled(InboxState::Cancelled);
        let text = "Removed before the agent read it.";
        self.show_error("cancelled", text, settled).await;
    }

    /// Settles a message that a hook has handled.
    pub(crate) async fn answered(&self) {
        self.publish(Vec::new(), self.settled(InboxState::Answered))
            .await;
    }

    /// Answers the message with the output of a command.
    pub(crate) async fn output(&self, text: String) {
        let to = recipient(&self.record.message);
        let content = Content::from(text);
        let content = self.delivery.deliver(&to, DeliveryKind::Command, content);
        let frames = content
            .await
            .into_frames(None, Some(&self.record.message.message_id));
        self.publish(frames, self.settled(InboxState::Answered))
            .await;
    }

    async fn show_error(&self, code: &str, text: &str, settled: Settled) {
        let to = recipient(&self.record.message);
        let content = Content::from(text.to_owned());
        let content = self.delivery.deliver(&to, DeliveryKind::Error, content);
        let error = Frame::Error {
            turn: None,
            message_id: Some(self.record.message.message_id.clone()),
            code: code.to_owned(),
            text: content.await.text,
            retry: None,
        };
        self.publish(vec![error], settled).await;
    }

    fn settled(&self, state: InboxState) -> Settled {
        let ids: Vec<InboxId> = vec![self.record.id];
        Settled { ids, state }
    }

    async fn publish(&self, frames: Vec<Frame>, settled: Settled) {
        let chat = &self.record.message.chat;
        publish(self.outlet, self.delivery, chat, frames, settled).await;
    }
}

/// How often storing frames is tried, and the first wait in between. Each further wait is twice as long.
const MAX_TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);

async fn try_publish(
    outlet: &Arc<dyn Outlet>,
    chat: &ChatRef,
    frames: Vec<Frame>,
    settled: Settled,
) -> Result<(), PublishError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..MAX_TRIES {
        let published = outlet.publish(chat, frames.clone(), settled.clone());
        if published.await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    outlet.publish(chat, frames, settled).await
}

/// Publishes frames. If they cannot be stored for a while, the chat and the hooks of `gateway_error` are informed; there is no other
/// place where the frames could be kept.
pub(crate) async fn publish(
    outlet: &Arc<dyn Outlet>,
    delivery: &Delivery,
    chat: &ChatRef,
    frames: Vec<Frame>,
    settled: Settled,
) {
    let Err(error) = try_publish(outlet, chat, frames, settled).await else {
        return;
    };
    let text = "The answer cannot be stored, so it is not sent.".to_owned();
    outlet.live(chat, &Frame::Notice { text });
    let failure = GatewayFailure {
        code: "store".to_owned(),
        error: error.to_string(),
        chat: Some(chat.clone()),
        ..GatewayFailure::default()
    };
    report_failure(delivery.dispatcher(), &chat.channel, failure).await;
}

/// Returns the sender of a message as the recipient of its answer.
pub(crate) fn recipient(message: &IncomingMessage) -> Recipient {
    Recipient {
        chat: message.chat.clone(),
        user: message.sender.id.clone(),
        in_reply_to: vec![message.message_id.clone()],
    }
}
