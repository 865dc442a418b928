//! Completes lines: commands, their arguments, and paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use parking_lot::Mutex;
use reedline::{Completer, CompletionResult, CompletionStatus, Span, Suggestion};
use tenterhook_agent::SessionStore;

use crate::output::scrollback;
use tenterhook_protocol::escape::escape_line;

/// The maximum number of files that are read from a folder, and of suggestions.
const MAX: usize = 200;

/// A word that can complete a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionWord {
    /// The word itself.
    pub text: String,
    /// A description for people.
    pub about: String,
    /// The form of the arguments that may follow it, for people.
    pub form: String,
}

/// The words that can complete a line.
#[derive(Debug, Default)]
pub struct CompletionWords {
    /// The names of commands, without their slashes.
    pub commands: Vec<CompletionWord>,
    /// The entries of the session, newest first.
    pub entries: Vec<CompletionWord>,
    /// The sessions of the folder that the agent works in.
    pub sessions: Option<SessionStore>,
    /// The directory in which relative paths start.
    pub cwd: PathBuf,
}

impl CompletionWords {
    /// Finds a command by its name.
    pub(super) fn command(&self, name: &str) -> Option<&CompletionWord> {
        self.commands.iter().find(|word| word.text == name)
    }

    /// Returns the completions of the text before the cursor, and the position where they start.
    fn suggest(&self, before: &str) -> (usize, Vec<CompletionWord>) {
        let start = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(1, char::len_utf8)
        });
        let (line, word) = before.split_at_checked(start).unwrap_or(("", before));
        let command = line.trim().strip_prefix('/');
        match (word.strip_prefix('/'), command) {
            (Some(name), _) if line.is_empty() && !name.contains('/') => {
                (1, beginning(name, self.commands.iter().cloned()))
            }
            (_, Some("resume")) => (start, beginning(word, self.stored().into_iter())),
            (_, Some("tree" | "fork")) => (start, beginning(word, self.entries.iter().cloned())),
            _ => self.paths(start, word),
        }
    }

    fn stored(&self) -> Vec<CompletionWord> {
        let listed = self.sessions.as_ref().and_then(|it| it.list().ok());
        let listed = listed.into_iter().flatten().map(|session| CompletionWord {
            text: session.id.to_string(),
            about: session
                .overview
                .ok()
                .and_then(|about| about.first_message)
                .map(|text| escape_line(&text))
                .unwrap_or_default(),
            form: String::new(),
        });
        listed.collect()
    }

    /// Returns the files that match a word with a slash or after `@`.
    fn paths(&self, start: usize, word: &str) -> (usize, Vec<CompletionWord>) {
        let path = word.strip_prefix('@');
        let (start, path) = match path {
            Some(path) => (start + 1, path),
            None if word.contains('/') => (start, word),
            None => return (start, Vec::new()),
        };
        let (folder, name) = path
            .rsplit_once('/')
            .map_or(("", path), |(folder, name)| (folder, name));
        let looked_in = if path.starts_with('/') {
            Path::new("/").join(folder.trim_start_matches('/'))
        } else {
            self.cwd.join(folder)
        };
        let start = start + path.len() - name.len();
        let entries = std::fs::read_dir(looked_in).into_iter().flatten();
        let mut found: Vec<CompletionWord> = entries
            .take(MAX)
            .flatten()
            .filter_map(|entry| {
                let own = entry.file_name().into_string().ok()?;
                let is_meant =
                    own.starts_with(name) && (!own.starts_with('.') || name.starts_with('.'));
                let is_plain = !own.contains(|c: char| c.is_whitespace() || c.is_control());
                let slash = if entry.path().is_dir() { "/" } else { "" };
                (is_meant && is_plain).then(|| CompletionWord {
                    text: format!("{own}{slash}"),
                    about: String::new(),
                    form: String::new(),
                })
            })
            .collect();
        found.sort_by(|one, other| one.text.cmp(&other.text));
        (start, found)
    }
}

fn beginning(text: &str, words: impl Iterator<Item = CompletionWord>) -> Vec<CompletionWord> {
    words
        .filter(|word| word.text.starts_with(text))
        .take(MAX)
        .collect()
}

