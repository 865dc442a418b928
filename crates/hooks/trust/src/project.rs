//! The folder and the repository that an approval is for.

use std::fs;
use std::path::{Path, PathBuf};

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
