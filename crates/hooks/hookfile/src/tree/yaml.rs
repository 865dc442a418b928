//! Reads YAML 1.2 with the core schema: one document, with anchors, aliases and merge keys.
//!
//! `yes`, `no`, `on` and `off` are strings. The total size of all aliased values is limited, so that a
//! small file cannot expand to a huge tree.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::node::{DEPTH_LIMIT, Entries, Entry, Node, Number, Value};
use crate::excerpt::shorten;
use crate::report::Report;
use crate::source::Span;

/// The largest total size of all aliased values, in the unit of [`weight`].
const ALIAS_LIMIT: usize = 1 << 20;

pub(super) fn read(report: &mut Report) -> Option<Node> {
    let source = report.source().clone();
    let mut options = granit_parser::options! {
        flow_nesting_limit: DEPTH_LIMIT,
        block_nesting_limit: DEPTH_LIMIT,
        emit_unresolved_aliases: true,
    };
    options.set_emit_comments(false);
    let mut composer = Composer {
        parser: Parser::new_from_str_with_options(source.text(), options),
        report,
        anchors: BTreeMap::new(),
        aliased: 0,
    };
    match composer.documents() {
        Ok(root) => root,
        Err(error) => {
            let at = error.marker().byte_offset().unwrap_or(usize::MAX - 1);
            if let Some(tab) = indenting_tab(source.text(), at, &error.info()) {
                let message = "YAML does not allow tabs for indentation".to_owned();
                let problem = report.problem((tab..tab + 1).into(), message);
                report.add(problem.hint("indent with spaces"));
                return None;
            }
            let message = format!("invalid YAML: {}", error.info());
            let problem = report.problem((at..at + 1).into(), message);
            // Lists and mappings in block style end where a line has another indentation.
            let is_layout = error.info().contains("parsing a block");
            report.add(if is_layout {
                problem.hint("check the indentation of this line and of the lines above it")
            } else {
                problem
            });
            None
        }
    }
}

/// Returns the position of a tab that indents the line of an error, or the line before. The parser often notices a
/// tab only on the next line. If its error mentions a tab, the tab may also be at the start of the line after it.
fn indenting_tab(text: &str, at: usize, error: &str) -> Option<usize> {
    let at = text.floor_char_boundary(at);
    let line = text.get(..at)?.matches('\n').count();
    let last = line + usize::from(error.contains("tab"));
    let mut start = 0;
    let mut found = None;
    for (number, text) in text.split_inclusive('\n').enumerate().take(last + 1) {
        let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
        let tab = text.get(..indent)?.find('\t').map(|tab| start + tab);
        found = found.or(tab.filter(|_| number + 1 >= line));
        start += text.len();
    }
    found
}

struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    report: &'a mut Report,
    /// The value of each anchor; `None` while this value is still being read.
    anchors: BTreeMap<usize, Option<Node>>,
    aliased: usize,
}

/// The positions of a parser event and of its tag.
#[derive(Debug, Clone, Copy)]
struct At {
    span: Span,
    tag: Option<Span>,
}

impl<'a> Composer<'a> {
    fn documents(&mut self) -> Result<Option<Node>, ScanError> {
        let mut root = None;
        let mut count = 0;
        while let Some((event, at)) = self.next()? {
            if let Event::DocumentStart(..) = event {
                count += 1;
                if count == 2 {
                    let message = "the file contains a second YAML document".to_owned();
                    self.add(at.span, message, Some("one document per file"));
                }
            } else if event.is_node() {
                let node = self.node(event, at)?;
                root.get_or_insert(node);
            }
        }
        Ok(root.or_else(|| {
            Some(Node {
                value: Value::Null,
                span: (0..0).into(),
            })
        }))
    }

    fn next(&mut self) -> Result<Option<(Event<'a>, At)>, ScanError> {
        let next = self.parser.next_event().transpose()?;
        Ok(next.map(|(event, span)| {
            let tag = span.tag_span().and_then(|tag| tag.byte_range());
            let at = At {
                span: span.byte_range().unwrap_or_default().into(),
                tag: tag.map(Into::into),
            };
            (event, at)
        }))
    }

