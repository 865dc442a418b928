//! A JSON object that a hook answered, whose keys are read one by one.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use tenterhook_engine::ReadError;
use tenterhook_protocol::UniqueValue;

/// The keys and values of an answer. No object in it has a key twice.
#[derive(Debug, Default)]
pub(crate) struct Entries(Vec<(String, Value)>);

impl Entries {
    /// Keeps only the keys in `own`, which are the keys of the event.
    ///
    /// # Errors
    /// Fails if a key differs from a key in `known` only in case. `known` are the keys of all events. If
    /// `strict` is set, every other unknown key is an error too.
    pub(crate) fn check<I: Iterator<Item = &'static str>>(
        &mut self,
        own: &[&str],
        known: impl Fn() -> I,
        strict: bool,
    ) -> Result<(), ReadError> {
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
                        "no keys".to_owned()
                    } else {
                        format!("one of `{}`", own.join("`, `"))
                    }
                )));
            }
        }
        self.0.retain(|(key, _)| own.contains(&key.as_str()));
        Ok(())
    }

    /// Removes a key and returns its value. `null` counts as absent.
    pub(crate) fn take_value(&mut self, key: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        let (_, value) = self.0.swap_remove(at);
        (!value.is_null()).then_some(value)
    }

    pub(crate) fn take<T: serde::de::DeserializeOwned>(
        &mut self,
        key: &str,
    ) -> Result<Option<T>, ReadError> {
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
        while let Some((key, UniqueValue(value))) = map.next_entry::<String, UniqueValue>()? {
            if entries.0.iter().any(|(known, _)| *known == key) {
                let problem = format!("the key `{key}` appears twice");
                return Err(serde::de::Error::custom(problem));
            }
            entries.0.push((key, value));
        }
        Ok(entries)
    }
}
