//! The amount of thinking that a model should do.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// How much a model should think before it answers. If a service lacks a level, the nearest one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThinkingLevel {
    /// Not at all, if the service supports that.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// A medium amount.
    Medium,
    /// A lot.
    High,
    /// As much as possible.
    XHigh,
}

impl ThinkingLevel {
    /// Every level, in ascending order.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
    ];

    /// Returns the level's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for text that is not a thinking level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown thinking level `{0}`: expected one of off, minimal, low, medium, high, xhigh")]
pub struct InvalidThinkingLevel(pub String);

impl FromStr for ThinkingLevel {
    type Err = InvalidThinkingLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == text);
        found.ok_or_else(|| InvalidThinkingLevel(text.to_owned()))
    }
}
