//! Queries of the store. Each has a snapshot of its own, so writers do not wait for it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use redb::{ReadTransaction, ReadableTable as _};
use serde::Deserialize;
use serde_json::Value;
use tenterhook_protocol::SessionId;

use super::record::{
    ChatQueues, ChatSummary, DocumentKind, FramePage, InboxRecord, QueueDepth, StoreError,
};
use super::tables::{
    CHATS, ChatRecord, DOCUMENTS, FRAMES, Failure, INBOX, OUTBOX, OutboxEntry, SEEN, SESSIONS,
    chat_key, decode,
};
use crate::chat::{ChannelId, ChatRef, SessionKey};
use crate::frame::ChatFrame;

/// Returns the messages that are not finished, the oldest first.
pub(super) fn unfinished(snapshot: &ReadTransaction) -> Result<Vec<InboxRecord>, Failure> {
    let mut records = Vec::new();
    for entry in snapshot.open_table(INBOX)?.iter()? {
        let (id, bytes) = entry?;
        let what = format!("message {} of the inbox", id.value());
        records.push(decode(bytes.value(), &what)?);
    }
    Ok(records)
}

/// Returns whether a message was recorded before.
pub(super) fn has_seen(
    snapshot: &ReadTransaction,
    channel: &ChannelId,
    dedupe: &str,
) -> Result<bool, Failure> {
    let seen = snapshot.open_table(SEEN)?;
    Ok(seen.get((channel.as_str(), dedupe))?.is_some())
}

/// Returns the numbers of the frames that have not left, by chat, in order.
pub(super) fn unsent(snapshot: &ReadTransaction) -> Result<Vec<(ChatRef, Vec<u64>)>, Failure> {
    let chats = snapshot.open_table(CHATS)?;
    let mut unsent: Vec<(ChatRef, Vec<u64>)> = Vec::new();
    let mut last_key = String::new();
    for entry in snapshot.open_table(OUTBOX)?.iter()? {
        let (place, _) = entry?;
        let (key, seq) = place.value();
        if unsent.is_empty() || key != last_key {
            let bytes = chats.get(key)?.ok_or_else(|| missing(key))?;
            let chat: ChatRecord = decode(bytes.value(), &format!("chat {key}"))?;
            unsent.push((chat.summary.chat, Vec::new()));
            key.clone_into(&mut last_key);
        }
        if let Some((_, numbers)) = unsent.last_mut() {
            numbers.push(seq);
        }
    }
    Ok(unsent)
}

/// Returns the first frames of a chat that have not left, from a number on, in order.
pub(super) fn unsent_from(
    snapshot: &ReadTransaction,
    chat: &ChatRef,
    first: u64,
    limit: usize,
) -> Result<Vec<ChatFrame>, Failure> {
    let key = chat_key(chat)?;
    let frames = snapshot.open_table(FRAMES)?;
    let outbox = snapshot.open_table(OUTBOX)?;
    let waiting = outbox.range((key.as_str(), first)..=(key.as_str(), u64::MAX))?;
    let mut unsent = Vec::new();
    for entry in waiting.take(limit) {
        let (place, _) = entry?;
        let what = format!("frame {} of chat {key}", place.value().1);
        let frame = frames.get(place.value())?.ok_or_else(|| missing(&what))?;
        unsent.push(decode(frame.value(), &what)?);
    }
    Ok(unsent)
}

/// The parts of a stored message that a queue counts.
#[derive(Deserialize)]
struct WaitingMessage {
    message: WaitingSince,
}

#[derive(Deserialize)]
struct WaitingSince {
    chat: ChatRef,
    at: Timestamp,
}

/// Returns how much waits in each chat in which something waits.
pub(super) fn queues(snapshot: &ReadTransaction) -> Result<Vec<ChatQueues>, Failure> {
    let mut queues: BTreeMap<String, ChatQueues> = BTreeMap::new();
    let of_chat = |chat: ChatRef| ChatQueues {
        chat,
        inbox: QueueDepth::default(),
        outbox: QueueDepth::default(),
    };
    for entry in snapshot.open_table(INBOX)?.iter()? {
        let (id, bytes) = entry?;
        let what = format!("message {} of the inbox", id.value());
        let WaitingMessage { message } = decode(bytes.value(), &what)?;
        let key = chat_key(&message.chat)?;
        let queue = queues.entry(key).or_insert_with(|| of_chat(message.chat));
        queue.inbox.count(Some(message.at.as_millisecond()));
    }
    let chats = snapshot.open_table(CHATS)?;
    for entry in snapshot.open_table(OUTBOX)?.iter()? {
        let (place, bytes) = entry?;
        let (key, seq) = place.value();
        let entry: OutboxEntry = decode(bytes.value(), &format!("frame {seq} of chat {key}"))?;
        if !queues.contains_key(key) {
            let bytes = chats.get(key)?.ok_or_else(|| missing(key))?;
            let chat: ChatRecord = decode(bytes.value(), &format!("chat {key}"))?;
            queues.insert(key.to_owned(), of_chat(chat.summary.chat));
        }
        if let Some(queue) = queues.get_mut(key) {
            queue.outbox.count(entry.at);
        }
    }
    Ok(queues.into_values().collect())
}

