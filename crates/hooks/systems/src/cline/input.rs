//! The arguments of Cline's tools, which accept several forms of the same list.

use serde_json::{Value, json};

/// An argument that is a list: the tool, the list, its other names, and how an item is written.
type List = (
    &'static str,
    &'static str,
    &'static [&'static str],
    fn(Value) -> Value,
);

const LISTS: &[List] = &[
    (
        "run_commands",
        "commands",
        &["command", "cmd"],
        command_line,
    ),
    ("read_files", "files", &["paths", "file_paths"], file),
];

/// Returns the arguments of a call in the form that the table of tools describes.
pub(super) fn normalised(tool: &str, mut input: Value) -> Value {
    let row = LISTS.iter().find(|(name, ..)| *name == tool);
    let (Some((_, list, aliases, item)), Some(object)) = (row, input.as_object_mut()) else {
        return input;
    };
    if !object.contains_key(*list) {
        // Several names at once are ambiguous. They stay, and the call is refused.
        let given = aliases.iter().filter(|alias| object.contains_key(**alias));
        if let [alias] = given.collect::<Vec<_>>().as_slice() {
            let value = object.remove(**alias).unwrap_or_default();
            object.insert((*list).to_owned(), value);
        }
    }
    if let Some(value) = object.get_mut(*list) {
        if !value.is_array() {
            *value = Value::Array(vec![value.take()]);
        }
        for given in value.as_array_mut().into_iter().flatten() {
            *given = item(given.take());
        }
    }
    input
}

/// Returns a command as a line: `{command, args}` becomes words that a shell splits in the same way.
fn command_line(command: Value) -> Value {
    let program = command.get("command").and_then(Value::as_str);
    let Some(program) = program else {
        return command;
    };
    let given = command.get("args").and_then(Value::as_array);
    let mut words = vec![quoted(program)];
    for word in given.into_iter().flatten() {
        let Some(word) = word.as_str() else {
            return command;
        };
        words.push(quoted(word));
    }
    words.join(" ").into()
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a file as an object: a path becomes `{path}`.
fn file(file: Value) -> Value {
    if file.is_string() {
        return json!({ "path": file });
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_list_becomes_the_form_of_the_table() {
        for (tool, input, expected) in [
            (
                "run_commands",
                json!({"commands": ["ls"]}),
                json!({"commands": ["ls"]}),
            ),
            (
                "run_commands",
                json!({"commands": "ls"}),
                json!({"commands": ["ls"]}),
            ),
            (
                "run_commands",
                json!({"cmd": "ls"}),
                json!({"commands": ["ls"]}),
            ),
            (
                "run_commands",
                json!({"commands": [{"command": "git", "args": ["commit", "-m", "it's"]}]}),
                json!({"commands": [r"git commit -m 'it'\''s'"]}),
            ),
            (
                "run_commands",
                json!({"command": "ls", "cmd": "rm"}),
                json!({"command": "ls", "cmd": "rm"}),
            ),
            (
                "read_files",
                json!({"paths": ["a"]}),
                json!({"files": [{"path": "a"}]}),
            ),
            (
                "read_files",
                json!({"files": [{"path": "a", "start_line": 2}]}),
                json!({"files": [{"path": "a", "start_line": 2}]}),
            ),
            ("editor", json!({"path": "a"}), json!({"path": "a"})),
        ] {
            assert_eq!(normalised(tool, input), expected);
        }
    }
}
