//! The phases of a dispatch.

use serde::{Deserialize, Serialize};

/// When a hook runs within its dispatch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Runs first, one hook after another. Each sees the rewrites of the hooks before it.
    Transform,
    /// Runs next, in series or in parallel as the event specifies. Hooks may rewrite and decide.
    #[default]
    Main,
    /// Runs in parallel after all rewrites. Hooks judge the final value and may not rewrite it.
    Guard,
    /// Runs last, in parallel, whatever was decided. Hooks cannot affect the result.
    Observe,
}

impl Phase {
    /// Every phase, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Transform, Self::Main, Self::Guard, Self::Observe];

    /// Returns the spelling in hook files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transform => "transform",
            Self::Main => "main",
            Self::Guard => "guard",
            Self::Observe => "observe",
        }
    }
}
