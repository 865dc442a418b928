//! The conversation: a tree of entries, of which one path is what the model is told.
//!
//! Entries are numbered in the order in which they are made, and an entry's parent is the leaf of that moment. The path
//! from the root to the leaf is the branch; what stands on other branches stays. A move of the leaf and a label are
//! entries of their own, beside the tree, so that a session is written by appending to it.
//!
//! A session that knows its file is kept there; any other is only memory.

mod file;
mod folder;
mod view;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, Message, Messages, Role, SessionId};
use thiserror::Error;

use self::file::SessionFile;
pub use self::file::{SessionError, Torn};
pub use self::folder::{About, Listed, Opened, Sessions};
use self::view::Note;
pub(crate) use self::view::SessionView;
use crate::model::noted_model;

/// The kind of an entry that is a message.
pub const MESSAGE: &str = "message";

/// The kind of an entry that is context from hooks when the session began; compaction keeps it.
pub const CONTEXT: &str = "context";

/// The kind of an entry that holds the summary of what stands before it.
pub const COMPACTION: &str = "compaction";

/// The kind of an entry that holds the summary of a branch that was left.
pub const BRANCH_SUMMARY: &str = "branch_summary";

/// The kind of an entry that is a command which the user ran. The model is told of it if it has a message.
pub const USER_BASH: &str = "user_bash";
/// The kind of an entry that says which model was chosen: `model` is its id, `name` what it was chosen by.
pub const MODEL_CHANGE: &str = "model_change";

/// The kind of an entry that says which thinking level was chosen.
pub const THINKING_LEVEL_CHANGE: &str = "thinking_level_change";

/// The kind of an entry that a script keeps for itself.
pub const CUSTOM: &str = "custom";

/// The kind of an entry that is no part of the tree: the leaf went where it says.
pub const LEAF: &str = "leaf";

/// The kind of an entry that is no part of the tree: an entry has the label that it says.
pub const LABEL: &str = "label";

/// The kind of an entry that is no part of the tree: the session has the name that it says.
pub const NAME: &str = "name";

/// What introduces a summary to the model.
const SUMMARY_INTRODUCTION: &str =
    "The conversation so far was replaced by this summary of it:\n\n";

/// What introduces the summary of a branch to the model.
const BRANCH_INTRODUCTION: &str =
    "The conversation went another way from here before. This is a summary of it:\n\n";

/// The result of a call whose own stayed on another branch.
const CUT_OFF: &str = "the conversation went on from here without the result of this call";

/// Bytes of text that make a token, roughly, where nobody counted.
const BYTES_PER_TOKEN: usize = 4;

/// One conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    id: SessionId,
    forked_from: Option<SessionId>,
    /// The path from the root to the leaf.
    branch: Vec<SessionEntry>,
    /// What is not on the path, by its number.
    aside: BTreeMap<u64, SessionEntry>,
    /// Where context stands on the branch.
    contexts: Vec<usize>,
    /// Where summaries stand on the branch.
    compactions: Vec<usize>,
    /// The number of the newest entry that was made, those that were taken back included.
    made: u64,
    shared: Shared,
    keeper: Keeper,
    view: Option<SessionView>,
}

/// The conversation as it is given away, made when it is first asked for and then kept as the session grows.
#[derive(Debug, Clone, Default)]
struct Shared(OnceLock<Messages>);

impl Shared {
    /// Notes an entry that was put on the branch.
    fn grow(&mut self, entry: &SessionEntry) {
        if [CONTEXT, COMPACTION].contains(&entry.kind.as_str()) {
            // These do not stand at the end of the conversation.
            self.0.take();
        } else if is_said(entry)
            && let (Some(messages), Some(message)) = (self.0.get_mut(), &entry.message)
        {
            messages.push(message.clone());
        }
    }
}

/// What a session gives away says nothing that its entries do not.
impl PartialEq for Shared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Says whether an entry is a part of what is said.
fn is_said(entry: &SessionEntry) -> bool {
    let is_said = [MESSAGE, BRANCH_SUMMARY, USER_BASH].contains(&entry.kind.as_str());
    is_said && entry.message.is_some()
}

