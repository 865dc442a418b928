//! The permission lattice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a gate says of an operation, in order of precedence: the strongest wins.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// No opinion; whoever asks next decides.
    #[default]
    None,
    /// The operation may go on without a question.
    Allow,
    /// The user decides.
    Ask,
    /// The operation does not happen.
    Deny,
}

impl Permission {
    /// Every value, weakest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Allow, Self::Ask, Self::Deny];

    /// Returns the spelling on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// One hook's permission and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The permission given.
    pub permission: Permission,
    /// Why, for the model and the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
