//! The operations that change the branch: adding entries, moving the leaf, and taking entries back.

use jiff::Timestamp;
use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, Message, Role, SessionId, message_extra};

use super::Session;
use crate::sessions::entry::{MisplacedEntry, UnknownEntry, is_node, named, number, target_of};
use crate::sessions::entry_kind::{
    BRANCH_SUMMARY, COMPACTION, CONTEXT, LABEL, LEAF, MESSAGE, NAME, USER_BASH,
};

/// The text before the summary of a branch in a message for the model.
const BRANCH_INTRODUCTION: &str = "Earlier, the conversation continued differently from here. \
                                   This is a summary of that part:\n\n";

/// The result of a tool call whose own result is on another branch.
pub(super) const CUT_OFF: &str =
    "the conversation continued from here without the result of this call";

impl Session {
    /// Returns the position of an entry on the branch.
    pub(super) fn position(&self, id: &EntryId) -> Option<usize> {
        let wanted = number(id)?;
        self.branch
            .binary_search_by_key(&Some(wanted), |entry| number(&entry.id))
            .ok()
    }

    /// Returns the newest entry that is both on the branch and on the path to `id`.
    pub fn common_ancestor(&self, id: &EntryId) -> Option<EntryId> {
        let mut id = id.clone();
        while self.position(&id).is_none() {
            id = self.entry(&id)?.parent_id.clone()?;
        }
        Some(id)
    }

    /// Moves the leaf to an entry; `None` starts an empty branch. The previous branch stays in the tree.
    ///
    /// # Errors
    ///
    /// Fails if the entry does not exist. Nothing changes then.
    pub fn go_to(&mut self, leaf: Option<&EntryId>) -> Result<(), UnknownEntry> {
        if let Some(leaf) = leaf
            && self.entry(leaf).is_none()
        {
            return Err(UnknownEntry(leaf.clone()));
        }
        self.add_notes();
        self.move_leaf(leaf);
        self.add_record(LEAF, json!({ "entry": leaf }));
        self.answer_open_calls();
        if let Some(view) = &self.view {
            view.replace_entries(&self.branch, self.entries_off_branch());
        }
        Ok(())
    }

    /// Labels an entry; `None` removes its label.
    ///
    /// # Errors
    ///
    /// Fails if the entry does not exist. Nothing changes then.
    pub fn label(&mut self, entry: &EntryId, label: Option<&str>) -> Result<(), UnknownEntry> {
        if self.entry(entry).is_none() {
            return Err(UnknownEntry(entry.clone()));
        }
        self.add_record(LABEL, json!({ "entry": entry, "label": label }));
        if let Some(view) = &self.view {
            view.show_label(entry, label);
        }
        Ok(())
    }

    /// Creates a session with the given id from the path to an entry; `None` creates an empty one.
    ///
    /// # Errors
    ///
    /// Fails if the entry does not exist.
    pub fn fork(&self, id: SessionId, leaf: Option<&EntryId>) -> Result<Self, UnknownEntry> {
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(id) = next {
            let entry = self.entry(id).ok_or_else(|| UnknownEntry(id.clone()))?;
            path.push(entry.clone());
            next = entry.parent_id.as_ref();
        }
        let mut fork = Self::of_entries(id, &self.id, path.into_iter().rev());
        fork.answer_open_calls();
        Ok(fork)
    }

    /// Creates a session from the entries of a branch of another session.
    pub(crate) fn of_entries(
        id: SessionId,
        forked_from: &SessionId,
        entries: impl Iterator<Item = SessionEntry>,
    ) -> Self {
        let mut fork = Self {
            forked_from: Some(forked_from.clone()),
            ..Self::new(id)
        };
        for entry in entries {
            fork.last_number = number(&entry.id).unwrap_or(fork.last_number);
            fork.grow(entry);
        }
        fork
    }

    /// Adds a result to each tool call whose own result is on another branch. Models refuse a call without a result.
    fn answer_open_calls(&mut self) {
        let newest = self.branch.iter().rev();
        let mut results = Vec::new();
        let mut calls = Vec::new();
        for message in newest.filter_map(|entry| entry.message.as_ref()) {
            match message.role {
                Role::Tool => results.extend(message.tool_call_id.clone()),
                Role::Assistant => {
                    calls.clone_from(&message.tool_calls);
                    break;
                }
                Role::User => break,
                Role::System | _ => {}
            }
        }
        calls.retain(|call| !results.contains(&call.id));
        for call in calls {
            self.push(Message::tool(call.id, CUT_OFF, true));
        }
    }

