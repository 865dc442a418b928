//! The condition of a hook: a permission rule such as `Bash(git *)`, for calls of one tool.

use serde_json::Value;
use tenterhook_protocol::JsonObject;

/// The arguments that have what a rule is about, in the order in which they are looked up.
const SUBJECTS: &[&str] = &["command", "file_path", "path", "url", "pattern", "query"];

/// A condition. If it is unknown whether it is met, the hook runs.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    tool: String,
    pattern: Option<String>,
}

impl Condition {
    /// Reads a rule: the name of a tool, and optionally a pattern in brackets.
    pub(crate) fn new(rule: &str) -> Self {
        let rule = rule.trim();
        let parts = rule
            .split_once('(')
            .and_then(|(tool, rest)| Some((tool.trim(), rest.strip_suffix(')')?)));
        match parts {
            Some((tool, pattern)) => Self {
                tool: tool.to_owned(),
                pattern: Some(pattern.to_owned()),
            },
            None => Self {
                tool: rule.to_owned(),
                pattern: None,
            },
        }
    }

    /// Returns whether a call may be one that the rule is about.
    pub(crate) fn may_be_met(&self, tool: &str, input: &JsonObject) -> bool {
        if tool != self.tool {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let found = SUBJECTS
            .iter()
            .find_map(|key| Some((*key, input.get(*key)?)));
        let Some((key, Value::String(subject))) = found else {
            return true;
        };
        if key == "command" {
            // Each part of a longer line could be the command that the rule is about.
            let is_compound = subject.contains(['&', '|', ';', '\n', '`', '$', '(', '<', '>']);
            let prefix = pattern.strip_suffix(":*");
            let prefixed = prefix.map(|prefix| format!("{prefix}*"));
            return is_compound || is_match(prefixed.as_deref().unwrap_or(pattern), subject.trim());
        }
        let pattern = pattern.trim_start_matches("./").trim_start_matches("~/");
        let pattern = pattern.trim_start_matches('/').replace("**", "*");
        is_match(&pattern, subject) || is_match(&format!("*/{pattern}"), subject)
    }
}

/// Returns whether a pattern, in which `*` stands for any text, matches the whole subject.
fn is_match(pattern: &str, subject: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| subject.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            match rest.split_once(part) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hook_runs_for_calls_that_its_rule_may_be_about() {
        for (rule, tool, input, expected) in [
            ("Bash", "Bash", json!({ "command": "ls" }), true),
            ("Bash", "Edit", json!({ "file_path": "/a" }), false),
            (
                "Bash(git *)",
                "Bash",
                json!({ "command": "git push" }),
                true,
            ),
            ("Bash(git *)", "Bash", json!({ "command": "ls" }), false),
            (
                "Bash(git *)",
                "Bash",
                json!({ "command": "ls && git push" }),
                true,
            ),
            (
                "Bash(npm run:*)",
                "Bash",
                json!({ "command": "npm run build" }),
                true,
            ),
            ("Bash(rm)", "Bash", json!({ "command": "rmdir" }), false),
            (
                "Edit(*.ts)",
                "Edit",
                json!({ "file_path": "/p/src/a.ts" }),
                true,
            ),
            (
                "Edit(*.ts)",
                "Edit",
                json!({ "file_path": "/p/src/a.rs" }),
                false,
            ),
            (
                "Edit(./src/**)",
                "Edit",
                json!({ "file_path": "/p/src/b/a.rs" }),
                true,
            ),
            (
                "Read(.env)",
                "Read",
                json!({ "file_path": "/p/.env" }),
                true,
            ),
            (
                "Read(.env)",
                "Read",
                json!({ "file_path": "/p/a.env" }),
                false,
            ),
            ("Agent(Explore)", "Agent", json!({ "prompt": "x" }), true),
        ] {
            let input = input.as_object().unwrap();
            let found = Condition::new(rule).may_be_met(tool, input);
            assert_eq!(found, expected, "{rule} {tool} {input:?}");
        }
    }
}
