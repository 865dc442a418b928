//! Symbolic and hard links: where a path leads, and whether a file has other names.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};

/// How many links a path may lead through, as on Linux. It ends cycles of links.
const MAX_LINKS: u32 = 40;

/// Follows every link of an absolute path. Parts that do not exist yet stay as written, so the location of a file is
/// known before a tool creates it, even behind a dangling link. Returns `None` for a cycle of links.
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
                if links > MAX_LINKS {
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

/// Reports whether a file has more than one name, so that a path does not identify it.
pub(crate) fn has_other_links(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        metadata.is_file() && metadata.nlink() > 1
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
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
    fn a_circle_of_links_leads_nowhere() {
        let dir = tempdir().unwrap();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert_eq!(follow(&dir.path().join("a/c")), None);
    }
}
