//! The permissions and their order of strength.

use serde::{Deserialize, Serialize};

/// A hook's permission for an operation, weakest first. The strongest permission of all hooks
/// counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// No opinion. The next step decides, such as another hook or a permission rule.
    #[default]
    None,
    /// The operation may continue without a question.
    Allow,
    /// The user decides.
    Ask,
    /// The operation does not happen.
    Deny,
}

impl Permission {
    /// Every value, weakest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Allow, Self::Ask, Self::Deny];

    /// Returns the spelling in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One hook's permission and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The permission.
    pub permission: Permission,
    /// The reason, for the model and the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
