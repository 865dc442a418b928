//! Reading what a finished hook answered.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use tenterhook::{EventInfo, EventKind, ReadError, Reply};
use tenterhook_protocol::AnyEffect;

use super::{EVENTS, output, row};
use crate::reply::stderr_tail;

pub(super) fn read(
    info: &EventInfo,
    reply: &Reply<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    if reply.status != 0 {
        return Err(ReadError::Status {
            status: reply.status,
            stderr: stderr_tail(reply.stderr),
        });
    }
    if reply.stdout_omitted > 0 {
        return Err(ReadError::invalid(format!(
            "the answer is too long: {} bytes were cut out of it",
            reply.stdout_omitted
        )));
    }
    let text = std::str::from_utf8(reply.stdout)
        .map_err(|_| ReadError::invalid("the answer is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(AnyEffect::default());
    }
    let answer: Option<Entries> =
        serde_json::from_str(text).map_err(|error| ReadError::invalid(error.to_string()))?;
    let mut answer = answer.unwrap_or_default();
    answer.check(info.kind, strict)?;
    effect(info, &mut answer)
}

fn effect(info: &EventInfo, answer: &mut Entries) -> Result<AnyEffect, ReadError> {
    if let Some(true) = answer.take("blocked")? {
        let reason: Option<String> = answer.take("reason")?;
        return Ok(info.stopping_effect(reason.unwrap_or_default()));
    }
    let mut effect = AnyEffect::default();
    match answer.take_value("input") {
        None => {}
        Some(input @ Value::Object(_)) => {
            effect.rewrite.insert("whole_input".to_owned(), input);
        }
        Some(_) => {
            return Err(ReadError::invalid(
                "`input` is no JSON object, which tools here run with",
            ));
        }
    }
    if let Some(value) = answer.take_value("output") {
        output::read(&value, &mut effect)?;
    }
    let texts: Option<Vec<String>> = answer.take("follow_up_messages")?;
    let texts = texts.unwrap_or_default().into_iter();
    effect.follow_up = texts.filter(|text| !text.trim().is_empty()).collect();
    Ok(effect)
}

/// The keys of an answer, each once.
#[derive(Debug, Default)]
struct Entries(Vec<(String, Value)>);

impl Entries {
    /// Refuses what cannot be what its author meant, and leaves only the keys of the event.
    fn check(&mut self, kind: EventKind, strict: bool) -> Result<(), ReadError> {
        let own = row(kind).map_or(&[][..], |row| row.keys);
        let known = || EVENTS.iter().flat_map(|event| event.keys);
        for (key, _) in &self.0 {
            if own.contains(&key.as_str()) {
                continue;
            }
            let meant = known().find(|known| known.eq_ignore_ascii_case(key));
            if let Some(meant) = meant.filter(|meant| *meant != key) {
                return Err(ReadError::invalid(format!(
                    "unknown key `{key}`: did you mean `{meant}`?"
                )));
            }
            if strict {
                return Err(ReadError::invalid(format!(
                    "unknown key `{key}`, expected {}",
                    if own.is_empty() {
                        "none".to_owned()
                    } else {
                        format!("some of `{}`", own.join("`, `"))
                    }
                )));
            }
        }
        self.0.retain(|(key, _)| own.contains(&key.as_str()));
        Ok(())
    }

    /// Takes the value of a key; `null` is none.
    fn take_value(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        let (_, value) = self.0.swap_remove(at);
        (!value.is_null()).then_some(value)
    }

    fn take<T: serde::de::DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, ReadError> {
        let value = self.take_value(key);
        value
            .map(serde_json::from_value)
            .transpose()
            .map_err(|error| ReadError::invalid(format!("`{key}`: {error}")))
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object or nothing")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::default();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            if entries.0.iter().any(|(known, _)| *known == key) {
                let problem = format!("the key `{key}` stands there twice");
                return Err(serde::de::Error::custom(problem));
            }
            entries.0.push((key, value));
        }
        Ok(entries)
    }
}
