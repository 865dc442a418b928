//! Why an installation fails.

use std::io;
use std::path::{Path, PathBuf};

use crate::edit_error::EditError;

/// Why Tenterhook cannot be added to, or removed from, the configuration of an agent.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// A file or folder cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file or folder cannot be written.
    #[error("cannot write `{}`", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is not one that Tenterhook changes.
    #[error("cannot change `{}`: {problem}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What was found and what was expected.
        problem: &'static str,
        /// What the user can do.
        hint: &'static str,
    },
    /// The settings cannot be changed.
    #[error("cannot change `{}`", .path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: EditError,
    },
    /// The agent has no configuration of the requested scope.
    #[error("{title} has no hook configuration for {scope}")]
    NoPlace {
        /// The agent.
        title: &'static str,
        /// `a project` or `a user`.
        scope: &'static str,
    },
    /// The running program cannot be copied.
    #[error("cannot copy `{}` to `{}`", .from.display(), .to.display())]
    Copy {
        /// The program.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A copy of the running program does not start.
    #[error("a copy of `{}` does not start: {problem}", .program.display())]
    UnusableCopy {
        /// The program.
        program: PathBuf,
        /// What happened.
        problem: String,
    },
    /// Another process installs at the same time.
    #[error("another process holds `{}`", .path.display())]
    Busy {
        /// The lock.
        path: PathBuf,
    },
}

impl InstallError {
    /// Returns what the user can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Read { .. } => "check the permissions of the file and its folder",
            Self::Write { .. } => "check the permissions of the folder and the space on the disk",
            Self::Refused { hint, .. } => hint,
            Self::Edit { .. } => "correct the file; nothing was changed",
            Self::NoPlace { .. } => "leave out `--project`",
            Self::Copy { .. } => "check that the program still exists, and the space on the disk",
            Self::UnusableCopy { .. } => {
                "programs must be allowed to run in Tenterhook's data folder; `TENTERHOOK_DATA_DIR` names another one"
            }
            Self::Busy { .. } => "try again when it has finished",
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }

    pub(crate) fn edit(path: &Path) -> impl FnOnce(EditError) -> Self {
        let path = path.to_owned();
        move |source| Self::Edit { path, source }
    }
}
