//! Finds out from the text of scripts what they may read or load that the approval does not cover.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook_files::read_whole;

use crate::item::ApprovalItem;
use crate::project::{ProjectRoots, shown, within};
use crate::source_files::{is_source, tokens};

/// The size of the largest script that is searched, in bytes.
const MAX_SCANNED: usize = 256 << 10;
/// The largest number of notes about scripts.
const MAX_NOTES: usize = 16;
/// Texts of scripts that find out their working folder, or change where they load from.
const ELSEWHERE: [&str; 9] = [
    "cwd",
    "pwd",
    "PWD",
    "chdir",
    "PROJECT_DIR",
    "show-toplevel",
    "sys.path",
    "PYTHONPATH",
    "NODE_PATH",
];

/// Returns notes about scripts that may read or load files of the project that the approval does not cover: they
/// mention such a file, the working folder, or the path of modules. Scripts of installed packages are not searched.
pub fn mentioned(item: &ApprovalItem, roots: ProjectRoots<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for file in item.files.iter().chain(&item.covered) {
        let is_own = !file.bytes.is_empty();
        // A name without an extension says nothing.
        let may_be_script = is_source(&file.path) || file.path.extension().is_none();
        if !(may_be_script || file.bytes.starts_with(b"#!"))
            || file.link.is_some()
            || (file.is_of_package() && !is_own)
        {
            continue;
        }
        let (script, path) = (file.path.as_path(), file.path.display());
        if usize::try_from(file.size).map_or(true, |size| size > MAX_SCANNED) {
            notes.push(format!(
                "`{path}` is too large to be searched for files that can change without a new approval"
            ));
            continue;
        }
        let bytes = if is_own {
            Arc::clone(&file.bytes)
        } else {
            // A file that cannot be read now is not approved later.
            let read = read_whole(&roots.project.join(script));
            read.map_or_else(|_| Arc::default(), |(bytes, _)| bytes.into())
        };
        let text = String::from_utf8_lossy(&bytes);
        if let Some(found) = ELSEWHERE.iter().find(|found| text.contains(**found)) {
            notes.push(format!(
                "`{path}` contains `{found}`, so it may read or load files of the project, which can change without \
                 a new approval"
            ));
        }
        let mut found: Vec<&str> = tokens(&text).collect();
        found.sort_unstable();
        found.dedup();
        let is_of_project = |token: &&str| is_of_project(item, script, token, roots);
        notes.extend(found.into_iter().filter(is_of_project).map(|token| {
            format!("`{path}` mentions `{token}`, which can change without a new approval")
        }));
    }
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    if more > 0 {
        notes.push(format!(
            "there are {more} more such texts in the scripts of the hook"
        ));
    }
    notes
}

/// Returns whether a text of a script names something of the project that is not covered, or by a path that does not
/// start at the script: a file, or by a path with `/` a folder or what may later be in a folder.
fn is_of_project(item: &ApprovalItem, script: &Path, token: &str, roots: ProjectRoots<'_>) -> bool {
    let Some(path) = within(token, roots) else {
        return false;
    };
    let dir = roots.project.join(script);
    let dir = dir.parent().unwrap_or(roots.project);
    let is_next_to_it = dir.join(token).exists();
    if !path.is_file() {
        // A module is imported without the end of its name.
        let name = token.strip_prefix("./").unwrap_or(token);
        let begin = dir.join(name).into_os_string();
        let begin = begin.as_encoded_bytes();
        let begins_so = |path: &PathBuf| {
            let path = roots.project.join(path).into_os_string();
            path.as_encoded_bytes().starts_with(begin)
        };
        let is_path = token.contains('/') && token.chars().any(char::is_alphanumeric);
        let has_folder = path.is_dir() || path.parent().is_some_and(Path::is_dir);
        return is_path && has_folder && !is_next_to_it && !known(item).any(begins_so);
    }
    let path = shown(&path, roots.project);
    let is_known = known(item).any(|known| *known == path);
    !is_known || (token.contains('/') && !is_next_to_it)
}

fn known(item: &ApprovalItem) -> impl Iterator<Item = &PathBuf> {
    let own = item.files.iter().map(|file| &file.path);
    own.chain(item.covered.iter().map(|file| &file.path))
}
