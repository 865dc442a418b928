//! Finds the folders of a project.

use std::path::Path;

use tenterhook_hookfile::link::dead_link;
use tenterhook_systems::SYSTEMS;
use tenterhook_trust::{Project, repository_root, resolved};

/// Returns the paths that make a folder a project with hooks. Approved hooks are found even without them.
fn marks() -> impl Iterator<Item = &'static str> {
    SYSTEMS
        .iter()
        .flat_map(|system| system.project_marks)
        .copied()
}

/// Returns every folder with hooks, from the root of the repository down to `start`. Without a
/// repository, only `start` is considered.
///
/// Inner folders add hooks and never remove any, so that nothing in a repository can hide its guards.
pub(crate) fn project_folders(start: &Path) -> Vec<Project> {
    let start = resolved(start);
    let root = repository_root(&start).unwrap_or(&start);
    let within = start.ancestors().filter(|dir| dir.starts_with(root));
    let mut found: Vec<Project> = within
        .filter(|dir| marks().any(|name| is_mark(&dir.join(name))))
        .map(|dir| Project {
            dir: dir.to_owned(),
            root: root.to_owned(),
        })
        .collect();
    found.reverse();
    found
}

/// Returns whether a path is a folder or a broken link. A broken link counts, so that it is reported
/// instead of silently hiding hooks.
fn is_mark(path: &Path) -> bool {
    path.is_dir() || dead_link(path).is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

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
        let folders = project_folders(start).into_iter();
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
}
