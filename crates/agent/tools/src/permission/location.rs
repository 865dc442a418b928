//! Finds out where a path leads, with and without looking at the disk.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::link::{follow, has_other_links};

/// A path in a call, and the directory that relative paths start from.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) cwd: &'a Path,
}

impl Place<'_> {
    /// Returns the path's names according to its spelling alone: absolute, and relative to the session's directory.
    pub(super) fn spelled(&self) -> Vec<String> {
        let cwd = tidy(self.cwd);
        let absolute = tidy(&cwd.join(self.text));
        let relative = relative(&absolute, &cwd);
        names([Some(absolute), relative])
    }

    /// Returns the path's names with all links followed: absolute, and relative to the session's directory, which may
    /// itself be reached through a link. A path in a cycle of links has no names.
    pub(super) fn found(&self) -> Vec<String> {
        let Some(absolute) = follow(&self.cwd.join(self.text)) else {
            return Vec::new();
        };
        let relative = follow(self.cwd).and_then(|cwd| relative(&absolute, &cwd));
        let as_named = relative
            .as_ref()
            .map(|relative| tidy(&self.cwd.join(relative)));
        names([Some(absolute), relative, as_named])
    }
}

impl Place<'_> {
    /// Reports whether the path is a file with several hard links, so that its name does not identify the file.
    pub(super) fn has_other_links(&self) -> bool {
        fs::metadata(self.cwd.join(self.text)).is_ok_and(|found| has_other_links(&found))
    }
}

/// Follows the links in the fixed folders of a pattern for absolute paths. Returns `None` if it has no fixed folders.
pub(super) fn follow_pattern(pattern: &str, cwd: &Path) -> Option<String> {
    let (fixed, open) = match pattern.find(['*', '?']) {
        Some(wildcard) => {
            let folder = pattern.get(..wildcard)?.rfind('/');
            // Without a folder before the first wildcard, nothing in the pattern is fixed.
            pattern.split_at_checked(folder.filter(|end| *end > 0)?)?
        }
        None => (pattern, ""),
    };
    let followed = follow(&cwd.join(fixed))?;
    Some(format!("{}{open}", followed.to_string_lossy()))
}

/// Reports whether a path contains `..`.
pub(super) fn goes_up(text: &str) -> bool {
    Path::new(text)
        .components()
        .any(|part| part == Component::ParentDir)
}

fn names(paths: impl IntoIterator<Item = Option<PathBuf>>) -> Vec<String> {
    let paths = paths.into_iter().flatten();
    paths
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// Returns `path` relative to `base`, if it is inside. The base itself is `.`.
fn relative(path: &Path, base: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(base).ok()?;
    let is_base = inside.as_os_str().is_empty();
    Some(if is_base {
        PathBuf::from(".")
    } else {
        inside.to_path_buf()
    })
}

/// Removes `.` and `..` from a path without looking at the disk.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                tidied.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidied.push(part),
        }
    }
    tidied
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::*;

    #[test]
    fn the_fixed_folders_of_a_pattern_are_followed() {
        let dir = tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("alias")).unwrap();
        let expected = |rest: &str| Some(format!("{}/real{rest}", root.display()));
        for (pattern, rest) in [
            ("alias/*", "/*"),
            ("alias/a?/b", "/a?/b"),
            ("alias", ""),
            ("alias/a", "/a"),
        ] {
            assert_eq!(follow_pattern(pattern, &root), expected(rest), "{pattern}");
        }
        for pattern in ["alias*", "/a*", "*/b"] {
            assert_eq!(follow_pattern(pattern, &root), None, "{pattern}");
        }
    }

    #[test]
    fn a_place_has_its_names_in_the_session_whose_directory_is_a_link() {
        let dir = tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("work")).unwrap();
        let cwd = root.join("work");
        let place = |text| Place { text, cwd: &cwd };
        let name = |path: &str| root.join(path).to_str().unwrap().to_owned();
        let expected = [name("real/a"), "a".to_owned(), name("work/a")];
        assert_eq!(place("a").found(), expected);
        let absolute = name("real/a");
        assert_eq!(place(&absolute).found(), expected);
        assert_eq!(
            place("./x/../a").spelled(),
            [name("work/a"), "a".to_owned()]
        );
        assert_eq!(place("").spelled(), [name("work"), ".".to_owned()]);
    }
}
