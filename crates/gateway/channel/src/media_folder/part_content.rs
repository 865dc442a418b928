//! The content of parts that hooks and tools add: base64, or a file in a folder where files may come from.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tenterhook_files::readable_entries;

use super::sniff::sniff;

/// The maximum length of a path in bytes. Longer text is base64.
const MAX_PATH: usize = 4_096;

/// Why a file of the gateway's state is refused.
const PRIVATE: &str = "is a file of the gateway's own state, which is never sent";

/// The content of a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// These bytes, and the name of the file that they were read from.
    Bytes(Vec<u8>, Option<String>),
    /// A file in the media folder.
    Kept(PathBuf),
}

/// Where content may come from.
pub(super) struct Sources<'a> {
    /// The real path of the media folder.
    pub(super) media: &'a Path,
    /// The real path of the folder whose other files are never read.
    pub(super) state: Option<&'a Path>,
    /// Other folders.
    pub(super) allowed: &'a [PathBuf],
    /// The maximum size of a file in bytes.
    pub(super) limit: u64,
}

impl Sources<'_> {
    /// Reads the content. The error continues a sentence about the part.
    pub(super) fn read(&self, data: &str) -> Result<Content, String> {
        let path = Path::new(data);
        let has_path_form = data.len() <= MAX_PATH && path.is_absolute();
        if has_path_form && let Ok(real) = fs::canonicalize(path) {
            return self.read_file(&real);
        }
        if let Some(real) = self.find_relative(data) {
            return self.read_file(&real);
        }
        let bytes = self.decode(data)?;
        // Base64 of a JPEG begins with a slash. A path of a file that does not exist must not become a file.
        match bytes {
            Some(bytes) if !has_path_form || sniff(&bytes).is_known => {
                Ok(Content::Bytes(bytes, None))
            }
            _ => Err("has data that is neither base64 nor the path of an existing file".to_owned()),
        }
    }

    /// Returns the real path of a file that is named relative to an allowed folder, in which the hook runs.
    fn find_relative(&self, data: &str) -> Option<PathBuf> {
        let path = Path::new(data);
        if data.is_empty() || data.len() > MAX_PATH || path.is_absolute() {
            return None;
        }
        let mut found = self.allowed.iter().map(|folder| folder.join(path));
        let found = found.find(|found| fs::metadata(found).is_ok_and(|found| found.is_file()))?;
        fs::canonicalize(found).ok()
    }

    fn decode(&self, data: &str) -> Result<Option<Vec<u8>>, String> {
        let encoded: Vec<u8> = data
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        let size = u64::try_from(encoded.len() / 4 * 3).unwrap_or(u64::MAX);
        if size.saturating_sub(2) > self.limit {
            return Err(self.too_large());
        }
        Ok(STANDARD.decode(encoded).ok())
    }

    fn read_file(&self, real: &Path) -> Result<Content, String> {
        if real.starts_with(self.media) {
            return Ok(Content::Kept(real.to_owned()));
        }
        if self.state.is_some_and(|state| real.starts_with(state)) {
            return Err(PRIVATE.to_owned());
        }
        let mut allowed = self
            .allowed
            .iter()
            .filter_map(|folder| fs::canonicalize(folder).ok());
        if !allowed.any(|folder| real.starts_with(folder)) {
            return Err(
                "is a file outside of the folders that parts may come from; copy it into the working folder"
                    .to_owned(),
            );
        }
        let unreadable = |error| format!("is a file that cannot be read: {error}");
        let checked = fs::symlink_metadata(real).map_err(unreadable)?;
        if !checked.is_file() {
            return Err("is not a regular file".to_owned());
        }
        let file = File::open(real).map_err(unreadable)?;
        let opened = file.metadata().map_err(unreadable)?;
        // Someone who can write in the folder could have put a link there after the path was resolved.
        let is_still_there = fs::canonicalize(real).is_ok_and(|now| now == real);
        let now = fs::symlink_metadata(real).map_err(unreadable)?;
        if !is_still_there || !is_same_file(&opened, &now) {
            return Err("is a file that was replaced while it was read; try again".to_owned());
        }
        if self.state.is_some_and(|state| is_linked(state, &opened)) {
            return Err(PRIVATE.to_owned());
        }
        let mut bytes = Vec::new();
        let mut limited = file.take(self.limit.saturating_add(1));
        limited.read_to_end(&mut bytes).map_err(unreadable)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > self.limit {
            return Err(self.too_large());
        }
        let name = real
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(Content::Bytes(bytes, name))
    }

    fn too_large(&self) -> String {
        format!("is larger than {} bytes", self.limit)
    }
}

/// Returns whether a folder has the same file under another name.
fn is_linked(folder: &Path, file: &fs::Metadata) -> bool {
    let entries = readable_entries(folder);
    let mut files = entries.filter_map(|entry| entry.metadata().ok());
    files.any(|entry| is_same_file(&entry, file))
}

#[cfg(unix)]
fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    one.dev() == other.dev() && one.ino() == other.ino()
}

#[cfg(not(unix))]
fn is_same_file(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    one.len() == other.len() && one.created().ok() == other.created().ok()
}