fn missing(what: &str) -> StoreError {
    StoreError::Io {
        cause: format!("{what} is missing in the store `gateway.redb`; restore it from a backup"),
    }
}

/// The maximum size of the frames that are read at once, in bytes. Many clients can ask at the same time, and read slowly.
const MAX_PAGE: usize = 1 << 20;

/// Which frames of a chat are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// The first ones with a larger number.
    After(u64),
    /// The last ones with a smaller number.
    Before(u64),
}

/// Returns durable frames of a chat, in order.
pub(super) fn frames(
    snapshot: &ReadTransaction,
    chat: &ChatRef,
    wanted: Wanted,
    limit: usize,
) -> Result<FramePage, Failure> {
    let key = chat_key(chat)?;
    let Some(bytes) = snapshot.open_table(CHATS)?.get(key.as_str())? else {
        return Ok(FramePage::default());
    };
    let record: ChatRecord = decode(bytes.value(), &format!("chat `{chat}`"))?;
    let table = snapshot.open_table(FRAMES)?;
    let key = key.as_str();
    let what = format!("a frame of `{chat}`");
    let (frames, has_more) = match wanted {
        Wanted::After(u64::MAX) => (Vec::new(), false),
        Wanted::After(after) => {
            let range = table.range((key, after + 1)..=(key, u64::MAX))?;
            read_page(range, limit, &what)?
        }
        Wanted::Before(before) => {
            let range = table.range((key, 0)..(key, before))?.rev();
            let (mut frames, has_more) = read_page(range, limit, &what)?;
            frames.reverse();
            (frames, has_more)
        }
    };
    Ok(FramePage {
        frames,
        oldest: record.oldest,
        has_more,
    })
}

type FrameEntry<'a> = (
    redb::AccessGuard<'a, (&'static str, u64)>,
    redb::AccessGuard<'a, &'static [u8]>,
);

/// Reads frames, at most `limit` and at most [`MAX_PAGE`] bytes. Returns them, and whether there are more.
fn read_page<'a>(
    entries: impl Iterator<Item = Result<FrameEntry<'a>, redb::StorageError>>,
    limit: usize,
    what: &str,
) -> Result<(Vec<ChatFrame>, bool), Failure> {
    let (mut frames, mut size) = (Vec::new(), 0);
    for entry in entries {
        let (_, bytes) = entry?;
        size += bytes.value().len();
        if frames.len() >= limit || (size > MAX_PAGE && !frames.is_empty()) {
            return Ok((frames, true));
        }
        frames.push(decode(bytes.value(), what)?);
    }
    Ok((frames, false))
}

/// Returns the chats whose keys begin like this, the most recent first.
pub(super) fn chats(
    snapshot: &ReadTransaction,
    beginning: &str,
    limit: usize,
) -> Result<Vec<ChatSummary>, Failure> {
    let mut chats = Vec::new();
    for entry in snapshot.open_table(CHATS)?.range(beginning..)? {
        let (key, bytes) = entry?;
        if !key.value().starts_with(beginning) {
            break;
        }
        let record: ChatRecord = decode(bytes.value(), &format!("chat {}", key.value()))?;
        chats.push(record.summary);
    }
    chats.sort_by_key(|chat| std::cmp::Reverse(chat.at));
    chats.truncate(limit);
    Ok(chats)
}

/// Returns the session that a key points to.
pub(super) fn session(
    snapshot: &ReadTransaction,
    key: &SessionKey,
) -> Result<Option<SessionId>, Failure> {
    let table = snapshot.open_table(SESSIONS)?;
    let session = table.get(key.0.as_str())?;
    Ok(session.map(|session| SessionId::from(session.value())))
}

/// Returns a document.
pub(super) fn document(
    snapshot: &ReadTransaction,
    kind: DocumentKind,
    id: &str,
) -> Result<Option<Value>, Failure> {
    let table = snapshot.open_table(DOCUMENTS)?;
    let Some(bytes) = table.get((kind.word(), id))? else {
        return Ok(None);
    };
    let what = format!("{} `{id}`", kind.word());
    Ok(Some(decode(bytes.value(), &what)?))
}

/// Returns all documents of a kind, by id.
pub(super) fn documents(
    snapshot: &ReadTransaction,
    kind: DocumentKind,
) -> Result<Vec<(String, Value)>, Failure> {
    let mut documents = Vec::new();
    for entry in snapshot.open_table(DOCUMENTS)?.range((kind.word(), "")..)? {
        let (place, bytes) = entry?;
        let (found, id) = place.value();
        if found != kind.word() {
            break;
        }
        let what = format!("{found} `{id}`");
        documents.push((id.to_owned(), decode(bytes.value(), &what)?));
    }
    Ok(documents)
}
