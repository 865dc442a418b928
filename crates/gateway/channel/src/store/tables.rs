//! The tables of the file, and how values are encoded in them.

use std::io::ErrorKind;

use redb::{ReadableTable as _, Table, TableDefinition, WriteTransaction};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::record::{ChatSummary, StoreError};
use crate::chat::ChatRef;

/// Messages that are not finished, by their number.
pub(super) const INBOX: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("inbox");
/// Messages that were recorded, by channel and `dedupe`.
pub(super) const SEEN: TableDefinition<'_, (&str, &str), u64> = TableDefinition::new("seen");
/// The same by number, with the time of each. The oldest are forgotten first.
pub(super) const SEEN_BY_AGE: TableDefinition<'_, u64, (i64, &str, &str)> =
    TableDefinition::new("seen_by_age");
/// Durable frames, by chat and number.
pub(super) const FRAMES: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("frames");
/// The state of each frame that has not left.
pub(super) const OUTBOX: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("outbox");
/// The chats.
pub(super) const CHATS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("chats");
/// The session of each key.
pub(super) const SESSIONS: TableDefinition<'_, &str, &str> = TableDefinition::new("sessions");
/// Documents, by kind and id.
pub(super) const DOCUMENTS: TableDefinition<'_, (&str, &str), &[u8]> =
    TableDefinition::new("documents");
/// Numbers of the file itself.
pub(super) const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// The entry of [`META`] with the version of this layout.
pub(super) const FORMAT: &str = "format";
/// The entry of [`META`] with the number of the last message.
pub(super) const LAST_MESSAGE: &str = "last_message";
/// The entry of [`META`] that counts commits.
pub(super) const COMMITS: &str = "commits";

/// A value as it is stored.
type Bytes = &'static [u8];

/// All tables of one transaction.
pub(super) struct Tables<'txn> {
    pub(super) inbox: Table<'txn, u64, Bytes>,
    pub(super) seen: Table<'txn, (&'static str, &'static str), u64>,
    pub(super) seen_by_age: Table<'txn, u64, (i64, &'static str, &'static str)>,
    pub(super) frames: Table<'txn, (&'static str, u64), Bytes>,
    pub(super) outbox: Table<'txn, (&'static str, u64), Bytes>,
    pub(super) chats: Table<'txn, &'static str, Bytes>,
    pub(super) sessions: Table<'txn, &'static str, &'static str>,
    pub(super) documents: Table<'txn, (&'static str, &'static str), Bytes>,
    pub(super) meta: Table<'txn, &'static str, u64>,
    pub(super) limits: Limits,
    /// The time of the transaction: milliseconds since 1970.
    pub(super) now: i64,
    /// The number of the last message. It is written once, at the end of the transaction.
    pub(super) last_message: u64,
}

impl<'txn> Tables<'txn> {
    /// Opens the tables, and creates those that are missing.
    pub(super) fn open(
        transaction: &'txn WriteTransaction,
        limits: Limits,
        now: i64,
    ) -> Result<Self, redb::Error> {
        let meta = transaction.open_table(META)?;
        let last_message = meta.get(LAST_MESSAGE)?.map_or(0, |id| id.value());
        Ok(Self {
            inbox: transaction.open_table(INBOX)?,
            seen: transaction.open_table(SEEN)?,
            seen_by_age: transaction.open_table(SEEN_BY_AGE)?,
            frames: transaction.open_table(FRAMES)?,
            outbox: transaction.open_table(OUTBOX)?,
            chats: transaction.open_table(CHATS)?,
            sessions: transaction.open_table(SESSIONS)?,
            documents: transaction.open_table(DOCUMENTS)?,
            meta,
            limits,
            now,
            last_message,
        })
    }

    /// Returns how many commits the file has seen.
    pub(super) fn commits(&self) -> Result<u64, redb::StorageError> {
        Ok(self.meta.get(COMMITS)?.map_or(0, |commits| commits.value()))
    }

    /// Writes the numbers of the file itself: the last change of a transaction.
    pub(super) fn count_commit(&mut self, commit: u64) -> Result<(), redb::StorageError> {
        self.meta.insert(COMMITS, commit)?;
        self.meta.insert(LAST_MESSAGE, self.last_message)?;
        Ok(())
    }
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum number of messages that are not finished.
    pub(super) unfinished: u64,
    /// The maximum number of messages whose repetition is noticed.
    pub(super) seen: u64,
    /// How long the repetition of a message is noticed, in milliseconds.
    pub(super) seen_ms: i64,
    /// The number of frames that a chat keeps.
    pub(super) frames: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unfinished: 10_000,
            seen: 200_000,
            seen_ms: 7 * 24 * 60 * 60 * 1000,
            frames: 1_000,
        }
    }
}

