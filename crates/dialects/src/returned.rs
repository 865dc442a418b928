//! Reading the objects that handlers in a worker return.

use serde_json::Value;
use tenterhook::ReadError;
use tenterhook_protocol::AnyEffect;

/// The reason of a stop whose handler gave none.
pub(crate) const NO_REASON: &str = "stopped by a hook";

/// Returns the reason of a stop. A reason that is no text does not take the stop back.
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
