//! Everything that distinguishes a hook from other hooks of the same event.
//!
//! The engine runs hooks with equal definitions only once, and an approval is tied to one definition.
//! Both use the [`Definition`] as a value. Nothing parses its text.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The definition of a hook: its keys and values, without null and empty values. Equal definitions have
/// equal texts, even if their variables are in a different order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definition {
    /// A list and not a map, because the order of the fields is part of the definition.
    fields: Vec<(String, Value)>,
}

impl Definition {
    /// Starts the definition of a hook in this kind of file, such as `native` or `docker-agent`.
    pub fn of(file: &str) -> Self {
        Self {
            fields: vec![("file".to_owned(), Value::from(file))],
        }
    }

    /// Adds or replaces a field, unless the value is `None`.
    #[must_use]
    pub fn field(mut self, key: &str, value: Option<impl Into<Value>>) -> Self {
        if let Some(value) = value {
            let value = value.into();
            match self.fields.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => *known = value,
                None => self.fields.push((key.to_owned(), value)),
            }
        }
        self
    }

    /// Adds a list, unless it is empty.
    #[must_use]
    pub fn list(self, key: &str, items: &[String]) -> Self {
        self.field(key, (!items.is_empty()).then(|| Value::from(items)))
    }

    /// Adds variables, sorted by name, unless there are none.
    #[must_use]
    pub fn variables(self, key: &str, variables: &[(String, String)]) -> Self {
        let sorted: BTreeMap<_, _> = variables.iter().cloned().collect();
        let variables: Map<String, Value> = sorted
            .into_iter()
            .map(|(name, value)| (name, Value::from(value)))
            .collect();
        self.field(
            key,
            (!variables.is_empty()).then_some(Value::Object(variables)),
        )
    }

    /// Returns the fields in the order in which they were added.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the text by which the engine compares definitions.
    pub fn to_text(&self) -> String {
        let fields = self.fields.iter();
        let fields = fields.map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    }
}