/// Where a session is kept. A copy of a session is only memory: two writers would spoil the file.
#[derive(Debug, Default)]
struct Keeper {
    file: Option<Arc<Mutex<SessionFile>>>,
    /// The number of the newest entry that the file has. Whoever writes sets it, so that it is right even where nobody waited
    /// for the end of the writing.
    saved: Arc<AtomicU64>,
    /// The number of the newest entry that the file may have.
    sent: u64,
}

impl Keeper {
    fn saved(&self) -> u64 {
        self.saved.load(Ordering::Acquire)
    }
}

impl Clone for Keeper {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// A session is the same wherever it is kept.
impl PartialEq for Keeper {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// An entry that a session does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the session has no entry `{0}`")]
pub struct NoEntry(pub EntryId);

/// Why an entry cannot be the next one of a session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum Misplaced {
    #[error("has the id `{found}`, expected a number above {last}")]
    Id { found: EntryId, last: u64 },
    #[error("names {found} as its parent, expected {expected}, the leaf")]
    Parent { found: String, expected: String },
    #[error("is about {0}, which is no entry above it")]
    Target(String),
}

/// Returns the number of an entry.
fn number(id: &EntryId) -> Option<u64> {
    id.as_str().parse().ok()
}

/// Says whether an entry is a part of the tree.
fn is_node(entry: &SessionEntry) -> bool {
    ![LEAF, LABEL, NAME].contains(&entry.kind.as_str())
}

/// Writes an id that there may not be.
fn named(id: Option<&EntryId>) -> String {
    id.map_or_else(|| "none".to_owned(), |id| format!("`{id}`"))
}

/// Returns the entry that a leaf or label is about.
fn target_of(entry: &SessionEntry) -> Option<EntryId> {
    Some(entry.data.as_ref()?.get("entry")?.as_str()?.into())
}

impl Session {
    /// Makes an empty session of that id.
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Returns the id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the session that this one was forked from.
    pub fn forked_from(&self) -> Option<&SessionId> {
        self.forked_from.as_ref()
    }

    /// Lets others see the session from now on.
    pub(crate) fn share(&mut self) -> SessionView {
        let view = SessionView::of(self);
        self.view = Some(view.clone());
        view
    }

    /// Stores what others added.
    pub(crate) fn store_notes(&mut self) {
        let notes = self.view.as_ref().map(SessionView::take_notes);
        for note in notes.unwrap_or_default() {
            match note {
                Note::Entry((kind, data)) => drop(self.add(kind, None, Some(data))),
                Note::Name(name) => self.note_aside(NAME, json!({ "name": name })),
                // A label of an entry that is not there labels nothing.
                Note::Label(entry, label) => drop(self.label(&entry, label.as_deref())),
            }
        }
    }

    /// Shows others what became of the entries.
    fn show(&self) {
        if let Some(view) = &self.view {
            view.show(&self.branch);
        }
    }

    /// Returns the entries from the root to the leaf; each but the first names the one before it as its parent.
    pub fn entries(&self) -> &[SessionEntry] {
        &self.branch
    }

    /// Returns the entries of all branches, oldest first.
    pub fn tree(&self) -> Vec<&SessionEntry> {
        self.since(0).filter(|entry| is_node(entry)).collect()
    }

    /// Returns the newest entry of the branch.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.branch.last().map(|entry| &entry.id)
    }

    /// Returns the entry of that id, on whatever branch.
    pub fn entry(&self, id: &EntryId) -> Option<&SessionEntry> {
        match self.position(id) {
            Some(position) => self.branch.get(position),
            None => self.aside.get(&number(id)?),
        }
        .filter(|entry| is_node(entry) && entry.id == *id)
    }

