//! Folders that nobody but the user can look into.

use std::fs;
use std::io;
use std::path::Path;

/// Makes a folder and those above it that are missing. One that is there already stays as it is.
pub(crate) fn make(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}
