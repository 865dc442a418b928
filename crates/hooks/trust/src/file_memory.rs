//! What is known about the files of an approval, so that unchanged files are not read again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::covered_file::KnownFile;
use crate::file_stamp::FileStamp;
use crate::private_file::{check_owner, read_whole, write_private};

/// The version of the format.
const VERSION: u32 = 1;

/// What is known about the files of one approval, by their paths in the project.
///
/// It only saves reads. Without it, every file is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMemory {
    pub(crate) version: u32,
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
        known
            .filter(|known: &Self| known.version == VERSION)
            .unwrap_or_default()
    }

    /// Returns whether a copy with this stamp was written or verified before.
    pub(crate) fn has_copy(&self, path: &Path, stamp: Option<FileStamp>) -> bool {
        stamp.is_some_and(|stamp| self.copies.get(path) == Some(&stamp))
    }

    /// Stores what is known. A failure is ignored, because the files are read then.
    pub(crate) fn write(&mut self, path: &Path) {
        self.version = VERSION;
        if let Ok(bytes) = serde_json::to_vec(self) {
            let _written = write_private(path, &bytes, 0o600);
        }
    }
}
