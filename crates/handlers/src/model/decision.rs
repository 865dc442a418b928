//! Reading a model's reply as one decision. Whatever is not exactly one is an error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::de::{Error as _, Unexpected};
use tenterhook_protocol::Permission;
use thiserror::Error;

/// The reason of a decision that gives none.
const NO_REASON: &str = "no reason provided";

/// What a model decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Allow, ask or deny.
    pub permission: Permission,
    /// Why.
    pub reason: String,
}

/// A reply that is no decision.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// There is nothing in it.
    #[error("it is empty")]
    Empty,
    /// There is no JSON object in it.
    #[error("there is no JSON object in it")]
    NoObject,
    /// What stands from the first brace to the last is not one object of the schema.
    #[error("it is not one decision: {0}")]
    Invalid(serde_json::Error),
}

impl Decision {
    /// Reads a reply: an object with `decision` and `reason`, in a code fence or between other text.
    ///
    /// # Errors
    /// When there is no such object, or more than one, or a key stands in it twice.
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

/// Takes one code fence off: its first line, and its last one.
fn unfenced(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```") else {
        return text;
    };
    // The rest of the fence's line names the language, unless the object stands there already.
    let inner = match inner.split_once('\n') {
        Some((language, inner)) if !language.contains('{') => inner,
        _ => inner,
    };
    let inner = inner.trim();
    inner.strip_suffix("```").unwrap_or(inner).trim()
}

impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Decision;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `decision` and `reason`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Decision, A::Error> {
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
        Ok(Decision {
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
