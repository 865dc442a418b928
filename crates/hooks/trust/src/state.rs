//! The state of a project hook: approved or not.

use serde::Serialize;

/// Whether a project hook may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// The user approved it as it is now.
    Trusted,
    /// The user never approved it in this project.
    Untrusted,
    /// It has changed since the user approved it.
    Changed,
    /// The user approved it while another repository was in this folder.
    Displaced,
}

impl TrustState {
    /// Returns the spelling for people and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Displaced => "displaced",
        }
    }

    /// Returns the reason of a hook that denies in place of one in this state.
    pub fn denial_reason(self) -> String {
        let found = match self {
            Self::Changed => "has changed since it was approved",
            Self::Displaced => "was approved for another repository",
            Self::Untrusted | Self::Trusted => "is not trusted in this project",
        };
        format!("the hook {found}; read it with `tenterhook trust --show`")
    }
}
