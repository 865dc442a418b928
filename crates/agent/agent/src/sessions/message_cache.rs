//! A cache of the conversation, which is shared with callers instead of copied for each.

use std::sync::OnceLock;

use tenterhook_protocol::Messages;
use tenterhook_protocol::event::SessionEntry;

use crate::sessions::entry_kind::{BRANCH_SUMMARY, COMPACTION, CONTEXT, MESSAGE, USER_BASH};

/// The shared conversation. It is built on first use and then extended as the session grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageCache(OnceLock<Messages>);

impl MessageCache {
    /// Returns the cached messages, or builds them.
    pub(crate) fn get_or_build(&self, build: impl FnOnce() -> Messages) -> Messages {
        self.0.get_or_init(build).clone()
    }

    /// Empties the cache.
    pub(crate) fn clear(&mut self) {
        self.0.take();
    }

    /// Updates the cache for an entry that was added to the branch.
    pub(crate) fn grow(&mut self, entry: &SessionEntry) {
        if [CONTEXT, COMPACTION].contains(&entry.kind.as_str()) {
            // These entries change more than the end of the conversation, so it must be built again.
            self.0.take();
        } else if is_conversation(entry)
            && let (Some(messages), Some(message)) = (self.0.get_mut(), &entry.message)
        {
            messages.push(message.clone());
        }
    }
}

/// The cache is derived from the entries, so comparing sessions ignores it.
impl PartialEq for MessageCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Returns whether an entry is part of the conversation itself.
pub(crate) fn is_conversation(entry: &SessionEntry) -> bool {
    let is_conversation = [MESSAGE, BRANCH_SUMMARY, USER_BASH].contains(&entry.kind.as_str());
    is_conversation && entry.message.is_some()
}
