//! Writes a hook's definition as the text that the user reads and approves.

use std::fmt::Write as _;

use tenterhook_hookfile::{HookAction, HookDeclaration};

/// Returns the whole definition of a hook, one line per setting.
pub(crate) fn definition_text(declaration: &HookDeclaration) -> String {
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        // Nothing is trimmed, because an invisible space can make it a different command.
        for (place, part) in value.split('\n').enumerate() {
            // Writing to a `String` cannot fail.
            let _ = match (place, part) {
                (0, _) => writeln!(text, "{key}: {part}"),
                (_, "") => writeln!(text),
                (_, _) => writeln!(text, "  {part}"),
            };
        }
    };
    let events: Vec<&str> = declaration
        .events
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    line("event", &events.join(", "));
    line("matcher", &declaration.matcher.to_string());
    if let Some(timeout) = declaration.timeout {
        line("timeout", &format!("{} s", timeout.as_secs_f64()));
    }
    let known = ["event", "matcher", "timeout"];
    let fields = declaration.definition.fields();
    for (key, value) in fields.filter(|(key, _)| !known.contains(key)) {
        let key = if key == "file" { "contract" } else { key };
        match value.as_str() {
            Some(value) => line(key, value),
            None => line(key, &value.to_string()),
        }
    }
    if let HookAction::Model(model) = &declaration.action {
        // The name in the file may be an alias.
        line("asks", &model.model);
    }
    if let HookAction::Http(http) = &declaration.action {
        for header in &http.headers {
            line(&format!("header {}", header.name), &header.value);
        }
    }
    text
}