    fn node(&mut self, event: Event<'a>, at: At) -> Result<Node, ScanError> {
        let span = at.span;
        let node = |value, span| Node { value, span };
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the parser's enum is non-exhaustive, and none of the other events is a node"
        )]
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = if self.is_known(at, tag.as_deref()) {
                    scalar(&text, style, tag.as_deref())
                } else {
                    Value::Broken
                };
                (anchor, node(value, span))
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.is_known(at, tag.as_deref());
                self.open(anchor);
                let (items, end) = self.items()?;
                (anchor, node(Value::List(items), joined(span, end)))
            }
            Event::MappingStart(_, anchor, tag) => {
                self.is_known(at, tag.as_deref());
                self.open(anchor);
                let (entries, end) = self.entries()?;
                (anchor, node(Value::Table(entries), joined(span, end)))
            }
            Event::Alias(anchor) => (0, self.alias(anchor, span)),
            Event::UnresolvedAlias(name) => {
                let message = format!("unknown anchor `{}`", shorten(&name));
                self.add(span, message, None);
                (0, node(Value::Broken, span))
            }
            _ => (0, node(Value::Broken, span)),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(node)
    }

    /// Reads the items of a list. Also returns the position of its end.
    fn items(&mut self) -> Result<(Vec<Node>, Span), ScanError> {
        let mut items = Vec::new();
        while let Some((event, at)) = self.next()? {
            if event == Event::SequenceEnd {
                return Ok((items, at.span));
            }
            items.push(self.node(event, at)?);
        }
        Ok((items, (0..0).into()))
    }

    /// Reads the entries of a mapping. Also returns the position of its end.
    fn entries(&mut self) -> Result<(Vec<Entry>, Span), ScanError> {
        let mut entries = Entries::default();
        let mut merged = Vec::new();
        let mut merge_span: Option<Span> = None;
        let mut end = Span::from(0..0);
        while let Some((event, at)) = self.next()? {
            if event == Event::MappingEnd {
                end = at.span;
                break;
            }
            let is_merge =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<");
            let key_span = at.span;
            let key = if let Event::Scalar(text, ..) = &event {
                Some(text.clone().into_owned())
            } else {
                None
            };
            let key_node = self.node(event, at)?;
            let Some((event, at)) = self.next()? else {
                break;
            };
            let value = self.node(event, at)?;
            if is_merge {
                if let Some(first) = merge_span {
                    let line = self.report.source().line_of(first.start);
                    let message = format!("duplicate key `<<`, first on line {line}");
                    self.add(key_span, message, Some("one `<<` with a list of mappings"));
                }
                merge_span = Some(key_span);
                self.merge(value, &mut merged);
                continue;
            }
            let Some(key) = key.or_else(|| key_node.as_text().map(str::to_owned)) else {
                self.add(key_span, "the key is not a string".to_owned(), None);
                continue;
            };
            let entry = Entry {
                key,
                key_span,
                value,
            };
            entries.insert(self.report, entry);
        }
        for entry in merged {
            entries.insert_new(entry);
        }
        Ok((entries.entries, end))
    }

    /// Adds the entries of `<<: *mapping` or `<<: [*first, *second]`. If a key occurs in both, the first
    /// one wins.
    fn merge(&mut self, node: Node, merged: &mut Vec<Entry>) {
        let nodes = if let Value::List(items) = node.value {
            items
        } else {
            vec![node]
        };
        for node in nodes {
            if let Value::Table(entries) = node.value {
                merged.extend(entries);
            } else {
                self.no_merge(&node);
            }
        }
    }

    fn no_merge(&mut self, node: &Node) {
        if node.is_broken() {
            return;
        }
        let message = format!("`<<` cannot be {}", node.describe());
        self.add(node.span, message, Some("a mapping or a list of mappings"));
    }

    fn open(&mut self, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
    }

    /// Returns a copy of the anchor's value, with the position of the alias.
    fn alias(&mut self, anchor: usize, span: Span) -> Node {
        let target = self.anchors.get(&anchor).and_then(Option::as_ref);
        let problem = match target {
            None => "the alias refers to a value that contains it",
            Some(target) => {
                self.aliased = self.aliased.saturating_add(weight(target));
                if self.aliased <= ALIAS_LIMIT {
                    return Node {
                        value: target.value.clone(),
                        span,
                    };
                }
                "the aliases in the file expand to too much data"
            }
        };
        // Report the exceeded limit only once, and not for every further alias.
        if target.is_none() || self.aliased < usize::MAX {
            self.add(span, problem.to_owned(), None);
        }
        self.aliased = usize::MAX;
        Node {
            value: Value::Broken,
            span,
        }
    }

    /// Returns whether a tag belongs to the core schema or is absent. Reports any other tag.
    fn is_known(&mut self, at: At, tag: Option<&Tag>) -> bool {
        let unknown = tag.filter(|tag| tag.is_custom() && tag.parts() != ("", "!"));
        if let Some(tag) = unknown {
            let message = format!("unknown tag `{}`", shorten(&tag.original()));
            self.add(at.tag.unwrap_or(at.span), message, None);
        }
        unknown.is_none()
    }

    fn add(&mut self, span: Span, message: String, allowed: Option<&str>) {
        let problem = self.report.problem(span, message);
        self.report.add(match allowed {
            Some(allowed) => problem.allowed(allowed),
            None => problem,
        });
    }
}

