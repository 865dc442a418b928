//! Reading the objects that handlers in a worker return.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tenterhook::{ReadError, Reply};
use tenterhook_protocol::{AnyEffect, UniqueValue};

/// The reason of a stop whose handler gave none.
pub(crate) const NO_REASON: &str = "stopped by a hook";

/// Reads what a worker reports about one call of a handler. `None` stands for `null`, a handler without an opinion.
pub(crate) fn parse<T: DeserializeOwned>(reply: &Reply<'_>) -> Result<Option<T>, ReadError> {
    let invalid = |error: serde_json::Error| ReadError::invalid(error.to_string());
    let UniqueValue(value) = serde_json::from_slice(reply.stdout).map_err(invalid)?;
    match value {
        Value::Null => Ok(None),
        Value::Object(_) => serde_json::from_value(value).map(Some).map_err(invalid),
        // A list would do for a struct.
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(ReadError::invalid(format!(
                "the worker answered {other}, expected an object or null"
            )))
        }
    }
}

/// Returns whether a handler stops the operation by a flag such as `block` or `cancel`.
///
/// The systems of these handlers read any value in a condition, so a value that counts as true there stops. Any other
/// value that is not `false` is a mistake, which must not pass for consent.
///
/// # Errors
/// When the value is neither a boolean nor counts as true.
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

/// Returns the reason of a stop. A reason that is not text does not revoke the stop.
pub(crate) fn reason(given: Option<&Value>) -> String {
    match given {
        Some(Value::String(reason)) if !reason.is_empty() => reason.clone(),
        None | Some(Value::Null | Value::String(_)) => NO_REASON.to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Says what Python makes of a value in a condition.
pub(crate) fn is_true_in_python(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
    }
}

/// Rewrites a field of the payload where there is a value.
pub(crate) fn rewrite(effect: &mut AnyEffect, field: &str, value: Option<&Value>) {
    let value = value.cloned();
    effect
        .rewrite
        .extend(value.map(|value| (field.to_owned(), value)));
}

/// Adds a list of items to one of the event's lists where there is one.
pub(crate) fn collect(effect: &mut AnyEffect, list: &str, items: Option<&Value>) {
    let items = items.cloned();
    effect
        .collect
        .extend(items.map(|items| (list.to_owned(), items)));
}

/// Returns the summary of a compaction or of a branch: a text, or an object that has one.
pub(crate) fn summary(product: &Value) -> Result<Value, ReadError> {
    let text = if product.is_object() {
        product.get("summary")
    } else {
        Some(product)
    };
    text.filter(|text| text.is_string())
        .cloned()
        .ok_or_else(|| ReadError::invalid("there is no text in `summary`"))
}
