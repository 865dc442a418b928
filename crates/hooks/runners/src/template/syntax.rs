//! Detects which of the two syntaxes a template is written in.
//!
//! | what the template contains | syntax |
//! |---|---|
//! | an action that starts with `.`, `$` or `/*`, or has an operand that starts with `.` or `$` | Go |
//! | an action that starts with a keyword of Go: `if`, `else`, `end`, `range`, `with` … | Go |
//! | an action that starts with a function of Go, followed by a literal | Go |
//! | `{% … %}`, `{# … #}` | native |
//! | an action that starts with any other word | native |
//!
//! An action that contains only literals does not show the syntax. A template without any of these
//! signs has the native syntax.

use super::error::UnlocatedError;
use super::functions::{FILTERS, TESTS};
use super::go::{FUNCTIONS, KEYWORDS};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    /// The native syntax, which is minijinja's.
    Jinja,
    Go,
}

/// A part of a template in braces.
struct Tag<'a> {
    at: usize,
    text: &'a str,
    /// The text between the braces of an action. `None` for tags that only the native syntax has.
    action: Option<&'a str>,
}

/// Returns the syntax of a template.
///
/// # Errors
/// Fails if the template mixes both syntaxes.
pub(super) fn of(source: &str) -> Result<Syntax, UnlocatedError> {
    let mut known: Option<(Syntax, &str)> = None;
    for tag in tags(source) {
        let Some(syntax) = tag.action.map_or(Some(Syntax::Jinja), of_action) else {
            continue;
        };
        match known {
            Some((first, text)) if first != syntax => {
                let message = format!(
                    "`{}` after `{text}`: a template cannot mix two syntaxes",
                    tag.text
                );
                return Err(UnlocatedError::new(tag.at, message)
                    .allowed("either `{{ tool_name }}` or `{{ .ToolName }}` throughout"));
            }
            _ => known = Some((syntax, tag.text)),
        }
    }
    Ok(known.map_or(Syntax::Jinja, |(syntax, _)| syntax))
}

/// Returns the parts in braces, in order.
fn tags(source: &str) -> Vec<Tag<'_>> {
    const PAIRS: [(&str, &str); 3] = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
    let mut tags = Vec::new();
    let mut from = 0;
    while let Some(rest) = source.get(from..) {
        let found = PAIRS
            .iter()
            .filter_map(|pair| Some((rest.find(pair.0)?, pair)))
            .min_by_key(|(at, _)| *at);
        let Some((at, (open, close))) = found else {
            break;
        };
        let inner = rest.get(at + 2..).unwrap_or_default();
        let length = inner.find(close);
        // An unclosed tag is text in one syntax and an error in the other, so it does not show the syntax.
        if let Some(length) = length {
            let action = inner.get(..length).filter(|_| *open == "{{");
            let text = rest.get(at..at + length + 4).unwrap_or_default();
            tags.push(Tag {
                at: from + at,
                text,
                action,
            });
        }
        from += at + length.map_or(2, |length| length + 4);
    }
    tags
}

fn of_action(action: &str) -> Option<Syntax> {
    let action = action.strip_prefix('-').unwrap_or(action).trim_start();
    if action.starts_with("/*") || has_go_operand(action) {
        return Some(Syntax::Go);
    }
    let begin = action.trim_start_matches(['(', ' ']);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let end = begin.find(|c| !is_word(c)).unwrap_or(begin.len());
    let (word, rest) = begin.split_at_checked(end)?;
    if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let has_literal = rest.starts_with(' ')
        && rest
            .trim_start()
            .starts_with(|c: char| c == '"' || c == '`' || c.is_ascii_digit());
    let is_function = FUNCTIONS.iter().any(|function| function.name == word);
    if KEYWORDS.contains(&word) || (is_function && has_literal) {
        Some(Syntax::Go)
    } else {
        Some(Syntax::Jinja)
    }
}

/// Returns whether an operand outside string literals starts with a dot or a dollar sign.
fn has_go_operand(action: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for c in action.chars() {
        match quote {
            Some(open) if c == open && before != '\\' => quote = None,
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None if matches!(c, '.' | '$') && (before.is_whitespace() || before == '(') => {
                return true;
            }
            Some(_) | None => {}
        }
        before = c;
    }
    false
}

