//! Which files count as programs on Unix, and the shell.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The default shell.
pub(crate) const SH: &str = "/bin/sh";

/// Returns whether this process may execute a file.
pub(crate) fn is_executable(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}

/// Returns the names under which an executable may be stored. On Unix, this is only its own name.
pub(crate) fn executable_names(file: &Path) -> [PathBuf; 1] {
    [file.to_path_buf()]
}