    /// Returns the labels of entries.
    pub fn labels(&self) -> BTreeMap<EntryId, String> {
        let mut labels = BTreeMap::new();
        for record in self.aside.values().filter(|entry| entry.kind == LABEL) {
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

    /// Returns the name, if the session has one.
    pub fn name(&self) -> Option<&str> {
        let newest = self.aside.values().rfind(|entry| entry.kind == NAME)?;
        let name = newest.data.as_ref()?.get("name")?.as_str()?;
        (!name.is_empty()).then_some(name)
    }

    /// Gives the session a name; an empty one takes it away. Says whether that is another one.
    pub(crate) fn set_name(&mut self, name: &str) -> bool {
        if self.name().unwrap_or_default() == name {
            return false;
        }
        self.note_aside(NAME, json!({ "name": name }));
        if let Some(view) = &self.view {
            view.show_name(name);
        }
        true
    }

    /// Returns all entries with a number above `number`, oldest first.
    fn since(&self, last: u64) -> impl Iterator<Item = &SessionEntry> {
        let start = self
            .branch
            .partition_point(|entry| number(&entry.id) <= Some(last));
        let mut branch = self.branch.iter().skip(start).peekable();
        let mut aside = self.aside.range(last.saturating_add(1)..).peekable();
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

    /// Returns where an entry stands on the branch.
    fn position(&self, id: &EntryId) -> Option<usize> {
        let wanted = number(id)?;
        self.branch
            .binary_search_by_key(&Some(wanted), |entry| number(&entry.id))
            .ok()
    }

    /// Returns the newest entry that both the branch and the path to `id` have.
    pub(crate) fn common_ancestor(&self, id: &EntryId) -> Option<EntryId> {
        let mut id = id.clone();
        while self.position(&id).is_none() {
            id = self.entry(&id)?.parent_id.clone()?;
        }
        Some(id)
    }

    /// Lets the conversation go on after an entry, or from nothing. The branch that is left stays in the tree.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry; nothing is changed then.
    pub(crate) fn go_to(&mut self, leaf: Option<&EntryId>) -> Result<(), NoEntry> {
        if let Some(leaf) = leaf
            && self.entry(leaf).is_none()
        {
            return Err(NoEntry(leaf.clone()));
        }
        self.store_notes();
        self.move_leaf(leaf);
        self.note_aside(LEAF, json!({ "entry": leaf }));
        self.answer_open_calls();
        if let Some(view) = &self.view {
            view.show_anew(&self.branch);
        }
        Ok(())
    }

    /// Gives an entry a label, or takes it away.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry; nothing is changed then.
    pub(crate) fn label(&mut self, entry: &EntryId, label: Option<&str>) -> Result<(), NoEntry> {
        if self.entry(entry).is_none() {
            return Err(NoEntry(entry.clone()));
        }
        self.note_aside(LABEL, json!({ "entry": entry, "label": label }));
        Ok(())
    }

    /// Makes a session of that id from the path to an entry; `None` is no path.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry.
    pub(crate) fn fork(&self, id: SessionId, leaf: Option<&EntryId>) -> Result<Self, NoEntry> {
        let mut fork = Self {
            forked_from: Some(self.id.clone()),
            ..Self::new(id)
        };
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(id) = next {
            let entry = self.entry(id).ok_or_else(|| NoEntry(id.clone()))?;
            path.push(entry.clone());
            next = entry.parent_id.as_ref();
        }
        for entry in path.into_iter().rev() {
            fork.made = number(&entry.id).unwrap_or(fork.made);
            fork.grow(entry);
        }
        fork.answer_open_calls();
        Ok(fork)
    }

    /// Answers the calls of tools that a branch was cut off from the results of: no model takes a call without one.
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

    /// Takes an entry as it was written. It has to be the next one.
    fn take(&mut self, entry: SessionEntry) -> Result<(), Misplaced> {
        let misplaced = || Misplaced::Id {
            found: entry.id.clone(),
            last: self.made,
        };
        let number = number(&entry.id).ok_or_else(misplaced)?;
        if number <= self.made || entry.id.as_str().starts_with(['0', '+']) {
            return Err(misplaced());
        }
        if is_node(&entry) {
            if entry.parent_id.as_ref() != self.leaf() {
                return Err(Misplaced::Parent {
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
                return Err(Misplaced::Target(named(target.as_ref())));
            }
            if entry.kind == LEAF {
                self.move_leaf(target.as_ref());
            }
            self.aside.insert(number, entry);
        }
        self.made = number;
        Ok(())
    }

    /// Moves the leaf to an entry that there is, or to nothing.
    fn move_leaf(&mut self, leaf: Option<&EntryId>) {
        let mut path = Vec::new();
        let mut next = leaf.cloned();
        let kept = loop {
            let Some(id) = &next else { break 0 };
            if let Some(position) = self.position(id) {
                break position + 1;
            }
            let Some(entry) = number(id).and_then(|number| self.aside.remove(&number)) else {
                break 0;
            };
            next.clone_from(&entry.parent_id);
            path.push(entry);
        };
        while self.branch.len() > kept {
            self.put_aside();
        }
        for entry in path.into_iter().rev() {
            self.grow(entry);
        }
    }

    /// Takes the newest entry off the branch.
    fn shrink(&mut self) -> Option<SessionEntry> {
        let entry = self.branch.pop()?;
        self.shared.0.take();
        let end = self.branch.len();
        for marks in [&mut self.contexts, &mut self.compactions] {
            marks.pop_if(|mark| *mark == end);
        }
        Some(entry)
    }

    fn put_aside(&mut self) {
        if let Some(entry) = self.shrink()
            && let Some(number) = number(&entry.id)
        {
            self.aside.insert(number, entry);
        }
    }

    /// Puts an entry on the branch.
    fn grow(&mut self, entry: SessionEntry) {
        match entry.kind.as_str() {
            CONTEXT => self.contexts.push(self.branch.len()),
            COMPACTION => self.compactions.push(self.branch.len()),
            _ => {}
        }
        self.shared.grow(&entry);
        self.branch.push(entry);
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, message: Message) -> EntryId {
        self.append(MESSAGE, Some(message), None)
    }

    /// Appends what the model is not told.
    pub(crate) fn note(&mut self, kind: &str, data: Value) {
        self.append(kind, None, Some(data));
    }

    /// Returns the name by which the session's model was chosen last, if it ever was.
    pub fn model(&self) -> Option<String> {
        noted_model(&self.branch)
    }

    /// Appends context that stays for the whole session. What a resumed session holds already is not
    /// said twice.
    pub(crate) fn push_context(&mut self, text: String) {
        let message = Message::system(text);
        if !self.contexts().contains(&message) {
            self.append(CONTEXT, Some(message), None);
        }
    }

    /// Appends a command of the user; without a message the model is not told of it.
    pub(crate) fn push_run(&mut self, message: Option<Message>, data: Value) -> EntryId {
        self.append(USER_BASH, message, Some(data))
    }

    /// Takes entries of the branch back. What others added behind the first of them stays.
    pub(crate) fn take_back(&mut self, ids: &[EntryId]) {
        let Some(first) = ids.iter().filter_map(|id| self.position(id)).min() else {
            return;
        };
        let behind = self.branch.iter().skip(first);
        let kept: Vec<SessionEntry> = behind
            .filter(|entry| !ids.contains(&entry.id))
            .cloned()
            .collect();
        let sent = self.keeper.sent;
        let oldest = self.branch.get(first);
        if oldest.is_some_and(|entry| number(&entry.id) <= Some(sent)) {
            while self.branch.len() > first {
                self.put_aside();
            }
            let leaf = self.leaf().cloned();
            self.note_aside(LEAF, json!({ "entry": leaf }));
        } else {
            while self.branch.len() > first {
                self.forget_newest();
            }
        }
        for entry in kept {
            self.add(&entry.kind, entry.message, entry.data);
        }
        if let Some(view) = &self.view {
            view.show_anew(&self.branch);
        }
    }

    /// Drops the newest entry of the branch, which no file has, and its labels: a file with a label of nothing cannot be read.
    fn forget_newest(&mut self) {
        if let Some(entry) = self.shrink() {
            self.aside.retain(|_, record| {
                record.kind != LABEL || target_of(record).as_ref() != Some(&entry.id)
            });
        }
    }

    /// Puts a summary in the place of all messages before `kept`; `None` keeps no message.
    pub(crate) fn compact(
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

    /// Lets the conversation go on with the summary of a branch that it left, which ended with `left`.
    pub(crate) fn remember_branch(
        &mut self,
        summary: &str,
        left: Option<&EntryId>,
    ) -> SessionEntry {
        let message = Message::user(format!("{BRANCH_INTRODUCTION}{summary}"));
        let data = json!({ "summary": summary, "left": left });
        self.append(BRANCH_SUMMARY, Some(message), Some(data));
        self.branch.last().cloned().unwrap_or_default()
    }

    /// Lets the conversation go on with nothing but `summary`, as a message of the user, and what the user said since
    /// the model answered.
    pub(crate) fn swap(&mut self, summary: String, tokens_before: u64) {
        let newest = self.live().rev().filter_map(|entry| entry.message.clone());
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
        self.store_notes();
        let id = self.add(kind, message, data);
        self.show();
        id
    }

    fn add(&mut self, kind: &str, message: Option<Message>, data: Option<Value>) -> EntryId {
        let entry = SessionEntry {
            parent_id: self.leaf().cloned(),
            message,
            ..self.make(kind, data)
        };
        let id = entry.id.clone();
        self.grow(entry);
        id
    }

    /// Adds an entry that is no part of the tree.
    fn note_aside(&mut self, kind: &str, data: Value) {
        let entry = self.make(kind, Some(data));
        self.aside.insert(self.made, entry);
    }

    fn make(&mut self, kind: &str, data: Option<Value>) -> SessionEntry {
        self.made += 1;
        SessionEntry {
            id: EntryId::new(self.made.to_string()),
            time: Some(Timestamp::now()),
            kind: kind.to_owned(),
            data,
            ..SessionEntry::default()
        }
    }

    /// Returns the messages for the model: context of the session, the last summary, and what is newer.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = self.contexts();
        messages.extend(self.conversation());
        messages
    }

    /// Returns [`Session::messages`] without copying them for each who asks.
    pub(crate) fn shared_messages(&self) -> Messages {
        let shared = &self.shared.0;
        shared.get_or_init(|| self.messages().into()).clone()
    }

    /// Returns the conversation's size in tokens, estimated.
    pub(crate) fn estimated_tokens(&self) -> u64 {
        let contexts = marked(&self.branch, &self.contexts);
        let entries = contexts.chain(self.live());
        let tokens = estimate_tokens(entries.filter_map(|entry| entry.message.as_ref()));
        let summary = self.summary().map_or(0, str::len);
        tokens.saturating_add(u64::try_from(summary.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX))
    }

    /// Returns the context of the whole session.
    pub(crate) fn contexts(&self) -> Vec<Message> {
        let context = marked(&self.branch, &self.contexts);
        context.filter_map(|entry| entry.message.clone()).collect()
    }

    /// Returns the last summary as a message, and the messages that it does not stand for.
    pub(crate) fn conversation(&self) -> Vec<Message> {
        let summary = self
            .summary()
            .map(|summary| Message::user(format!("{SUMMARY_INTRODUCTION}{summary}")));
        let live = self.live().filter_map(|entry| entry.message.clone());
        summary.into_iter().chain(live).collect()
    }

    /// Returns the last summary.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.last_compaction()?
            .1
            .data
            .as_ref()?
            .get("summary")?
            .as_str()
    }

    /// Returns the message entries that no summary stands for.
    pub(crate) fn live(&self) -> impl DoubleEndedIterator<Item = &SessionEntry> {
        let start = self.last_compaction().map_or(0, |(position, compaction)| {
            let kept = compaction
                .data
                .as_ref()
                .and_then(|data| data.get("first_kept_entry_id")?.as_str());
            let kept = kept.and_then(|kept| self.position(&kept.into()));
            kept.unwrap_or(position)
        });
        let live = self.branch.get(start..).unwrap_or_default();
        live.iter().filter(|entry| is_said(entry))
    }

    fn last_compaction(&self) -> Option<(usize, &SessionEntry)> {
        let position = *self.compactions.last()?;
        Some((position, self.branch.get(position)?))
    }

    /// Returns the last message of that role.
    pub(crate) fn last_of(&self, role: Role) -> Option<&Message> {
        let entries = self.branch.iter().rev();
        let mut messages = entries
            .filter(|entry| entry.kind == MESSAGE)
            .filter_map(|entry| entry.message.as_ref());
        messages.find(|message| message.role == role)
    }

    /// Says whether the session is kept in a file, or will be.
    pub(crate) fn is_kept(&self) -> bool {
        self.keeper.file.is_some()
    }

    /// Returns how many times a model answered on the branch.
    pub(crate) fn answers(&self) -> u32 {
        let messages = self
            .branch
            .iter()
            .filter_map(|entry| entry.message.as_ref());
        let answers = messages.filter(|message| message.role == Role::Assistant);
        u32::try_from(answers.count()).unwrap_or(u32::MAX)
    }

    /// Keeps the session in that file from now on, which has its entries up to now if `is_saved`.
    fn keep(&mut self, file: SessionFile, is_saved: bool) {
        let saved = if is_saved { self.made } else { 0 };
        self.keeper = Keeper {
            file: Some(Arc::new(Mutex::new(file))),
            saved: Arc::new(AtomicU64::new(saved)),
            sent: saved,
        };
    }

    /// Writes what is new to the session's file and waits until it is on the disk. Says whether there was anything
    /// and a file: there is none before anybody said something.
    pub(crate) async fn save(&mut self) -> Result<bool, SessionError> {
        self.store_notes();
        let Some(file) = self.keeper.file.clone() else {
            return Ok(false);
        };
        let saved = self.keeper.saved();
        if saved == self.made || (saved == 0 && !self.has_words()) {
            return Ok(false);
        }
        let mut lines = Vec::new();
        let mut ends = Vec::new();
        for entry in self.since(saved) {
            file::write_line(&mut lines, entry);
            ends.extend(number(&entry.id).map(|number| (number, lines.len())));
        }
        let made = self.made;
        let counter = Arc::clone(&self.keeper.saved);
        if lines.is_empty() {
            // What was new was taken back.
            counter.store(made, Ordering::Release);
            return Ok(false);
        }
        self.keeper.sent = made;
        let writing = tokio::task::spawn_blocking(move || {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // A writing that nobody waited for may have come first.
            let saved = counter.load(Ordering::Acquire);
            let written = ends.iter().rev().find(|(number, _)| *number <= saved);
            let start = written.map_or(0, |(_, end)| *end);
            file.append(lines.get(start..).unwrap_or_default())?;
            counter.store(made.max(saved), Ordering::Release);
            Ok(())
        });
        writing.await.map_err(SessionError::interrupted)??;
        Ok(true)
    }

    /// Says whether somebody said something: what hooks said of the session is no reason to keep it.
    fn has_words(&self) -> bool {
        self.tree().iter().any(|entry| entry.kind == MESSAGE)
    }
}

fn marked<'a>(
    branch: &'a [SessionEntry],
    marks: &'a [usize],
) -> impl Iterator<Item = &'a SessionEntry> {
    marks.iter().filter_map(|mark| branch.get(*mark))
}

/// Estimates the tokens of messages from their length.
pub(crate) fn estimate_tokens<'a>(messages: impl IntoIterator<Item = &'a Message>) -> u64 {
    let bytes: usize = messages.into_iter().map(bytes_of).sum();
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

fn bytes_of(message: &Message) -> usize {
    let calls = message
        .tool_calls
        .iter()
        .map(|call| call.name.len() + json_bytes(&call.arguments));
    message.content.len() + calls.sum::<usize>()
}

/// Returns about how long a value is as JSON, without writing it.
pub(crate) fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_bytes(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let bytes = fields.map(|(key, value)| key.len() + 4 + json_bytes(value));
            2 + bytes.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_protocol::ToolCall;

    use super::*;

    fn texts(session: &Session) -> Vec<String> {
        session
            .messages()
            .into_iter()
            .map(|message| message.content)
            .collect()
    }

    #[test]
    fn entries_form_a_chain() {
        let mut session = Session::new("s".into());
        session.push_context("rules".to_owned());
        session.push(Message::user("hello"));
        let parents: Vec<_> = session
            .entries()
            .iter()
            .map(|entry| entry.parent_id.as_ref().map(EntryId::as_str))
            .collect();
        assert_eq!(parents, [None, Some("1")]);
    }

    #[test]
    fn a_summary_stands_for_older_messages_and_session_context_stays() {
        let mut session = Session::new("s".into());
        session.push_context("rules".to_owned());
        session.push(Message::user("one"));
        session.push(Message::assistant("two"));
        let kept = session.push(Message::user("three"));
        session.compact("short", Some(&kept), 9);
        session.push(Message::assistant("four"));
        let summary = format!("{SUMMARY_INTRODUCTION}short");
        assert_eq!(texts(&session), ["rules", &summary, "three", "four"]);
        session.compact("shorter", None, 9);
        assert_eq!(
            texts(&session),
            ["rules", &format!("{SUMMARY_INTRODUCTION}shorter")]
        );
    }

    #[test]
    fn a_swapped_conversation_is_the_summary_and_what_the_user_said_since() {
        let mut session = Session::new("s".into());
        session.push_context("rules".to_owned());
        session.push(Message::user("one"));
        session.compact("short", None, 9);
        session.push(Message::user("two"));
        session.push(Message::assistant("all of it"));
        session.push(Message::user("and then?"));
        session.swap("all of it".to_owned(), 9);
        assert_eq!(texts(&session), ["rules", "all of it", "and then?"]);
        assert_eq!(session.last_of(Role::User).unwrap().content, "and then?");
        session.push(Message::assistant("nothing"));
        assert_eq!(
            texts(&session),
            ["rules", "all of it", "and then?", "nothing"]
        );
    }

    #[test]
    fn what_is_taken_back_is_gone_and_its_id_is_not_given_again() {
        let mut session = Session::new("s".into());
        session.push(Message::user("one"));
        let second = session.push(Message::user("two"));
        session.take_back(std::slice::from_ref(&second));
        session.take_back(&[second, "99".into()]);
        assert_eq!(texts(&session), ["one"]);
        assert_eq!(session.push(Message::user("three")).as_str(), "3");
    }

    #[test]
    fn what_others_added_behind_what_is_taken_back_stays() {
        let mut session = Session::new("s".into());
        let view = session.share();
        session.push(Message::user("before"));
        let first = session.push(Message::user("one"));
        view.note("state", &json!(1));
        let second = session.push(Message::user("two"));
        session.take_back(&[first, second]);
        assert_eq!(texts(&session), ["before"]);
        let kinds = |entries: &[SessionEntry]| -> Vec<String> {
            entries.iter().map(|entry| entry.kind.clone()).collect()
        };
        assert_eq!(kinds(session.entries()), [MESSAGE, CUSTOM]);
        assert_eq!(session.entries()[1].parent_id, Some("1".into()));
        assert_eq!(view.with_entries(kinds), [MESSAGE, CUSTOM]);
    }

    #[test]
    fn tokens_are_estimated_by_length() {
        assert_eq!(
            estimate_tokens(&[Message::user("12345678"), Message::user("1")]),
            3
        );
    }

    #[test]
    fn what_is_given_away_is_the_conversation_however_the_session_changes() {
        let mut session = Session::new("s".into());
        let check = |session: &Session| {
            assert_eq!(*session.shared_messages(), *session.messages());
        };
        check(&session);
        let first = session.push(Message::user("one"));
        check(&session);
        let given = session.shared_messages();
        session.push(Message::assistant("two"));
        check(&session);
        assert_eq!(given.len(), 1);
        session.push_context("known".to_owned());
        check(&session);
        session.swap("a summary".to_owned(), 10);
        check(&session);
        let last = session.push(Message::user("three"));
        check(&session);
        session.take_back(std::slice::from_ref(&last));
        check(&session);
        session.go_to(Some(&first)).unwrap();
        check(&session);
        session.push(Message::user("another branch"));
        check(&session);
    }

    #[test]
    fn the_leaf_moves_in_the_tree_and_other_branches_stay() {
        let mut session = Session::new("s".into());
        session.push_context("rules".to_owned());
        let one = session.push(Message::user("one"));
        let two = session.push(Message::assistant("two"));
        session.compact("short", None, 9);
        session.go_to(Some(&one)).unwrap();
        assert_eq!(texts(&session), ["rules", "one"]);
        let other = session.push(Message::assistant("other"));
        assert_eq!(session.common_ancestor(&two), Some(one.clone()));
        let parents: Vec<_> = session
            .tree()
            .into_iter()
            .map(|entry| named(entry.parent_id.as_ref()))
            .collect();
        assert_eq!(parents, ["none", "`1`", "`2`", "`3`", "`2`"]);
        session.go_to(Some(&two)).unwrap();
        assert_eq!(texts(&session), ["rules", "one", "two"]);
        session.go_to(None).unwrap();
        assert_eq!(texts(&session), [""; 0]);
        session.go_to(Some(&other)).unwrap();
        assert_eq!(texts(&session), ["rules", "one", "other"]);
        assert_eq!(session.go_to(Some(&"99".into())), Err(NoEntry("99".into())));
    }

    #[test]
    fn a_branch_that_is_cut_off_from_results_of_tools_gets_others() {
        let mut session = Session::new("s".into());
        session.push(Message::user("one"));
        let call = |id: &str| ToolCall {
            id: id.into(),
            ..ToolCall::default()
        };
        let asked = session.push(Message {
            tool_calls: vec![call("a"), call("b")],
            ..Message::assistant("")
        });
        let first = session.push(Message::tool("a".into(), "done", false));
        let both = session.push(Message::tool("b".into(), "done", false));
        for (leaf, expected) in [
            (&asked, ["one", "", CUT_OFF, CUT_OFF]),
            (&first, ["one", "", "done", CUT_OFF]),
            (&both, ["one", "", "done", "done"]),
        ] {
            session.go_to(Some(leaf)).unwrap();
            assert_eq!(texts(&session), expected);
            let fork = session.fork("f".into(), Some(leaf)).unwrap();
            assert_eq!(texts(&fork), expected);
        }
    }

    #[test]
    fn a_fork_has_the_path_to_its_entry_and_an_id_of_its_own() {
        let mut session = Session::new("s".into());
        session.push(Message::user("one"));
        let two = session.push(Message::assistant("two"));
        session.push(Message::user("three"));
        let mut fork = session.fork("f".into(), Some(&two)).unwrap();
        assert_eq!(texts(&fork), ["one", "two"]);
        assert_eq!(fork.forked_from(), Some(session.id()));
        assert_eq!(fork.push(Message::user("four")).as_str(), "3");
        assert_eq!(texts(&session), ["one", "two", "three"]);
    }

    #[test]
    fn the_newest_label_of_an_entry_is_its_label() {
        let mut session = Session::new("s".into());
        let one = session.push(Message::user("one"));
        let two = session.push(Message::user("two"));
        session.label(&one, Some("first")).unwrap();
        session.label(&one, Some("start")).unwrap();
        session.label(&two, Some("gone")).unwrap();
        session.label(&two, None).unwrap();
        assert_eq!(
            session.labels(),
            BTreeMap::from([(one, "start".to_owned())])
        );
    }

    #[test]
    fn entries_are_taken_as_they_were_made_and_no_others() {
        let mut session = Session::new("s".into());
        let one = session.push(Message::user("one"));
        session.push(Message::assistant("two"));
        session.label(&one, Some("start")).unwrap();
        session.go_to(Some(&one)).unwrap();
        session.push(Message::assistant("other"));
        let mut read = Session::new("s".into());
        for entry in session.since(0) {
            read.take(entry.clone()).unwrap();
        }
        assert_eq!(read, session);
        let entry = |id: &str, parent: Option<&str>, kind: &str, target: Value| SessionEntry {
            id: id.into(),
            parent_id: parent.map(EntryId::from),
            kind: kind.to_owned(),
            data: Some(json!({ "entry": target })),
            ..SessionEntry::default()
        };
        for (entry, expected) in [
            (
                entry("x", Some("5"), MESSAGE, Value::Null),
                "has the id `x`, expected a number above 5",
            ),
            (
                entry("5", Some("5"), MESSAGE, Value::Null),
                "has the id `5`, expected a number above 5",
            ),
            (
                entry("06", Some("5"), MESSAGE, Value::Null),
                "has the id `06`, expected a number above 5",
            ),
            (
                entry("6", Some("2"), MESSAGE, Value::Null),
                "names `2` as its parent, expected `5`, the leaf",
            ),
            (
                entry("6", None, MESSAGE, Value::Null),
                "names none as its parent, expected `5`, the leaf",
            ),
            (
                entry("6", None, LEAF, "9".into()),
                "is about `9`, which is no entry above it",
            ),
            (
                entry("6", None, LEAF, "4".into()),
                "is about `4`, which is no entry above it",
            ),
            (
                entry("6", None, LABEL, Value::Null),
                "is about none, which is no entry above it",
            ),
        ] {
            assert_eq!(read.take(entry).unwrap_err().to_string(), expected);
        }
        assert_eq!(read, session);
    }
}
