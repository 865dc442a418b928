//! Notices whether the sources of hooks have changed since they were loaded, without loading them.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tenterhook_files::readable_entries;

/// How many files and folders are looked at. Larger sets of hooks always count as changed.
const MAX_ENTRIES: usize = 5_000;
/// How deep folders are searched.
const MAX_DEPTH: usize = 6;

/// The state of files and folders, as their metadata describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SourceFingerprint(Option<u64>);

impl SourceFingerprint {
    /// Looks at every file below these places. Blocks the thread.
    pub(crate) fn of(places: &[PathBuf]) -> Self {
        let mut walk = Walk {
            hasher: DefaultHasher::new(),
            left: MAX_ENTRIES,
        };
        for place in places {
            walk.visit(place, MAX_DEPTH);
        }
        Self((walk.left > 0).then(|| walk.hasher.finish()))
    }

    /// Returns a state that differs from every other, and from itself.
    pub(crate) const fn unknown() -> Self {
        Self(None)
    }

    /// Returns whether nothing has changed between two looks.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.0.is_some() && self == other
    }
}

struct Walk {
    hasher: DefaultHasher,
    left: usize,
}

impl Walk {
    fn visit(&mut self, path: &Path, depth: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        path.hash(&mut self.hasher);
        let Ok(found) = fs::metadata(path) else {
            return 0.hash(&mut self.hasher);
        };
        let state = [found.ino(), found.dev(), found.len()];
        let times = [
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
        ];
        (state, times, found.mode()).hash(&mut self.hasher);
        if !found.is_dir() || depth == 0 {
            return;
        }
        let mut below: Vec<PathBuf> = readable_entries(path)
            .map(|entry| entry.path())
            .take(MAX_ENTRIES)
            .collect();
        below.sort();
        for path in below {
            self.visit(&path, depth - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_appears_changes_or_disappears_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let places = [folder.path().join("hooks"), folder.path().join("missing")];
        let look = || SourceFingerprint::of(&places);
        let empty = look();
        assert!(empty.is_same(look()));
        fs::create_dir_all(places[0].join("deep")).unwrap();
        fs::write(places[0].join("deep/a.py"), "1").unwrap();
        let added = look();
        assert!(!added.is_same(empty) && added.is_same(look()));
        fs::write(places[0].join("deep/a.py"), "22").unwrap();
        let changed = look();
        assert!(!changed.is_same(added));
        fs::remove_dir_all(&places[0]).unwrap();
        assert!(!look().is_same(changed) && look().is_same(empty));
    }
}
