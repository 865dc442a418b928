//! Finds project files that scripts mention but the approval does not cover.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::item::ApprovalItem;
use crate::path_words::tokens;
use crate::private_file::read_whole;
use crate::project_roots::{ProjectRoots, shown, within};
use crate::source_files::is_source;

/// The size of the largest script that is searched for names of other files, in bytes.
const MAX_SCANNED: usize = 256 << 10;
/// The largest number of notes about such names.
const MAX_MENTIONED: usize = 16;

/// Returns notes about project files that scripts mention and that the approval does not cover. A
/// script may read them by a path relative to its working directory. Scripts of installed packages are
/// not searched.
pub fn mentioned(item: &ApprovalItem, roots: ProjectRoots<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let own = item.files.iter();
    let mut scripts: Vec<(&Path, Arc<[u8]>)> = own
        .map(|file| (file.path.as_path(), Arc::clone(&file.bytes)))
        .collect();
    for file in &item.covered {
        let is_small = usize::try_from(file.size).is_ok_and(|size| size <= MAX_SCANNED);
        if is_source(&file.path) && file.link.is_none() && is_small && !file.is_of_package() {
            // A file that cannot be read now is not approved later.
            if let Ok((bytes, _)) = read_whole(&roots.project.join(&file.path)) {
                scripts.push((&file.path, bytes.into()));
            }
        }
    }
    let own = item.files.iter().map(|file| file.path.as_path());
    let covered = item.covered.iter().map(|file| file.path.as_path());
    let known: HashSet<&Path> = own.chain(covered).collect();
    for (path, bytes) in &scripts {
        let is_script = is_source(path) || bytes.starts_with(b"#!");
        let text = std::str::from_utf8(bytes).ok();
        let text = text.filter(|text| is_script && text.len() <= MAX_SCANNED);
        let mut found: Vec<&str> = tokens(text.unwrap_or_default()).collect();
        found.sort_unstable();
        found.dedup();
        let is_new = |token: &&str| {
            within(token, roots).is_some_and(|path| {
                let path = shown(&path, roots.project);
                roots.project.join(&path).is_file() && !known.contains(path.as_path())
            })
        };
        notes.extend(found.into_iter().filter(is_new).map(|token| {
            format!(
                "`{}` mentions `{token}`, which can change without a new approval",
                path.display()
            )
        }));
    }
    let more = notes.len().saturating_sub(MAX_MENTIONED);
    notes.truncate(MAX_MENTIONED);
    if more > 0 {
        notes.push(format!(
            "the scripts mention {more} more files of the project, which can change without a new approval"
        ));
    }
    notes
}
