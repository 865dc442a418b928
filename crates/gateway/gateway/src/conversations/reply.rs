//! Answers to one message that are not part of a turn: refusals, errors and the output of commands.

use std::sync::Arc;
use std::time::Duration;

use tenterhook_protocol::event::DeliveryKind;

use crate::conversations::deliver::{Content, Delivery, Recipient};
use crate::conversations::gateway_events::{GatewayFailure, report_failure};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::{Frame, TurnStatus};
use tenterhook_channel::message::IncomingMessage;
use tenterhook_channel::publisher::{InboxUpdate, PublishError, Publisher};
use tenterhook_channel::store::{InboxId, InboxRecord, InboxState};

/// Answers one message.
pub(crate) struct Reply<'a> {
    publisher: &'a Arc<dyn Publisher>,
    delivery: &'a Delivery,
    record: &'a InboxRecord,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(
        publisher: &'a Arc<dyn Publisher>,
        delivery: &'a Delivery,
        record: &'a InboxRecord,
    ) -> Self {
        Self {
            publisher,
            delivery,
            record,
        }
    }

    /// Shows an error, and keeps the state of the message.
    pub(crate) async fn error(&self, code: &str, text: &str) {
        self.show_error(code, text, InboxUpdate::default()).await;
    }

    /// Refuses the message with an error.
    pub(crate) async fn refuse(&self, code: &str, text: &str) {
        let state = InboxState::Refused(code.to_owned());
        self.show_error(code, text, self.inbox_update(state)).await;
    }

    /// Shows why the message failed.
    pub(crate) async fn fail(&self, code: &str, text: &str) {
        self.show_error(code, text, self.inbox_update(InboxState::Failed))
            .await;
    }

    /// Refuses the message without a word.
    pub(crate) async fn refuse_silently(&self, code: &str) {
        let state = InboxState::Refused(code.to_owned());
        self.publish(Vec::new(), self.inbox_update(state)).await;
    }

    /// Shows that the message was removed before the agent heard it.
    pub(crate) async fn cancelled(&self) {
        let update = self.inbox_update(InboxState::Cancelled);
        let text = "Removed before the agent read it.";
        self.show_error("cancelled", text, update).await;
    }

    /// Finishes a message that a hook has handled.
    pub(crate) async fn answered(&self) {
        self.publish(Vec::new(), self.inbox_update(InboxState::Answered))
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
        self.publish(frames, self.inbox_update(InboxState::Answered))
            .await;
    }

    /// Shows what will happen with the message, and keeps its state. It is not the answer, so it does not reply to the
    /// message.
    pub(crate) async fn acknowledge(&self, text: &str) {
        let to = recipient(&self.record.message);
        let content = Content::from(text.to_owned());
        let content = self.delivery.deliver(&to, DeliveryKind::Command, content);
        let frames = content.await.into_frames(None, None);
        self.publish(frames, InboxUpdate::default()).await;
    }

    async fn show_error(&self, code: &str, text: &str, update: InboxUpdate) {
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
        self.publish(vec![error], update).await;
    }

    fn inbox_update(&self, state: InboxState) -> InboxUpdate {
        let ids: Vec<InboxId> = vec![self.record.id];
        (ids, state).into()
    }

    async fn publish(&self, frames: Vec<Frame>, update: InboxUpdate) {
        let message = &self.record.message;
        let published = publish(self.publisher, self.delivery, &message.chat, frames, update);
        if published.await.is_err() {
            // A client that waits for the answer to this message learns that there will be none.
            let lost = Frame::Error {
                turn: None,
                message_id: Some(message.message_id.clone()),
                code: NOT_STORED.to_owned(),
                text: LOST.to_owned(),
                retry: None,
            };
            self.publisher.live(&message.chat, &lost);
        }
    }
}

/// How often storing frames is tried, and the first wait in between. Each further wait is twice as long.
const MAX_TRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_secs(1);

async fn try_publish(
    publisher: &Arc<dyn Publisher>,
    chat: &ChatRef,
    frames: Vec<Frame>,
    update: InboxUpdate,
) -> Result<(), PublishError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..MAX_TRIES {
        let sent = publisher.publish(chat, frames.clone(), update.clone());
        if sent.await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    publisher.publish(chat, frames, update).await
}

/// The code of an error about an answer that cannot be stored, and what the chat reads.
const NOT_STORED: &str = "not_stored";
const LOST: &str = "The answer cannot be stored, so it is not sent.";

