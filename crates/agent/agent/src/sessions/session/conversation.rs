//! The part of a session that the model sees: context, the last summary, and the messages after it.

use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{Message, Messages, Role, message_extra};

use super::Session;
use crate::sessions::entry_kind::MESSAGE;
use crate::sessions::message_cache::is_conversation;
use crate::sessions::tokens::{BYTES_PER_TOKEN, estimate_tokens};

/// The text before a summary in a message for the model.
pub(super) const SUMMARY_INTRODUCTION: &str =
    "The conversation so far was replaced by this summary of it:\n\n";

impl Session {
    /// Returns the messages for the model: the session's context, the last summary, and newer messages.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = self.contexts();
        messages.extend(self.conversation());
        messages
    }

    /// Returns [`Session::messages`] without copying them for each caller.
    pub fn shared_messages(&self) -> Messages {
        self.cache.get_or_build(|| self.messages().into())
    }

    /// Estimates the conversation's size in tokens.
    pub fn estimated_tokens(&self) -> u64 {
        let contexts = marked(&self.branch, &self.contexts);
        let entries = contexts.chain(self.live_entries());
        let tokens = estimate_tokens(entries.filter_map(|entry| entry.message.as_ref()));
        let summary = self.summary().map_or(0, str::len);
        tokens.saturating_add(u64::try_from(summary.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX))
    }

    /// Returns the context that applies to the whole session.
    pub fn contexts(&self) -> Vec<Message> {
        let context = marked(&self.branch, &self.contexts);
        context.filter_map(|entry| entry.message.clone()).collect()
    }

    /// Returns the last summary as a message, and the messages that it does not replace.
    pub fn conversation(&self) -> Vec<Message> {
        let summary = self.summary().map(|summary| {
            let compaction = self.last_compaction();
            let data = compaction.and_then(|(_, entry)| entry.data.as_ref());
            let tokens = data.and_then(|data| data.get("tokens_before")).cloned();
            Message::user(format!("{SUMMARY_INTRODUCTION}{summary}"))
                .with_extra(message_extra::KIND, message_extra::COMPACTION_SUMMARY)
                .with_extra(message_extra::SUMMARY, summary)
                .with_extra(message_extra::TOKENS_BEFORE, tokens)
        });
        let live = self
            .live_entries()
            .filter_map(|entry| entry.message.clone());
        summary.into_iter().chain(live).collect()
    }

    /// Returns the last summary.
    pub fn summary(&self) -> Option<&str> {
        self.last_compaction()?
            .1
            .data
            .as_ref()?
            .get("summary")?
            .as_str()
    }

    /// Returns the message entries that are not replaced by a summary.
    pub fn live_entries(&self) -> impl DoubleEndedIterator<Item = &SessionEntry> {
        let start = self.last_compaction().map_or(0, |(position, compaction)| {
            let kept = compaction
                .data
                .as_ref()
                .and_then(|data| data.get("first_kept_entry_id")?.as_str());
            let kept = kept.and_then(|kept| self.position(&kept.into()));
            kept.unwrap_or(position)
        });
        let live = self.branch.get(start..).unwrap_or_default();
        live.iter().filter(|entry| is_conversation(entry))
    }

    fn last_compaction(&self) -> Option<(usize, &SessionEntry)> {
        let position = *self.compactions.last()?;
        Some((position, self.branch.get(position)?))
    }

    /// Returns the last message with this role.
    pub fn last_message_of(&self, role: Role) -> Option<&Message> {
        let entries = self.branch.iter().rev();
        let mut messages = entries
            .filter(|entry| entry.kind == MESSAGE)
            .filter_map(|entry| entry.message.as_ref());
        messages.find(|message| message.role == role)
    }

    /// Returns how many answers of models the branch contains.
    pub fn answer_count(&self) -> u32 {
        let messages = self
            .branch
            .iter()
            .filter_map(|entry| entry.message.as_ref());
        let answers = messages.filter(|message| message.role == Role::Assistant);
        u32::try_from(answers.count()).unwrap_or(u32::MAX)
    }
}

fn marked<'a>(
    branch: &'a [SessionEntry],
    marks: &'a [usize],
) -> impl Iterator<Item = &'a SessionEntry> {
    marks.iter().filter_map(|mark| branch.get(*mark))
}
