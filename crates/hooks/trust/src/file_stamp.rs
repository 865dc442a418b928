//! The metadata by which a file is recognised as unchanged without reading it.

use std::fs::Metadata;
#[cfg(unix)]
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The metadata of a file when it was last read: device, inode, size, mode, and the times of the last
/// changes of its content and of its metadata, in nanoseconds.
///
/// A program can set the first time freely, but not the second one. So a file whose content was
/// replaced has another stamp, even if the program restored its size and the time of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp(u64, u64, u64, u32, i64, i64);

/// How old a change must be before its stamp counts, in nanoseconds. File systems record times in steps
/// of a few milliseconds, so a second write within one step would not change the stamp.
#[cfg(unix)]
const SETTLED: i64 = 50_000_000;

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

    /// Returns the stamp of a file, or `None` if the system does not record enough.
    #[cfg(not(unix))]
    pub(crate) fn of(_metadata: &Metadata) -> Option<Self> {
        None
    }

    /// Returns the stamp if the file was not changed so recently that a later change could have the same
    /// stamp.
    #[cfg(unix)]
    pub(crate) fn settled(self) -> Option<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = i64::try_from(now.ok()?.as_nanos()).ok()?;
        (self.5 < now.saturating_sub(SETTLED)).then_some(self)
    }

    /// Returns the stamp if the file was not changed so recently that a later change could have the same
    /// stamp.
    #[cfg(not(unix))]
    pub(crate) fn settled(self) -> Option<Self> {
        None
    }
}
