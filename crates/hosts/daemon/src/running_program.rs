//! Notices that the program was replaced, so that the next daemon is the new version.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The file of the program, as it was when the daemon started.
#[derive(Debug)]
pub(crate) struct RunningProgram {
    path: PathBuf,
    identity: Option<FileIdentity>,
}

/// The device, the inode, the size and the time of the last change of a file.
type FileIdentity = (u64, u64, u64, i64, i64);

impl RunningProgram {
    pub(crate) fn new(path: PathBuf) -> Self {
        let identity = identity_of(&path);
        Self { path, identity }
    }

    /// Returns whether another program is at the path now. A missing file may be in the middle of being
    /// replaced.
    pub(crate) fn is_replaced(&self) -> bool {
        let now = identity_of(&self.path);
        now.is_some() && self.identity.is_some() && now != self.identity
    }
}

fn identity_of(path: &Path) -> Option<FileIdentity> {
    let found = fs::metadata(path).ok()?;
    Some((
        found.dev(),
        found.ino(),
        found.len(),
        found.mtime(),
        found.mtime_nsec(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_or_a_new_target_of_a_link_is_noticed_and_a_missing_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("one"), "1").unwrap();
        fs::write(at("two"), "2").unwrap();
        std::os::unix::fs::symlink(at("one"), at("program")).unwrap();
        let program = RunningProgram::new(at("program"));
        assert!(!program.is_replaced());
        fs::remove_file(at("program")).unwrap();
        assert!(!program.is_replaced());
        std::os::unix::fs::symlink(at("two"), at("program")).unwrap();
        assert!(program.is_replaced());
    }
}
