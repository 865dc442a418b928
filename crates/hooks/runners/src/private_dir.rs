//! Folders that only the user can read.

use std::fs;
use std::io;
use std::path::Path;

/// Creates a folder and its missing parents, readable only by the user. Folders that exist already
/// are not changed.
pub fn make(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
