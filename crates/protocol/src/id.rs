//! Ids as types, so that a session id is never passed where a tool use id is meant.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// Declares an id that is text chosen by the host.
macro_rules! text_id {
    ($( $(#[$meta:meta])* $name:ident ),+ $(,)?) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(transparent)]
        pub struct $name(#[schemars(with = "String")] Arc<str>);

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
    /// Identifies one tool call of a model, as the provider named it.
    ToolUseId,
    /// Identifies one agent of a host.
    AgentId,
    /// Identifies one entry of a session's tree.
    EntryId,
    /// Identifies one task given to a subagent.
    TaskId,
    /// Identifies one hook of a registry: its configured name, or where it stands.
    HookId,
}

impl SessionId {
    /// Makes an id that no other session has (UUID version 7, ordered by time).
    pub fn generate() -> Self {
        Self::new(Uuid::now_v7().to_string())
    }
}

/// Identifies one dispatched event: a UUID of version 7, so ids sort by time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct EventId(#[schemars(with = "String")] Uuid);

impl EventId {
    /// Makes a fresh id.
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a user-defined event: `x-<vendor>.<name>`, each part of `a-z`, `0-9`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub struct CustomName(#[schemars(with = "String")] Arc<str>);

impl CustomName {
    /// Returns the whole name, `x-` included.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CustomName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The text is no name of a user-defined event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{found}` is no name of a user-defined event: expected `x-<vendor>.<name>`, each part of the characters a-z, 0-9, `_`, `-`"
)]
pub struct InvalidName {
    /// What was given.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_names_have_a_vendor_and_a_name() {
        for (text, valid) in [
            ("x-acme.deploy", true),
            ("x-acme.deploy.done", true),
            ("x-ac-me.de_ploy2", true),
            ("x-acme", false),
            ("acme.deploy", false),
            ("x-.deploy", false),
            ("x-acme.", false),
            ("x-Acme.deploy", false),
            ("x-acme..deploy", false),
        ] {
            assert_eq!(text.parse::<CustomName>().is_ok(), valid, "{text}");
        }
    }
}
