//! What is known about the files of an approval, so that unchanged files are not read again.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tenterhook_files::{read_whole, write_private};

use crate::file_owner::check_owner;

/// What is known about the files of one approval, by their paths in the project.
///
/// It only saves reads. Without it, or if it has another format, every file is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMemory {
    /// The files of the project.
    pub(crate) originals: BTreeMap<PathBuf, KnownFile>,
    /// The approved copies, as they were written or last verified.
    pub(crate) copies: BTreeMap<PathBuf, FileStamp>,
}

impl FileMemory {
    /// Reads what is known. Returns an empty memory if another user could have written the file, or if
    /// it cannot be read.
    pub(crate) fn read(path: &Path) -> Self {
        let known = check_owner(path)
            .ok()
            .and_then(|()| read_whole(path).ok())
            .and_then(|(bytes, _)| serde_json::from_slice(&bytes).ok());
        known.unwrap_or_default()
    }

    /// Returns whether a copy with this stamp was written or verified before.
    pub(crate) fn has_copy(&self, path: &Path, stamp: Option<FileStamp>) -> bool {
        stamp.is_some_and(|stamp| self.copies.get(path) == Some(&stamp))
    }

    /// Stores what is known. A failure is ignored, because the files are read then.
    pub(crate) fn write(&self, path: &Path) {
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _written = write_private(path, &bytes, 0o600);
        }
    }
}

/// The content of a file when it was last read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownFile {
    pub(crate) stamp: FileStamp,
    pub(crate) sha256: String,
    /// The modules that it imports, as it names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) imports: Vec<String>,
}

/// The metadata of a file when it was last read: device, inode, size, mode, and the times of the last
/// changes of its content and of its metadata, in nanoseconds.
///
/// A program can set the first time freely, but not the second one. So a file whose content was
/// replaced has another stamp, even if the program restored its size and the time of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp(u64, u64, u64, u32, i64, i64);

/// How old a change must be before its stamp counts, in nanoseconds. File systems record times in steps
/// of a few milliseconds, so a second write within one step would not change the stamp.
const STABLE_AFTER: i64 = 50_000_000;

impl FileStamp {
    /// Returns the stamp of a file, or `None` if the system does not record enough.
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let nanoseconds = |seconds: i64, rest: i64| {
            seconds
                .checked_mul(1_000_000_000)
                .and_then(|whole| whole.checked_add(rest))
        };
        Some(Self(
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mode(),
            nanoseconds(metadata.mtime(), metadata.mtime_nsec())?,
            nanoseconds(metadata.ctime(), metadata.ctime_nsec())?,
        ))
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }

    /// Returns the stamp if the file was not changed so recently that a later change could have the same
    /// stamp.
    pub(crate) fn if_stable(self) -> Option<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = i64::try_from(now.ok()?.as_nanos()).ok()?;
        (self.5 < now.saturating_sub(STABLE_AFTER)).then_some(self)
    }
}
