//! A gateway without an agent: it records messages in a real store, and repeats them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tempfile::TempDir;
use tenterhook_channel::channel::{Accepted, Channel, Inlet, Intake, Outgoing};
use tenterhook_channel::chat::{ChannelId, ChatRef, SessionKey};
use tenterhook_channel::frame::{ChatFrame, Chunk, EndReason, Frame, TurnStatus};
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::{Control, IncomingMessage, IncomingPart};
use tenterhook_channel::store::{InboxId, InboxRecord, InboxState, Recorded, Store};
use tenterhook_protocol::event::SenderRole;
use tenterhook_web::frame_channel::FrameChannel;
use tenterhook_web::hub::Hub;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct EchoGateway {
    _folder: TempDir,
    pub(crate) store: Store,
    pub(crate) channel: Arc<FrameChannel>,
    pub(crate) intake: Arc<EchoIntake>,
    pub(crate) stop: CancellationToken,
    pub(crate) inlet: Inlet,
    _echo: JoinHandle<()>,
}

impl EchoGateway {
    /// Prepares a gateway whose channel does not run yet.
    pub(crate) fn new(channel: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("state")).unwrap();
        let media = MediaFolder::open(&folder.path().join("media")).unwrap();
        let hub = Hub::new(store.clone());
        let id = ChannelId::new(channel).unwrap();
        let channel = FrameChannel::new(id.clone(), hub, store.clone(), media);
        let channel = Arc::new(channel);
        let (to_echo, records) = mpsc::channel(1000);
        let intake = Arc::new(EchoIntake {
            store: store.clone(),
            to_echo,
            offers: Mutex::default(),
            controls: Mutex::default(),
        });
        let stop = CancellationToken::new();
        Self {
            _folder: folder,
            _echo: tokio::spawn(echo(store.clone(), Arc::clone(&channel), records)),
            store,
            channel,
            inlet: Inlet::new(id, intake.clone(), stop.clone()),
            intake,
            stop,
        }
    }

    /// Prepares a gateway whose channel runs.
    pub(crate) async fn start(channel: &str) -> Self {
        let gateway = Self::new(channel);
        let (channel, inlet) = (Arc::clone(&gateway.channel), gateway.inlet.clone());
        let stop = gateway.stop.clone();
        tokio::spawn(async move { channel.run(inlet, stop).await });
        gateway.channel.wait_for_inlet().await.unwrap();
        gateway
    }

    /// Stores durable frames, and sends them.
    pub(crate) async fn append(&self, chat: &ChatRef, frames: Vec<Frame>) {
        append(&self.store, &self.channel, chat, frames, vec![]).await;
    }
}

pub(crate) struct EchoIntake {
    store: Store,
    to_echo: mpsc::Sender<InboxRecord>,
    pub(crate) offers: Mutex<Vec<(SenderRole, IncomingMessage)>>,
    pub(crate) controls: Mutex<Vec<(SenderRole, Control)>>,
}

impl Intake for EchoIntake {
    fn offer<'a>(
        &'a self,
        _: &'a ChannelId,
        verified: Option<SenderRole>,
        message: IncomingMessage,
    ) -> BoxFuture<'a, Accepted> {
        let role = verified.expect("every client of a channel that speaks frames has logged in");
        Box::pin(async move {
            if text_of(&message) == "refuse" {
                return Accepted::Refused {
                    code: "queue_full",
                    notice: None,
                };
            }
            self.offers.lock().push((role, message.clone()));
            let key = SessionKey(message.chat.to_string());
            match self.store.accept(message, role, key).await.unwrap() {
                Recorded::Fresh(record) => {
                    self.to_echo.send(record).await.unwrap();
                    Accepted::Recorded
                }
                Recorded::Duplicate => Accepted::Duplicate,
                Recorded::Full => panic!("the inbox is full"),
            }
        })
    }

    fn control<'a>(
        &'a self,
        _: &'a ChannelId,
        verified: Option<SenderRole>,
        control: Control,
    ) -> BoxFuture<'a, Option<String>> {
        let role = verified.expect("every client of a channel that speaks frames has logged in");
        self.controls.lock().push((role, control));
        Box::pin(async { Some("noted".to_owned()) })
    }

    fn is_alive(&self, _: &ChannelId) {}

    fn offset<'a>(
        &'a self,
        _: &'a ChannelId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, String>> {
        Box::pin(async { Ok(None) })
    }

    fn set_offset<'a>(&'a self, _: &'a ChannelId, _: &'a str, _: i64) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}

/// Repeats messages. Nothing is said about a message `silent`.
async fn echo(store: Store, channel: Arc<FrameChannel>, mut records: mpsc::Receiver<InboxRecord>) {
    while let Some(InboxRecord { id, message, .. }) = records.recv().await {
        let (chat, text) = (message.chat.clone(), text_of(&message));
        if text == "silent" {
            let refused = InboxState::Refused("rejected".to_owned());
            store.set_inbox_state(vec![id], refused).await.unwrap();
            continue;
        }
        let turn = format!("turn-{}", id.0);
        let said = Frame::Said {
            message_id: message.message_id.clone(),
            sender: message.sender.id.clone(),
            text: text.clone(),
            media: vec![],
            is_transcript: false,
        };
        append(&store, &channel, &chat, vec![said], vec![]).await;
        channel.live(&chat, &start(&turn, &message.message_id));
        channel.live(&chat, &text_chunk(&turn, &text));
        let frames = vec![end(&turn, &text), done(&turn)];
        append(&store, &channel, &chat, frames, vec![id]).await;
    }
}

async fn append(
    store: &Store,
    channel: &FrameChannel,
    chat: &ChatRef,
    frames: Vec<Frame>,
    answered: Vec<InboxId>,
) {
    let update = (answered, InboxState::Answered);
    for frame in store.append(chat, frames, update).await.unwrap() {
        let outgoing = Outgoing {
            chat: chat.clone(),
            frame,
            file: None,
            attempt: 0,
        };
        channel.send(&outgoing).await.unwrap();
    }
}

pub(crate) fn text_of(message: &IncomingMessage) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        IncomingPart::Text { text } => Some(text.as_str()),
        IncomingPart::Media(_) | IncomingPart::Reference(_) | IncomingPart::Unreadable { .. } => {
            None
        }
    });
    texts.collect()
}

pub(crate) fn start(turn: &str, message: &str) -> Frame {
    Frame::Start {
        turn: turn.to_owned(),
        in_reply_to: vec![message.to_owned()],
    }
}

pub(crate) fn text_chunk(turn: &str, text: &str) -> Frame {
    Frame::Chunk {
        turn: turn.to_owned(),
        chunk: Chunk::Text {
            text: text.to_owned(),
        },
        replace: false,
    }
}

pub(crate) fn end(turn: &str, text: &str) -> Frame {
    Frame::End {
        turn: turn.to_owned(),
        text: text.to_owned(),
        is_final: true,
        reason: EndReason::Stop,
    }
}

pub(crate) fn done(turn: &str) -> Frame {
    Frame::Done {
        turn: turn.to_owned(),
        status: TurnStatus::Completed,
        usage: None,
    }
}

pub(crate) fn live(frame: Frame) -> ChatFrame {
    ChatFrame { seq: None, frame }
}