/// Returns the byte offset of a name in an action, or 0 if no action contains it.
pub(super) fn position_of(source: &str, name: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    for tag in tags(source) {
        let mut from = 0;
        while let Some(at) = tag.text.get(from..).and_then(|rest| rest.find(name)) {
            let start = from + at;
            let end = start + name.len();
            let before = tag.text.get(..start).and_then(|text| text.chars().last());
            let after = tag.text.get(end..).and_then(|text| text.chars().next());
            let is_whole = |c: Option<char>| c.is_none_or(|c| !is_part(c));
            if is_whole(before) && is_whole(after.filter(|c| *c != '.')) {
                return tag.at + start;
            }
            from = end;
        }
    }
    0
}

/// Checks that the filters, tests and methods of a native template exist. The library would check
/// them only while it renders.
pub(super) fn check_words(source: &str) -> Result<(), UnlocatedError> {
    for tag in tags(source) {
        if tag.text.starts_with("{#") {
            continue;
        }
        let mut before = ["", ""];
        for (at, word) in words(tag.text) {
            let (kind, known) = match before {
                [_, "|"] => ("filter", FILTERS),
                [_, "is"] if word != "not" => ("test", TESTS),
                ["is", "not"] => ("test", TESTS),
                _ => ("", &[][..]),
            };
            if word == "(" && before[0] == "." {
                let message = format!("unknown method `{}`", before[1]);
                return Err(UnlocatedError::new(tag.at + at, message).allowed("filters after `|`"));
            }
            if !known.is_empty() && !known.contains(&word) {
                let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let error = UnlocatedError::new(tag.at + at, format!("unknown {kind} `{word}`"));
                return Err(error.allowed(names.join(", ")));
            }
            before = [before[1], word];
        }
    }
    Ok(())
}

/// Returns the words, signs and string literals of a tag, each with its byte offset.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or_default();
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if first == '"' || first == '\'' {
            length_of_text(rest, first)
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            words.extend(rest.get(..length).map(|word| (at, word)));
        }
        at += length;
    }
    words
}

/// Returns the length of the string literal at the start of `rest`, including its quotes.
fn length_of_text(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + c.len_utf8();
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_syntax_shows_in_the_actions() {
        for (source, expected) in [
            ("no action", Syntax::Jinja),
            ("{{ \"text\" }}", Syntax::Jinja),
            ("{{ 5 }}", Syntax::Jinja),
            ("{{ tool_name }}", Syntax::Jinja),
            ("{{- tool_input.cmd -}}", Syntax::Jinja),
            ("{{ tool_input | tojson }}", Syntax::Jinja),
            ("{{ not tool_error }}", Syntax::Jinja),
            ("{{ index }}", Syntax::Jinja),
            ("{% if tool_error %}x{% endif %}", Syntax::Jinja),
            ("{# note #}", Syntax::Jinja),
            ("{{ \"a .b\" ~ tool_name }}", Syntax::Jinja),
            ("{{.ToolName}}", Syntax::Go),
            ("{{- .ToolName -}}", Syntax::Go),
            ("{{ . }}", Syntax::Go),
            ("{{ $.ToolName }}", Syntax::Go),
            ("{{/* note */}}", Syntax::Go),
            ("{{ toJSON .ToolInput }}", Syntax::Go),
            ("{{ (index .ToolInput \"cmd\") }}", Syntax::Go),
            ("{{ end }}", Syntax::Go),
            ("{{ truncate 5 \"abcdefg\" }}", Syntax::Go),
            ("{{ \"abc\" | printf \"%s%s\" .ToolName }}", Syntax::Go),
        ] {
            assert_eq!(of(source).ok(), Some(expected), "{source}");
        }
    }

    #[test]
    fn two_syntaxes_in_one_template_are_refused_where_the_second_begins() {
        for (source, offset) in [
            ("{{ .ToolName }} {{ tool_name }}", 16),
            ("{{ tool_name }} {{ .ToolName }}", 16),
            ("{% if x %}{{ .ToolName }}{% endif %}", 10),
        ] {
            let error = of(source).unwrap_err();
            assert_eq!(error.offset, offset, "{source}");
            assert!(error.message.contains("two syntaxes"), "{}", error.message);
        }
    }

    #[test]
    fn a_name_is_found_as_a_whole_word_of_an_action() {
        assert_eq!(
            position_of("cmd {{ a.cmd }} {{ xcmd }} {{ cmd }}", "cmd"),
            30
        );
        assert_eq!(position_of("{{ cmd.b }}", "cmd"), 3);
        assert_eq!(position_of("nothing", "cmd"), 0);
    }
}
