//! A file that a hook runs, with its bytes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::digest::hex_digest;
use crate::private_file::read_whole;

/// A file that a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemFile {
    /// The path by which the hook names it. Relative to the project if the file is in it.
    pub path: PathBuf,
    /// The path of the file after following symbolic links.
    pub target: PathBuf,
    /// The content.
    pub bytes: Arc<[u8]>,
    /// Whether it may be executed.
    pub is_executable: bool,
    /// The SHA-256 of the bytes, in hexadecimal digits.
    pub sha256: String,
}

impl ItemFile {
    /// Opens the file at `path` and reads it once. `shown` is its path in messages and in the approval.
    pub fn read(path: &Path, shown: &Path) -> io::Result<Self> {
        let (bytes, is_executable) = read_whole(path)?;
        Ok(Self {
            path: shown.to_owned(),
            target: std::fs::canonicalize(path)?,
            sha256: hex_digest(&bytes),
            bytes: bytes.into(),
            is_executable,
        })
    }
}
