//! The error of reading or changing approvals.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why approvals cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// Other users can write to the approvals, so their content cannot be trusted.
    #[error("`{}` can be written by other users (mode {mode:03o})", .path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The approvals belong to another user.
    #[error("`{}` belongs to another user", .path.display())]
    NotOwned {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file of approvals, an exception or a denial is damaged, or Tenterhook did not write it.
    #[error("invalid file `{}`: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot use `{}`", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The repository of a project cannot be identified, so its hooks cannot be approved.
    #[error("cannot tell which repository `{}` belongs to: {problem}", .project.display())]
    Repository {
        /// The folder of the project.
        project: PathBuf,
        /// What prevented it.
        problem: String,
    },
    /// Another process is changing the approvals and has not finished in time.
    #[error("another process is changing the approvals in `{}`", .path.display())]
    Busy {
        /// The folder of the approvals.
        path: PathBuf,
    },
}

impl TrustError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}
