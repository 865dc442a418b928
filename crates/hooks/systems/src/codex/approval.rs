//! How Codex knows that you trust a hook: by a hash of the hook in its configuration.

use serde_json::{Map, Value, json};
use tenterhook_files::hex_digest;

use crate::host::installation::{ApprovalValue, InstalledEntry, SelfApproval};

/// The time in seconds that Codex gives a hook without a `timeout`.
const DEFAULT_TIMEOUT: u32 = 600;

pub(super) static APPROVAL: SelfApproval = SelfApproval {
    path: ".codex/config.toml",
    variable: Some(("CODEX_HOME", "config.toml")),
    question: "Codex skips hooks that you have not trusted. Trust the hooks of Tenterhook in Codex?",
    by_hand: "start `codex`, enter `/hooks`, and trust the hooks of Tenterhook",
    value,
};

fn value(entry: &InstalledEntry<'_>) -> ApprovalValue {
    let event = snake_case(entry.list);
    ApprovalValue {
        tables: vec![
            "hooks".to_owned(),
            "state".to_owned(),
            // The last number is the position of the handler in its entry.
            format!("{}:{event}:{}:0", entry.file, entry.index),
        ],
        key: "trusted_hash",
        value: trusted_hash(&event, entry.element),
    }
}

/// Returns the hash of an entry with one handler. Codex hashes the entry with its defaults as JSON with sorted keys.
fn trusted_hash(event: &str, element: &Value) -> String {
    let handler = element.pointer("/hooks/0").and_then(Value::as_object);
    let mut hook = Map::new();
    for (key, default) in [
        ("async", json!(false)),
        ("command", Value::Null),
        ("statusMessage", Value::Null),
        ("timeout", json!(DEFAULT_TIMEOUT)),
        ("type", json!("command")),
    ] {
        let value = handler.and_then(|handler| handler.get(key)).cloned();
        let value = value.unwrap_or(default);
        if !value.is_null() {
            hook.insert(key.to_owned(), value);
        }
    }
    let mut identity = Map::new();
    identity.insert("event_name".to_owned(), event.into());
    identity.insert("hooks".to_owned(), json!([hook]));
    if let Some(matcher) = element.get("matcher") {
        identity.insert("matcher".to_owned(), matcher.clone());
    }
    let identity = Value::Object(identity).to_string();
    format!("sha256:{}", hex_digest(identity))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_the_entry_with_its_defaults_but_not_its_file() {
        let element = json!({"hooks": [{"type": "command", "command": "x"}], "matcher": "Bash"});
        let entry = |file, element| {
            value(&InstalledEntry {
                file,
                list: "PreToolUse",
                index: 2,
                element,
            })
        };
        let first = entry("/home/ada/.codex/hooks.json", &element);
        assert_eq!(
            first.tables,
            [
                "hooks",
                "state",
                "/home/ada/.codex/hooks.json:pre_tool_use:2:0"
            ]
        );
        let text = r#"{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"x","timeout":600,"type":"command"}],"matcher":"Bash"}"#;
        assert_eq!(first.value, format!("sha256:{}", hex_digest(text)));
        assert_eq!(entry("/elsewhere/hooks.json", &element).value, first.value);
        let other = json!({"hooks": [{"type": "command", "command": "x", "timeout": 60}]});
        assert_ne!(entry("/elsewhere/hooks.json", &other).value, first.value);
    }
}
