//! Reads the keys of the object that a hook prints.
//!
//! The case of a key and its underscores do not matter: `stop_reason`, `stopReason` and `STOP_REASON` are
//! the same key. The keys of `hook_specific_output` may also be at the top level. `null` counts as
//! absent. A value of the wrong type makes the whole answer invalid.

use serde::Deserialize;
use serde_json::Value;
use tenterhook_engine::ReadError;
use tenterhook_protocol::{AnyEffect, JsonObject, Permission};

/// The answer that a hook printed.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) proceed: Option<bool>,
    pub(super) stop_reason: Option<String>,
    pub(super) decision: Option<Decision>,
    pub(super) reason: Option<String>,
    pub(super) system_message: Option<String>,
    pub(super) suppress_output: Option<bool>,
    pub(super) hook_event_name: Option<String>,
    pub(super) permission: Option<Permission>,
    pub(super) permission_reason: Option<String>,
    pub(super) updated_input: Option<JsonObject>,
    pub(super) updated_messages: Option<Value>,
    pub(super) updated_tool_response: Option<String>,
    pub(super) additional_context: Option<String>,
    /// The texts of all sources that are present.
    pub(super) instruction_context: Option<Vec<String>>,
    pub(super) summary: Option<String>,
    pub(super) metadata: Option<JsonObject>,
    /// An effect in canonical form, which only native hooks may answer with.
    pub(super) effect: Option<AnyEffect>,
    pub(super) unknown_keys: Vec<String>,
}

/// The value of `decision`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Block,
    Permission(Permission),
}

impl Answer {
    pub(super) fn parse(object: JsonObject) -> Result<Self, ReadError> {
        let mut entries: Vec<Entry> = Vec::new();
        for (key, value) in object {
            let entry = Entry {
                name: normal(&key),
                key,
                value,
            };
            if entry.name != "hookspecificoutput" {
                entry.note(&mut entries)?;
            } else if let Some(specific) = typed::<JsonObject>(&entry.key, entry.value)? {
                for (key, value) in specific {
                    Entry {
                        name: normal(&key),
                        key,
                        value,
                    }
                    .note(&mut entries)?;
                }
            }
        }
        let mut answer = Self::default();
        entries
            .into_iter()
            .try_for_each(|entry| answer.set(entry))?;
        Ok(answer)
    }

    /// Refuses an answer that is probably a mistake: a reason without the decision that it explains, or
    /// an unknown key in an answer without a decision.
    pub(super) fn check_sense(&self) -> Result<(), ReadError> {
        let reasons = [
            (
                "reason",
                self.reason.is_some(),
                self.decision.is_some(),
                "decision",
            ),
            (
                "stop_reason",
                self.stop_reason.is_some(),
                self.proceed == Some(false),
                "continue: false",
            ),
            (
                "permission_decision_reason",
                self.permission_reason.is_some(),
                self.permission.is_some(),
                "permission_decision",
            ),
        ];
        let unknown = match self.unknown_keys.as_slice() {
            [] => String::new(),
            keys => format!("; unknown: `{}`", keys.join("`, `")),
        };
        if let Some((key, _, _, missing)) = reasons
            .into_iter()
            .find(|(_, given, decided, _)| *given && !decided)
        {
            return Err(ReadError::invalid(format!(
                "`{key}` is given without `{missing}`{unknown}"
            )));
        }
        if self.unknown_keys.is_empty() || self.has_verdict() {
            return Ok(());
        }
        // An unknown key may be a misspelt `decision`, whatever else the answer has.
        Err(ReadError::invalid(format!(
            "the answer contains no decision{unknown}"
        )))
    }

    /// Returns whether the answer contains an explicit decision.
    fn has_verdict(&self) -> bool {
        let effect = self.effect.as_ref();
        self.proceed == Some(false)
            || self.decision.is_some()
            || self.permission.is_some()
            || effect.is_some_and(|effect| effect.permission.is_some() || effect.block.is_some())
    }

