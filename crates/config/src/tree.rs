//! The content of a file without its format: values, each with its place.
//!
//! The three readers below make the same tree of the same content, so that nothing above them knows in
//! which format a file was written. A tree is bounded in depth, and what aliases add to it in size.

mod json;
mod toml;
mod yaml;

use std::collections::HashMap;
use std::path::Path;

use tenterhook::cut;
use tenterhook_handlers::secret::Redactor;

use crate::report::Report;
use crate::source::Span;

/// The deepest nesting that is read.
pub(crate) const DEPTH_LIMIT: usize = 64;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    /// A date or a time, which only TOML has.
    Date,
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// What could not be read. The report has the reason, so nothing more is said of it.
    Broken,
}

/// A number, and how it was written: `1.50` as the value of a variable stays `1.50`.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    pub(crate) written: String,
    pub(crate) integer: Option<i64>,
    pub(crate) float: f64,
}

/// A key and its value, in the order of the file. No table has a key twice.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    /// Returns what the value is, for a message: "cannot be …".
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "empty".to_owned(),
            Value::Bool(value) => format!("`{value}`"),
            Value::Number(number) => format!("`{}`", number.written),
            Value::Text(text) => format!("the text `{}`", shorten(text)),
            Value::Date => "a date".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a mapping".to_owned(),
            Value::Broken => "broken".to_owned(),
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value {
            return Some(text);
        }
        None
    }

    pub(crate) fn as_number(&self) -> Option<&Number> {
        if let Value::Number(number) = &self.value {
            return Some(number);
        }
        None
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        if let Value::List(items) = &self.value {
            return Some(items);
        }
        None
    }

    pub(crate) fn as_table(&self) -> Option<&[Entry]> {
        if let Value::Table(entries) = &self.value {
            return Some(entries);
        }
        None
    }

    /// Returns the entry of a table that has this key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_table()?.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.value, Value::Broken)
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

/// Returns the first line of a text without secrets, cut where it is long.
pub(crate) fn shorten(text: &str) -> String {
    const LIMIT: usize = 60;
    let redacted = Redactor::shared().redact(text);
    let line = redacted.lines().next().unwrap_or_default();
    let short = cut::head(line, LIMIT);
    if short.len() == redacted.trim_end().len() {
        short.to_owned()
    } else {
        format!("{}…", short.trim_end())
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Yaml,
    Toml,
    Json,
}

impl Format {
    /// Tells the format by the extension, and where that says nothing by the content.
    pub(crate) fn of(path: &Path, text: &str) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension.map(str::to_ascii_lowercase).as_deref() {
            Some("yaml" | "yml") => Self::Yaml,
            Some("toml") => Self::Toml,
            Some("json") => Self::Json,
            _ => Self::of_content(text),
        }
    }

    fn of_content(text: &str) -> Self {
        let first = text
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !line.starts_with('#'))
            .unwrap_or_default();
        let equals = first.find('=').unwrap_or(usize::MAX);
        let colon = first.find(':').unwrap_or(usize::MAX);
        if first.starts_with('{') {
            Self::Json
        } else if first.starts_with('[') || equals < colon {
            Self::Toml
        } else {
            Self::Yaml
        }
    }
}

/// Reads the text of the report's source. Syntax errors and duplicate keys go into the report; `None` is
/// a text without a tree.
pub(crate) fn read(report: &mut Report, format: Format) -> Option<Node> {
    match format {
        Format::Yaml => yaml::read(report),
        Format::Toml => toml::read(report),
        Format::Json => json::read(report),
    }
}

/// A table that is being read. The first of two entries with one key stays, and the second is a problem.
#[derive(Default)]
struct Entries {
    entries: Vec<Entry>,
    keys: HashMap<String, Span>,
}

impl Entries {
    fn insert(&mut self, report: &mut Report, entry: Entry) {
        if let Some(first) = self.keys.get(&entry.key) {
            let line = report.source().line_of(first.start);
            let key = shorten(&entry.key);
            report.add(report.problem(
                entry.key_span,
                format!("duplicate key `{key}`, first on line {line}"),
            ));
        } else {
            self.keys.insert(entry.key.clone(), entry.key_span);
            self.entries.push(entry);
        }
    }

    /// Adds an entry, unless its key is there.
    fn insert_new(&mut self, entry: Entry) {
        if !self.keys.contains_key(&entry.key) {
            self.keys.insert(entry.key.clone(), entry.key_span);
            self.entries.push(entry);
        }
    }
}

fn too_deep(report: &mut Report, span: Span) {
    report.add(
        report
            .problem(span, "the nesting is too deep")
            .allowed(format!("at most {DEPTH_LIMIT} levels")),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_told_by_the_extension_and_else_by_the_content() {
        for (path, text, expected) in [
            ("a.yml", "{}", Format::Yaml),
            ("a.TOML", "", Format::Toml),
            ("a.json", "a: b", Format::Json),
            ("hooks", "\n# a = b\n{\"hooks\": []}", Format::Json),
            (
                "hooks",
                "# about\n[[hooks]]\nevent = \"stop\"",
                Format::Toml,
            ),
            ("hooks", "version = 1", Format::Toml),
            ("hooks", "hooks:\n  - event: stop", Format::Yaml),
            ("hooks", "", Format::Yaml),
        ] {
            assert_eq!(Format::of(Path::new(path), text), expected, "{path} {text}");
        }
    }
}
