//! Adds a member to a JSON object or array, or removes one, without changing any other byte.

use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged as _;

use crate::splice::{Splice, line_indent};

/// How a JSON text is laid out.
#[derive(Debug, Clone)]
pub(crate) struct JsonLayout {
    /// The line ending.
    pub(crate) newline: &'static str,
    /// One step of indentation.
    pub(crate) unit: String,
    /// Whether everything is on one line.
    pub(crate) is_compact: bool,
    /// Whether a space follows a comma or a colon in a compact text.
    pub(crate) is_spaced: bool,
}

/// An object or array in a text.
#[derive(Debug)]
pub(crate) struct Brackets {
    /// The position after the opening bracket.
    open: usize,
    /// The position of the closing bracket.
    close: usize,
    members: Vec<Range<usize>>,
}

impl Brackets {
    pub(crate) fn of_object(object: &ast::Object<'_>) -> Self {
        let members = object.properties.iter();
        Self::new(object.range, members.map(|it| it.range).collect())
    }

    pub(crate) fn of_array(array: &ast::Array<'_>) -> Self {
        let members = array.elements.iter();
        Self::new(array.range, members.map(ast::Value::range).collect())
    }

    fn new(range: jsonc_parser::common::Range, members: Vec<jsonc_parser::common::Range>) -> Self {
        Self {
            open: range.start + 1,
            close: range.end.saturating_sub(1),
            members: members.into_iter().map(|it| it.start..it.end).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns whether there is a comment but no member.
    pub(crate) fn has_only_comments(&self, text: &str) -> bool {
        self.is_empty() && Gap::scan(text, self.open, self.close).has_comment
    }

    /// Returns the changes that add a member at the end. `render` writes it for the indentation of its first line.
    pub(crate) fn insert(
        &self,
        text: &str,
        layout: &JsonLayout,
        render: impl Fn(&str) -> String,
    ) -> Vec<Splice> {
        let inner = text.get(self.open..self.close).unwrap_or("");
        let is_one_line = !inner.contains('\n');
        let Some(last) = self.members.last() else {
            return self.insert_first(text, layout, is_one_line, render);
        };
        let gap = Gap::scan(text, last.end, self.close);
        let trailing = if gap.comma.is_some() { "," } else { "" };
        if is_one_line {
            let space = if layout.is_spaced { " " } else { "" };
            let member = render(line_indent(text, self.open));
            return vec![match gap.comma {
                Some(comma) => Splice::insert(comma + 1, format!("{space}{member},")),
                None => Splice::insert(last.end, format!(",{space}{member}")),
            }];
        }
        let own_line = self
            .members
            .iter()
            .rev()
            .find(|it| starts_line(text, it.start));
        let indent = own_line.map_or_else(
            || format!("{}{}", line_indent(text, self.open), layout.unit),
            |member| line_indent(text, member.start).to_owned(),
        );
        let member = format!("{}{indent}{}{trailing}", layout.newline, render(&indent));
        let comma = gap.comma.is_none().then(|| Splice::insert(last.end, ","));
        let member = Splice::insert(gap.content_end, member);
        comma.into_iter().chain([member]).collect()
    }

    fn insert_first(
        &self,
        text: &str,
        layout: &JsonLayout,
        is_one_line: bool,
        render: impl Fn(&str) -> String,
    ) -> Vec<Splice> {
        let base = line_indent(text, self.open);
        let gap = Gap::scan(text, self.open, self.close);
        if layout.is_compact && is_one_line {
            return vec![Splice::insert(gap.content_end, render(base))];
        }
        let indent = format!("{base}{}", layout.unit);
        let mut member = format!("{}{indent}{}", layout.newline, render(&indent));
        let rest = text.get(gap.content_end..self.close).unwrap_or("");
        if !rest.contains('\n') {
            member.push_str(layout.newline);
            member.push_str(base);
        }
        vec![Splice::insert(gap.content_end, member)]
    }

    /// Returns the changes that remove a member, one comma, and the white space before the member.
    pub(crate) fn remove(&self, text: &str, index: usize) -> Vec<Splice> {
        let Some(member) = self.members.get(index) else {
            return Vec::new();
        };
        let previous = index.checked_sub(1).and_then(|it| self.members.get(it));
        let next = self.members.get(index + 1);
        let before = Gap::scan(text, previous.map_or(self.open, |it| it.end), member.start);
        let after = Gap::scan(text, member.end, next.map_or(self.close, |it| it.start));
        if self.members.len() == 1 && !before.has_comment && !after.has_comment {
            return vec![Splice::delete(self.open..self.close)];
        }
        let mut splices = Vec::new();
        let comma = after.comma.or(before.comma);
        splices.extend(comma.map(|comma| Splice::delete(comma..comma + 1)));
        let end = after.comma.map_or(member.end, |comma| comma + 1);
        let rest = text.get(end..).unwrap_or("");
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let follows = rest.get(spaces..).unwrap_or("");
        let is_line_end = follows.starts_with(['\n', '\r']);
        let is_closed = end + spaces == self.close && !before.ends_with_line_comment;
        let left = before.content_end..member.start;
        let has_own_line = text.get(left.clone()).is_some_and(|it| it.contains('\n'));
        // The white space before the member goes with it. It stays if something else of the line needs it.
        if is_line_end || is_closed || (!has_own_line && previous.is_some()) {
            splices.push(Splice::delete(left.start..member.end));
        } else {
            splices.push(Splice::delete(member.clone()));
            splices.push(Splice::delete(end..end + spaces));
        }
        splices
    }
}

/// Returns whether only white space precedes a position in its line.
fn starts_line(text: &str, position: usize) -> bool {
    let before = text.get(..position).unwrap_or("");
    let line = before.rsplit('\n').next().unwrap_or("");
    line.trim().is_empty() && before.contains('\n')
}

/// What is between two members: white space, comments, and perhaps a comma.
#[derive(Debug)]
struct Gap {
    comma: Option<usize>,
    /// The end of the last comment or comma, else the beginning.
    content_end: usize,
    has_comment: bool,
    ends_with_line_comment: bool,
}

impl Gap {
    fn scan(text: &str, from: usize, to: usize) -> Self {
        let mut gap = Self {
            comma: None,
            content_end: from,
            has_comment: false,
            ends_with_line_comment: false,
        };
        let mut at = from;
        while let Some(rest) = text.get(at..to).filter(|rest| !rest.is_empty()) {
            if rest.starts_with("//") {
                let line = rest.split('\n').next().unwrap_or(rest);
                at += line.strip_suffix('\r').unwrap_or(line).len();
                gap.content_end = at;
                (gap.has_comment, gap.ends_with_line_comment) = (true, true);
            } else if rest.starts_with("/*") {
                at += rest.find("*/").map_or(rest.len(), |end| end + 2);
                gap.content_end = at;
                (gap.has_comment, gap.ends_with_line_comment) = (true, false);
            } else {
                let character = rest.chars().next().map_or(1, char::len_utf8);
                if rest.starts_with(',') {
                    gap.comma = Some(at);
                    gap.content_end = at + 1;
                    gap.ends_with_line_comment = false;
                }
                at += character;
            }
        }
        gap
    }
}