    fn set(&mut self, entry: Entry) -> Result<(), ReadError> {
        let Entry { name, key, value } = entry;
        match name.as_str() {
            "continue" => self.proceed = typed(&key, value)?,
            "stopreason" => self.stop_reason = typed(&key, value)?,
            "decision" => {
                let word: Option<String> = typed(&key, value)?;
                self.decision = word
                    .map(|word| decision(&key, &word))
                    .transpose()?
                    .flatten();
            }
            "reason" => self.reason = typed(&key, value)?,
            "systemmessage" => self.system_message = typed(&key, value)?,
            "suppressoutput" => self.suppress_output = typed(&key, value)?,
            "hookeventname" => self.hook_event_name = typed(&key, value)?,
            "permissiondecision" => {
                self.permission = typed(&key, value)?
                    .map(|word: String| permission(&key, &word))
                    .transpose()?
                    .flatten();
            }
            "permissiondecisionreason" => self.permission_reason = typed(&key, value)?,
            "updatedinput" => self.updated_input = typed(&key, value)?,
            "updatedmessages" => {
                let messages: Option<Vec<Value>> = typed(&key, value)?;
                self.updated_messages = messages
                    .filter(|messages| !messages.is_empty())
                    .map(Value::Array);
            }
            "updatedtoolresponse" => self.updated_tool_response = typed(&key, value)?,
            "additionalcontext" => self.additional_context = typed(&key, value)?,
            "instructioncontext" => self.instruct(&key, value)?,
            "summary" => self.summary = typed(&key, value)?,
            "metadata" => self.metadata = texts(&key, value)?,
            "effect" => self.effect = typed(&key, value)?,
            _ => {
                self.unknown_keys.push(key);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads sources of instructions. docker-agent tells a model what changed in them since its last
    /// call. Tenterhook sends every source in full each time, so there is nothing to report about a
    /// source that is gone.
    fn instruct(&mut self, key: &str, value: Value) -> Result<(), ReadError> {
        let Some(sources) = typed::<Vec<JsonObject>>(key, value)? else {
            return Ok(());
        };
        let mut texts = Vec::new();
        for (at, source) in sources.into_iter().enumerate() {
            let mut content = None;
            let mut is_gone = false;
            for (name, value) in source {
                let path = format!("{key}[{at}].{name}");
                match normal(&name).as_str() {
                    "content" => content = typed::<String>(&path, value)?,
                    "removed" | "unavailable" => {
                        is_gone |= typed::<bool>(&path, value)?.unwrap_or_default();
                    }
                    "key" | "group" | "label" | "changedcontent" | "removedcontent" => {
                        typed::<String>(&path, value)?;
                    }
                    "completegroup" => {
                        typed::<bool>(&path, value)?;
                    }
                    "setmarker" => {}
                    _ => self.unknown_keys.push(path),
                }
            }
            texts.extend(content.filter(|_| !is_gone));
        }
        self.instruction_context = Some(texts);
        Ok(())
    }
}

/// A key of the answer.
struct Entry {
    /// The key in lower case, without underscores.
    name: String,
    /// The key as written.
    key: String,
    value: Value,
}

impl Entry {
    /// Adds a key, unless its value is null. If two spellings of the same key have different values, that
    /// is an error.
    fn note(self, entries: &mut Vec<Self>) -> Result<(), ReadError> {
        if self.value.is_null() {
            return Ok(());
        }
        match entries.iter().find(|entry| entry.name == self.name) {
            Some(before) if before.value != self.value => Err(ReadError::invalid(format!(
                "`{}` is given twice with different values",
                self.key
            ))),
            Some(_) => Ok(()),
            None => {
                entries.push(self);
                Ok(())
            }
        }
    }
}

fn normal(key: &str) -> String {
    key.chars()
        .filter(|c| *c != '_')
        .flat_map(char::to_lowercase)
        .collect()
}

fn typed<T: for<'de> Deserialize<'de>>(key: &str, value: Value) -> Result<Option<T>, ReadError> {
    serde_json::from_value(value).map_err(|error| ReadError::invalid(format!("`{key}`: {error}")))
}

/// Reads a value of `decision`. Returns `None` for an empty string, which counts as absent.
fn decision(key: &str, word: &str) -> Result<Option<Decision>, ReadError> {
    if word == "block" {
        return Ok(Some(Decision::Block));
    }
    let expected = "expected `allow`, `ask`, `deny` or `block`";
    permission(key, word)
        .map(|permission| permission.map(Decision::Permission))
        .map_err(|_| ReadError::invalid(format!("`{key}` is `{word}`, {expected}")))
}

fn permission(key: &str, word: &str) -> Result<Option<Permission>, ReadError> {
    match word {
        "" => Ok(None),
        "allow" => Ok(Some(Permission::Allow)),
        "ask" => Ok(Some(Permission::Ask)),
        "deny" => Ok(Some(Permission::Deny)),
        _ => Err(ReadError::invalid(format!(
            "`{key}` is `{word}`, expected `allow`, `ask` or `deny`"
        ))),
    }
}

/// Reads an object whose values must all be strings.
fn texts(key: &str, value: Value) -> Result<Option<JsonObject>, ReadError> {
    let object: Option<JsonObject> = typed(key, value)?;
    match object
        .iter()
        .flatten()
        .find(|(_, value)| !value.is_string())
    {
        Some((name, _)) => Err(ReadError::invalid(format!(
            "`{key}.{name}` is not a string"
        ))),
        None => Ok(object),
    }
}
