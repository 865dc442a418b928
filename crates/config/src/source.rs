//! The text of one file, and where in it something stands.

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

/// Where something stands in a file. What spans several lines stands on its first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The bytes, not beyond the end of the line. A byte order mark is not counted.
    pub span: Span,
}

/// A file that was read: its path for people, its text, and where its lines start.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    path: PathBuf,
    text: Arc<str>,
    line_starts: Arc<[usize]>,
}

impl Source {
    pub(crate) fn new(path: &Path, text: &str) -> Self {
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Returns the place of a span; what is outside the text is moved into it.
    ///
    /// Takes time in the length of the line, so it is for what is shown, not for every value that is read.
    pub(crate) fn place(&self, span: Span) -> Place {
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
        Place {
            line,
            column: before.chars().count() + 1,
            span: Span { start, end },
        }
    }

    /// Returns the line, from 1, that a byte stands on.
    pub(crate) fn line_of(&self, byte: usize) -> usize {
        self.line_starts.partition_point(|at| *at <= byte)
    }

    /// Returns the span of one byte of a line, both from 1; what is outside the text is moved to its end.
    pub(crate) fn span_of_byte(&self, line: usize, byte: usize) -> Span {
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
        let source = Source::new(Path::new("a.yaml"), "\u{feff}a: 1\nü: bcd\r\n");
        let found = source.place((9..12).into());
        assert_eq!((found.line, found.column), (2, 4));
        assert_eq!(
            source.text().get(found.span.start..found.span.end),
            Some("bcd")
        );
    }

    #[test]
    fn places_end_with_their_line_and_stay_inside_the_text() {
        let source = Source::new(Path::new("a.yaml"), "ab\ncd");
        for (span, expected) in [
            (Span::from(0..5), 0..2),
            (Span::from(70..80), 5..5),
            (source.span_of_byte(9, 9), 5..5),
            (source.span_of_byte(2, 2), 4..5),
        ] {
            assert_eq!(source.place(span).span, expected.into(), "{span:?}");
        }
    }
}
