//! Lays out text and JSON in lines.

use serde_json::Value;

/// The longest line of a page in a terminal. Strings and names in JSON are not cut, so a line of JSON may be
/// longer.
pub(crate) const WIDTH: usize = 80;

/// Returns JSON for people: short objects and lists in one line, others over several.
pub(crate) fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write_pretty(value, 0, &mut text);
    text
}

fn write_pretty(value: &Value, indent: usize, text: &mut String) {
    let line = spaced(value);
    let is_nested = matches!(value, Value::Object(_) | Value::Array(_));
    if !is_nested || (indent > 0 && indent + line.chars().count() <= WIDTH - 10) {
        text.push_str(&line);
        return;
    }
    let (open, close, entries): (char, char, Vec<(Option<&String>, &Value)>) = match value {
        Value::Object(object) => {
            let entries = object.iter().map(|(key, value)| (Some(key), value));
            ('{', '}', entries.collect())
        }
        Value::Array(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    if entries.is_empty() {
        text.push_str(&line);
        return;
    }
    text.push(open);
    for (position, (key, value)) in entries.into_iter().enumerate() {
        text.push_str(if position == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(indent + 2));
        if let Some(key) = key {
            text.push_str(&Value::from(key.as_str()).to_string());
            text.push_str(": ");
        }
        write_pretty(value, indent + 2, text);
    }
    text.push('\n');
    text.push_str(&" ".repeat(indent));
    text.push(close);
}

/// Returns JSON in one line, with spaces after colons and commas.
pub(crate) fn spaced(value: &Value) -> String {
    match value {
        Value::Object(object) if !object.is_empty() => {
            let entries = object
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), spaced(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(spaced).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value.to_string()
        }
    }
}

/// Breaks text at spaces. A word that is longer than a line is not broken.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_objects_stay_in_one_line() {
        let value = json!({ "a": 1, "b": { "c": [1, 2] }, "d": {}, "e": "x".repeat(80) });
        let expected = format!(
            "{{\n  \"a\": 1,\n  \"b\": {{ \"c\": [1, 2] }},\n  \"d\": {{}},\n  \"e\": \"{}\"\n}}",
            "x".repeat(80)
        );
        assert_eq!(pretty(&value), expected);
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        assert_eq!(wrap("a bb ccc dddd", 6), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrap("", 6), Vec::<String>::new());
    }
}