/// Returns the span from the start of `start` to the end of `end`.
fn joined(start: Span, end: Span) -> Span {
    Span {
        start: start.start,
        end: end.end.max(start.end),
    }
}

/// Returns the approximate size of a node in memory, in bytes.
fn weight(node: &Node) -> usize {
    const NODE: usize = 32;
    NODE + match &node.value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Date | Value::Broken => 0,
        Value::Text(text) => text.len(),
        Value::List(items) => items.iter().map(weight).sum(),
        Value::Table(entries) => entries
            .iter()
            .map(|entry| entry.key.len() + weight(&entry.value))
            .sum(),
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = match tag {
        Some(tag) => tag.core_suffix().is_none_or(|suffix| suffix == "str"),
        None => style != ScalarStyle::Plain,
    };
    if is_text {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix)?;
        i64::from_str_radix(digits, radix)
            .ok()
            .filter(|_| !digits.starts_with(['+', '-']))
    };
    let unsigned = text.trim_start_matches(['+', '-']);
    let has_one_sign = text.len() - unsigned.len() <= 1;
    let is_decimal = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let integer = radix("0x", 16)
        .or_else(|| radix("0o", 8))
        .or_else(|| text.parse().ok());
    #[expect(
        clippy::cast_precision_loss,
        reason = "every allowed range is far smaller than the numbers that lose precision"
    )]
    let float = match (integer, unsigned) {
        (Some(value), _) => value as f64,
        (None, ".inf" | ".Inf" | ".INF") if has_one_sign => f64::INFINITY,
        (None, _) if text == ".nan" || text == ".NaN" || text == ".NAN" => f64::NAN,
        (None, _) if is_decimal && has_one_sign => text.parse().ok()?,
        (None, _) => return None,
    };
    Some(Number {
        written: text.to_owned(),
        integer,
        float,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        for (text, expected) in [
            ("10", "`10`"),
            ("0x1F", "`0x1F`"),
            ("-1", "`-1`"),
            ("0.5", "`0.5`"),
            (".5", "`.5`"),
            ("1e3", "`1e3`"),
            ("-.inf", "`-.inf`"),
            ("yes", "the string `yes`"),
            ("10s", "the string `10s`"),
            ("1.2.3", "the string `1.2.3`"),
            ("--1", "the string `--1`"),
            (".", "the string `.`"),
            ("inf", "the string `inf`"),
            ("~", "empty"),
            ("True", "`true`"),
        ] {
            let value = scalar(text, ScalarStyle::Plain, None);
            let span = (0..0).into();
            assert_eq!(Node { value, span }.describe(), expected, "{text}");
        }
    }
}
