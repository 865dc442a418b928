//! The folder and the repository that an approval is for, and which paths are in them.

use std::fs;
use std::path::{Component, Path, PathBuf};

use tenterhook_systems::SYSTEMS;

/// The name of the folder in which a project keeps its hooks.
pub const TENTERHOOK: &str = ".tenterhook";

/// A project folder with hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The folder that contains `.tenterhook` or another folder with hooks, without symbolic links.
    /// Approvals are for this folder.
    pub dir: PathBuf,
    /// The root of its repository. Without a repository, the folder itself.
    pub root: PathBuf,
}

impl Project {
    /// Returns the project of a folder.
    pub fn of(dir: &Path) -> Self {
        let dir = resolved(dir);
        let root = repository_root(&dir).unwrap_or(&dir).to_owned();
        Self { dir, root }
    }

    /// Returns the project that a hook file belongs to, and the file's path in it.
    pub fn of_file(path: &Path) -> (Self, PathBuf) {
        // Do not resolve links here: if `.tenterhook` is a link, the project is still its parent.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path
            .ancestors()
            .find(|dir| is_hook_folder(dir))
            .unwrap_or(&path);
        let dir = folder.parent().unwrap_or(folder);
        let below = path.strip_prefix(dir).unwrap_or(&path).to_owned();
        (Self::of(dir), below)
    }
}

/// Returns whether a path has the name of a folder in which projects keep hook files.
pub fn is_hook_folder(dir: &Path) -> bool {
    let settings = SYSTEMS.iter().filter_map(|system| system.settings);
    let mut places = settings.flat_map(|settings| settings.places);
    dir.file_name()
        .is_some_and(|name| name == TENTERHOOK || places.any(|place| name == *place))
}

/// Returns the root of the repository that a folder is in.
pub fn repository_root(start: &Path) -> Option<&Path> {
    start.ancestors().find(|dir| dir.join(".git").exists())
}

/// Returns the absolute path of a folder, without symbolic links if it exists.
pub fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

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
    let path = normalized(&whole);
    path.starts_with(roots.root).then_some(path)
}

/// Returns a path without `.` and `..`, as text. Links are not followed.
pub(crate) fn normalized(whole: &Path) -> PathBuf {
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
    path
}

/// Joins two paths. Unlike `Path::join`, adds no trailing `/` if the second one is empty, because the path of a file
/// would then name a folder.
pub(crate) fn plain_join(dir: &Path, below: &Path) -> PathBuf {
    dir.components().chain(below.components()).collect()
}

/// Returns a path without the links of the part that exists.
fn without_links(path: PathBuf) -> PathBuf {
    let existing = path.ancestors().find_map(|above| {
        let real = fs::canonicalize(above).ok()?;
        let below = path.strip_prefix(above).ok()?;
        Some(plain_join(&real, below))
    });
    existing.unwrap_or(path)
}

/// Returns a path for a message: relative to the project if it is in it.
pub fn below(path: &Path, project: &Path) -> String {
    shown(path, project).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_file_belongs_to_the_folder_around_the_dotted_one() {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for dir in ["p/.git", "p/.tenterhook/hooks.d", "p/other"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        let project = |path: &str| Project::of_file(&root.join(path)).0.dir;
        assert_eq!(project("p/.tenterhook/hooks.yaml"), root.join("p"));
        assert_eq!(project("p/.tenterhook/hooks.d"), root.join("p"));
        assert_eq!(project("p/other"), root.join("p"));
    }
}