    /// Appends an entry from a file. It must be valid as the next entry.
    pub(crate) fn append_stored(&mut self, entry: SessionEntry) -> Result<(), MisplacedEntry> {
        let misplaced = || MisplacedEntry::Id {
            found: entry.id.clone(),
            last: self.last_number,
        };
        let number = number(&entry.id).ok_or_else(misplaced)?;
        if number <= self.last_number || entry.id.as_str().starts_with(['0', '+']) {
            return Err(misplaced());
        }
        if is_node(&entry) {
            if entry.parent_id.as_ref() != self.leaf() {
                return Err(MisplacedEntry::Parent {
                    found: named(entry.parent_id.as_ref()),
                    expected: named(self.leaf()),
                });
            }
            self.grow(entry);
        } else {
            let target = target_of(&entry);
            let is_known = target.as_ref().is_some_and(|id| self.entry(id).is_some());
            let needs_none = entry.kind == NAME || (entry.kind == LEAF && target.is_none());
            if !is_known && !needs_none {
                return Err(MisplacedEntry::Target(named(target.as_ref())));
            }
            if entry.kind == LEAF {
                self.move_leaf(target.as_ref());
            }
            self.off_branch.insert(number, entry);
        }
        self.last_number = number;
        Ok(())
    }

    /// Moves the leaf to a known entry, or to an empty branch.
    fn move_leaf(&mut self, leaf: Option<&EntryId>) {
        let mut path = Vec::new();
        let mut next = leaf.cloned();
        let kept = loop {
            let Some(id) = &next else { break 0 };
            if let Some(position) = self.position(id) {
                break position + 1;
            }
            let Some(entry) = number(id).and_then(|number| self.off_branch.remove(&number)) else {
                break 0;
            };
            next.clone_from(&entry.parent_id);
            path.push(entry);
        };
        while self.branch.len() > kept {
            self.move_off_branch();
        }
        for entry in path.into_iter().rev() {
            self.grow(entry);
        }
    }

    /// Removes the newest entry from the branch.
    fn shrink(&mut self) -> Option<SessionEntry> {
        let entry = self.branch.pop()?;
        self.cache.clear();
        let end = self.branch.len();
        for marks in [&mut self.contexts, &mut self.compactions] {
            marks.pop_if(|mark| *mark == end);
        }
        Some(entry)
    }

    fn move_off_branch(&mut self) {
        if let Some(entry) = self.shrink()
            && let Some(number) = number(&entry.id)
        {
            self.off_branch.insert(number, entry);
        }
    }

    /// Adds an entry to the branch.
    fn grow(&mut self, entry: SessionEntry) {
        match entry.kind.as_str() {
            CONTEXT => self.contexts.push(self.branch.len()),
            COMPACTION => self.compactions.push(self.branch.len()),
            _ => {}
        }
        self.cache.grow(&entry);
        self.branch.push(entry);
    }

    /// Appends a message.
    pub fn push(&mut self, message: Message) -> EntryId {
        self.append(MESSAGE, Some(message), None)
    }

    /// Returns the entries of other branches, oldest first.
    pub(super) fn entries_off_branch(&self) -> Vec<SessionEntry> {
        let entries = self.off_branch.values().filter(|entry| is_node(entry));
        entries.cloned().collect()
    }

    /// Appends an entry that the model does not see.
    pub fn append_entry(&mut self, kind: &str, data: Value) {
        self.append(kind, None, Some(data));
    }

    /// Appends context for the whole session, unless the session already has it. So a resumed session does not get it
    /// twice.
    pub fn push_context(&mut self, text: String) {
        let message = Message::system(text);
        if !self.contexts().contains(&message) {
            self.append(CONTEXT, Some(message), None);
        }
    }

    /// Appends a command that the user ran. The model sees it only if it has a message.
    pub fn push_command(&mut self, message: Option<Message>, data: Value) -> EntryId {
        self.append(USER_BASH, message, Some(data))
    }

