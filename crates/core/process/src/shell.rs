//! The shells that a line can be written for, and how each is started.

use crate::sys::SH;

/// A shell that a line can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shell {
    /// `/bin/sh -c`. On Windows, `sh` is looked up in `PATH`.
    #[default]
    Sh,
    /// `bash -c`, looked up in `PATH`.
    Bash,
    /// `pwsh -NoProfile -NonInteractive -Command`, looked up in `PATH`.
    Pwsh,
}

impl Shell {
    /// Returns the program to look up.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sh => SH,
            Self::Bash => "bash",
            Self::Pwsh => "pwsh",
        }
    }

    /// Returns the arguments that come before the line.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Sh | Self::Bash => &["-c"],
            Self::Pwsh => &["-NoProfile", "-NonInteractive", "-Command"],
        }
    }
}
