//! Reads the objects that handlers in a worker return.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tenterhook_engine::{ReadError, Reply};
use tenterhook_protocol::{AnyEffect, UniqueValue};

use crate::reply::returned_json;

/// The reason of a stop if the handler gives no reason.
pub(crate) const NO_REASON: &str = "stopped by a hook";

/// Reads what a worker reports about one call of a handler. Returns `None` for `null`, which means that
/// the handler has no opinion.
pub(crate) fn parse<T: DeserializeOwned>(reply: &Reply<'_>) -> Result<Option<T>, ReadError> {
    let invalid = |error: serde_json::Error| ReadError::invalid(error.to_string());
    let UniqueValue(value) = serde_json::from_slice(returned_json(reply)?).map_err(invalid)?;
    match value {
        Value::Null => Ok(None),
        Value::Object(_) => serde_json::from_value(value).map(Some).map_err(invalid),
        // Serde would also accept a list for a struct, so allow only objects.
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(ReadError::invalid(format!(
                "the worker answered {other}, expected an object or null"
            )))
        }
    }
}

/// Returns whether a handler stops the operation by a flag such as `block` or `cancel`.
///
/// The original systems test the flag in a condition, so every value that is true in their language stops
/// the operation. Any other value except `false` is a mistake and must not count as consent.
///
/// # Errors
/// Fails if the value is neither a boolean nor true in the handler's language.
pub(crate) fn stops(
    flag: &str,
    value: Option<&Value>,
    is_true: fn(&Value) -> bool,
) -> Result<bool, ReadError> {
    match value {
        None | Some(Value::Bool(false)) => Ok(false),
        Some(value) if is_true(value) => Ok(true),
        Some(other) => Err(ReadError::invalid(format!(
            "`{flag}` is {other}, expected true or false"
        ))),
    }
}

/// Returns the reason of a stop. A reason that is not a string does not revoke the stop; it is shown as JSON.
pub(crate) fn reason(given: Option<&Value>) -> String {
    match given {
        Some(Value::String(reason)) if !reason.is_empty() => reason.clone(),
        None | Some(Value::Null | Value::String(_)) => NO_REASON.to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Rewrites a field of the payload if there is a value.
pub(crate) fn rewrite(effect: &mut AnyEffect, field: &str, value: Option<&Value>) {
    let value = value.cloned();
    effect
        .rewrite
        .extend(value.map(|value| (field.to_owned(), value)));
}

/// Adds items to one of the event's lists if there are any.
pub(crate) fn collect(effect: &mut AnyEffect, list: &str, items: Option<&Value>) {
    let items = items.cloned();
    effect
        .collect
        .extend(items.map(|items| (list.to_owned(), items)));
}

/// Returns the summary of a compaction or of a branch: a string, or the string in `summary` of an object.
pub(crate) fn summary(product: &Value) -> Result<Value, ReadError> {
    let text = if product.is_object() {
        product.get("summary")
    } else {
        Some(product)
    };
    text.filter(|text| text.is_string())
        .cloned()
        .ok_or_else(|| ReadError::invalid("`summary` is missing or not a string"))
}
