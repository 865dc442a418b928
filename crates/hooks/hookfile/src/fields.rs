//! Reads the values of a mapping as the types that its keys require.
//!
//! Each method returns `None` if the key is absent or its value is invalid. It has already reported an
//! invalid value. Use [`Fields::has`] to find out whether the key is present.

use crate::excerpt::shorten;
use crate::problem::Problem;
use crate::report::Report;
use crate::source::Span;
use crate::suggest::one_of;
use crate::tree::{Entry, Node, Value};

/// How to treat a key without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Empty {
    /// Treat it like an absent key.
    Absent,
    /// Treat it as an error.
    Wrong,
}

/// A string and its position in the file.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a> {
    /// The string.
    pub text: &'a str,
    /// Where it is in the file.
    pub span: Span,
}

/// The entries of a mapping, with methods that read each value as the expected type.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    entries: &'a [Entry],
    empty: Empty,
    /// Where it is in the file.
    pub span: Span,
}

impl<'a> Fields<'a> {
    /// Reads a mapping and reports all keys that are not in `known`.
    ///
    /// `what` names the mapping in messages, for example "a hook".
    pub fn read(
        report: &mut Report,
        node: &'a Node,
        what: &str,
        known: &[&str],
        empty: Empty,
    ) -> Option<Self> {
        let fields = Self::any(report, node, what, empty)?;
        for entry in fields.entries {
            if !known.contains(&entry.key.as_str()) {
                unknown_key(report, entry, known);
            }
        }
        Some(fields)
    }

    /// Reads a mapping with any keys.
    pub fn any(report: &mut Report, node: &'a Node, what: &str, empty: Empty) -> Option<Self> {
        let Value::Table(entries) = &node.value else {
            if !node.is_broken() {
                let message = format!("{what} cannot be {}", node.describe());
                report.add(report.problem(node.span, message).allowed("a mapping"));
            }
            return None;
        };
        Some(Self {
            entries,
            empty,
            span: node.span,
        })
    }

    /// Returns all entries, in the order of the file.
    pub fn entries(&self) -> &'a [Entry] {
        self.entries
    }

    /// Returns the entry of a key. With [`Empty::Absent`], a key without a value has no entry.
    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries
            .iter()
            .filter(|entry| self.empty == Empty::Wrong || !entry.value.is_null())
            .find(|entry| entry.key == key)
    }

    /// Returns whether a key is present. With [`Empty::Absent`], a key without a value is not.
    pub fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Reads a string.
    pub fn text(&self, report: &mut Report, key: &str) -> Option<Text<'a>> {
        let node = &self.entry(key)?.value;
        match node.as_text() {
            Some(text) => Some(Text {
                text,
                span: node.span,
            }),
            None => wrong(report, key, node, "a string"),
        }
    }

    /// Reads a string that is not empty and has no NUL character, which cannot be passed to a process.
    pub fn full_text(&self, report: &mut Report, key: &str) -> Option<Text<'a>> {
        let text = self.text(report, key)?;
        if text.text.trim().is_empty() {
            report.add(report.problem(text.span, format!("`{key}` is empty")));
            return None;
        }
        check_nul(report, key, text)
    }

    /// Reads `true` or `false`.
    pub fn boolean(&self, report: &mut Report, key: &str) -> Option<bool> {
        let node = &self.entry(key)?.value;
        if let Value::Bool(value) = &node.value {
            return Some(*value);
        }
        if node.is_broken() {
            return None;
        }
        let meant = match node.as_text().map(str::to_ascii_lowercase).as_deref() {
            Some("yes" | "on") => Some("true"),
            Some("no" | "off") => Some("false"),
            _ => None,
        };
        report.add(
            wrong_value(report, key, node)
                .allowed("`true` or `false`")
                .suggestion(meant),
        );
        None
    }

    /// Reads a string that must be one of the `words`, and returns the value that belongs to it.
    pub fn choice<T: Copy>(
        &self,
        report: &mut Report,
        key: &str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let node = &self.entry(key)?.value;
        let names = || words.iter().map(|(name, _)| *name);
        let Value::Text(text) = &node.value else {
            return wrong(report, key, node, &one_of(names()));
        };
        let chosen = words.iter().find(|(name, _)| name == text);
        if chosen.is_none() {
            let message = format!("`{key}` cannot be `{}`", shorten(text));
            report.add(
                report
                    .problem(node.span, message)
                    .allowed(one_of(names()))
                    .suggestion(report.nearest(text, names())),
            );
        }
        chosen.map(|(_, value)| *value)
    }

    /// Reads a list of strings. Numbers and booleans in it become strings as they are written.
    pub fn texts(&self, report: &mut Report, key: &str) -> Option<Vec<String>> {
        let node = &self.entry(key)?.value;
        let Value::List(items) = &node.value else {
            return wrong(report, key, node, "a list of strings");
        };
        let texts: Vec<_> = items
            .iter()
            .filter_map(|item| scalar(report, &format!("an item of `{key}`"), item))
            .collect();
        (texts.len() == items.len()).then_some(texts)
    }

    /// Reads a mapping of names to strings. Numbers and booleans in it become strings as they are written.
    pub fn variables(&self, report: &mut Report, key: &str) -> Option<Vec<(String, String)>> {
        let node = &self.entry(key)?.value;
        let Value::Table(entries) = &node.value else {
            return wrong(report, key, node, "a mapping of names to strings");
        };
        let variables: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
                    let message = format!(
                        "`{}` is not a valid variable name",
                        entry.key.escape_debug()
                    );
                    report.add(report.problem(entry.key_span, message));
                    return None;
                }
                let value = if self.empty == Empty::Absent && entry.value.is_null() {
                    String::new()
                } else {
                    scalar(report, &format!("`{key}.{}`", entry.key), &entry.value)?
                };
                Some((entry.key.clone(), value))
            })
            .collect();
        (variables.len() == entries.len()).then_some(variables)
    }
}

/// Reports a value that the key does not allow. Always returns `None`.
pub fn wrong<T>(report: &mut Report, key: &str, node: &Node, allowed: &str) -> Option<T> {
    if !node.is_broken() {
        report.add(wrong_value(report, key, node).allowed(allowed));
    }
    None
}

fn wrong_value(report: &Report, key: &str, node: &Node) -> Problem {
    report.problem(node.span, format!("`{key}` cannot be {}", node.describe()))
}

fn unknown_key(report: &mut Report, entry: &Entry, known: &[&str]) {
    if report.is_full() {
        return;
    }
    let message = format!("unknown key `{}`", shorten(&entry.key));
    report.add(
        report
            .problem(entry.key_span, message)
            .allowed(one_of(known.iter().copied()))
            .suggestion(report.nearest(&entry.key, known.iter().copied())),
    );
}

/// Returns a string, or a number or boolean as it is written. Reports any other value; `what` names it in
/// the message.
pub fn scalar(report: &mut Report, what: &str, node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) if text.contains('\0') => {
            report.add(report.problem(node.span, format!("{what} contains a NUL character")));
            None
        }
        Value::Text(text) => Some(text.clone()),
        Value::Number(number) => Some(number.written.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Broken => None,
        Value::Null | Value::Date | Value::List(_) | Value::Table(_) => {
            let message = format!("{what} cannot be {}", node.describe());
            report.add(report.problem(node.span, message).allowed("a string"));
            None
        }
    }
}

fn check_nul<'a>(report: &mut Report, key: &str, text: Text<'a>) -> Option<Text<'a>> {
    if text.text.contains('\0') {
        report.add(report.problem(text.span, format!("`{key}` contains a NUL character")));
        return None;
    }
    Some(text)
}
