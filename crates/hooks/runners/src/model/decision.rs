//! Reads a model's reply as exactly one decision. Any other reply is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::de::{Error as _, Unexpected};
use tenterhook_protocol::Permission;
use thiserror::Error;

/// The reason of a decision without one.
const NO_REASON: &str = "no reason provided";

/// The decision of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDecision {
    /// Allow, ask or deny.
    pub permission: Permission,
    /// Why.
    pub reason: String,
}

/// Why a reply is not a decision.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// The reply is empty.
    #[error("it is empty")]
    Empty,
    /// The reply has no JSON object.
    #[error("there is no JSON object in it")]
    NoObject,
    /// The text from the first brace to the last one is not a single object of the schema.
    #[error("expected exactly one decision: {0}")]
    Invalid(serde_json::Error),
}

impl ModelDecision {
    /// Reads a reply: an object with `decision` and `reason`. It may be in a code fence or between
    /// other text.
    ///
    /// # Errors
    /// Fails if there is no such object or more than one, or if the object has a duplicate or unknown key.
    pub fn parse(reply: &str) -> Result<Self, DecisionError> {
        let text = unfenced(reply.trim());
        if text.is_empty() {
            return Err(DecisionError::Empty);
        }
        let object = text.find('{').zip(text.rfind('}'));
        let object = object.and_then(|(first, last)| text.get(first..=last));
        let object = object.ok_or(DecisionError::NoObject)?;
        serde_json::from_str(object).map_err(DecisionError::Invalid)
    }
}

/// Removes one code fence: its first line and its last line.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else {
        return text;
    };
    // The rest of the fence's line is the language, unless the object starts on that line.
    let inner = match inner.split_once('\n') {
        Some((language, inner)) if !language.contains('{') => inner,
        _ => inner,
    };
    let inner = inner.trim();
    inner.strip_suffix("```").unwrap_or(inner).trim()
}

impl<'de> Deserialize<'de> for ModelDecision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = ModelDecision;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `decision` and `reason`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ModelDecision, A::Error> {
        const KEYS: &[&str] = &["decision", "reason"];
        let mut decision: Option<String> = None;
        let mut reason: Option<Option<String>> = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "decision" if decision.is_none() => decision = Some(map.next_value()?),
                "reason" if reason.is_none() => reason = Some(map.next_value()?),
                "decision" => return Err(A::Error::duplicate_field("decision")),
                "reason" => return Err(A::Error::duplicate_field("reason")),
                unknown => {
                    map.next_value::<IgnoredAny>()?;
                    return Err(A::Error::unknown_field(unknown, KEYS));
                }
            }
        }
        let word = decision.ok_or_else(|| A::Error::missing_field("decision"))?;
        let permission = permission(&word).ok_or_else(|| {
            A::Error::invalid_value(Unexpected::Str(&word), &"`allow`, `ask` or `deny`")
        })?;
        let reason = reason.flatten().unwrap_or_default();
        let reason = match reason.trim() {
            "" => NO_REASON,
            reason => reason,
        };
        Ok(ModelDecision {
            permission,
            reason: reason.to_owned(),
        })
    }
}

fn permission(word: &str) -> Option<Permission> {
    let word = word.trim().to_ascii_lowercase();
    [Permission::Allow, Permission::Ask, Permission::Deny]
        .into_iter()
        .find(|permission| permission.as_str() == word)
}
