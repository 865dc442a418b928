//! A session's tree as text: an entry a line, branches indented, the way to the leaf marked.

use std::collections::{HashMap, HashSet};
use std::iter;

use tenterhook::EntryId;
use tenterhook::event::SessionEntry;
use tenterhook_agent::Session;
use tenterhook_agent::session::MESSAGE;
use tenterhook_handlers::secret::Redactor;
use tenterhook_process::cut;

use crate::output::{style, styled};
use crate::safe::safe_line;

/// How many characters of an entry's text are shown.
const MOST_TEXT: usize = 72;

/// How much of an entry's text is looked at, in bytes.
const MAX_READ: usize = 16 << 10;

/// How many steps a branch is indented at most: deeper ones stand below each other.
const MOST_DEPTH: usize = 12;

/// What of a tree is still to be shown.
#[derive(Default)]
struct Rest<'a> {
    children: HashMap<Option<&'a EntryId>, Vec<&'a SessionEntry>>,
    /// Entries with their depths, the next one last.
    next: Vec<(&'a SessionEntry, usize)>,
}

impl<'a> Rest<'a> {
    fn of(session: &'a Session) -> Self {
        let mut rest = Self::default();
        for entry in session.tree() {
            let parent = entry.parent_id.as_ref();
            rest.children.entry(parent).or_default().push(entry);
        }
        rest.add(None, 0);
        rest
    }

    /// Adds the children of an entry: the first goes on below it, the others follow, a step further in.
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

impl<'a> Iterator for Rest<'a> {
    type Item = (&'a SessionEntry, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, depth) = self.next.pop()?;
        self.add(Some(&entry.id), depth);
        Some((entry, depth))
    }
}

/// Returns the lines of a tree.
pub(crate) fn lines(session: &Session) -> Vec<String> {
    let labels = session.labels();
    let path: HashSet<&EntryId> = session.entries().iter().map(|entry| &entry.id).collect();
    let lines: Vec<String> = Rest::of(session)
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
    let indent = 2 * depth.min(MOST_DEPTH);
    let id = styled(style::NAME, safe_line(entry.id.as_str()));
    let label = label.map(|label| styled(style::CARE, format!(" [{}]", safe_line(label))));
    let text = text_of(entry);
    let kind = kind_of(entry);
    let between = if text.is_empty() { "" } else { ": " };
    format!(
        "{mark} {:indent$}{id} {kind}{between}{text}{}",
        "",
        label.unwrap_or_default()
    )
}

/// Returns who spoke, or what else the entry is.
pub(crate) fn kind_of(entry: &SessionEntry) -> String {
    match &entry.message {
        Some(message) if entry.kind == MESSAGE => message.role.as_str().to_owned(),
        _ => safe_line(&entry.kind),
    }
}

/// Returns the beginning of what an entry says.
pub(crate) fn text_of(entry: &SessionEntry) -> String {
    let summary = || entry.data.as_ref()?.get("summary")?.as_str();
    let said = entry.message.as_ref().map(|message| {
        if message.content.trim().is_empty() {
            let names = message.tool_calls.iter().map(|call| call.name.as_str());
            names.collect::<Vec<_>>().join(", ")
        } else {
            message.content.clone()
        }
    });
    let text = summary().map(str::to_owned).or(said);
    beginning(&text.unwrap_or_default())
}

/// Returns the beginning of a text, as one line and without secrets.
pub(crate) fn beginning(text: &str) -> String {
    let read = cut::head(text, MAX_READ);
    let redacted = Redactor::shared().redact(read);
    let words: Vec<&str> = redacted.split_whitespace().collect();
    let line = words.join(" ");
    let mut short: String = line.chars().take(MOST_TEXT).collect();
    if short.len() < line.len() || read.len() < text.len() {
        short.push('…');
    }
    safe_line(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_has_no_part_of_a_secret() {
        let token = ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat();
        for length in 0..MOST_TEXT {
            let before = "-".repeat(length);
            let shown = beginning(&format!("{before} {token} and more"));
            assert!(!shown.contains(token.get(..8).unwrap()), "{shown}");
        }
    }
}
