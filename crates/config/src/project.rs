//! Which folders are a project's.

use std::fs;
use std::path::{Path, PathBuf};

use crate::link::dead_link;

/// The folder of a project that has its hooks.
pub(crate) const TENTERHOOK: &str = ".tenterhook";
/// The folder of a project, or of a home, that has kodelet's hooks.
pub(crate) const KODELET: &str = ".kodelet";

/// The folder of a project that has Operator's hooks, and of a home that has its profiles.
pub(crate) const OPERATOR: &str = ".operator";
/// The folder of a project that has morphix's hooks for every workspace.
pub(crate) const MORPHIX: &str = "core/hooks";
/// The folder of a project that has morphix's workspaces.
pub(crate) const WORKSPACES: &str = "workspaces";

/// The folder of a project, or of a home, that has pi's extensions.
pub(crate) const PI: &str = ".pi";

/// What makes a folder a project that brings hooks. Hooks that were approved are found without it.
const MARKS: [&str; 6] = [TENTERHOOK, KODELET, OPERATOR, PI, MORPHIX, WORKSPACES];

/// A folder of a project that brings hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The folder that has `.tenterhook`, `.kodelet` or another one with hooks, without symbolic links. Approvals are for it.
    pub dir: PathBuf,
    /// The root of its repository; without a repository the folder itself.
    pub root: PathBuf,
}

impl Project {
    /// Returns the project of a folder: what a hook file of it may name.
    pub fn of(dir: &Path) -> Self {
        let dir = whole(dir);
        let root = repository(&dir).unwrap_or(&dir).to_owned();
        Self { dir, root }
    }

    /// Returns every folder that brings hooks, from the root of the repository down to `start`. Outside of a repository
    /// that is `start` alone.
    ///
    /// Folders further in add hooks and take none away, so that nothing below a repository can hide its guards.
    pub fn folders(start: &Path) -> Vec<Self> {
        let start = whole(start);
        let root = repository(&start).unwrap_or(&start);
        let within = start.ancestors().filter(|dir| dir.starts_with(root));
        let mut found: Vec<Self> = within
            .filter(|dir| MARKS.iter().any(|name| is_mark(&dir.join(name))))
            .map(|dir| Self {
                dir: dir.to_owned(),
                root: root.to_owned(),
            })
            .collect();
        found.reverse();
        found
    }

    /// Returns the project that a hook file belongs to, and the file's path in it.
    pub(crate) fn of_file(path: &Path) -> (Self, PathBuf) {
        // A link in the place of the dotted folder makes no other project of it.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let folder = path
            .ancestors()
            .find(|dir| dir.file_name().is_some_and(|name| name == TENTERHOOK))
            .unwrap_or(&path);
        let dir = folder.parent().unwrap_or(folder);
        let below = path.strip_prefix(dir).unwrap_or(&path).to_owned();
        (Self::of(dir), below)
    }
}

/// Says whether a folder is there, or a symbolic link that should lead to one: hooks that cannot be found are reported.
fn is_mark(path: &Path) -> bool {
    path.is_dir() || dead_link(path).is_some()
}

fn repository(start: &Path) -> Option<&Path> {
    start.ancestors().find(|dir| dir.join(".git").exists())
}

fn whole(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(dirs: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(home.path()).unwrap();
        for dir in dirs {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        (home, root)
    }

    fn dirs(start: &Path) -> Vec<PathBuf> {
        let folders = Project::folders(start).into_iter();
        folders.map(|project| project.dir).collect()
    }

    #[test]
    fn folders_are_those_of_the_repository_outermost_first() {
        let (_home, root) = tree(&[
            ".tenterhook",
            "repo/.git",
            "repo/.kodelet",
            "repo/a/.tenterhook",
            "repo/a/b",
        ]);
        let (repo, inner) = (root.join("repo"), root.join("repo/a"));
        assert_eq!(dirs(&root.join("repo/a/b")), [repo.clone(), inner]);
        assert_eq!(dirs(&repo), [repo.as_path()]);
        assert!(dirs(&root.join("nowhere")).is_empty());
    }

    #[test]
    fn outside_of_a_repository_only_the_folder_itself_counts() {
        let (_home, root) = tree(&[".tenterhook", "a/b", "a/.tenterhook"]);
        assert_eq!(dirs(&root.join("a")), [root.join("a")]);
        assert!(dirs(&root.join("a/b")).is_empty());
    }

    #[test]
    fn a_hook_file_belongs_to_the_folder_around_the_dotted_one() {
        let (_home, root) = tree(&["p/.git", "p/.tenterhook/hooks.d", "p/other"]);
        let project = |path: &str| Project::of_file(&root.join(path)).0.dir;
        assert_eq!(project("p/.tenterhook/hooks.yaml"), root.join("p"));
        assert_eq!(project("p/.tenterhook/hooks.d"), root.join("p"));
        assert_eq!(project("p/other"), root.join("p"));
    }
}
