//! Reads files up to a size limit.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// The size of the largest hook file, in bytes.
pub(crate) const MAX_FILE_SIZE: usize = 4 << 20;

/// Reads a file as text. Returns `None` if the file cannot be read, is too large or is not UTF-8.
pub(crate) fn read(path: &Path) -> Option<String> {
    let bytes = read_bytes(path).ok()?;
    let is_small = bytes.len() <= MAX_FILE_SIZE;
    String::from_utf8(bytes).ok().filter(|_| is_small)
}

/// Reads a regular file, at most [`MAX_FILE_SIZE`] bytes and one more, so that the caller can detect a
/// larger file.
///
/// Any other kind of file is an error, because reading a pipe or a device could block.
pub(crate) fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        // If the caller expected a folder of hook files, the reason why the folder cannot be read is the
        // better error.
        std::fs::read_dir(path)?;
        return Err(io::Error::new(
            ErrorKind::IsADirectory,
            "it is a folder, expected a file",
        ));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_FILE_SIZE).unwrap_or(u64::MAX);
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
