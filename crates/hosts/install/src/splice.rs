//! Changes to a text that leave every other byte as it is.

use std::ops::Range;

/// Replaces a range of a text, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    range: Range<usize>,
    text: String,
}

impl Splice {
    /// Inserts a text.
    pub(crate) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::replace(at..at, text)
    }

    /// Deletes a range.
    pub(crate) fn delete(range: Range<usize>) -> Self {
        Self::replace(range, "")
    }

    /// Replaces a range.
    pub(crate) fn replace(range: Range<usize>, text: impl Into<String>) -> Self {
        Self {
            range,
            text: text.into(),
        }
    }
}

/// Applies changes that do not overlap. Insertions at the same position keep their order.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut changed = text.to_owned();
    for splice in splices.into_iter().rev() {
        changed.replace_range(splice.range, &splice.text);
    }
    changed
}

/// Returns the spaces and tabs at the beginning of the line that contains a position.
pub(crate) fn line_indent(text: &str, position: usize) -> &str {
    let before = text.get(..position).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..).unwrap_or("");
    let width = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.get(..width).unwrap_or("")
}

/// Returns the line ending of a text: the ending of its first line.
pub(crate) fn newline(text: &str) -> &'static str {
    let first = text.split_inclusive('\n').next().unwrap_or("");
    if first.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    }
}

/// Returns the line and the column of a position, both from 1. Columns count characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insertions_at_one_position_keep_their_order() {
        let splices = vec![
            Splice::delete(3..4),
            Splice::insert(1, ","),
            Splice::insert(1, "b"),
        ];
        assert_eq!(apply("a--x", splices), "a,b--");
    }

    #[test]
    fn positions_count_lines_and_characters() {
        assert_eq!(position("ä\nöx", 5), (2, 2));
        assert_eq!(line_indent("a\n  b: {", 7), "  ");
        assert_eq!(newline("a\r\nb\n"), "\r\n");
    }
}
