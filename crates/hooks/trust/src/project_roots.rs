//! Where the files of a project are, and which words name one.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where the files of a project are.
#[derive(Debug, Clone, Copy)]
pub struct ProjectRoots<'a> {
    /// The folder from which relative paths start.
    pub dir: &'a Path,
    /// The folder of the project. Its files are named relative to it.
    pub project: &'a Path,
    /// The outermost folder that belongs to the project: the root of the repository.
    pub root: &'a Path,
}

/// Returns the path by which a file is named: relative to the project if the file is in it.
pub(crate) fn shown(path: &Path, project: &Path) -> PathBuf {
    path.strip_prefix(project).unwrap_or(path).to_owned()
}

/// Returns the full path that a word names, without `.` and `..`, if it is in the project.
pub(crate) fn within(text: &str, roots: ProjectRoots<'_>) -> Option<PathBuf> {
    if text.is_empty() {
        return None;
    }
    let joined = roots.dir.join(text);
    let goes_up = joined.components().any(|part| part == Component::ParentDir);
    // Only the file system knows what `..` means after a link, and whether a path outside of the
    // project leads back into it through a link.
    let is_elsewhere = !joined.starts_with(roots.root);
    let whole = if goes_up || is_elsewhere {
        without_links(joined)
    } else {
        joined
    };
    let mut path = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => path.push(part),
        }
    }
    path.starts_with(roots.root).then_some(path)
}

/// Returns a path without the links of the part that exists.
fn without_links(path: PathBuf) -> PathBuf {
    let existing = path.ancestors().find_map(|above| {
        let real = fs::canonicalize(above).ok()?;
        let below = path.strip_prefix(above).ok()?;
        // Joining an empty path would add a separator, and then the path of a file would name a folder.
        let is_whole = below.as_os_str().is_empty();
        Some(if is_whole { real } else { real.join(below) })
    });
    existing.unwrap_or(path)
}

/// Returns a path for a message: relative to the project if it is in it.
pub fn below(path: &Path, project: &Path) -> String {
    shown(path, project).display().to_string()
}
