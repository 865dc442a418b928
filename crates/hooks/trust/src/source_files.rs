//! Finds the files of a folder that a hook may load, and the parts of text that may be their paths.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_files::{FolderWalk, WalkError};

/// The file extensions of sources.
const SOURCES: [&str; 13] = [
    "py", "js", "mjs", "cjs", "ts", "mts", "cts", "sh", "bash", "rb", "pl", "lua", "php",
];
/// The largest number of files, and their total size in bytes, that are approved with a script.
const MAX_FOLDER: (usize, u64) = (256, 8 << 20);
/// The largest number of files and folders that are examined to find them.
const MAX_LOOKED_AT: usize = 16_384;

/// Returns the note that a folder has too many files to approve all of them.
pub fn too_many_files(shown: &Path) -> String {
    format!(
        "`{}` has too many files to approve all of them; those that a script loads can change without a new approval",
        shown.display()
    )
}

/// Returns the sources in a folder and the folders below it. `None` if there are too many.
pub fn sources_below(folder: &Path, is_wanted: impl Fn(&Path) -> bool) -> Option<Vec<PathBuf>> {
    let (most, most_bytes) = MAX_FOLDER;
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut walk = FolderWalk::below(folder, MAX_LOOKED_AT);
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(WalkError::TooMany) => return None,
            Err(WalkError::Unreadable { .. }) => continue,
        };
        let path = entry.path();
        // Links to folders are not followed, because they could form a cycle.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let Ok(metadata) = fs::metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            // Hooks do not load files from `.git`, which can be large.
            if !is_link && !path.ends_with(".git") {
                walk.enter(path);
            }
        } else if metadata.is_file() && is_source(&path) && is_wanted(&path) {
            bytes += metadata.len();
            found.push(path);
        }
        if found.len() > most || bytes > most_bytes {
            return None;
        }
    }
    found.sort();
    Some(found)
}

pub(crate) fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| SOURCES.contains(&extension))
        || path.file_name().is_some_and(|name| name == "package.json")
}

/// Returns every part of text that may be a path.
pub(crate) fn candidates(text: &str) -> impl Iterator<Item = &str> {
    std::iter::once(text)
        .chain(tokens(text).filter(move |token| *token != text))
        .flat_map(|token| std::iter::once(token).chain(attached(token)))
}

/// Returns whether a word names a file rather than being plain text: it has a `/`, or it ends like a script.
pub(crate) fn names_file(text: &str) -> bool {
    text.contains('/') || is_source(Path::new(text))
}

/// Returns whether a word that names no existing file is written like the path of one.
pub(crate) fn is_path_like(text: &str) -> bool {
    let has_name = text.chars().any(char::is_alphanumeric);
    has_name && names_file(text) && !text.starts_with(['-', '+']) && text.chars().all(is_of_path)
}

/// Returns what may be a path after the letter of an option, as in `-fevil.mk`, or after `@`, `+` or `%`.
fn attached(token: &str) -> impl Iterator<Item = &str> {
    let behind_letter = token.strip_prefix('-').and_then(|rest| {
        let mut letters = rest.chars();
        letters.next().map(|_| letters.as_str())
    });
    let behind_sign = token.strip_prefix(['@', '+', '%']);
    behind_letter
        .into_iter()
        .chain(behind_sign)
        .filter(|rest| !rest.is_empty())
}

/// Splits text into the parts that may be paths.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_of_path(c))
        .filter(|token| !token.is_empty())
}

fn is_of_path(character: char) -> bool {
    character.is_alphanumeric() || "_./@%+-~".contains(character)
}
