//! The meaning of JSON values for programs in Python.

use serde_json::Value;

/// Returns whether Python treats a value as true in a condition.
pub fn is_true_in_python(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
    }
}
