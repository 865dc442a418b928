//! An event that is being read back, with helpers for the readers of all forms.

use serde_json::{Value, json};
use tenterhook_engine::ReadError;
use tenterhook_protocol::JsonObject;

/// An event that is being read back: the captured object, and the payload and origin read from it so far.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) object: &'a JsonObject,
    pub(crate) payload: JsonObject,
    pub(crate) origin: JsonObject,
    /// The catalogue's fields that were read, each with the key in the captured object.
    pub(super) keys: Vec<(&'static str, &'static str)>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(object: &'a JsonObject) -> Self {
        Self {
            object,
            payload: JsonObject::new(),
            origin: JsonObject::new(),
            keys: Vec::new(),
        }
    }

    /// Returns the value of a key, unless it is null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// Copies the value of `key` into the payload's `field`.
    pub(crate) fn copy(&mut self, key: &'static str, field: &'static str) {
        if let Some(value) = self.get(key) {
            self.payload.insert(field.to_owned(), value.clone());
            self.keys.push((field, key));
        }
    }

    /// Copies the value of `key` into the origin's `field`.
    pub(crate) fn copy_origin(&mut self, key: &'static str, field: &'static str) {
        if let Some(value) = self.get(key) {
            self.origin.insert(field.to_owned(), value.clone());
            self.keys.push((field, key));
        }
    }

    /// Copies the name of the agent.
    pub(crate) fn copy_agent(&mut self, key: &'static str) {
        if let Some(value) = self.get(key) {
            self.origin
                .insert("agent".to_owned(), json!({ "name": value }));
            self.keys.push(("agent", key));
        }
    }

    /// Sets a field of an object in the payload, for example of the tool result.
    pub(crate) fn set_in(
        &mut self,
        object: &str,
        field: &str,
        value: Value,
    ) -> Result<(), ReadError> {
        set_in(&mut self.payload, object, field, value)
    }
}

/// Sets a field of an object that is itself a field of the payload.
pub(crate) fn set_in(
    payload: &mut JsonObject,
    object: &str,
    field: &str,
    value: Value,
) -> Result<(), ReadError> {
    let slot = payload
        .entry(object)
        .or_insert_with(|| Value::Object(JsonObject::new()));
    let slot = slot
        .as_object_mut()
        .ok_or_else(|| ReadError::invalid(format!("`{object}` is not an object")))?;
    slot.insert(field.to_owned(), value);
    Ok(())
}

/// Returns the string in a value. `key` names the value in the error.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, ReadError> {
    value
        .as_str()
        .ok_or_else(|| ReadError::invalid(format!("`{key}` is {value}, expected a string")))
}

/// Returns the object in a value. `key` names the value in the error.
pub(crate) fn object<'a>(value: &'a Value, key: &str) -> Result<&'a JsonObject, ReadError> {
    value
        .as_object()
        .ok_or_else(|| ReadError::invalid(format!("`{key}` is {value}, expected an object")))
}

/// Returns the content of a tool result with a single text.
pub(crate) fn text_content(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}
