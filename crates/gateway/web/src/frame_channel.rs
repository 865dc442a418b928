//! The channel of clients that read frames themselves: the page, HTTP and stdio.
//!
//! It has no connection of its own. Servers bring the clients, and hand their messages to the [`Inlet`] that the channel
//! keeps while it runs. What the gateway sends goes to the hub.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::client_chat::place_of;
use crate::client_frame::{ClientMessage, ClientPart, ClientRefusal};
use crate::hub::Hub;
use tenterhook_channel::channel::{
    Accepted, Channel, ChannelCapabilities, ChannelError, DeliveryError, Inlet, MediaSink,
    Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef, MAX_FOREIGN_ID, Sender};
use tenterhook_channel::frame::{ChatFrame, Frame};
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::{IncomingMessage, IncomingPart, MAX_TEXT, MediaKind, MediaRef};
use tenterhook_channel::publisher::SavedMedia;
use tenterhook_channel::store::Store;

/// The media types of audio that clients play, the best first.
pub const AUDIO_FORMATS: &[&str] = &["audio/mpeg", "audio/ogg", "audio/wav", "audio/mp4"];

/// The maximum size of a file in bytes.
const MAX_FILE: u64 = 20 << 20;
/// The maximum number of files of a message.
const MAX_PARTS: usize = 10;
/// The maximum length of a client's id of a message.
const MAX_MESSAGE_ID: usize = 128;
/// How often the channel says that it works.
const ALIVE_INTERVAL: Duration = Duration::from_secs(20);
/// How many bytes of a file are read at once.
const FILE_CHUNK: usize = 64 << 10;

/// A channel of clients that read frames themselves.
pub struct FrameChannel {
    id: ChannelId,
    hub: Hub,
    store: Store,
    media: MediaFolder,
    inlet: watch::Sender<InletSlot>,
}

#[derive(Default)]
struct InletSlot {
    /// Counts the runs of the channel, so that a run that ends late does not remove the inlet of the next one.
    run: u64,
    inlet: Option<Inlet>,
}

impl FrameChannel {
    /// Creates a channel.
    pub fn new(id: ChannelId, hub: Hub, store: Store, media: MediaFolder) -> Self {
        Self {
            id,
            hub,
            store,
            media,
            inlet: watch::Sender::default(),
        }
    }

    /// Returns the channel's id.
    pub fn id(&self) -> &ChannelId {
        &self.id
    }

    /// Returns the hub.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the folder with files.
    pub fn media(&self) -> &MediaFolder {
        &self.media
    }

    /// Returns where messages go. `None` while the channel does not run.
    pub fn inlet(&self) -> Option<Inlet> {
        self.inlet.borrow().inlet.clone()
    }

    /// Waits until the channel runs, and returns where messages go.
    pub async fn wait_for_inlet(&self) -> Option<Inlet> {
        let mut slot = self.inlet.subscribe();
        let slot = slot.wait_for(|slot| slot.inlet.is_some()).await.ok()?;
        slot.inlet.clone()
    }

    /// Checks a message of a client, saves the files in it, and offers it to an [`Inlet`]. Files that came with a message
    /// that is not taken are removed, so that no one can fill the disk with refused messages.
    ///
    /// # Errors
    ///
    /// Describes for the client what is wrong with the message.
    pub async fn offer(
        &self,
        user: &str,
        message: ClientMessage,
        inlet: &Inlet,
    ) -> Result<Accepted, ClientRefusal> {
        let chat = message.chat.chat_of(&self.id, user);
        let mut within = Vec::new();
        let incoming = self.incoming(user, message, &mut within).await;
        let accepted = match incoming {
            Ok(incoming) => Ok(inlet.offer(incoming).await),
            Err(refusal) => Err(refusal),
        };
        if accepted != Ok(Accepted::Recorded) {
            for id in within {
                self.media.discard(&id, &chat).await;
            }
        }
        accepted
    }

    /// Returns what can be offered. `within` gets the ids of the files that came with the message.
    async fn incoming(
        &self,
        user: &str,
        message: ClientMessage,
        within: &mut Vec<String>,
    ) -> Result<IncomingMessage, ClientRefusal> {
        let saved = message.parts.iter().filter_map(|part| match part {
            ClientPart::Saved { media } => Some(media.clone()),
            ClientPart::Uploaded { .. } | ClientPart::Inline { .. } => None,
        });
        within.extend(saved);
        check(&message)?;
        let chat = message.chat.chat_of(&self.id, user);
        let text = message.text.filter(|text| !text.is_empty());
        let mut parts: Vec<IncomingPart> = text
            .map(|text| IncomingPart::Text { text })
            .into_iter()
            .collect();
        for part in message.parts {
            parts.push(self.media_of(user, &chat, part, within).await?);
        }
        Ok(IncomingMessage {
            dedupe: dedupe_of(&chat, &message.message_id),
            message_id: message.message_id,
            chat,
            sender: sender(user),
            is_direct: true,
            is_addressed: true,
            parts,
            reply_to: message.reply_to,
            at: Timestamp::now(),
        })
    }

    async fn media_of(
        &self,
        user: &str,
        chat: &ChatRef,
        part: ClientPart,
        within: &mut Vec<String>,
    ) -> Result<IncomingPart, ClientRefusal> {
        let (owner, saved) = match part {
            ClientPart::Uploaded { media } | ClientPart::Saved { media } => {
                self.uploaded(user, chat, &media).await?
            }
            ClientPart::Inline {
                media_type,
                data,
                name,
            } => {
                let bytes = STANDARD.decode(data).map_err(|error| {
                    ClientRefusal::new("bad_part", format!("`data` is not base64: {error}"))
                })?;
                let kind = kind_of(&media_type);
                let saved = self.media.save(bytes, kind, name, chat).await;
                let saved =
                    saved.map_err(|error| ClientRefusal::new("bad_part", error.to_string()))?;
                within.push(saved.media.id.clone());
                (chat.clone(), saved)
            }
        };
        Ok(IncomingPart::Media(MediaRef {
            kind: saved.media.kind,
            reference: format!("{}/{}", owner.chat, saved.media.id),
            name: Some(saved.media.name),
            duration_ms: None,
        }))
    }