/// A chat as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChatRecord {
    #[serde(flatten)]
    pub(super) summary: ChatSummary,
    /// The number of the oldest frame that is stored.
    pub(super) oldest: u64,
}

/// A frame that has not left, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "StoredOutboxEntry")]
pub(super) struct OutboxEntry {
    /// When it was stored: milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<i64>,
}

/// The forms of [`OutboxEntry`]: earlier versions stored a state in addition, or the state alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredOutboxEntry {
    Entry { at: Option<i64> },
    State(IgnoredAny),
}

impl From<StoredOutboxEntry> for OutboxEntry {
    fn from(stored: StoredOutboxEntry) -> Self {
        let at = match stored {
            StoredOutboxEntry::Entry { at } => at,
            StoredOutboxEntry::State(_) => None,
        };
        Self { at }
    }
}

/// Why a change or a query failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The file cannot be read or written.
    Storage(redb::Error),
    /// This change or query is not possible. Others are not affected.
    Refused(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

macro_rules! storage_failures {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for Failure {
            fn from(error: redb::$error) -> Self {
                Self::Storage(error.into())
            }
        }
    )*};
}
storage_failures!(StorageError, TableError, TransactionError);

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Storage(error) => unusable(&error),
            Failure::Refused(error) => error,
        }
    }
}

/// Describes an error of the file.
pub(super) fn unusable(error: &redb::Error) -> StoreError {
    if matches!(error, redb::Error::DatabaseAlreadyOpen) {
        return StoreError::Locked;
    }
    let next = if is_damaged(error) {
        "the file is damaged; stop the gateway and restore the file from a backup, or move it away to begin with an \
         empty store"
    } else {
        "check the free space of its disk and its permissions"
    };
    StoreError::Io {
        cause: format!("cannot use the store `gateway.redb`: {error}; {next}"),
    }
}

/// Returns whether what the file contains is wrong, for example because a copy of it was cut.
fn is_damaged(error: &redb::Error) -> bool {
    if let redb::Error::Io(error) = error {
        return matches!(
            error.kind(),
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData
        );
    }
    matches!(
        error,
        redb::Error::Corrupted(_) | redb::Error::RepairAborted
    )
}

/// Returns the key of a chat in tables.
pub(super) fn chat_key(chat: &ChatRef) -> Result<String, StoreError> {
    // An array in JSON, because a chat's id can contain any separator.
    serde_json::to_string(&(&chat.channel, &chat.chat, &chat.thread))
        .map_err(|error| invalid("the chat's name", &error))
}

/// Returns how the keys of all chats begin whose ids begin like this one.
pub(super) fn beginning_of_keys(chat: &ChatRef) -> Result<String, StoreError> {
    let mut key = serde_json::to_string(&(&chat.channel, &chat.chat))
        .map_err(|error| invalid("the chat's name", &error))?;
    key.truncate(key.len().saturating_sub("\"]".len()));
    Ok(key)
}

/// Encodes a value for a table.
pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| invalid("the record", &error))
}

fn invalid(what: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Invalid {
        cause: format!("cannot store {what}: {error}"),
    }
}

/// Decodes a value of a table. `what` names it in the error.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| StoreError::Io {
        cause: format!(
            "cannot read {what} in the store `gateway.redb`: {error}; was it written by a newer version?"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_the_outbox_that_an_earlier_version_wrote_is_read() {
        for (stored, expected) in [
            (r#""sending""#, None),
            (r#"{"state":"queued","at":1}"#, Some(1)),
            (r#"{"state":{"failed":"no"}}"#, None),
            (r#"{"at":1}"#, Some(1)),
        ] {
            let entry: OutboxEntry = decode(stored.as_bytes(), "a frame").unwrap();
            assert_eq!(entry.at, expected, "{stored}");
        }
        let entry = encode(&OutboxEntry { at: Some(1) }).unwrap();
        assert_eq!(entry, br#"{"at":1}"#);
    }
}