/// Completes lines. The editor also polls it regularly, and each poll passes the queued output to the editor.
pub(super) struct Completion {
    words: Arc<Mutex<CompletionWords>>,
    printer: SyncSender<String>,
    /// The lines that the editor has received and not printed yet.
    unprinted: Arc<Mutex<Vec<String>>>,
}

impl Completion {
    pub(super) fn new(words: Arc<Mutex<CompletionWords>>, printer: SyncSender<String>) -> Self {
        Self {
            words,
            printer,
            unprinted: Arc::default(),
        }
    }

    pub(super) fn unprinted(&self) -> Arc<Mutex<Vec<String>>> {
        Arc::clone(&self.unprinted)
    }
}

impl Completer for Completion {
    fn complete(&mut self, line: &str, position: usize) -> CompletionResult {
        let before = line.get(..position).unwrap_or(line);
        let words = self.words.lock();
        let (start, found) = words.suggest(before);
        let mut suggestions: Vec<Suggestion> = found
            .into_iter()
            .map(|word| Suggestion {
                span: Span {
                    start: start.min(position),
                    end: position,
                },
                append_whitespace: !word.text.ends_with('/'),
                value: word.text,
                description: (!word.about.is_empty()).then_some(word.about),
                ..Suggestion::default()
            })
            .collect();
        // Without suggestions, the menu of the editor would print `NO RECORDS FOUND`. It accepts a single suggestion at
        // once, so the word that is already there closes the menu.
        if suggestions.is_empty() {
            suggestions.push(Suggestion {
                span: Span {
                    start: position,
                    end: position,
                },
                ..Suggestion::default()
            });
        }
        CompletionResult::fresh(suggestions)
    }

    fn poll_completion(&mut self) -> CompletionStatus {
        // The editor prints its lines before it polls again, so the lines of the last poll are printed by now.
        let lines = scrollback::take_lines();
        for line in &lines {
            self.printer.try_send(line.clone()).ok();
        }
        *self.unprinted.lock() = lines;
        CompletionStatus::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> CompletionWord {
        CompletionWord {
            text: text.to_owned(),
            about: String::new(),
            form: String::new(),
        }
    }

    #[test]
    fn a_line_without_completions_gets_a_suggestion_that_changes_nothing() {
        let (printer, _printed) = std::sync::mpsc::sync_channel(1);
        let mut completion = Completion::new(Arc::default(), printer);
        let line = "nothing matches";
        let found = completion.complete(line, line.len());
        let [suggestion] = found.suggestions() else {
            panic!("{found:?}");
        };
        assert_eq!(suggestion.value, "");
        assert!(!suggestion.append_whitespace);
        assert_eq!(suggestion.span, Span::new(line.len(), line.len()));
    }

    #[test]
    fn commands_what_stands_behind_them_and_paths_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["src", "docs"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in ["src/main.rs", "src/my file", "setup", ".hidden"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let words = CompletionWords {
            commands: vec![word("tree"), word("fork"), word("compact")],
            entries: vec![word("e2"), word("e1")],
            sessions: None,
            cwd: folder.path().to_owned(),
        };
        let cases: [(&str, usize, &[&str]); 12] = [
            ("/", 1, &["tree", "fork", "compact"]),
            ("/t", 1, &["tree"]),
            ("/x", 1, &[]),
            ("/tree ", 6, &["e2", "e1"]),
            ("/fork e1", 6, &["e1"]),
            ("/compact ", 9, &[]),
            ("look at @s", 9, &["setup", "src/"]),
            ("look at @src/", 13, &["main.rs"]),
            ("look at ./d", 10, &["docs/"]),
            ("look at d", 8, &[]),
            ("@.h", 1, &[".hidden"]),
            ("ä\u{a0}@doc", 5, &["docs/"]),
        ];
        for (line, start, expected) in cases {
            let (at, found) = words.suggest(line);
            let found: Vec<&str> = found.iter().map(|word| word.text.as_str()).collect();
            assert_eq!((at, found.as_slice()), (start, expected), "{line}");
        }
    }
}
