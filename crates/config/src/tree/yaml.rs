//! YAML 1.2 with the core schema: one document, anchors and aliases, merge keys.
//!
//! `yes`, `no`, `on` and `off` are texts. What aliases add to a tree is bounded, so that a small file
//! cannot become a large one.

use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, Tag};

use super::{DEPTH_LIMIT, Entries, Entry, Node, Number, Value, shorten};
use crate::report::Report;
use crate::source::Span;

/// How much all aliases together may add, in the unit of [`weight`].
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
            let message = format!("invalid YAML: {}", error.info());
            report.add(report.problem((at..at + 1).into(), message));
            None
        }
    }
}

struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    report: &'a mut Report,
    /// What an anchor stands for; `None` while its own content is being read.
    anchors: BTreeMap<usize, Option<Node>>,
    aliased: usize,
}

/// Where an event and its tag stand.
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
                    let message = "a second document".to_owned();
                    self.add(at.span, message, Some("one document in a file"));
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
        let broken = Node {
            value: Value::Broken,
            span,
        };
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the parser's events are an open list, and no other one is a node"
        )]
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = if self.is_known(at, tag.as_deref()) {
                    scalar(&text, style, tag.as_deref())
                } else {
                    Value::Broken
                };
                (anchor, Node { value, span })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.is_known(at, tag.as_deref());
                self.open(anchor);
                let (items, end) = self.items()?;
                let value = Value::List(items);
                (
                    anchor,
                    Node {
                        value,
                        span: joined(span, end),
                    },
                )
            }
            Event::MappingStart(_, anchor, tag) => {
                self.is_known(at, tag.as_deref());
                self.open(anchor);
                let (entries, end) = self.entries()?;
                let value = Value::Table(entries);
                (
                    anchor,
                    Node {
                        value,
                        span: joined(span, end),
                    },
                )
            }
            Event::Alias(anchor) => (0, self.alias(anchor, span)),
            Event::UnresolvedAlias(name) => {
                let message = format!("unknown anchor `{}`", shorten(&name));
                self.add(span, message, None);
                (0, broken)
            }
            _ => (0, broken),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, Some(node.clone()));
        }
        Ok(node)
    }

    /// Reads the items of a list, and where it ends.
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

    /// Reads the entries of a mapping, and where it ends.
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
                self.add(key_span, "a key that is no text".to_owned(), None);
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

    /// Takes the entries of `<<: *mapping` or `<<: [*first, *second]`; the key that comes first wins.
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

    /// Returns a copy of what the anchor stands for, at the place of the alias.
    fn alias(&mut self, anchor: usize, span: Span) -> Node {
        let target = self.anchors.get(&anchor).and_then(Option::as_ref);
        let problem = match target {
            None => "an alias inside of what it stands for",
            Some(target) => {
                self.aliased = self.aliased.saturating_add(weight(target));
                if self.aliased <= ALIAS_LIMIT {
                    return Node {
                        value: target.value.clone(),
                        span,
                    };
                }
                "the aliases of the file stand for too much"
            }
        };
        // Once the limit is passed, every alias would say the same.
        if target.is_none() || self.aliased < usize::MAX {
            self.add(span, problem.to_owned(), None);
        }
        self.aliased = usize::MAX;
        Node {
            value: Value::Broken,
            span,
        }
    }

    /// Reports a tag that is none of the core schema.
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

/// Returns the span from the start of one to the end of the other.
fn joined(start: Span, end: Span) -> Span {
    Span {
        start: start.start,
        end: end.end.max(start.end),
    }
}

/// Returns what a node costs in memory, roughly.
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
        reason = "a number that large is out of every range that is checked"
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
            ("yes", "the text `yes`"),
            ("10s", "the text `10s`"),
            ("1.2.3", "the text `1.2.3`"),
            ("--1", "the text `--1`"),
            (".", "the text `.`"),
            ("inf", "the text `inf`"),
            ("~", "empty"),
            ("True", "`true`"),
        ] {
            let value = scalar(text, ScalarStyle::Plain, None);
            let span = (0..0).into();
            assert_eq!(Node { value, span }.describe(), expected, "{text}");
        }
    }
}
