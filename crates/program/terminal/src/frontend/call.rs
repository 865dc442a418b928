//! Describes a tool call for people: the tool, its arguments, and what it would change in a file.

use anstream::adapter::strip_str;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};
use tenterhook_engine::JsonObject;
use tenterhook_journal::Redactor;

use super::state::Terminal;
use crate::output::script_output::without_secrets;
use crate::output::{style, styled};
use tenterhook_protocol::escape::{escape_indented, escape_invisible_indented, escape_line};

/// The maximum number of lines of a change that are shown.
const MAX_CHANGE_LINES: usize = 12;

/// The maximum number of lines that are shown of what a script renders.
const MAX_RENDERED_LINES: usize = 40;

/// The arguments of a call, as a person would write them.
pub(super) struct Described {
    line: String,
    /// The changed lines of a file.
    change: Vec<String>,
}

impl Described {
    fn of(tool: &str, input: &JsonObject) -> Self {
        Self::of_change(tool, input).unwrap_or_else(|| Self {
            line: match input.iter().next() {
                Some((_, Value::String(only))) if input.len() == 1 => only.clone(),
                Some(_) => {
                    let mut shown = Value::Object(input.clone());
                    // Values are not redacted, because the user who is asked must see what the call does.
                    Redactor::shared().redact_names(&mut shown);
                    shown.to_string()
                }
                None => String::new(),
            },
            change: Vec::new(),
        })
    }

    /// Describes a call that writes a file. Returns `None` for any other call, and for a call with unexpected
    /// arguments, so that no argument is hidden.
    fn of_change(tool: &str, input: &JsonObject) -> Option<Self> {
        let text = |key: &str| input.get(key)?.as_str();
        let (before, after, keys) = match tool {
            "write_file" => ("", text("content")?, 2),
            "edit_file" => (text("old_text")?, text("new_text")?, 3),
            _ => return None,
        };
        let everywhere = input.get("replace_all").map(Value::as_bool);
        let (is_everywhere, keys) = match everywhere {
            None => (false, keys),
            Some(value) => (value?, keys + 1),
        };
        let all = if is_everywhere { " (everywhere)" } else { "" };
        (input.len() == keys).then_some(Self {
            line: format!("{}{all}", text("path")?),
            change: change(before, after),
        })
    }
}

/// Returns the lines that differ, each with `+` or `-` before it.
fn change(before: &str, after: &str) -> Vec<String> {
    let difference = TextDiff::from_lines(before, after);
    let changes = difference.iter_all_changes().filter_map(|change| {
        let (sign, look) = match change.tag() {
            ChangeTag::Equal => return None,
            ChangeTag::Delete => ('-', style::BAD),
            ChangeTag::Insert => ('+', style::GOOD),
        };
        let line = change.value().trim_end_matches(['\n', '\r']);
        Some(styled(look, format_args!("{sign} {}", escape_line(line))))
    });
    let mut lines: Vec<String> = changes.collect();
    let hidden = lines.len().saturating_sub(MAX_CHANGE_LINES);
    if hidden > 0 {
        lines.truncate(MAX_CHANGE_LINES);
        lines.push(styled(style::QUIET, more(hidden)));
    }
    lines
}

/// Returns a note that says how many lines are not shown.
pub(super) fn more(lines: usize) -> String {
    let lines_are = if lines == 1 { "line" } else { "lines" };
    format!("… {lines} more {lines_are}")
}

/// Returns the lines that a script renders, ready to be printed with `indent` before them. Styles are removed.
pub(super) fn rendered_lines(lines: &[String], indent: &str) -> Vec<String> {
    let all: Vec<&str> = lines.iter().flat_map(|line| line.lines()).collect();
    let shown = all.iter().take(MAX_RENDERED_LINES).map(|line| {
        let plain = strip_str(line).to_string().replace('\t', " ");
        format!("{indent}{}", escape_line(&without_secrets(&plain)))
    });
    let mut shown: Vec<String> = shown.collect();
    if all.len() > MAX_RENDERED_LINES {
        let rest = more(all.len() - MAX_RENDERED_LINES);
        shown.push(format!("{indent}{}", styled(style::QUIET, rest)));
    }
    shown
}

impl Terminal {
    /// Returns the name of a subagent, with a colon, for the beginning of a line. Empty for the main agent.
    pub(super) fn agent_prefix(&self, agent: &str) -> String {
        if agent == self.root {
            String::new()
        } else {
            format!("{}: ", escape_indented(agent, 4))
        }
    }

    /// Returns a tool call as a person would write it. If a subagent makes the call, its name comes first.
    pub(super) fn call_text(&self, agent: &str, tool: &str, input: &JsonObject) -> String {
        let Described { line, change } = Described::of(tool, input);
        let agent = self.agent_prefix(agent);
        // A model can write anything as a tool's name, and no hook checks the name for secrets.
        let tool = styled(style::STRONG, escape_indented(&without_secrets(tool), 4));
        let call = format!("{agent}{tool} {}", escape_invisible_indented(&line, 4));
        let change = change.iter().map(|line| format!("\n    {line}"));
        format!("{}{}", call.trim_end(), change.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_one_line_and_a_change_of_a_file_its_lines() {
        let many = "x\n".repeat(MAX_CHANGE_LINES + 2);
        for (tool, input, line, change) in [
            ("shell", json!({"cmd": "ls"}), "ls", vec![]),
            ("shell", json!({}), "", vec![]),
            (
                "mcp",
                json!({"a": 1, "b": "c"}),
                r#"{"a":1,"b":"c"}"#,
                vec![],
            ),
            (
                "write_file",
                json!({"path": "a", "content": "one\u{1b}\n"}),
                "a",
                vec!["+ one\\u{1b}"],
            ),
            (
                "edit_file",
                json!({"path": "a", "old_text": "one\ntwo", "new_text": "one\n2", "replace_all": true}),
                "a (everywhere)",
                vec!["- two", "+ 2"],
            ),
            (
                "edit_file",
                json!({"path": "a", "old_text": "b", "new_text": "c", "mode": "x"}),
                r#"{"path":"a","old_text":"b","new_text":"c","mode":"x"}"#,
                vec![],
            ),
            (
                "write_file",
                json!({"path": "a", "content": many}),
                "a",
                [vec!["+ x"; MAX_CHANGE_LINES], vec!["… 2 more lines"]].concat(),
            ),
        ] {
            let described = Described::of(tool, input.as_object().unwrap());
            let shown = described.change.iter();
            let shown: Vec<String> = shown.map(|line| strip_str(line).to_string()).collect();
            assert_eq!(
                (described.line.as_str(), shown),
                (line, change.iter().map(|&l| l.to_owned()).collect()),
                "{tool} {input}"
            );
        }
    }
}
