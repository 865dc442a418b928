//! Reads the values of keys that agents and toolsets share.

use crate::fields::wrong;
use crate::report::Report;
use crate::tree::{Node, Value};

/// Reads a switch that restricts an agent. An invalid value is reported as an error and counts as `true`.
pub(super) fn read_boolean(report: &mut Report, key: &str, node: &Node) -> bool {
    if let Value::Bool(value) = node.value {
        return value;
    }
    wrong::<()>(report, key, node, "`true` or `false`");
    true
}

/// Reads a limit, where 0 means no limit. An invalid value is an error, because ignoring it would remove
/// the limit.
pub(super) fn read_count(report: &mut Report, key: &str, node: &Node) -> Option<u32> {
    let number = node.as_number().and_then(|number| number.integer);
    let count = number.and_then(|number| u32::try_from(number).ok());
    let count = count.or_else(|| wrong(report, key, node, "a whole number, 0 or more"));
    count.filter(|count| *count > 0)
}

/// Reads a list of strings.
pub(super) fn read_names(report: &mut Report, key: &str, node: &Node) -> Vec<String> {
    let Some(items) = node.as_list() else {
        wrong::<()>(report, key, node, "a list of strings");
        return Vec::new();
    };
    let mut texts = Vec::new();
    for item in items {
        if let Some(text) = item.as_text() {
            texts.push(text.to_owned());
        } else if !item.is_broken() {
            let message = format!("an item of `{key}` cannot be {}", item.describe());
            report.add(report.problem(item.span, message).allowed("a string"));
        }
    }
    texts
}
