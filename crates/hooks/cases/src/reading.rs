//! Reads values of a test file as JSON.

use serde_json::{Map, Number, Value};
use tenterhook_engine::JsonObject;
use tenterhook_hookfile::Report;
use tenterhook_hookfile::fields::{Fields, wrong};
use tenterhook_hookfile::tree::{self, Node};

/// Reads the object of a key.
pub(crate) fn object(report: &mut Report, fields: &Fields<'_>, key: &str) -> Option<JsonObject> {
    let node = &fields.entry(key)?.value;
    if node.as_table().is_none() {
        return wrong(report, key, node, "a mapping");
    }
    match value(report, node) {
        Some(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// Returns a value as JSON. Reports a date, which only TOML has, as a problem.
pub(crate) fn value(report: &mut Report, node: &Node) -> Option<Value> {
    Some(match &node.value {
        tree::Value::Null => Value::Null,
        tree::Value::Bool(value) => Value::Bool(*value),
        tree::Value::Number(number) => match number.integer {
            Some(integer) => Value::from(integer),
            None => Number::from_f64(number.float).map_or(Value::Null, Value::Number),
        },
        tree::Value::Text(text) => Value::from(text.as_str()),
        tree::Value::List(items) => {
            let values: Vec<Value> = items
                .iter()
                .filter_map(|item| value(report, item))
                .collect();
            Value::Array(values)
        }
        tree::Value::Table(entries) => {
            let mut object = Map::new();
            for entry in entries {
                object.insert(entry.key.clone(), value(report, &entry.value)?);
            }
            Value::Object(object)
        }
        tree::Value::Date => {
            let problem = report.problem(node.span, "an event cannot contain a date");
            report.add(problem.hint("write the date as text, in quotes"));
            return None;
        }
        tree::Value::Broken => return None,
    })
}