/// Publishes frames. If they cannot be stored for a while, the chat and the hooks of `gateway_error` are informed; there is no other
/// place where the frames could be kept. A turn that has ended is shown to have failed, so that no one waits for it.
///
/// # Errors
///
/// Fails if the frames could not be stored.
pub(crate) async fn publish(
    publisher: &Arc<dyn Publisher>,
    delivery: &Delivery,
    chat: &ChatRef,
    frames: Vec<Frame>,
    update: InboxUpdate,
) -> Result<(), PublishError> {
    let turn = frames.iter().find_map(|frame| {
        if let Frame::Done { turn, .. } = frame {
            return Some(turn.clone());
        }
        None
    });
    let Err(error) = try_publish(publisher, chat, frames, update).await else {
        return Ok(());
    };
    let text = LOST.to_owned();
    let capabilities = publisher.capabilities(chat);
    let speaks_frames = capabilities.is_some_and(|capabilities| capabilities.speaks_frames);
    if let Some(turn) = turn.filter(|_| speaks_frames) {
        let lost = Frame::Error {
            turn: Some(turn.clone()),
            message_id: None,
            code: NOT_STORED.to_owned(),
            text,
            retry: None,
        };
        let done = Frame::Done {
            turn,
            status: TurnStatus::Failed,
            usage: None,
        };
        for frame in [lost, done] {
            publisher.live(chat, &frame);
        }
    } else {
        publisher.live(chat, &Frame::Notice { text });
    }
    let failure = GatewayFailure {
        code: "store".to_owned(),
        error: error.to_string(),
        chat: Some(chat.clone()),
        ..GatewayFailure::default()
    };
    report_failure(delivery.dispatcher(), &chat.channel, failure).await;
    Err(error)
}

/// Returns the sender of a message as the recipient of its answer.
pub(crate) fn recipient(message: &IncomingMessage) -> Recipient {
    Recipient {
        chat: message.chat.clone(),
        user: message.sender.id.clone(),
        in_reply_to: vec![message.message_id.clone()],
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{BoxFuture, ready};
    use parking_lot::Mutex;
    use tenterhook_channel::channel::ChannelCapabilities;
    use tenterhook_channel::chat::ChannelId;
    use tenterhook_channel::media_folder::MediaFolder;
    use tenterhook_channel::message::MediaRef;
    use tenterhook_channel::publisher::SavedMedia;
    use tenterhook_engine::{Engine, Origin};

    use super::*;

    /// An publisher that stores nothing.
    #[derive(Default)]
    struct FullDisk(Mutex<Vec<Frame>>);

    impl Publisher for FullDisk {
        fn capabilities(&self, _: &ChatRef) -> Option<ChannelCapabilities> {
            Some(ChannelCapabilities {
                speaks_frames: true,
                max_file: 0,
                audio_formats: &[],
            })
        }

        fn live(&self, _: &ChatRef, frame: &Frame) {
            self.0.lock().push(frame.clone());
        }

        fn publish<'a>(
            &'a self,
            _: &'a ChatRef,
            _: Vec<Frame>,
            _: InboxUpdate,
        ) -> BoxFuture<'a, Result<(), PublishError>> {
            let cause = "no space left on device".to_owned();
            Box::pin(ready(Err(PublishError { cause })))
        }

        fn fetch<'a>(
            &'a self,
            _: &'a ChatRef,
            _: &'a MediaRef,
        ) -> BoxFuture<'a, Result<SavedMedia, String>> {
            Box::pin(ready(Err("no files".to_owned())))
        }

        fn ask<'a>(&'a self, _: &'a ChatRef, _: &'a Frame) -> BoxFuture<'a, bool> {
            Box::pin(ready(false))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_whose_end_a_full_disk_cannot_store_is_shown_to_have_failed() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FullDisk::default());
        let publisher = Arc::clone(&disk) as Arc<dyn Publisher>;
        let dispatcher = Engine::new().dispatcher(Origin::default());
        let media = MediaFolder::open(folder.path()).unwrap();
        let delivery = Delivery::new(dispatcher, media);
        let chat = ChatRef {
            channel: ChannelId::new("web").unwrap(),
            chat: "owner/a".to_owned(),
            thread: None,
        };
        let done = Frame::Done {
            turn: "t".to_owned(),
            status: TurnStatus::Completed,
            usage: None,
        };
        let publishing = publish(
            &publisher,
            &delivery,
            &chat,
            vec![done],
            InboxUpdate::default(),
        );
        assert!(publishing.await.is_err());
        let shown = disk.0.lock().clone();
        let [Frame::Error { code, .. }, Frame::Done { turn, status, .. }] = shown.as_slice() else {
            panic!("{shown:?}");
        };
        assert_eq!((code.as_str(), turn.as_str()), (NOT_STORED, "t"));
        assert_eq!(*status, TurnStatus::Failed);
    }
}
