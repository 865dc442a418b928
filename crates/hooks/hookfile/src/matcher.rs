//! Reads the key `matcher`, which is the same in native files and in agent files.

use tenterhook_engine::Matcher;
use tenterhook_systems::tools;

use crate::excerpt::shorten;
use crate::fields::{Fields, Text};
use crate::report::Report;

/// Reads a matcher. Does not check whether the event supports matchers.
pub(crate) fn compile_matcher(report: &mut Report, fields: &Fields<'_>) -> Matcher {
    let Some(text) = fields.text(report, "matcher") else {
        return Matcher::everything();
    };
    check_no_rule(report, text, tools::known_tool_names().into_iter(), false);
    match Matcher::parse(text.text) {
        Ok(matcher) => {
            warn_of_spaces(report, text);
            matcher
        }
        Err(error) => {
            // The regex crate's error shows the expression on several lines. Only the last line has the reason.
            let reason = error.source.to_string();
            let reason = reason.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ").to_owned();
            let message = format!("invalid matcher `{}`: {reason}", shorten(text.text));
            let problem = report
                .problem(text.span, message)
                .allowed("`*`, words joined by `|`, or a regular expression for the whole subject");
            report.add(if text.text.starts_with('*') {
                problem.hint("use `.*` to match any text; `*` matches everything only when it is the whole matcher")
            } else {
                problem
            });
            Matcher::everything()
        }
    }
}

/// Reports a matcher in the form of a permission rule, such as `Bash(git *)`. As a regular expression, it matches no
/// tool. `known` are the names of tools.
pub(crate) fn check_no_rule<'a>(
    report: &mut Report,
    written: Text<'_>,
    mut known: impl Iterator<Item = &'a str>,
    has_condition: bool,
) {
    let text = written.text.trim();
    let parts = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let Some((tool, pattern)) = parts else {
        return;
    };
    // In `mcp__github__(get|list)`, the name of the tool continues in the brackets.
    let is_mcp = tool.starts_with("mcp__") && !tool.ends_with('_');
    let is_rule = pattern.contains([' ', '*', '/', '.', ':']) || !pattern.contains('|');
    if !is_rule || !(is_mcp || known.any(|name| name == tool)) {
        return;
    }
    let message = format!(
        "the matcher `{}` has the form of a permission rule, and matches no tool",
        shorten(text)
    );
    let problem = report.problem(written.span, message);
    report.add(if has_condition {
        problem.allowed(format!(
            "the matcher `{tool}`, and the key `if` with `{}` in the hook",
            shorten(text)
        ))
    } else {
        problem
            .allowed(format!("the matcher `{tool}`"))
            .hint("the hook itself can look at the arguments, for example with the built-in `deny_commands`")
    });
}

/// Warns about words with spaces around `|`. The spaces make the matcher a regular expression that has to
/// match them.
fn warn_of_spaces(report: &mut Report, text: Text<'_>) {
    let is_word = |word: &str| {
        !word.is_empty()
            && word
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let words: Vec<&str> = text.text.split('|').map(str::trim).collect();
    let meant = words.join("|");
    if meant != text.text && words.iter().all(|word| is_word(word)) {
        let message = format!(
            "the spaces in `{}` are part of the pattern",
            shorten(text.text)
        );
        report.add(
            report
                .warning(text.span, message)
                .suggestion(Some(shorten(&meant)))
                .hint("write the words without spaces around `|`"),
        );
    }
}
