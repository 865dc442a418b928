//! The conversation: a chain of entries from which the messages for the model are made.
//!
//! A session is only memory. It serialises as its id and its entries, which is all there is to store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenterhook_protocol::event::SessionEntry;
use tenterhook_protocol::{EntryId, Message, Role, SessionId};

/// The kind of an entry that is a message.
pub const MESSAGE: &str = "message";

/// The kind of an entry that is context from hooks when the session began; compaction keeps it.
pub const CONTEXT: &str = "context";

/// The kind of an entry that holds the summary of what stands before it.
pub const COMPACTION: &str = "compaction";

/// The kind of an entry that a script keeps for itself.
pub const CUSTOM: &str = "custom";

/// What introduces a summary to the model.
const SUMMARY_INTRODUCTION: &str =
    "The conversation so far was replaced by this summary of it:\n\n";

/// Bytes of text that make a token, roughly, where nobody counted.
const BYTES_PER_TOKEN: usize = 4;

/// One conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    id: SessionId,
    entries: Vec<SessionEntry>,
    /// How many entries were made, those that were taken back included.
    made: u64,
    #[serde(skip)]
    view: Option<SessionView>,
}

/// What others see of a session while its agent works with it, and what they add to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionView(Arc<Mutex<Viewed>>);

#[derive(Debug, Default)]
struct Viewed {
    id: SessionId,
    entries: Vec<SessionEntry>,
    /// What was added and is not in the session yet.
    notes: Vec<Value>,
}

/// A session is the same whoever looks at it.
impl PartialEq for SessionView {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl SessionView {
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
        for (place, note) in viewed.notes.clone().into_iter().enumerate() {
            let parent = viewed.entries.last().map(|entry| entry.id.clone());
            viewed.entries.push(SessionEntry {
                id: EntryId::new(format!("note-{}", place + 1)),
                parent_id: parent,
                kind: CUSTOM.to_owned(),
                message: None,
                data: Some(note),
            });
        }
        let seen = see(&viewed.entries);
        viewed.entries.truncate(stored);
        seen
    }

    /// Adds an entry for a script, which the model does not see.
    pub(crate) fn note(&self, kind: &str, data: &Value) {
        let note = json!({ "customType": kind, "data": data });
        self.viewed().notes.push(note);
    }
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

    /// Lets others see the session from now on.
    pub(crate) fn share(&mut self) -> SessionView {
        let view = SessionView(Arc::new(Mutex::new(Viewed {
            id: self.id.clone(),
            entries: self.entries.clone(),
            notes: Vec::new(),
        })));
        self.view = Some(view.clone());
        view
    }

    /// Stores what others added.
    pub(crate) fn store_notes(&mut self) {
        let view = self.view.as_ref();
        let notes = view.map(|view| std::mem::take(&mut view.viewed().notes));
        for note in notes.unwrap_or_default() {
            self.add(CUSTOM, None, Some(note));
        }
    }

    /// Shows others what became of the entries.
    fn show(&self) {
        if let Some(view) = &self.view {
            let mut viewed = view.viewed();
            let stored = viewed.entries.len();
            viewed.entries.truncate(self.entries.len());
            viewed
                .entries
                .extend(self.entries.iter().skip(stored).cloned());
        }
    }

    /// Returns the entries, oldest first; each but the first names the one before it as its parent.
    pub fn entries(&self) -> &[SessionEntry] {
        &self.entries
    }

    /// Appends a message.
    pub(crate) fn push(&mut self, message: Message) -> EntryId {
        self.append(MESSAGE, Some(message), None)
    }

    /// Appends context that stays for the whole session. What a resumed session holds already is not
    /// said twice.
    pub(crate) fn push_context(&mut self, text: String) {
        let message = Message::system(text);
        if !self
            .entries
            .iter()
            .any(|entry| entry.kind == CONTEXT && entry.message.as_ref() == Some(&message))
        {
            self.append(CONTEXT, Some(message), None);
        }
    }

    /// Takes the newest entry back, if it is `id`.
    pub(crate) fn take_back(&mut self, id: &EntryId) {
        if self.entries.last().is_some_and(|entry| entry.id == *id) {
            self.entries.pop();
            self.show();
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
        self.entries.last().cloned().unwrap_or_default()
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
        self.made += 1;
        let id = EntryId::new(self.made.to_string());
        self.entries.push(SessionEntry {
            id: id.clone(),
            parent_id: self.entries.last().map(|entry| entry.id.clone()),
            kind: kind.to_owned(),
            message,
            data,
        });
        id
    }

    /// Returns the messages for the model: context of the session, the last summary, and what is newer.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages = self.contexts();
        messages.extend(self.conversation());
        messages
    }

    /// Returns the context of the whole session.
    pub(crate) fn contexts(&self) -> Vec<Message> {
        let context = self.entries.iter().filter(|entry| entry.kind == CONTEXT);
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
            let kept = kept.and_then(|kept| {
                self.entries
                    .iter()
                    .position(|entry| entry.id.as_str() == kept)
            });
            kept.unwrap_or(position)
        });
        self.entries
            .iter()
            .skip(start)
            .filter(|entry| entry.kind == MESSAGE)
    }

    fn last_compaction(&self) -> Option<(usize, &SessionEntry)> {
        self.entries
            .iter()
            .enumerate()
            .rfind(|(_, entry)| entry.kind == COMPACTION)
    }

    /// Returns the last message of that role.
    pub(crate) fn last_of(&self, role: Role) -> Option<&Message> {
        let messages = self
            .entries
            .iter()
            .rev()
            .filter_map(|entry| entry.message.as_ref());
        messages.into_iter().find(|message| message.role == role)
    }
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
        .map(|call| call.name.len() + call.arguments.to_string().len());
    message.content.len() + calls.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(session: &Session) -> Vec<String> {
        session
            .messages()
            .into_iter()
            .map(|message| message.content)
            .collect()
    }

    #[test]
    fn entries_form_a_chain_and_survive_json() {
        let mut session = Session::new("s".into());
        session.push_context("rules".to_owned());
        session.push(Message::user("hello"));
        let parents: Vec<_> = session
            .entries()
            .iter()
            .map(|entry| entry.parent_id.as_ref().map(EntryId::as_str))
            .collect();
        assert_eq!(parents, [None, Some("1")]);
        let json = serde_json::to_string(&session).unwrap();
        assert_eq!(serde_json::from_str::<Session>(&json).unwrap(), session);
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
    fn only_the_newest_entry_is_taken_back_and_its_id_is_not_given_again() {
        let mut session = Session::new("s".into());
        let first = session.push(Message::user("one"));
        let second = session.push(Message::user("two"));
        session.take_back(&first);
        session.take_back(&second);
        assert_eq!(texts(&session), ["one"]);
        assert_eq!(session.push(Message::user("three")).as_str(), "3");
    }

    #[test]
    fn tokens_are_estimated_by_length() {
        assert_eq!(
            estimate_tokens(&[Message::user("12345678"), Message::user("1")]),
            3
        );
    }
}