    async fn uploaded(
        &self,
        user: &str,
        chat: &ChatRef,
        id: &str,
    ) -> Result<(ChatRef, SavedMedia), ClientRefusal> {
        for owner in [chat.clone(), place_of(&self.id, user)] {
            if let Some(saved) = self.media.find(id, &owner).await {
                return Ok((owner, saved));
            }
        }
        let text = "the file does not exist, or is not yours; upload it again";
        Err(ClientRefusal::new("unknown_media", text))
    }

    async fn copy(&self, media: &MediaRef, into: &mut MediaSink) -> Result<(), String> {
        let (chat, id) = media
            .reference
            .rsplit_once('/')
            .ok_or("the reference of the file is broken")?;
        let owner = ChatRef {
            channel: self.id.clone(),
            chat: chat.to_owned(),
            thread: None,
        };
        let saved = self.media.find(id, &owner).await;
        let path = saved.ok_or("the file does not exist any more")?.path;
        let unreadable = |error| format!("the file cannot be read: {error}");
        let mut file = tokio::fs::File::open(path).await.map_err(unreadable)?;
        let mut chunk = vec![0; FILE_CHUNK];
        loop {
            let count = file.read(&mut chunk).await.map_err(unreadable)?;
            if count == 0 {
                return Ok(());
            }
            into.write(chunk.get(..count).unwrap_or_default())
                .map_err(|error| error.to_string())?;
        }
    }
}

/// Returns what identifies a message among all that the channel takes.
pub(crate) fn dedupe_of(chat: &ChatRef, message_id: &str) -> String {
    format!("{}/{message_id}", chat.chat)
}

/// Returns the sender that a user is.
pub fn sender(user: &str) -> Sender {
    Sender {
        id: user.to_owned(),
        name: None,
        is_bot: false,
    }
}

fn check(message: &ClientMessage) -> Result<(), ClientRefusal> {
    let id = &message.message_id;
    if !(1..=MAX_MESSAGE_ID).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_graphic())
    {
        let text =
            format!("`message_id` has 1 to {MAX_MESSAGE_ID} visible ASCII characters, no spaces");
        return Err(ClientRefusal::new("bad_frame", text));
    }
    let reply_to = message.reply_to.as_ref().map_or(0, String::len);
    if reply_to > MAX_FOREIGN_ID {
        let text = format!("`reply_to` has {reply_to} bytes, expected at most {MAX_FOREIGN_ID}");
        return Err(ClientRefusal::new("bad_frame", text));
    }
    let length = message.text.as_ref().map_or(0, String::len);
    if length > MAX_TEXT {
        let text = format!("the text has {length} bytes, expected at most {MAX_TEXT}");
        return Err(ClientRefusal::new("too_large", text));
    }
    if message.parts.len() > MAX_PARTS {
        let count = message.parts.len();
        let text = format!("the message has {count} files, expected at most {MAX_PARTS}");
        return Err(ClientRefusal::new("too_large", text));
    }
    if length == 0 && message.parts.is_empty() {
        return Err(ClientRefusal::new(
            "empty",
            "the message has no text and no file",
        ));
    }
    Ok(())
}

fn kind_of(media_type: &str) -> MediaKind {
    match media_type.split('/').next() {
        Some("audio") => MediaKind::Audio,
        Some("image") => MediaKind::Image,
        _ => MediaKind::File,
    }
}

/// Removes the inlet when a run ends, also when its future is dropped.
struct RunGuard<'a> {
    channel: &'a FrameChannel,
    run: u64,
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.channel.inlet.send_modify(|slot| {
            if slot.run == self.run {
                slot.inlet = None;
            }
        });
    }
}

impl Channel for FrameChannel {
    fn capabilities(&self) -> ChannelCapabilities {
        ChannelCapabilities {
            speaks_frames: true,
            max_file: MAX_FILE,
            audio_formats: AUDIO_FORMATS,
        }
    }

    fn run(
        &self,
        inlet: Inlet,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(async move {
            let mut run = 0;
            self.inlet.send_modify(|slot| {
                slot.run += 1;
                slot.inlet = Some(inlet.clone());
                run = slot.run;
            });
            let _guard = RunGuard { channel: self, run };
            let mut ticks = tokio::time::interval(ALIVE_INTERVAL);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return Ok(()),
                    _ = ticks.tick() => inlet.alive(),
                }
            }
        })
    }

    fn fetch<'a>(
        &'a self,
        media: &'a MediaRef,
        into: &'a mut MediaSink,
    ) -> BoxFuture<'a, Result<(), ChannelError>> {
        Box::pin(async move {
            let copied = self.copy(media, into).await;
            copied.map_err(|cause| ChannelError::new("media", cause))
        })
    }

    fn send<'a>(&'a self, outgoing: &'a Outgoing) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(async move {
            self.hub.publish(&outgoing.chat, &outgoing.frame);
            Ok(Receipt::default())
        })
    }

    fn live(&self, chat: &ChatRef, frame: &Frame) {
        let frame = frame.clone();
        self.hub.publish(chat, &ChatFrame { seq: None, frame });
    }

    fn can_ask(&self, chat: &ChatRef) -> bool {
        self.hub.is_watched(chat)
    }
}

impl fmt::Debug for FrameChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameChannel")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