    /// Takes entries of the branch back. Entries that other code added in between stay.
    pub fn take_back(&mut self, ids: &[EntryId]) {
        let Some(first) = ids.iter().filter_map(|id| self.position(id)).min() else {
            return;
        };
        let behind = self.branch.iter().skip(first);
        let kept: Vec<SessionEntry> = behind
            .filter(|entry| !ids.contains(&entry.id))
            .cloned()
            .collect();
        let sent = self.storage.sent;
        let oldest = self.branch.get(first);
        if oldest.is_some_and(|entry| number(&entry.id) <= Some(sent)) {
            while self.branch.len() > first {
                self.move_off_branch();
            }
            let leaf = self.leaf().cloned();
            self.add_record(LEAF, json!({ "entry": leaf }));
        } else {
            while self.branch.len() > first {
                self.forget_newest();
            }
        }
        for entry in kept {
            self.add(&entry.kind, entry.message, entry.data);
        }
        if let Some(view) = &self.view {
            view.replace_entries(&self.branch, self.entries_off_branch());
        }
    }

    /// Drops the newest entry of the branch, which is in no file, and its labels. A file with a label of an unknown
    /// entry could not be read.
    fn forget_newest(&mut self) {
        if let Some(entry) = self.shrink() {
            self.off_branch.retain(|_, record| {
                record.kind != LABEL || target_of(record).as_ref() != Some(&entry.id)
            });
        }
    }

    /// Replaces all messages before `kept` with a summary. With `None`, no message is kept.
    pub fn compact(
        &mut self,
        summary: &str,
        kept: Option<&EntryId>,
        tokens_before: u64,
    ) -> SessionEntry {
        let data = json!({
            "summary": summary,
            "first_kept_entry_id": kept,
            "tokens_before": tokens_before,
        });
        self.append(COMPACTION, None, Some(data));
        self.branch.last().cloned().unwrap_or_default()
    }

    /// Appends the summary of a branch that the conversation left. `left` was the end of that branch.
    pub fn push_branch_summary(&mut self, summary: &str, left: Option<&EntryId>) -> SessionEntry {
        let from = self.leaf().map(EntryId::as_str);
        let message = Message::user(format!("{BRANCH_INTRODUCTION}{summary}"))
            .with_extra(message_extra::KIND, message_extra::BRANCH_SUMMARY)
            .with_extra(message_extra::SUMMARY, summary)
            .with_extra(message_extra::FROM_ENTRY, from);
        let data = json!({ "summary": summary, "left": left });
        self.append(BRANCH_SUMMARY, Some(message), Some(data));
        self.branch.last().cloned().unwrap_or_default()
    }

    /// Replaces the conversation with `summary` as a user message. The user messages since the last answer are kept.
    pub fn replace_conversation(&mut self, summary: String, tokens_before: u64) {
        let newest = self
            .live_entries()
            .rev()
            .filter_map(|entry| entry.message.clone());
        let mut since: Vec<Message> = newest
            .take_while(|message| message.role == Role::User)
            .collect();
        since.reverse();
        let kept = self.push(Message::user(summary));
        for message in since {
            self.push(message);
        }
        let data = json!({ "first_kept_entry_id": kept, "tokens_before": tokens_before });
        self.append(COMPACTION, None, Some(data));
    }

    fn append(&mut self, kind: &str, message: Option<Message>, data: Option<Value>) -> EntryId {
        self.add_notes();
        let id = self.add(kind, message, data);
        self.update_view();
        id
    }

    pub(super) fn add(
        &mut self,
        kind: &str,
        message: Option<Message>,
        data: Option<Value>,
    ) -> EntryId {
        let entry = SessionEntry {
            parent_id: self.leaf().cloned(),
            message,
            ..self.new_entry(kind, data)
        };
        let id = entry.id.clone();
        self.grow(entry);
        id
    }

    /// Adds a record outside the tree.
    pub(super) fn add_record(&mut self, kind: &str, data: Value) {
        let entry = self.new_entry(kind, Some(data));
        self.off_branch.insert(self.last_number, entry);
    }

    fn new_entry(&mut self, kind: &str, data: Option<Value>) -> SessionEntry {
        self.last_number += 1;
        SessionEntry {
            id: EntryId::new(self.last_number.to_string()),
            time: Some(Timestamp::now()),
            kind: kind.to_owned(),
            data,
            ..SessionEntry::default()
        }
    }
}
