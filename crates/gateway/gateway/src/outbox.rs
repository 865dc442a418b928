//! Sends durable frames to their channels, in the order of each chat, until the service has them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backoff::Backoff;
use tenterhook_channel::channel::{
    Channel, ChannelCapabilities, DeliveryError, MediaSink, Outgoing, Receipt,
};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::{ChatFrame, Frame};
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::MediaRef;
use tenterhook_channel::publisher::{InboxUpdate, PublishError, Publisher, SavedMedia};
use tenterhook_channel::store::{Store, StoreError};

/// How long an answer is tried.
const ANSWER_PATIENCE: Duration = Duration::from_hours(24);

/// How long an error message is tried. Later, no one wants to read it.
const ERROR_PATIENCE: Duration = Duration::from_mins(10);

/// How many frames of a chat are read from the store at a time.
const PAGE: usize = 64;

/// A durable frame that could not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendFailure {
    pub(crate) chat: ChatRef,
    pub(crate) cause: String,
    /// Whether it is tried again.
    pub(crate) will_retry: bool,
}

/// How many ends of frames a command that waits for one may lag behind.
const MAX_ENDS: usize = 256;

/// How sending a durable frame has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendEnd {
    pub(crate) chat: ChatRef,
    pub(crate) seq: u64,
    /// Why the frame will never be sent, if it will not.
    pub(crate) result: Result<(), String>,
}

/// Receives failures, for the hooks of `gateway_error`. It must not block.
pub(crate) type FailureSink = Arc<dyn Fn(SendFailure) + Send + Sync>;

/// The outbox. Clones share it.
#[derive(Clone)]
pub(crate) struct Outbox(Arc<Shared>);

