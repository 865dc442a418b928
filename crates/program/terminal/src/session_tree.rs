//! A session's tree as text: one entry per line, branches indented, the path to the leaf marked.

use std::collections::{HashMap, HashSet};
use std::iter;

use serde_json::Value;
use tenterhook_agent::Session;
use tenterhook_agent::sessions::entry_kind::MESSAGE;
use tenterhook_engine::event::SessionEntry;
use tenterhook_engine::{EntryId, Message, message_extra};
use tenterhook_journal::Redactor;
use tenterhook_protocol::excerpt;

use crate::output::{style, styled};
use tenterhook_protocol::escape::escape_line;

/// The maximum number of characters of an entry's text that are shown.
const MAX_TEXT: usize = 72;

/// How much of an entry's text is read, in bytes.
const MAX_READ: usize = 16 << 10;

/// The maximum number of steps by which a branch is indented. Deeper branches have the same
/// indentation.
const MAX_DEPTH: usize = 12;

/// The entries of a tree that are still to be shown.
#[derive(Default)]
struct UnvisitedEntries<'a> {
    children: HashMap<Option<&'a EntryId>, Vec<&'a SessionEntry>>,
    /// Entries with their depths, the next one last.
    next: Vec<(&'a SessionEntry, usize)>,
}

impl<'a> UnvisitedEntries<'a> {
    fn of(session: &'a Session) -> Self {
        let mut rest = Self::default();
        for entry in session.tree() {
            let parent = entry.parent_id.as_ref();
            rest.children.entry(parent).or_default().push(entry);
        }
        rest.add(None, 0);
        rest
    }

    /// Adds the children of an entry. The first continues the branch at the same depth; the others are one step
    /// deeper.
    fn add(&mut self, parent: Option<&'a EntryId>, depth: usize) {
        let children = self.children.remove(&parent).unwrap_or_default();
        let depths = iter::once(depth).chain(iter::repeat(depth + 1));
        let start = self.next.len();
        self.next.extend(children.into_iter().zip(depths));
        if let Some(added) = self.next.get_mut(start..) {
            added.reverse();
        }
    }
}

impl<'a> Iterator for UnvisitedEntries<'a> {
    type Item = (&'a SessionEntry, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, depth) = self.next.pop()?;
        self.add(Some(&entry.id), depth);
        Some((entry, depth))
    }
}

/// Returns the lines of a tree.
pub fn lines(session: &Session) -> Vec<String> {
    let labels = session.labels();
    let path: HashSet<&EntryId> = session.entries().iter().map(|entry| &entry.id).collect();
    let lines: Vec<String> = UnvisitedEntries::of(session)
        .map(|(entry, depth)| {
            let label = labels.get(&entry.id).map(String::as_str);
            line(entry, depth, path.contains(&entry.id), label)
        })
        .collect();
    if lines.is_empty() {
        vec!["The session has no entries.".to_owned()]
    } else {
        lines
    }
}

fn line(entry: &SessionEntry, depth: usize, is_on_path: bool, label: Option<&str>) -> String {
    let mark = if is_on_path { "●" } else { "○" };
    let indent = 2 * depth.min(MAX_DEPTH);
    let id = styled(style::NAME, escape_line(entry.id.as_str()));
    let label = label.map(|label| styled(style::CARE, format!(" [{}]", escape_line(label))));
    let text = text_of(entry);
    let kind = kind_of(entry);
    let between = if text.is_empty() { "" } else { ": " };
    format!(
        "{mark} {:indent$}{id} {kind}{between}{text}{}",
        "",
        label.unwrap_or_default()
    )
}

/// Returns what an extension calls its kind of message, if an extension sent the message.
fn extension_type(message: &Message) -> Option<&str> {
    let text = |key: &str| message.extra.get(key).and_then(Value::as_str);
    let is_extension = text(message_extra::KIND) == Some(message_extra::EXTENSION);
    let name = text(message_extra::CUSTOM_TYPE).filter(|name| !name.is_empty());
    is_extension.then(|| name.unwrap_or(message_extra::EXTENSION))
}

/// Returns whether an entry has a message that its extension wants to hide from the user.
pub fn is_hidden(entry: &SessionEntry) -> bool {
    let message = entry.message.as_ref();
    message.is_some_and(|message| {
        extension_type(message).is_some()
            && message.extra.get(message_extra::DISPLAY) != Some(&Value::Bool(true))
    })
}

/// Returns the role of a message, the name that an extension gives to its kind of messages, or the kind of another entry.
pub fn kind_of(entry: &SessionEntry) -> String {
    match &entry.message {
        Some(message) if entry.kind == MESSAGE => match extension_type(message) {
            Some(name) => escape_line(name),
            None => message.role.as_str().to_owned(),
        },
        _ => escape_line(&entry.kind),
    }
}

/// Returns the beginning of an entry's text. It is empty if the user should not see the text.
pub fn text_of(entry: &SessionEntry) -> String {
    if is_hidden(entry) {
        return String::new();
    }
    let summary = || entry.data.as_ref()?.get("summary")?.as_str();
    let message_text = entry.message.as_ref().map(|message| {
        if message.content.trim().is_empty() {
            let names = message.tool_calls.iter().map(|call| call.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        } else {
            message.content.clone()
        }
    });
    let text = summary().map(str::to_owned).or(message_text);
    beginning(&text.unwrap_or_default())
}

/// Returns the beginning of the text, as one line and without secrets.
pub fn beginning(text: &str) -> String {
    let read = excerpt::head(text, MAX_READ);
    let redacted = Redactor::shared().redact(read);
    let words: Vec<&str> = redacted.split_whitespace().collect();
    let line = words.join(" ");
    let mut short: String = line.chars().take(MAX_TEXT).collect();
    if short.len() < line.len() || read.len() < text.len() {
        short.push('…');
    }
    escape_line(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_has_no_part_of_a_secret() {
        let token = ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat();
        for length in 0..MAX_TEXT {
            let before = "-".repeat(length);
            let shown = beginning(&format!("{before} {token} and more"));
            assert!(!shown.contains(token.get(..8).unwrap()), "{shown}");
        }
    }
}
