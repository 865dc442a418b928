//! Ids as distinct types, so that the compiler rejects a session id where a tool call id is
//! expected.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::field::into_field;
use crate::field_info::field_values;

/// Declares an id that is a string chosen by the host.
macro_rules! text_id {
    ($( $(#[$meta:meta])* $name:ident ),+ $(,)?) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", schemars(transparent))]
        pub struct $name(#[cfg_attr(feature = "schema", schemars(with = "String"))] Arc<str>);

        impl $name {
            /// Wraps `text` unchanged.
            pub fn new(text: impl AsRef<str>) -> Self { Self(Arc::from(text.as_ref())) }

            /// Returns the text of the id.
            pub fn as_str(&self) -> &str { &self.0 }
        }

        impl Default for $name {
            fn default() -> Self { Self::new("") }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self { Self::new(text) }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self { Self::new(text) }
        }

        into_field! { $name: &str, String; }
        field_values! { Other: $name; }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str { &self.0 }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.pad(&self.0) }
        }
    )+ };
}

text_id! {
    /// Identifies one session of a host.
    SessionId,
    /// Identifies one tool call of a model. The provider chooses the id.
    ToolUseId,
    /// Identifies one agent of a host.
    AgentId,
    /// Identifies one entry of a session's tree.
    EntryId,
    /// Identifies one task that a subagent was given.
    TaskId,
    /// Identifies one hook of a registry: its configured name, or its position if it has no name.
    HookId,
}

impl SessionId {
    /// Creates a unique id: a UUID version 7, which sorts by time.
    pub fn generate() -> Self {
        Self::new(Uuid::now_v7().to_string())
    }
}

/// Identifies one dispatched event. It is a UUID version 7, so ids sort by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct EventId(#[cfg_attr(feature = "schema", schemars(with = "String"))] Uuid);

impl EventId {
    /// Creates a new id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a user-defined event: `x-<vendor>.<name>`. Each part consists of `a-z`, `0-9`, `_`
/// and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
#[cfg_attr(feature = "schema", schemars(transparent))]
pub struct CustomName(#[cfg_attr(feature = "schema", schemars(with = "String"))] Arc<str>);

impl CustomName {
    /// Returns the whole name, including `x-`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CustomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The error for text that is not the name of a user-defined event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid event name `{found}`: expected `x-<vendor>.<name>`, with only a-z, 0-9, `_` and `-` in each part"
)]
pub struct InvalidName {
    /// The text that was given.
    pub found: String,
}

impl FromStr for CustomName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        };
        let parts = text
            .strip_prefix("x-")
            .and_then(|rest| rest.split_once('.'));
        match parts {
            Some((vendor, name)) if is_part(vendor) && name.split('.').all(is_part) => {
                Ok(Self(Arc::from(text)))
            }
            _ => Err(InvalidName {
                found: text.to_owned(),
            }),
        }
    }
}

impl<'de> Deserialize<'de> for CustomName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
