//! What survives a crash: the inbox, the frames of chats, sessions, pairings and tokens. One file, one process.
//!
//! A change returns after it is durable. Changes that are made at the same time share one transaction, and so one wait
//! for the disk. A transaction that fails, for example because the disk is full, fails for all changes in it; the next
//! one is tried as if nothing had happened.

mod changes;
mod copy;
mod file;
mod queries;
mod record;
mod tables;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use redb::ReadTransaction;
use serde_json::Value;
use tenterhook_files::FileLock;
use tenterhook_protocol::event::SenderRole;
use tenterhook_protocol::{JsonObject, SessionId};

pub use self::record::{
    ChatQueues, ChatSummary, DocumentKind, FramePage, InboxId, InboxRecord, InboxState,
    InboxUpdate, QueueDepth, Recorded, StoreError,
};

pub use self::file::{RESTORING, STORE_FILE};

use self::file::StoreFile;
use self::queries::Wanted;
use self::tables::{Failure, Limits};
use self::writer::Writer;
use crate::chat::{ChannelId, ChatRef, SessionKey};
use crate::frame::{ChatFrame, Frame};
use crate::message::IncomingMessage;

/// The store of a gateway. Clones use the same file.
///
/// If the future of a change is dropped, the change is made or not made, but never half. Dropping the last clone waits
/// until the changes that were begun are durable.
#[derive(Clone)]
pub struct Store {
    writer: Arc<Writer>,
    file: Arc<StoreFile>,
}

