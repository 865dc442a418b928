//! Finds the files of a folder that a hook may load.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

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
    let (mut found, mut bytes, mut looked_at) = (Vec::new(), 0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            looked_at += 1;
            // Links to folders are not followed, because they could form a cycle.
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let Ok(metadata) = fs::metadata(&path) else {
                continue;
            };
            if metadata.is_dir() {
                // Hooks do not load files from `.git`, which can be large.
                if !is_link && !path.ends_with(".git") {
                    folders.push(path);
                }
            } else if metadata.is_file() && is_source(&path) && is_wanted(&path) {
                bytes += metadata.len();
                found.push(path);
            }
            if found.len() > most || bytes > most_bytes || looked_at > MAX_LOOKED_AT {
                return None;
            }
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
