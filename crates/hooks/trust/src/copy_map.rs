//! Replaces project files in a command and its variables with their approved copies.

use std::ops::Range;
use std::path::{Path, PathBuf};

use tenterhook_hookfile::HookAction;
use tenterhook_shell::plain_words;

use crate::copies::inside_copies;
use crate::named_files::NamedFiles;
use crate::named_path::{NamedPath, PathLocation};
use crate::project_roots::{ProjectRoots, shown};

/// Replaces paths of project files with the paths of their copies.
#[derive(Debug)]
pub(crate) struct CopyMap<'a> {
    pub(crate) roots: ProjectRoots<'a>,
    pub(crate) copies: &'a Path,
}

impl CopyMap<'_> {
    /// Returns the path of a file's copy. A file that was missing at the time of the approval has no
    /// copy, so the hook does not find it even if it appears in the project later.
    fn path(&self, named: &NamedPath) -> PathBuf {
        self.copies
            .join(inside_copies(&shown(&named.path, self.roots.project)))
    }

    /// Replaces the paths in an action and its variables.
    pub(crate) fn apply(
        &self,
        files: &NamedFiles,
        action: &mut HookAction,
        env: &mut [(String, String)],
    ) {
        let mut words = None;
        if let HookAction::Line { line, .. } = &*action {
            words = plain_words(line);
        }
        let mut is_rewritten = false;
        // Start at the end, so that earlier ranges stay valid.
        for named in files.words.iter().rev() {
            let path = self.path(named).to_string_lossy().into_owned();
            match (&named.location, &mut *action) {
                (PathLocation::Line(range), HookAction::Line { line, .. }) => {
                    line.replace_range(range.clone(), &quoted_if_needed(&path));
                }
                (PathLocation::Word(index, range), HookAction::Argv(argv)) => {
                    replace(argv.get_mut(*index), range, &path);
                }
                (PathLocation::Word(index, range), HookAction::Line { .. }) => {
                    let words = words.as_mut().and_then(|words| words.get_mut(*index));
                    replace(words, range, &path);
                    is_rewritten = true;
                }
                (PathLocation::Variable(index, range), _) => {
                    let value = env.get_mut(*index).map(|(_, value)| value);
                    replace(value, range, &path);
                }
                (PathLocation::Line(_) | PathLocation::Word(..) | PathLocation::Nowhere, _) => {}
            }
        }
        if let (HookAction::Line { line, .. }, Some(words), true) = (action, words, is_rewritten) {
            let words: Vec<String> = words.iter().map(|word| quoted_if_needed(word)).collect();
            *line = words.join(" ");
        }
    }
}

fn replace(text: Option<&mut String>, range: &Range<usize>, path: &str) {
    if let Some(text) = text {
        text.replace_range(range.clone(), path);
    }
}

/// Quotes a word for a shell unless the shell would read it unchanged.
fn quoted_if_needed(word: &str) -> String {
    let is_itself = plain_words(&format!("x {word}"))
        .is_some_and(|words| matches!(words.as_slice(), [_, only] if only == word));
    if is_itself {
        word.to_owned()
    } else {
        quoted(word)
    }
}

/// Quotes text for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
