//! Reads JSON, which may have comments. `serde_json` checks the syntax, and then a scan of the valid text
//! finds the positions.

use serde::de::IgnoredAny;

use super::comments::without_comments;
use super::node::{DEPTH_LIMIT, Entries, Entry, Node, Number, Value, too_deep};
use crate::report::Report;
use crate::source::SourceText;

pub(super) fn read(report: &mut Report) -> Option<Node> {
    let mut source = report.source().clone();
    if serde_json::from_str::<IgnoredAny>(source.text()).is_err() {
        source = SourceText::new(source.path(), &without_comments(source.text()));
    }
    if let Err(error) = serde_json::from_str::<IgnoredAny>(source.text()) {
        let span = source.span_of_byte(error.line(), error.column());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        report.add(report.problem(span, format!("invalid JSON: {message}")));
        return None;
    }
    let mut scan = Scan {
        report,
        source: &source,
        at: 0,
    };
    scan.value(0)
}

/// Scans text whose syntax is valid.
struct Scan<'a> {
    report: &'a mut Report,
    source: &'a SourceText,
    at: usize,
}

impl Scan<'_> {
    fn value(&mut self, depth: usize) -> Option<Node> {
        self.skip_space();
        let start = self.at;
        if depth > DEPTH_LIMIT {
            too_deep(self.report, (start..start + 1).into());
            return None;
        }
        let value = match self.peek()? {
            b'{' => self.table(depth)?,
            b'[' => self.list(depth)?,
            b'"' => Value::Text(self.text()?),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => self.number()?,
        };
        let span = (start..self.at).into();
        Some(Node { value, span })
    }

    fn table(&mut self, depth: usize) -> Option<Value> {
        let mut entries = Entries::default();
        self.at += 1;
        while self.has_more(b'}')? {
            let start = self.at;
            let key = self.text()?;
            let key_span = (start..self.at).into();
            self.skip_space();
            self.at += 1; // the colon
            let value = self.value(depth + 1)?;
            let entry = Entry {
                key,
                key_span,
                value,
            };
            entries.insert(self.report, entry);
        }
        Some(Value::Table(entries.entries))
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.at += 1;
        while self.has_more(b']')? {
            items.push(self.value(depth + 1)?);
        }
        Some(Value::List(items))
    }

    /// Moves to the next item and returns `true`, or moves past the closing bracket and returns `false`.
    fn has_more(&mut self, close: u8) -> Option<bool> {
        self.skip_space();
        if self.peek()? == b',' {
            self.at += 1;
            self.skip_space();
        }
        let is_closed = self.peek()? == close;
        self.at += usize::from(is_closed);
        Some(!is_closed)
    }

    fn text(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.decode(start)
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        while matches!(
            self.peek(),
            Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
        ) {
            self.at += 1;
        }
        let written = self.source.text().get(start..self.at)?.to_owned();
        Some(Value::Number(Number {
            integer: written.parse().ok(),
            float: self.decode(start)?,
            written,
        }))
    }

    /// Decodes the text from `start` to the current position. Only this step finds half surrogate pairs
    /// and numbers that are out of range, because the syntax check ignores values.
    fn decode<T: serde::de::DeserializeOwned>(&mut self, start: usize) -> Option<T> {
        let written = self.source.text().get(start..self.at)?;
        match serde_json::from_str(written) {
            Ok(value) => Some(value),
            Err(error) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                let span = (start..self.at).into();
                let message = format!("invalid JSON: {message}");
                self.report.add(self.report.problem(span, message));
                None
            }
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Value {
        self.at += word.len();
        value
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.source.text().as_bytes().get(self.at).copied()
    }
}
