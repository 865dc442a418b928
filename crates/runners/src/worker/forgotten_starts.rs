//! The conversations whose starts a script has heard, and which are no longer kept.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher as _;
use std::sync::{Arc, Weak};

use super::connection::Connection;
use super::conversation_starts::ConversationStarts;

/// How many forgotten conversations are distinguished from conversations that never had a start.
const MAX_FORGOTTEN: usize = 16 << 10;

/// The names of forgotten conversations as hashes, because a name can be long.
#[derive(Debug, Default)]
pub(super) struct ForgottenStarts {
    hasher: RandomState,
    /// The process that has handled all starts of a conversation, if there was one.
    by_name: HashMap<u64, Weak<Connection>>,
    /// Set once there are more than [`MAX_FORGOTTEN`]: the process that served the first of the others. Any conversation
    /// may be one of them.
    others: Option<Weak<Connection>>,
    /// The hooks that have ever heard a start.
    hooks: BTreeSet<usize>,
}

impl ForgottenStarts {
    /// Records that a hook hears the starts of sessions.
    pub(super) fn add_hook(&mut self, hook: usize) {
        self.hooks.insert(hook);
    }

    /// Records that the starts of a conversation are no longer kept.
    pub(super) fn add(&mut self, name: &str, conversation: &ConversationStarts) {
        let process = conversation.ready_process();
        let name = self.hasher.hash_one(name);
        if let Some(known) = self.by_name.get_mut(&name) {
            if !known.ptr_eq(&process) {
                *known = Weak::new();
            }
        } else if self.by_name.len() < MAX_FORGOTTEN {
            self.by_name.insert(name, process);
        } else {
            self.others.get_or_insert(process);
        }
    }

    /// Records that a script receives the end of a session whose starts may be forgotten. From then on, no process has
    /// what the session needs.
    pub(super) fn note_end(&mut self, name: &str) {
        let known = self.by_name.get_mut(&self.hasher.hash_one(name));
        if let Some(process) = known.or(self.others.as_mut()) {
            *process = Weak::new();
        }
    }

    /// Returns whether a process lacks starts of a conversation that cannot be repeated.
    ///
    /// A forgotten session that starts again is prepared once every hook that hears starts has heard one: it may have
    /// other hooks for a resumed session than for a new one. If it is unknown whether the session was forgotten, the
    /// start of a new session is enough.
    pub(super) fn lacks(
        &self,
        name: &str,
        kept: Option<&Arc<ConversationStarts>>,
        connection: &Arc<Connection>,
    ) -> bool {
        if self.by_name.is_empty() {
            return false;
        }
        let known = self.by_name.get(&self.hasher.hash_one(name));
        let Some(process) = known.or(self.others.as_ref()) else {
            return false;
        };
        let is_prepared = kept.is_some_and(|kept| {
            kept.is_done_with(self.hooks.iter()) || (known.is_none() && kept.has_begun())
        });
        !is_prepared && !process.ptr_eq(&Arc::downgrade(connection))
    }
}
