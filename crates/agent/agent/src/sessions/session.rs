//! The conversation: a tree of entries, of which the model sees one path.
//!
//! Entries are numbered in order of creation, and an entry's parent is the leaf at that time. The path from the root to
//! the leaf is the branch. Entries of other branches stay in the tree. Moves of the leaf and labels are records outside
//! the tree, so a session can be stored by only appending to its file.
//!
//! This file reads a session. `branch` changes it, `conversation` builds the messages for a model, and `storage` saves
//! it.

mod branch;
mod conversation;
mod copy;
mod storage;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, SessionId};

use crate::sessions::entry::{is_node, number, target_of};
use crate::sessions::entry_kind::{LABEL, MESSAGE, NAME};
use crate::sessions::message_cache::MessageCache;
use crate::sessions::selection::RecordedSelection;
use crate::sessions::storage::Storage;
use crate::sessions::view::{Note, SessionView, ViewState};

/// One conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    id: SessionId,
    forked_from: Option<SessionId>,
    /// The path from the root to the leaf.
    branch: Vec<SessionEntry>,
    /// Entries that are not on the branch, and records, by number.
    off_branch: BTreeMap<u64, SessionEntry>,
    /// Positions of context entries on the branch.
    contexts: Vec<usize>,
    /// Positions of compaction entries on the branch.
    compactions: Vec<usize>,
    /// The number of the newest entry, including entries that were taken back.
    last_number: u64,
    cache: MessageCache,
    storage: Storage,
    view: Option<SessionView>,
}

impl Session {
    /// Creates an empty session with this id.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Creates the empty session to which the entries of a file are added.
    pub(crate) fn stored(id: SessionId, forked_from: Option<SessionId>) -> Self {
        Self {
            forked_from,
            ..Self::new(id)
        }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the session that this one was forked from.
    pub fn forked_from(&self) -> Option<&SessionId> {
        self.forked_from.as_ref()
    }

    /// Returns a view with which other code can read the session and add to it.
    pub fn share(&mut self) -> SessionView {
        let view = SessionView::new(ViewState {
            id: self.id.clone(),
            forked_from: self.forked_from.clone(),
            file: self.file(),
            entries: self.branch.clone(),
            others: self.entries_off_branch(),
            name: self.name().map(str::to_owned),
            labels: self.labels(),
            ..ViewState::default()
        });
        self.view = Some(view.clone());
        view
    }

    /// Adds the entries that were added through the view.
    pub fn add_notes(&mut self) {
        let notes = self.view.as_ref().map(SessionView::take_notes);
        let notes = notes.unwrap_or_default();
        if notes.is_empty() {
            return;
        }
        for note in notes {
            match note {
                Note::Entry(kind, data) => drop(self.add(kind, None, Some(data))),
                Note::Message(message) => drop(self.add(MESSAGE, Some(message), None)),
                Note::Name(name) => self.add_record(NAME, json!({ "name": name })),
                // A label of an unknown entry is ignored.
                Note::Label(entry, label) => drop(self.label(&entry, label.as_deref())),
            }
        }
        self.update_view();
    }

    /// Updates the view with the current branch.
    fn update_view(&self) {
        if let Some(view) = &self.view {
            view.follow_branch(&self.branch);
        }
    }

    /// Returns the entries from the root to the leaf. Each names the previous one as its parent.
    pub fn entries(&self) -> &[SessionEntry] {
        &self.branch
    }

    /// Returns the entries of all branches, oldest first.
    pub fn tree(&self) -> Vec<&SessionEntry> {
        self.since(0).filter(|entry| is_node(entry)).collect()
    }

    /// Returns the id of the newest entry of the branch.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.branch.last().map(|entry| &entry.id)
    }

    /// Returns the entry with this id, on any branch.
    pub fn entry(&self, id: &EntryId) -> Option<&SessionEntry> {
        match self.position(id) {
            Some(position) => self.branch.get(position),
            None => self.off_branch.get(&number(id)?),
        }
        .filter(|entry| is_node(entry) && entry.id == *id)
    }

    /// Returns the current labels by entry.
    pub fn labels(&self) -> BTreeMap<EntryId, String> {
        let mut labels = BTreeMap::new();
        for record in self.off_branch.values().filter(|entry| entry.kind == LABEL) {
            let text = record.data.as_ref().and_then(|data| data.get("label"));
            let Some(target) = target_of(record) else {
                continue;
            };
            match text.and_then(Value::as_str) {
                Some(text) => labels.insert(target, text.to_owned()),
                None => labels.remove(&target),
            };
        }
        labels
    }

    /// Returns the session's name, if it has one.
    pub fn name(&self) -> Option<&str> {
        let newest = self.off_branch.values().rfind(|entry| entry.kind == NAME)?;
        let name = newest.data.as_ref()?.get("name")?.as_str()?;
        (!name.is_empty()).then_some(name)
    }

    /// Names the session; an empty name removes it. Returns whether the name changed.
    pub fn set_name(&mut self, name: &str) -> bool {
        if self.name().unwrap_or_default() == name {
            return false;
        }
        self.add_record(NAME, json!({ "name": name }));
        if let Some(view) = &self.view {
            view.set_shown_name(name);
        }
        true
    }

    /// Returns all entries with a number above `number`, oldest first.
    fn since(&self, last: u64) -> impl Iterator<Item = &SessionEntry> {
        let start = self
            .branch
            .partition_point(|entry| number(&entry.id) <= Some(last));
        let mut branch = self.branch.iter().skip(start).peekable();
        let mut aside = self.off_branch.range(last.saturating_add(1)..).peekable();
        std::iter::from_fn(move || {
            let on_branch = branch.peek().and_then(|entry| number(&entry.id));
            match (on_branch, aside.peek()) {
                (Some(first), Some((second, _))) if first > **second => {
                    aside.next().map(|(_, entry)| entry)
                }
                (Some(_), _) => branch.next(),
                (None, _) => aside.next().map(|(_, entry)| entry),
            }
        })
    }

    /// Returns the name of the model that was chosen last, if any was chosen.
    pub fn model(&self) -> Option<String> {
        RecordedSelection::of(&self.branch)
            .model
            .map(|model| model.name)
    }
}

#[cfg(test)]
mod tests;
