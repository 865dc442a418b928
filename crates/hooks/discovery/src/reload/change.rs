//! The report of a reload about one file.

use std::fmt;
use std::path::PathBuf;

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// The effect on its hooks.
    pub kind: ChangeKind,
}

/// The effect of a file's change on its hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// Its current hooks are now in force.
    Reloaded {
        /// The number of hooks.
        hooks: usize,
    },
    /// Its hooks were removed.
    Removed,
    /// It needs an approval.
    Waits {
        /// Whether the approved version stays in force until then.
        goes_on: bool,
    },
    /// It is new and cannot be loaded.
    Failed {
        /// The reason.
        problem: String,
        /// Whether operations that it may guard are denied.
        denies: bool,
    },
    /// The previous version stays in force.
    Stays {
        /// What happened to the file.
        because: StayReason,
    },
}

/// The reason why hooks of a previous version stay in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StayReason {
    /// The file can no longer be loaded.
    Broken {
        /// The reason.
        problem: String,
    },
    /// The file has changed, and the user has not requested a reload.
    Changed,
    /// The file is gone, and the user has not requested a reload.
    Gone,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let name = name.to_string_lossy();
        match &self.kind {
            ChangeKind::Reloaded { hooks: 1 } => write!(f, "reloaded {name}: 1 hook"),
            ChangeKind::Reloaded { hooks } => write!(f, "reloaded {name}: {hooks} hooks"),
            ChangeKind::Removed => write!(f, "unloaded {name}: its hooks are gone"),
            ChangeKind::Waits { goes_on: true } => write!(
                f,
                "{name} differs from its approved version, which stays in force until you approve the change"
            ),
            ChangeKind::Waits { goes_on: false } => write!(f, "{name} needs your approval"),
            ChangeKind::Failed { problem, denies } => {
                let denied = if *denies {
                    "; operations that they may guard are denied"
                } else {
                    ""
                };
                write!(f, "the hooks of {name} are not in force: {problem}{denied}")
            }
            ChangeKind::Stays { because } => match because {
                StayReason::Broken { problem } => write!(
                    f,
                    "{name} can no longer be loaded, so its previous version stays in force: {problem}"
                ),
                StayReason::Changed => write!(
                    f,
                    "{name} has changed; its previous version stays in force until you reload"
                ),
                StayReason::Gone => {
                    write!(
                        f,
                        "{name} is gone; its hooks stay in force until you reload"
                    )
                }
            },
        }
    }
}
