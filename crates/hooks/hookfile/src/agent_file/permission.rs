//! The permission rules of an agent file.
//!
//! | written | meaning |
//! |---|---|
//! | `shell` | every call to the tool; `*` stands for any text |
//! | `shell:cmd=git *` or `shell(cmd=git *)` | calls whose argument matches |
//!
//! This module checks only the form of the rules. It returns every rule with an argument as `shell(cmd=git *)`.

use crate::excerpt::shorten;
use crate::fields::{Empty, Fields, wrong};
use crate::report::Report;
use crate::tree::Node;

/// The keys of `permissions`.
const PERMISSIONS: &[&str] = &["allow", "ask", "deny"];
/// The forms of a rule, for messages.
const FORM: &str = "`TOOL`, `TOOL:ARGUMENT=PATTERN` or `TOOL(ARGUMENT=PATTERN)`";

/// The rules of an agent file, each as `TOOL` or `TOOL(ARGUMENT=PATTERN)`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PermissionRules {
    /// Calls that run without a question.
    pub allow: Vec<String>,
    /// Calls that the user must confirm.
    pub ask: Vec<String>,
    /// Calls that never run.
    pub deny: Vec<String>,
}

/// Reads the rules. An invalid rule is an error, because ignoring a deny rule would let calls through.
pub(crate) fn read(report: &mut Report, node: &Node) -> PermissionRules {
    let fields = Fields::read(report, node, "`permissions`", PERMISSIONS, Empty::Absent);
    let Some(fields) = fields else {
        return PermissionRules::default();
    };
    let mut list = |key| read_list(report, &fields, key);
    PermissionRules {
        allow: list("allow"),
        ask: list("ask"),
        deny: list("deny"),
    }
}

fn read_list(report: &mut Report, fields: &Fields<'_>, key: &str) -> Vec<String> {
    let Some(entry) = fields.entry(key) else {
        return Vec::new();
    };
    let Some(items) = entry.value.as_list() else {
        return wrong(report, key, &entry.value, "a list of rules").unwrap_or_default();
    };
    let mut rules = Vec::new();
    for item in items {
        let Some(text) = item.as_text() else {
            if !item.is_broken() {
                let message = format!("a rule of `{key}` cannot be {}", item.describe());
                report.add(report.problem(item.span, message).allowed(FORM));
            }
            continue;
        };
        if let Some(rule) = normalised(text) {
            rules.push(rule);
        } else {
            let message = format!("`{}` is not a permission rule", shorten(text));
            report.add(report.problem(item.span, message).allowed(FORM));
        }
    }
    rules
}

/// Returns a rule as `TOOL` or `TOOL(ARGUMENT=PATTERN)`.
fn normalised(text: &str) -> Option<String> {
    let text = text.trim();
    let is_name = |name: &str| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "()=".contains(c))
    };
    let (tool, argument) = match (text.split_once('('), text.split_once(':')) {
        (Some((tool, rest)), _) if is_name(tool) && !tool.contains(':') => {
            (tool, rest.strip_suffix(')')?)
        }
        (_, Some((tool, rest))) => (tool, rest),
        (_, None) => return is_name(text).then(|| text.to_owned()),
    };
    let (name, pattern) = argument.split_once('=')?;
    // Without this check, a second argument would become part of the first argument's pattern.
    let has_more = pattern
        .split(':')
        .skip(1)
        .any(|part| part.split_once('=').is_some_and(|(name, _)| is_name(name)));
    let is_rule = is_name(tool) && is_name(name) && !name.contains(':') && !pattern.is_empty();
    (is_rule && !has_more).then(|| format!("{tool}({name}={pattern})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_understood_in_both_forms() {
        for (text, expected) in [
            ("shell", Some("shell")),
            ("read_*", Some("read_*")),
            ("shell:cmd=git *", Some("shell(cmd=git *)")),
            ("shell(cmd=git *)", Some("shell(cmd=git *)")),
            ("shell:cmd=(a)", Some("shell(cmd=(a))")),
            ("shell:cmd=curl http://*", Some("shell(cmd=curl http://*)")),
            ("edit_file:path=/a*:mode=x", None),
            ("mcp:github:get_*", None),
            ("shell:cmd", None),
            ("shell(cmd)", None),
            ("shell(cmd=a", None),
            ("two words", None),
            ("", None),
        ] {
            assert_eq!(normalised(text).as_deref(), expected, "{text}");
        }
    }
}
