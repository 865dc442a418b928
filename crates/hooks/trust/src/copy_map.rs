//! Replaces project files in a command and its variables with their approved copies.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenterhook_hookfile::HookAction;
use tenterhook_shell::plain_words;

use crate::project::shown;

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
    /// A part of a word in a list of arguments.
    Word(usize, Range<usize>),
    /// A part of the value of a variable.
    Variable(usize, Range<usize>),
    /// The file exists, and the approval covers it. Each of its names counts, also those that are not replaced.
    Nowhere,
}

/// Replaces the paths in an action and its variables with the paths of their copies. A file that was missing at the
/// time of the approval has no copy, so the hook does not find it even if it appears in the project later.
///
/// # Errors
/// Returns the reason if a word is not where the approval says. Otherwise the hook would use the file of the project.
pub(crate) fn replace_with_copies(
    named: &[NamedPath],
    project: &Path,
    copies: &Path,
    action: &mut HookAction,
    env: &mut [(String, String)],
) -> Result<(), String> {
    // Start at the end, so that earlier ranges stay valid.
    for word in named.iter().rev() {
        let path = copies.join(inside_copies(&shown(&word.path, project)));
        let mut path = path.to_string_lossy().into_owned();
        let (text, range) = match (&word.location, &mut *action) {
            (PathLocation::Nowhere, _) => continue,
            (PathLocation::Line(range), HookAction::Line { line, .. }) => {
                path = quoted_if_needed(&path);
                (Some(line), range)
            }
            (PathLocation::Word(index, range), HookAction::Argv(argv)) => {
                (argv.get_mut(*index), range)
            }
            (PathLocation::Variable(index, range), _) => {
                (env.get_mut(*index).map(|(_, value)| value), range)
            }
            (PathLocation::Line(range) | PathLocation::Word(_, range), _) => (None, range),
        };
        match text.filter(|text| text.get(range.clone()).is_some()) {
            Some(text) => text.replace_range(range.clone(), &path),
            None => {
                return Err(format!(
                    "the record of the approval is damaged: the hook does not name `{}` there",
                    word.path.display()
                ));
            }
        }
    }
    Ok(())
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
