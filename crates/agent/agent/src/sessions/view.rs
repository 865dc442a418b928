//! The handle with which other code reads a session and adds to it while its agent uses it.

use std::collections::BTreeMap;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, Message, SessionId};

use crate::sessions::entry::{UnknownEntry, number};
use crate::sessions::entry_kind::{CUSTOM, MESSAGE};

/// A session as other code sees it while its agent uses it.
///
/// Additions are stored together with the agent's next entry.
#[derive(Debug, Clone, Default)]
pub struct SessionView(Arc<Mutex<ViewState>>);

/// What a view shows.
#[derive(Debug, Default)]
pub(crate) struct ViewState {
    pub(crate) id: SessionId,
    pub(crate) forked_from: Option<SessionId>,
    pub(crate) file: Option<PathBuf>,
    /// The entries of the branch.
    pub(crate) entries: Vec<SessionEntry>,
    /// The entries of other branches.
    pub(crate) others: Vec<SessionEntry>,
    /// Additions that are not in the session yet.
    pub(crate) notes: Vec<Note>,
    pub(crate) name: Option<String>,
    pub(crate) labels: BTreeMap<EntryId, String>,
}

/// An addition to a session through a view.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    /// An entry of a kind, with its data.
    Entry(&'static str, Value),
    /// A message.
    Message(Message),
    /// The name of the session.
    Name(String),
    /// A label of an entry; `None` removes the label.
    Label(EntryId, Option<String>),
}

/// Comparing sessions ignores their views.
impl PartialEq for SessionView {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl SessionView {
    /// Creates a view that shows this.
    pub(crate) fn new(state: ViewState) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, ViewState> {
        self.0.lock()
    }

    /// Returns the session's id.
    pub fn id(&self) -> SessionId {
        self.state().id.clone()
    }

    /// Returns the session that this one was forked from.
    pub fn forked_from(&self) -> Option<SessionId> {
        self.state().forked_from.clone()
    }

    /// Returns the path of the session's file, if the session is stored. The file may not exist yet.
    pub fn file(&self) -> Option<PathBuf> {
        self.state().file.clone()
    }

    /// Returns the labels of entries, including labels that are not stored yet.
    pub fn labels(&self) -> BTreeMap<EntryId, String> {
        self.state().labels.clone()
    }

    /// Calls `see` with the entries of all branches, oldest first. Additions that are not stored yet come last.
    pub fn with_tree<T>(&self, see: impl FnOnce(&[SessionEntry]) -> T) -> T {
        let mut entries = self.state().others.clone();
        self.with_entries(|branch| entries.extend_from_slice(branch));
        // Additions have no number yet, so they come last.
        entries.sort_by_key(|entry| number(&entry.id).unwrap_or(u64::MAX));
        see(&entries)
    }

    /// Calls `see` with all entries of the branch. Additions that are not stored yet come last.
    pub fn with_entries<T>(&self, see: impl FnOnce(&[SessionEntry]) -> T) -> T {
        let mut state = self.state();
        let stored = state.entries.len();
        let notes = state.notes.clone().into_iter();
        let entries = notes.filter_map(|note| match note {
            Note::Entry(kind, data) => Some((kind, None, Some(data))),
            Note::Message(message) => Some((MESSAGE, Some(message), None)),
            Note::Name(_) | Note::Label(..) => None,
        });
        for (place, (kind, message, data)) in entries.enumerate() {
            let parent = state.entries.last().map(|entry| entry.id.clone());
            state.entries.push(SessionEntry {
                id: EntryId::new(format!("note-{}", place + 1)),
                parent_id: parent,
                kind: kind.to_owned(),
                message,
                data,
                ..SessionEntry::default()
            });
        }
        let seen = see(&state.entries);
        state.entries.truncate(stored);
        seen
    }

    /// Returns the entries of the branch, without additions that are not stored yet.
    pub(crate) fn stored_entries(&self) -> Vec<SessionEntry> {
        self.state().entries.clone()
    }

    /// Adds an entry with a script's own data. The model does not see it.
    pub fn add_custom(&self, kind: &str, data: &Value) {
        let note = json!({ "customType": kind, "data": data });
        self.add_entry(CUSTOM, note);
    }

    /// Adds an entry of this kind.
    pub fn add_entry(&self, kind: &'static str, data: Value) {
        self.state().notes.push(Note::Entry(kind, data));
    }

    /// Adds a message, which the model sees with its next call.
    pub fn add_message(&self, message: Message) {
        self.state().notes.push(Note::Message(message));
    }

    /// Returns the session's name.
    pub fn name(&self) -> Option<String> {
        self.state().name.clone()
    }

    /// Names the session. Returns whether the name changed.
    pub fn rename(&self, name: &str) -> bool {
        let mut state = self.state();
        if state.name.as_deref().unwrap_or_default() == name {
            return false;
        }
        state.name = Some(name.to_owned()).filter(|name| !name.is_empty());
        state.notes.push(Note::Name(name.to_owned()));
        true
    }

    /// Labels an entry; `None` removes its label.
    ///
    /// # Errors
    ///
    /// Fails if the session has no such entry. An entry that is not stored yet has no id that can be labelled.
    pub fn label(&self, entry: EntryId, label: Option<String>) -> Result<(), UnknownEntry> {
        {
            let state = self.state();
            let mut entries = state.entries.iter().chain(&state.others);
            if !entries.any(|known| known.id == entry) {
                return Err(UnknownEntry(entry));
            }
        }
        self.show_label(&entry, label.as_deref());
        self.state().notes.push(Note::Label(entry, label));
        Ok(())
    }

    /// Updates the visible label of an entry.
    pub(crate) fn show_label(&self, entry: &EntryId, label: Option<&str>) {
        let labels = &mut self.state().labels;
        match label {
            Some(label) => labels.insert(entry.clone(), label.to_owned()),
            None => labels.remove(entry),
        };
    }

    /// Updates the visible name.
    pub(crate) fn set_shown_name(&self, name: &str) {
        self.state().name = Some(name.to_owned()).filter(|name| !name.is_empty());
    }

    /// Returns the additions and removes them from the view.
    pub(crate) fn take_notes(&self) -> Vec<Note> {
        mem::take(&mut self.state().notes)
    }

    /// Updates the visible branch after it grew or was shortened.
    pub(crate) fn follow_branch(&self, branch: &[SessionEntry]) {
        let mut state = self.state();
        state.entries.truncate(branch.len());
        let stored = state.entries.len();
        state.entries.extend(branch.iter().skip(stored).cloned());
    }

    /// Shows another branch instead. `others` are the entries of all other branches.
    pub(crate) fn replace_entries(&self, branch: &[SessionEntry], others: Vec<SessionEntry>) {
        let mut state = self.state();
        state.entries = branch.to_vec();
        state.others = others;
    }
}