struct Shared {
    store: Store,
    media: MediaFolder,
    channels: RwLock<BTreeMap<ChannelId, Arc<dyn Channel>>>,
    /// Orders what is stored and shown: frames are scheduled in the order of their numbers.
    order: ChatLocks,
    /// The last frame of each chat whose sender runs.
    senders: Mutex<HashMap<ChatRef, watch::Sender<u64>>>,
    failed: FailureSink,
    ends: broadcast::Sender<SendEnd>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Outbox {
    pub(crate) fn new(
        store: Store,
        media: MediaFolder,
        channels: BTreeMap<ChannelId, Arc<dyn Channel>>,
        failed: FailureSink,
    ) -> Self {
        Self(Arc::new(Shared {
            store,
            media,
            channels: RwLock::new(channels),
            order: ChatLocks::default(),
            senders: Mutex::default(),
            failed,
            ends: broadcast::Sender::new(MAX_ENDS),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }

    /// Sends the frames of a channel through another one from now on. Without one, they cannot be sent.
    pub(crate) fn set_channel(&self, id: &ChannelId, channel: Option<Arc<dyn Channel>>) {
        let mut channels = self.0.channels.write();
        match channel {
            Some(channel) => channels.insert(id.clone(), channel),
            None => channels.remove(id),
        };
    }

    /// Returns the ends of frames from now on.
    pub(crate) fn ends(&self) -> broadcast::Receiver<SendEnd> {
        self.0.ends.subscribe()
    }

    /// Stores frames like [`publish`](Publisher::publish). Returns the numbers of those that are still to be sent.
    pub(crate) async fn accept(
        &self,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> Result<BTreeSet<u64>, PublishError> {
        // The caller may give up at any time. A frame that is stored must be sent all the same.
        let (outbox, chat) = (self.clone(), chat.clone());
        let storing = async move { outbox.store_and_send(&chat, frames, update).await };
        let stored = tokio::spawn(storing).await;
        stored.unwrap_or_else(|error| Err(publish_error(error)))
    }

    /// Sends what an earlier process stored and did not send.
    pub(crate) async fn resume(&self) -> Result<(), StoreError> {
        let unsent = self.0.store.unsent().await?;
        for (chat, numbers) in unsent {
            if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
                self.send_later(&chat, *first, *last);
            }
        }
        Ok(())
    }

    /// Waits until everything is sent, at most `patience`, and then stops sending.
    pub(crate) async fn close(&self, patience: Duration) {
        self.0.tasks.close();
        if tokio::time::timeout(patience, self.0.tasks.wait())
            .await
            .is_err()
        {
            self.0.stop.cancel();
            self.0.tasks.wait().await;
        }
    }

    /// Stores frames, and shows them or lets them be sent. Returns the numbers of those that are to be sent. One chat's
    /// frames are stored one after another: a frame that was scheduled before an earlier one would be sent instead of it.
    async fn store_and_send(
        &self,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> Result<BTreeSet<u64>, PublishError> {
        let order = self.0.order.of(chat);
        let _first = order.lock().await;
        let channel = self.0.channel(chat);
        let can = channel.as_ref().map(|channel| channel.capabilities());
        if can.is_some_and(|can| can.speaks_frames) {
            self.show(chat, frames, update).await?;
            return Ok(BTreeSet::new());
        }
        // Without a channel, all frames are given up, and that is reported.
        let is_sent = move |frame: &Frame| channel.as_ref().is_none_or(|it| it.sends(frame));
        let store = &self.0.store;
        let stored = store.append_queued(chat, frames, update, is_sent.clone());
        let stored = stored.await.map_err(publish_error)?;
        let sent = stored.iter().filter(|stored| is_sent(&stored.frame));
        let numbers: BTreeSet<u64> = sent.filter_map(|stored| stored.seq).collect();
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            self.send_later(chat, *first, *last);
        }
        Ok(numbers)
    }

    /// Stores and shows frames for clients that read frames. They are shown before this returns and in the order of
    /// their numbers, so that no later frame of the turn overtakes them.
    async fn show(
        &self,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> Result<(), PublishError> {
        let stored = self.0.store.append_queued(chat, frames, update, |_| false);
        for frame in stored.await.map_err(publish_error)? {
            let outgoing = self.0.outgoing(chat, frame).await;
            if let Some(channel) = self.0.channel(chat) {
                // A client that does not get it now reads it from the store.
                let _shown = send_once(&channel, &outgoing).await;
            }
        }
        Ok(())
    }

    /// Lets the sender of a chat send frames up to `last`, and starts it at `first` if none runs.
    fn send_later(&self, chat: &ChatRef, first: u64, last: u64) {
        let mut senders = self.0.senders.lock();
        match senders.entry(chat.clone()) {
            Entry::Occupied(sender) => {
                sender
                    .get()
                    .send_modify(|target| *target = last.max(*target));
            }
            Entry::Vacant(place) => {
                let (sender, target) = watch::channel(last);
                place.insert(sender);
                let (shared, chat) = (Arc::clone(&self.0), chat.clone());
                self.0.tasks.spawn(async move {
                    let stop = shared.stop.clone();
                    stop.run_until_cancelled(shared.send_chat(&chat, first, &target))
                        .await;
                    // A cancelled sender leaves its entry; the next start sends the rest.
                });
            }
        }
    }
}

/// A lock for each chat in which something is shown now.
#[derive(Default)]
struct ChatLocks(Mutex<HashMap<ChatRef, Weak<tokio::sync::Mutex<()>>>>);

impl ChatLocks {
    fn of(&self, chat: &ChatRef) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.0.lock();
        if let Some(lock) = locks.get(chat).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(chat.clone(), Arc::downgrade(&lock));
        lock
    }
}

impl Shared {
    fn channel(&self, chat: &ChatRef) -> Option<Arc<dyn Channel>> {
        self.channels.read().get(&chat.channel).cloned()
    }

    /// Sends the frames of a chat from `next` on, until there are no more.
    async fn send_chat(&self, chat: &ChatRef, mut next: u64, target: &watch::Receiver<u64>) {
        loop {
            let last = *target.borrow();
            if next > last {
                // Under the lock, no one can add a frame to a sender that ends.
                let mut senders = self.senders.lock();
                if *target.borrow() == last {
                    senders.remove(chat);
                    return;
                }
                continue;
            }
            let Some(frames) = self.read(chat, next, last).await else {
                continue;
            };
            // All frames up to `last` have left.
            let Some(read) = frames.iter().filter_map(|frame| frame.seq).max() else {
                next = last + 1;
                continue;
            };
            for frame in frames {
                self.send(chat, frame).await;
            }
            next = read + 1;
        }
    }

    /// Reads frames to send: there may be others in between that have left. Waits after a failure, and then returns
    /// `None`.
    async fn read(&self, chat: &ChatRef, next: u64, last: u64) -> Option<Vec<ChatFrame>> {
        match self.store.unsent_from(chat, next, PAGE).await {
            Ok(mut frames) => {
                frames.retain(|frame| frame.seq.is_some_and(|seq| seq <= last));
                Some(frames)
            }
            Err(error) => {
                self.report(chat, error.to_string(), true);
                tokio::time::sleep(Backoff::FIRST).await;
                None
            }
        }
    }

    /// Sends one frame until the service has it, or it cannot be sent.
    async fn send(&self, chat: &ChatRef, frame: ChatFrame) {
        let Some(seq) = frame.seq else { return };
        let Some(channel) = self.channel(chat) else {
            let cause = format!("the channel `{}` does not exist any more", chat.channel);
            return self.give_up(chat, seq, cause).await;
        };
        let mut outgoing = self.outgoing(chat, frame).await;
        let patience = patience(&outgoing.frame.frame);
        let begun = Instant::now();
        let mut backoff = Backoff::of_sends();
        loop {
            match send_once(&channel, &outgoing).await {
                Ok(_) => {
                    self.note_left(chat, seq).await;
                    return self.end(chat, seq, Ok(()));
                }
                Err(DeliveryError::Permanent { cause }) => {
                    return self.give_up(chat, seq, cause).await;
                }
                Err(DeliveryError::Retry { after, cause }) => {
                    let wait = after.unwrap_or_else(|| backoff.next_wait());
                    if begun.elapsed() + wait > patience {
                        return self.give_up(chat, seq, cause).await;
                    }
                    if outgoing.attempt == 0 {
                        self.report(chat, cause, true);
                    }
                    tokio::time::sleep(wait).await;
                    outgoing.attempt = outgoing.attempt.saturating_add(1);
                }
            }
        }
    }

    async fn outgoing(&self, chat: &ChatRef, frame: ChatFrame) -> Outgoing {
        let file = match frame.frame.media() {
            Some(media) => self.media.find(&media.id, chat).await,
            None => None,
        };
        Outgoing {
            chat: chat.clone(),
            frame,
            file: file.map(|saved| saved.path),
            attempt: 0,
        }
    }

    async fn give_up(&self, chat: &ChatRef, seq: u64, cause: String) {
        // Stored first: a frame that hooks are notified of is not sent once more after a crash.
        self.note_left(chat, seq).await;
        self.end(chat, seq, Err(cause.clone()));
        self.report(chat, cause, false);
    }

    /// Lets commands that wait know how sending a frame has ended.
    fn end(&self, chat: &ChatRef, seq: u64, result: Result<(), String>) {
        let chat = chat.clone();
        // Mostly, no command waits.
        let _heard = self.ends.send(SendEnd { chat, seq, result });
    }

    /// Notes that a frame has left or never will. Waits until that is stored, or the gateway stops: otherwise, the frame
    /// would be sent once more at any later start.
    async fn note_left(&self, chat: &ChatRef, seq: u64) {
        let mut backoff = Backoff::of_sends();
        let mut is_reported = false;
        while let Err(error) = self.store.note_left(chat, seq).await {
            if !std::mem::replace(&mut is_reported, true) {
                self.report(chat, error.to_string(), true);
            }
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }

    fn report(&self, chat: &ChatRef, cause: String, will_retry: bool) {
        (self.failed)(SendFailure {
            chat: chat.clone(),
            cause,
            will_retry,
        });
    }
}

/// Sends a frame. A panic of the channel must not end the sender, because its chat would then get nothing any more.
async fn send_once(
    channel: &Arc<dyn Channel>,
    outgoing: &Outgoing,
) -> Result<Receipt, DeliveryError> {
    let sent = AssertUnwindSafe(async { channel.send(outgoing).await }).catch_unwind();
    sent.await.unwrap_or_else(|_panic| {
        Err(DeliveryError::Permanent {
            cause: "the channel crashed; this is a bug".to_owned(),
        })
    })
}

/// Returns how long a frame is tried.
fn patience(frame: &Frame) -> Duration {
    if matches!(frame, Frame::Error { .. }) {
        ERROR_PATIENCE
    } else {
        ANSWER_PATIENCE
    }
}

fn publish_error(error: impl std::fmt::Display) -> PublishError {
    PublishError {
        cause: error.to_string(),
    }
}

impl Publisher for Outbox {
    fn capabilities(&self, chat: &ChatRef) -> Option<ChannelCapabilities> {
        self.0.channel(chat).map(|channel| channel.capabilities())
    }

    fn live(&self, chat: &ChatRef, frame: &Frame) {
        if let Some(channel) = self.0.channel(chat) {
            channel.live(chat, frame);
        }
    }

    fn publish<'a>(
        &'a self,
        chat: &'a ChatRef,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        Box::pin(async move { self.accept(chat, frames, update).await.map(drop) })
    }

    fn fetch<'a>(
        &'a self,
        chat: &'a ChatRef,
        media: &'a MediaRef,
    ) -> BoxFuture<'a, Result<SavedMedia, String>> {
        Box::pin(async move {
            let channel = self.0.channel(chat);
            let channel =
                channel.ok_or_else(|| "the channel does not exist any more".to_owned())?;
            let limit = usize::try_from(channel.capabilities().max_file).unwrap_or(usize::MAX);
            let mut sink = MediaSink::new(limit);
            channel
                .fetch(media, &mut sink)
                .await
                .map_err(|error| error.to_string())?;
            self.0
                .media
                .save(sink.into_bytes(), media.kind, media.name.clone(), chat)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn ask<'a>(&'a self, chat: &'a ChatRef, question: &'a Frame) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let Some(channel) = self.0.channel(chat) else {
                return false;
            };
            if !channel.can_ask(chat) {
                return false;
            }
            let outgoing = Outgoing {
                chat: chat.clone(),
                frame: ChatFrame {
                    seq: None,
                    frame: question.clone(),
                },
                file: None,
                attempt: 0,
            };
            channel.send(&outgoing).await.is_ok()
        })
    }
}

#[cfg(test)]
mod tests;
