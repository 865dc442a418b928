//! The problems of folders that cannot be read and files that do not load in time.

use std::io::{self, ErrorKind};
#[cfg(feature = "workers")]
use std::time::Duration;

use tenterhook_hookfile::SourceProblem;
use tenterhook_systems::hook_folder::MAX_FILES;

/// Returns the problem of a folder that exists but cannot be read.
pub(super) fn unreadable(error: &io::Error) -> SourceProblem {
    if error.kind() == ErrorKind::NotADirectory {
        return SourceProblem::from(
            "not a folder; Tenterhook expects a folder of hooks at this path",
        )
        .hint("rename it, or replace it with a folder");
    }
    SourceProblem::from(format!("the folder cannot be read: {error}")).hint("make it readable")
}

/// Returns the problem of a folder with too many files to read all of them.
pub(super) fn too_many_files_in_folder() -> SourceProblem {
    SourceProblem::from(format!("the folder has more than {MAX_FILES} files"))
        .hint("move files that are not hooks to another folder")
}

/// Returns the problem of a source that takes too long to load.
#[cfg(feature = "workers")]
pub(super) fn too_slow(deadline: Duration) -> SourceProblem {
    let message = format!(
        "it did not finish loading within {} s",
        deadline.as_secs_f64()
    );
    SourceProblem::from(message)
        .hint("do slow work when the first event comes, not while the file is loaded")
}
