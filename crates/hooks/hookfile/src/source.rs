//! The text of one file, and positions in it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

/// A range of bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self {
            start: range.start,
            end: range.end,
        }
    }
}

/// A position in a file. A range of several lines is cut at the end of its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The range of bytes, which ends at the end of the line at the latest. A byte order mark does not count.
    pub span: Span,
}

/// The path and the text of a file, with an index of its lines.
#[derive(Debug, Clone)]
pub struct SourceText {
    path: PathBuf,
    text: Arc<str>,
    line_starts: Arc<[usize]>,
}

impl SourceText {
    /// Creates a source from text. Drops a byte order mark at its start.
    pub fn new(path: &Path, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .collect();
        Self {
            path: path.to_owned(),
            text: Arc::from(text),
            line_starts,
        }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text without copying it.
    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Returns the position of a span. Moves a span outside of the text into the text.
    ///
    /// The cost is linear in the length of the line, so call it only for positions that are shown.
    pub fn position(&self, span: Span) -> Position {
        let start = self.text.floor_char_boundary(span.start);
        let line = self.line_of(start);
        let line_start = line
            .checked_sub(1)
            .and_then(|index| self.line_starts.get(index))
            .map_or(0, |at| *at);
        let rest = self.text.get(start..).unwrap_or_default();
        let rest_of_line = rest.lines().next().unwrap_or_default().trim_end();
        let end = self
            .text
            .floor_char_boundary(span.end)
            .clamp(start, start + rest_of_line.len());
        let before = self.text.get(line_start..start).unwrap_or_default();
        Position {
            line,
            column: before.chars().count() + 1,
            span: Span { start, end },
        }
    }

    /// Returns the line of a byte, counted from 1.
    pub fn line_of(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|at| *at <= byte)
    }

    /// Returns the span of one byte. `line` and `byte` count from 1. A position outside of the text
    /// becomes the end of the text.
    pub fn span_of_byte(&self, line: usize, byte: usize) -> Span {
        let line_start = line
            .checked_sub(1)
            .and_then(|index| self.line_starts.get(index));
        let start = line_start
            .map_or(self.text.len(), |at| at + byte.saturating_sub(1))
            .min(self.text.len());
        Span {
            start,
            end: start + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let source = SourceText::new(Path::new("a.yaml"), "\u{feff}a: 1\nü: bcd\r\n");
        let found = source.position((9..12).into());
        assert_eq!((found.line, found.column), (2, 4));
        assert_eq!(
            source.text().get(found.span.start..found.span.end),
            Some("bcd")
        );
    }

    #[test]
    fn places_end_with_their_line_and_stay_inside_the_text() {
        let source = SourceText::new(Path::new("a.yaml"), "ab\ncd");
        for (span, expected) in [
            (Span::from(0..5), 0..2),
            (Span::from(70..80), 5..5),
            (source.span_of_byte(9, 9), 5..5),
            (source.span_of_byte(2, 2), 4..5),
        ] {
            assert_eq!(source.position(span).span, expected.into(), "{span:?}");
        }
    }
}
