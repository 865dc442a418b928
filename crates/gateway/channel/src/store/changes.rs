//! Changes of the store. Each runs inside a transaction that it shares with others, so it refuses before it writes.

use redb::ReadableTable as _;
use redb::ReadableTableMetadata as _;
use tenterhook_protocol::event::SenderRole;
use tenterhook_protocol::{JsonObject, SessionId};

use super::record::{
    ChatSummary, DocumentKind, InboxId, InboxRecord, InboxState, InboxUpdate, Recorded, StoreError,
};
use super::tables::{ChatRecord, Failure, OutboxEntry, Tables, chat_key, decode, encode};
use crate::chat::{ChatRef, SessionKey};
use crate::frame::{ChatFrame, Frame};
use crate::message::IncomingMessage;

/// How many old entries one transaction removes in addition to what it adds.
const MAX_PRUNED: usize = 512;

/// The maximum length of a chat's title in characters.
const MAX_TITLE: usize = 80;

/// The new records of messages. `None` removes one.
type StateChanges = Vec<(u64, Option<Vec<u8>>)>;

impl Tables<'_> {
    /// Records a message, unless it was recorded before or too many wait.
    pub(super) fn accept(
        &mut self,
        message: IncomingMessage,
        (role, key): (SenderRole, SessionKey),
        script: Option<JsonObject>,
    ) -> Result<Recorded, Failure> {
        let channel = message.chat.channel.clone();
        let dedupe = message.dedupe.clone();
        let seen = (channel.as_str(), dedupe.as_str());
        if self.seen.get(seen)?.is_some() {
            return Ok(Recorded::Duplicate);
        }
        if self.inbox.len()? >= self.limits.unfinished {
            return Ok(Recorded::Full);
        }
        let id = self.last_message + 1;
        let record = InboxRecord {
            id: InboxId(id),
            message,
            role,
            key,
            state: InboxState::Received,
            script,
        };
        let bytes = encode(&record)?;
        self.last_message = id;
        self.inbox.insert(id, bytes.as_slice())?;
        self.seen.insert(seen, id)?;
        self.seen_by_age.insert(id, (self.now, seen.0, seen.1))?;
        Ok(Recorded::Fresh(record))
    }

    /// Removes a message and all that is known about it.
    pub(super) fn forget(&mut self, id: u64) -> Result<(), redb::StorageError> {
        self.inbox.remove(id)?;
        self.forget_seen(id)
    }

    fn forget_seen(&mut self, id: u64) -> Result<(), redb::StorageError> {
        if let Some(entry) = self.seen_by_age.remove(id)? {
            let (_, channel, dedupe) = entry.value();
            self.seen.remove((channel, dedupe))?;
        }
        Ok(())
    }

    /// Forgets messages that are too old to be repeated. The work is bounded; the next transaction continues.
    pub(super) fn prune_seen(&mut self) -> Result<(), redb::StorageError> {
        let oldest_kept = self.now.saturating_sub(self.limits.seen_ms);
        for _ in 0..MAX_PRUNED {
            let is_over = self.seen_by_age.len()? > self.limits.seen;
            let oldest = self.seen_by_age.first()?;
            let oldest = oldest.map(|(id, entry)| (id.value(), entry.value().0));
            match oldest {
                Some((id, at)) if is_over || at <= oldest_kept => self.forget_seen(id)?,
                _ => break,
            }
        }
        Ok(())
    }

    /// Changes the state of messages. Finished messages keep their state.
    pub(super) fn set_inbox_state(
        &mut self,
        ids: &[InboxId],
        state: &InboxState,
    ) -> Result<(), Failure> {
        let changed = self.plan_update(ids, state)?;
        self.apply_state_changes(changed)
    }

    fn plan_update(&self, ids: &[InboxId], state: &InboxState) -> Result<StateChanges, Failure> {
        let is_final = !matches!(
            state,
            InboxState::Received | InboxState::Running | InboxState::Unheard
        );
        let mut changed = Vec::with_capacity(ids.len());
        for InboxId(id) in ids {
            let Some(bytes) = self.inbox.get(id)? else {
                continue;
            };
            if is_final {
                changed.push((*id, None));
                continue;
            }
            let mut record: InboxRecord =
                decode(bytes.value(), &format!("message {id} of the inbox"))?;
            record.state = state.clone();
            changed.push((*id, Some(encode(&record)?)));
        }
        Ok(changed)
    }

    fn apply_state_changes(&mut self, changed: StateChanges) -> Result<(), Failure> {
        for (id, bytes) in changed {
            match bytes {
                Some(bytes) => self.inbox.insert(id, bytes.as_slice())?,
                None => self.inbox.remove(id)?,
            };
        }
        Ok(())
    }

    /// Numbers durable frames and stores them, changes the states of messages, and keeps the tail of a session. The frames that `is_queued`
    /// accepts wait to be sent.
    pub(super) fn append(
        &mut self,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: &InboxUpdate,
        is_queued: impl Fn(&Frame) -> bool,
    ) -> Result<Vec<ChatFrame>, Failure> {
        if frames.iter().any(|frame| !frame.is_durable()) {
            let cause = format!("a frame for `{chat}` is not durable, so it cannot be stored");
            return Err(StoreError::Invalid { cause }.into());
        }
        let changed = self.plan_update(&update.ids, &update.state)?;
        let key = chat_key(chat)?;
        let mut record = self.chat_record(&key, chat)?;
        let first = record.summary.last_seq + 1;
        let mut stored = Vec::with_capacity(frames.len());
        let mut encoded = Vec::with_capacity(frames.len());
        for (seq, frame) in (first..).zip(frames) {
            let frame = ChatFrame {
                seq: Some(seq),
                frame,
            };
            encoded.push((seq, encode(&frame)?, is_queued(&frame.frame)));
            stored.push(frame);
        }
        let queued = encode(&OutboxEntry { at: Some(self.now) })?;
        let tail = update.tail.as_ref();
        let tail = tail.map(|(key, tail)| encode(tail).map(|tail| (key.0.as_str(), tail)));
        let tail = tail.transpose()?;
        // Nothing is refused from here on.
        if let Some((key, tail)) = tail {
            let place = (DocumentKind::SessionTail.word(), key);
            self.documents.insert(place, tail.as_slice())?;
        }
        for (seq, bytes, is_queued) in &encoded {
            self.frames.insert((key.as_str(), *seq), bytes.as_slice())?;
            if *is_queued {
                self.outbox
                    .insert((key.as_str(), *seq), queued.as_slice())?;
            }
            record.summary.last_seq = *seq;
        }
        if !stored.is_empty() {
            record.summary.at = self.now;
            if record.summary.title.is_empty() {
                record.summary.title = title(&stored);
            }
            self.prune_frames(&key, &mut record, stored.len())?;
            self.chats
                .insert(key.as_str(), encode(&record)?.as_slice())?;
        }
        self.apply_state_changes(changed)?;
        Ok(stored)
    }

    fn chat_record(&self, key: &str, chat: &ChatRef) -> Result<ChatRecord, Failure> {
        if let Some(bytes) = self.chats.get(key)? {
            return Ok(decode(bytes.value(), &format!("chat `{chat}`"))?);
        }
        Ok(ChatRecord {
            summary: ChatSummary {
                chat: chat.clone(),
                last_seq: 0,
                at: 0,
                title: String::new(),
            },
            oldest: 1,
        })
    }

    /// Removes the oldest frames of a chat that has too many. Frames that have not left stay, with those after them.
    fn prune_frames(
        &mut self,
        key: &str,
        record: &mut ChatRecord,
        added: usize,
    ) -> Result<(), Failure> {
        for _ in 0..added.saturating_add(MAX_PRUNED) {
            let count = record.summary.last_seq.saturating_sub(record.oldest) + 1;
            let place = (key, record.oldest);
            if count <= self.limits.frames || self.outbox.get(place)?.is_some() {
                break;
            }
            self.frames.remove(place)?;
            record.oldest += 1;
        }
        Ok(())
    }

    /// Notes that a frame has left, or never will.
    pub(super) fn note_left(&mut self, chat: &ChatRef, seq: u64) -> Result<(), Failure> {
        let key = chat_key(chat)?;
        self.outbox.remove((key.as_str(), seq))?;
        Ok(())
    }

    /// Points a key to a session, or to none.
    pub(super) fn set_session(
        &mut self,
        key: &SessionKey,
        session: Option<&SessionId>,
    ) -> Result<(), Failure> {
        match session {
            Some(session) => self.sessions.insert(key.0.as_str(), session.as_str())?,
            None => self.sessions.remove(key.0.as_str())?,
        };
        Ok(())
    }

    /// Stores a document, or removes it.
    pub(super) fn set_document(
        &mut self,
        kind: DocumentKind,
        id: &str,
        value: Option<&serde_json::Value>,
    ) -> Result<(), Failure> {
        match value {
            Some(value) => {
                let bytes = encode(value)?;
                self.documents.insert((kind.word(), id), bytes.as_slice())?
            }
            None => self.documents.remove((kind.word(), id))?,
        };
        Ok(())
    }
}

/// Returns the beginning of the first message on one line.
fn title(frames: &[ChatFrame]) -> String {
    let said = frames.iter().find_map(|stored| {
        if let Frame::Said { text, .. } = &stored.frame {
            Some(text.as_str())
        } else {
            None
        }
    });
    let line = said.unwrap_or_default().replace(char::is_control, " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().take(MAX_TITLE).collect()
}