/// Keeps every program from opening the store in a folder, until it is dropped.
#[derive(Debug)]
pub struct StoreLock(#[expect(dead_code, reason = "dropping it unlocks the folder")] FileLock);

impl StoreLock {
    /// Locks a folder, and creates it if it is missing. It blocks.
    ///
    /// # Errors
    ///
    /// Fails if a program has opened the store.
    pub fn take(folder: &Path) -> Result<Self, StoreError> {
        file::lock(folder).map(Self)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in a folder, or creates both. Only their owner can read them. It blocks.
    ///
    /// # Errors
    ///
    /// Fails if another process has opened it, if its files cannot be used, or if a newer version wrote them.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let limits = Limits::default();
        Self::over(StoreFile::open(folder, limits)?, limits)
    }

    /// Returns whether a process uses the store in a folder. It blocks for a moment.
    pub fn is_in_use(folder: &Path) -> bool {
        file::is_in_use(folder)
    }

    /// Creates an empty store in memory, for programs that keep nothing.
    ///
    /// # Errors
    ///
    /// Fails if no thread can be started.
    pub fn in_memory() -> Result<Self, StoreError> {
        let limits = Limits::default();
        Self::over(StoreFile::in_memory(limits)?, limits)
    }

    fn over(file: StoreFile, limits: Limits) -> Result<Self, StoreError> {
        let file = Arc::new(file);
        Ok(Self {
            writer: Arc::new(Writer::start(Arc::clone(&file), limits)?),
            file,
        })
    }

    /// Records a message, unless it was recorded in the last 7 days. The last 200,000 messages are compared.
    ///
    /// Do not drop the future: a message can be durable before the caller learns its number, and is then processed only
    /// after a restart.
    pub async fn accept(
        &self,
        message: IncomingMessage,
        role: SenderRole,
        key: SessionKey,
    ) -> Result<Recorded, StoreError> {
        let change =
            move |tables: &mut tables::Tables<'_>| tables.accept(message, (role, key), None);
        self.writer.write(change).await
    }

    /// Records a prompt that a script of the agent sent while its chat was idle, as [`accept`](Self::accept) records a
    /// message. `extra` is what the session keeps about it.
    ///
    /// # Errors
    ///
    /// Fails if the disk cannot be written. Then nothing was recorded.
    pub async fn accept_script(
        &self,
        message: IncomingMessage,
        role: SenderRole,
        key: SessionKey,
        extra: JsonObject,
    ) -> Result<Recorded, StoreError> {
        let change =
            move |tables: &mut tables::Tables<'_>| tables.accept(message, (role, key), Some(extra));
        self.writer.write(change).await
    }

    /// Returns whether a message was recorded in the last 7 days, so that [`accept`](Self::accept) would not record it.
    pub async fn has_seen(&self, channel: &ChannelId, dedupe: &str) -> Result<bool, StoreError> {
        let (channel, dedupe) = (channel.clone(), dedupe.to_owned());
        self.read(move |snapshot| queries::has_seen(snapshot, &channel, &dedupe))
            .await
    }

    /// Changes the state of messages. Messages that are finished are removed, and keep their state.
    pub async fn set_inbox_state(
        &self,
        ids: Vec<InboxId>,
        state: InboxState,
    ) -> Result<(), StoreError> {
        let change = move |tables: &mut tables::Tables<'_>| tables.set_inbox_state(&ids, &state);
        self.writer.write(change).await
    }

    /// Removes a message for which there is no room, and forgets that it was recorded, so that it can be sent again.
    pub async fn forget(&self, InboxId(id): InboxId) -> Result<(), StoreError> {
        let change = move |tables: &mut tables::Tables<'_>| Ok(tables.forget(id)?);
        self.writer.write(change).await
    }

    /// Returns all messages that are not finished, the oldest first.
    pub async fn unfinished(&self) -> Result<Vec<InboxRecord>, StoreError> {
        self.read(queries::unfinished).await
    }

    /// Stores durable frames, numbers them, and changes the states of messages, in one transaction. All of them wait to be sent. The
    /// newest 1,000 frames of a chat are kept, and all that have not left.
    ///
    /// # Errors
    ///
    /// Fails also if one of the frames is not durable. Then nothing was stored, unless the disk failed so that the file
    /// could not even be opened again: frames that reached it are then sent after a restart.
    pub async fn append(
        &self,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: impl Into<InboxUpdate>,
    ) -> Result<Vec<ChatFrame>, StoreError> {
        self.append_queued(chat, frames, update, |_| true).await
    }

    /// Like [`append`](Self::append), but only the frames that `is_queued` accepts wait to be sent.
    ///
    /// # Errors
    ///
    /// Fails like [`append`](Self::append).
    pub async fn append_queued(
        &self,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: impl Into<InboxUpdate>,
        is_queued: impl Fn(&Frame) -> bool + Send + 'static,
    ) -> Result<Vec<ChatFrame>, StoreError> {
        let (chat, update) = (chat.clone(), update.into());
        let change =
            move |tables: &mut tables::Tables<'_>| tables.append(&chat, frames, &update, is_queued);
        self.writer.write(change).await
    }

    /// Notes that the service has a durable frame, or that the frame cannot be sent.
    pub async fn note_left(&self, chat: &ChatRef, seq: u64) -> Result<(), StoreError> {
        let chat = chat.clone();
        let change = move |tables: &mut tables::Tables<'_>| tables.note_left(&chat, seq);
        self.writer.write(change).await
    }

    /// Returns the numbers of all frames that have not left, by chat, in order.
    pub async fn unsent(&self) -> Result<Vec<(ChatRef, Vec<u64>)>, StoreError> {
        self.read(queries::unsent).await
    }

    /// Returns the first `limit` frames of a chat that have not left, from the number `first` on, in order.
    pub async fn unsent_from(
        &self,
        chat: &ChatRef,
        first: u64,
        limit: usize,
    ) -> Result<Vec<ChatFrame>, StoreError> {
        let chat = chat.clone();
        self.read(move |snapshot| queries::unsent_from(snapshot, &chat, first, limit))
            .await
    }

    /// Returns how much waits in each chat in which something waits.
    pub async fn queues(&self) -> Result<Vec<ChatQueues>, StoreError> {
        self.read(queries::queues).await
    }

    /// Returns durable frames of a chat with a larger number than `after`: at most `limit`, and at most 1 MiB of them.
    pub async fn frames_after(
        &self,
        chat: &ChatRef,
        after: u64,
        limit: usize,
    ) -> Result<FramePage, StoreError> {
        self.frames(chat, Wanted::After(after), limit).await
    }

    /// Returns the last `limit` durable frames of a chat with a smaller number than `before`, in order, and at most 1 MiB of
    /// them.
    pub async fn frames_before(
        &self,
        chat: &ChatRef,
        before: u64,
        limit: usize,
    ) -> Result<FramePage, StoreError> {
        self.frames(chat, Wanted::Before(before), limit).await
    }

    async fn frames(
        &self,
        chat: &ChatRef,
        wanted: Wanted,
        limit: usize,
    ) -> Result<FramePage, StoreError> {
        let chat = chat.clone();
        let query =
            move |snapshot: &ReadTransaction| queries::frames(snapshot, &chat, wanted, limit);
        self.read(query).await
    }

    /// Returns the chats, the most recent first.
    pub async fn chats(&self, limit: usize) -> Result<Vec<ChatSummary>, StoreError> {
        self.read(move |snapshot| queries::chats(snapshot, "", limit))
            .await
    }

    /// Returns the chats in the channel of `place` whose ids begin with its id, the most recent first. However many chats
    /// others have, these are found.
    pub async fn chats_of(
        &self,
        place: &ChatRef,
        limit: usize,
    ) -> Result<Vec<ChatSummary>, StoreError> {
        let beginning = tables::beginning_of_keys(place)?;
        self.read(move |snapshot| queries::chats(snapshot, &beginning, limit))
            .await
    }

    /// Returns the session that a key points to.
    pub async fn session(&self, key: &SessionKey) -> Result<Option<SessionId>, StoreError> {
        let key = key.clone();
        self.read(move |snapshot| queries::session(snapshot, &key))
            .await
    }

    /// Points a key to a session. `None` makes the next message begin a new one.
    pub async fn set_session(
        &self,
        key: &SessionKey,
        session: Option<SessionId>,
    ) -> Result<(), StoreError> {
        let key = key.clone();
        let change =
            move |tables: &mut tables::Tables<'_>| tables.set_session(&key, session.as_ref());
        self.writer.write(change).await
    }

    /// Returns a document.
    pub async fn document(
        &self,
        kind: DocumentKind,
        id: &str,
    ) -> Result<Option<Value>, StoreError> {
        let id = id.to_owned();
        self.read(move |snapshot| queries::document(snapshot, kind, &id))
            .await
    }

    /// Returns all documents of a kind, by id.
    pub async fn documents(&self, kind: DocumentKind) -> Result<Vec<(String, Value)>, StoreError> {
        self.read(move |snapshot| queries::documents(snapshot, kind))
            .await
    }

    /// Stores a document. `None` removes it.
    pub async fn set_document(
        &self,
        kind: DocumentKind,
        id: &str,
        value: Option<Value>,
    ) -> Result<(), StoreError> {
        let id = id.to_owned();
        let change =
            move |tables: &mut tables::Tables<'_>| tables.set_document(kind, &id, value.as_ref());
        self.writer.write(change).await
    }

    /// Writes a copy of everything that is stored at one moment into a new store in a folder. `observe` runs at this
    /// moment, while nothing is stored: keep it short.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read, or the copy cannot be written.
    pub async fn copy_into<T: Send + 'static>(
        &self,
        folder: &Path,
        observe: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(&self.file);
        let begin = move |_: &mut tables::Tables<'_>| Ok((file.snapshot()?, observe()));
        let (snapshot, observed) = self.writer.write(begin).await?;
        let folder = folder.to_owned();
        let copied = tokio::task::spawn_blocking(move || {
            copy::copy_into(&folder, Limits::default(), &snapshot)
        });
        let copied = copied.await.map_err(|error| StoreError::Io {
            cause: format!("the copy of the store `gateway.redb` did not end: {error}"),
        })?;
        copied.map(|()| observed)
    }

    /// Returns whether changes can be stored. It tries only after one has failed, and at most once a second.
    pub async fn is_writable(&self) -> bool {
        if self.writer.is_probe_due() {
            self.writer.write(|_| Ok(())).await.ok();
        }
        !self.writer.has_failed()
    }

    /// Runs a query on a thread for work that blocks.
    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&ReadTransaction) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(&self.file);
        let done = tokio::task::spawn_blocking(move || file.read(query)).await;
        match done {
            Ok(result) => result.map_err(StoreError::from),
            Err(error) => Err(StoreError::Io {
                cause: format!("a query of the store `gateway.redb` did not end: {error}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
