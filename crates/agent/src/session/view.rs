//! What others see of a session while its agent works with it.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, SessionId};

use super::{CUSTOM, Session};
use crate::model::Change;

/// What others see of a session while its agent works with it, and what they add to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionView(Arc<Mutex<Viewed>>);

#[derive(Debug, Default)]
struct Viewed {
    id: SessionId,
    entries: Vec<SessionEntry>,
    /// What was added and is not in the session yet.
    notes: Vec<Change>,
}

/// A session is the same whoever looks at it.
impl PartialEq for SessionView {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl SessionView {
    pub(super) fn of(session: &Session) -> Self {
        Self(Arc::new(Mutex::new(Viewed {
            id: session.id().clone(),
            entries: session.entries().to_vec(),
            notes: Vec::new(),
        })))
    }

    fn viewed(&self) -> MutexGuard<'_, Viewed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session's id.
    pub(crate) fn id(&self) -> SessionId {
        self.viewed().id.clone()
    }

    /// Shows all entries, with those that are still to be stored at the end.
    pub(crate) fn with_entries<T>(&self, see: impl FnOnce(&[SessionEntry]) -> T) -> T {
        let mut viewed = self.viewed();
        let stored = viewed.entries.len();
        for (place, (kind, note)) in viewed.notes.clone().into_iter().enumerate() {
            let parent = viewed.entries.last().map(|entry| entry.id.clone());
            viewed.entries.push(SessionEntry {
                id: EntryId::new(format!("note-{}", place + 1)),
                parent_id: parent,
                kind: kind.to_owned(),
                data: Some(note),
                ..SessionEntry::default()
            });
        }
        let seen = see(&viewed.entries);
        viewed.entries.truncate(stored);
        seen
    }

    /// Adds an entry for a script, which the model does not see.
    pub(crate) fn note(&self, kind: &str, data: &Value) {
        let note = json!({ "customType": kind, "data": data });
        self.add((CUSTOM, note));
    }

    /// Adds an entry of that kind.
    pub(crate) fn add(&self, note: Change) {
        self.viewed().notes.push(note);
    }

    /// Returns what was added, once.
    pub(super) fn take_notes(&self) -> Vec<Change> {
        mem::take(&mut self.viewed().notes)
    }

    /// Takes over how a branch grew, or lost its end.
    pub(super) fn show(&self, branch: &[SessionEntry]) {
        let mut viewed = self.viewed();
        viewed.entries.truncate(branch.len());
        let stored = viewed.entries.len();
        viewed.entries.extend(branch.iter().skip(stored).cloned());
    }

    /// Takes another branch.
    pub(super) fn show_anew(&self, branch: &[SessionEntry]) {
        self.viewed().entries = branch.to_vec();
    }
}
