//! The values of a tree, with their positions in the file.

use std::collections::HashMap;

use crate::excerpt::shorten;
use crate::report::Report;
use crate::source::Span;

/// The largest depth of nested values.
pub(crate) const DEPTH_LIMIT: usize = 64;

/// A value and its position in the file.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it is in the file.
    pub span: Span,
}

/// A value.
#[derive(Debug, Clone)]
pub enum Value {
    /// No value, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// A date or a time, which exists only in TOML.
    Date,
    /// A list.
    List(Vec<Node>),
    /// A mapping.
    Table(Vec<Entry>),
    /// A value that could not be read. The problem is already in the report, so do not report the value again.
    Broken,
}

/// A number and its text in the file, so that `1.50` as the value of an environment variable stays `1.50`.
#[derive(Debug, Clone)]
pub struct Number {
    /// The text of the number.
    pub written: String,
    /// The number, if it is a whole number that fits.
    pub integer: Option<i64>,
    /// The number as a float, possibly rounded.
    pub float: f64,
}

/// A key and its value. Keys are unique in a table.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is in the file.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Describes the value for messages such as "`timeout` cannot be …".
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "empty".to_owned(),
            Value::Bool(value) => format!("`{value}`"),
            Value::Number(number) => format!("`{}`", number.written),
            Value::Text(text) => format!("the string `{}`", shorten(text)),
            Value::Date => "a date".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a mapping".to_owned(),
            Value::Broken => "broken".to_owned(),
        }
    }

    /// Returns the string, if the value is a string.
    pub fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value {
            return Some(text);
        }
        None
    }

    /// Returns the number, if the value is a number.
    pub fn as_number(&self) -> Option<&Number> {
        if let Value::Number(number) = &self.value {
            return Some(number);
        }
        None
    }

    /// Returns the items, if the value is a list.
    pub fn as_list(&self) -> Option<&[Node]> {
        if let Value::List(items) = &self.value {
            return Some(items);
        }
        None
    }

    /// Returns the entries, if the value is a mapping.
    pub fn as_table(&self) -> Option<&[Entry]> {
        if let Value::Table(entries) = &self.value {
            return Some(entries);
        }
        None
    }

    /// Returns the entry with this key, if the value is a mapping that has one.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_table()?.iter().find(|entry| entry.key == key)
    }

    /// Returns whether the value could not be read.
    pub fn is_broken(&self) -> bool {
        matches!(self.value, Value::Broken)
    }

    /// Returns whether the value is null or absent.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

/// The entries of a table that is being read. If a key appears twice, the first entry is kept and the
/// second is reported.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) entries: Vec<Entry>,
    keys: HashMap<String, Span>,
}

impl Entries {
    pub(super) fn insert(&mut self, report: &mut Report, entry: Entry) {
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

    /// Adds an entry, unless the table already has the key.
    pub(super) fn insert_new(&mut self, entry: Entry) {
        if !self.keys.contains_key(&entry.key) {
            self.keys.insert(entry.key.clone(), entry.key_span);
            self.entries.push(entry);
        }
    }
}

pub(super) fn too_deep(report: &mut Report, span: Span) {
    report.add(
        report
            .problem(span, "the nesting is too deep")
            .allowed(format!("at most {DEPTH_LIMIT} levels")),
    );
}
