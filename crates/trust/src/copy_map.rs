//! Replaces project files in a command and its variables with their approved copies.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenterhook_hookfile::HookAction;
use tenterhook_shell::plain_words;

use crate::project::{ProjectRoots, shown};

/// A word that names a file.
///
/// An approval stores it, so that the hook can use the approved copy even if the file is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPath {
    /// The part of the hook that the path of the copy replaces.
    #[serde(rename = "place")]
    pub(crate) location: PathLocation,
    /// The full path of the file.
    pub path: PathBuf,
}

/// The position of a word in a hook. The approval stores these names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PathLocation {
    /// A part of a shell command line.
    Line(Range<usize>),
    /// A part of a word, in a list of arguments or in a plain command.
    Word(usize, Range<usize>),
    /// A part of the value of a variable.
    Variable(usize, Range<usize>),
    /// The file exists, and the approval covers it. Each of its names counts, also those that are not replaced.
    Nowhere,
}

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
        words: &[NamedPath],
        action: &mut HookAction,
        env: &mut [(String, String)],
    ) {
        let mut plain = None;
        if let HookAction::Line { line, .. } = &*action {
            plain = plain_words(line);
        }
        let mut is_rewritten = false;
        // Start at the end, so that earlier ranges stay valid.
        for named in words.iter().rev() {
            let path = self.path(named).to_string_lossy().into_owned();
            match (&named.location, &mut *action) {
                (PathLocation::Line(range), HookAction::Line { line, .. }) => {
                    line.replace_range(range.clone(), &quoted_if_needed(&path));
                }
                (PathLocation::Word(index, range), HookAction::Argv(argv)) => {
                    replace(argv.get_mut(*index), range, &path);
                }
                (PathLocation::Word(index, range), HookAction::Line { .. }) => {
                    let word = plain.as_mut().and_then(|words| words.get_mut(*index));
                    replace(word, range, &path);
                    is_rewritten = true;
                }
                (PathLocation::Variable(index, range), _) => {
                    let value = env.get_mut(*index).map(|(_, value)| value);
                    replace(value, range, &path);
                }
                (PathLocation::Line(_) | PathLocation::Word(..) | PathLocation::Nowhere, _) => {}
            }
        }
        if let (HookAction::Line { line, .. }, Some(words), true) = (action, plain, is_rewritten) {
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

/// Returns the relative path of a file's copy. `..` and `/` become folder names of their own, so that no
/// path leads out of the copies.
pub fn inside_copies(path: &Path) -> PathBuf {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some("_parent".as_ref()),
            Component::RootDir => Some("_root".as_ref()),
            Component::Prefix(_) | Component::CurDir => None,
        })
        .collect()
}
