//! Where a path leads: without a look at the disk, and with one.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::protection::has_other_links;

/// How many links a path may lead through, as on Linux. A circle of links ends here.
const MOST_LINKS: u32 = 40;

/// The place that a call names, and the directory that relative names start from.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) cwd: &'a Path,
}

impl Place<'_> {
    /// Returns the names of the place that look at its spelling alone: absolute, and as seen from the
    /// session's directory.
    pub(super) fn spelled(&self) -> Vec<String> {
        let cwd = tidy(self.cwd);
        let absolute = tidy(&cwd.join(self.text));
        let relative = relative(&absolute, &cwd);
        names([Some(absolute), relative])
    }

    /// Returns the names of the place where the disk says that it is: absolute, and as seen from the
    /// session's directory, which may itself be reached through a link. A place that nothing leads to
    /// has none.
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
    /// Says whether the place is a file with several names, so that this one does not tell which file it is.
    pub(super) fn has_other_links(&self) -> bool {
        fs::metadata(self.cwd.join(self.text)).is_ok_and(|found| has_other_links(&found))
    }
}

/// Returns a pattern for absolute paths in whose fixed folders every link is followed, where it has any.
pub(super) fn follow_pattern(pattern: &str, cwd: &Path) -> Option<String> {
    let (fixed, open) = match pattern.find(['*', '?']) {
        Some(wildcard) => {
            let folder = pattern.get(..wildcard)?.rfind('/');
            // Below the root nothing is fixed.
            pattern.split_at_checked(folder.filter(|end| *end > 0)?)?
        }
        None => (pattern, ""),
    };
    let followed = follow(&cwd.join(fixed))?;
    Some(format!("{}{open}", followed.to_string_lossy()))
}

/// Says whether the spelling goes up again.
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

/// Returns `path` as seen from `base`, if it is inside; the base itself is `.`.
fn relative(path: &Path, base: &Path) -> Option<PathBuf> {
    let inside = path.strip_prefix(base).ok()?;
    let is_base = inside.as_os_str().is_empty();
    Some(if is_base {
        PathBuf::from(".")
    } else {
        inside.to_path_buf()
    })
}

/// Takes `.` and `..` out of a path without looking at the disk.
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

/// Follows every link of an absolute path. What does not exist yet stays as it is written, so that the
/// place of a file that a tool would make is known before it does, behind a dangling link too.
pub(crate) fn follow(path: &Path) -> Option<PathBuf> {
    let mut ahead: VecDeque<OsString> = parts(path);
    let mut reached = PathBuf::new();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        match Path::new(&part).components().next() {
            None | Some(Component::CurDir) => {}
            Some(Component::ParentDir) => {
                reached.pop();
            }
            Some(Component::Prefix(_) | Component::RootDir) => reached.push(&part),
            Some(Component::Normal(_)) => {
                let next = reached.join(&part);
                let Ok(target) = fs::read_link(&next) else {
                    reached = next;
                    continue;
                };
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                for part in parts(&target).into_iter().rev() {
                    ahead.push_front(part);
                }
            }
        }
    }
    Some(reached)
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let parts = path.components();
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::*;

    #[test]
    fn links_are_followed_also_to_what_does_not_exist_yet() {
        let dir = tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        symlink(root.join("real"), root.join("absolute")).unwrap();
        symlink("real/inner", root.join("relative")).unwrap();
        symlink("real/new", root.join("dangling")).unwrap();
        symlink("absolute", root.join("chain")).unwrap();
        for (path, expected) in [
            ("absolute/a", "real/a"),
            ("relative/a/b", "real/inner/a/b"),
            ("relative/../a", "real/a"),
            ("dangling", "real/new"),
            ("chain/inner", "real/inner"),
            ("none/../real/./a", "real/a"),
        ] {
            assert_eq!(
                follow(&root.join(path)),
                Some(root.join(expected)),
                "{path}"
            );
        }
    }

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
    fn a_circle_of_links_leads_nowhere() {
        let dir = tempdir().unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert_eq!(follow(&dir.path().join("a/c")), None);
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
