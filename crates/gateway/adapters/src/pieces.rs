//! Splits a long text into pieces for services that limit the length of a message.
//!
//! A piece ends after a paragraph, a line, a sentence or a word, whichever is the best in its second half. A fenced code
//! block that continues in the next piece is closed, and opened again there with its language.

use std::fmt;

/// What the length of a text is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUnit {
    /// Code units of UTF-16, as Telegram counts.
    Utf16,
    /// Bytes of UTF-8.
    Bytes,
    /// Unicode scalar values.
    Chars,
}

impl TextUnit {
    fn of(self, c: char) -> usize {
        match self {
            Self::Utf16 => c.len_utf16(),
            Self::Bytes => c.len_utf8(),
            Self::Chars => 1,
        }
    }

    /// Returns the length of a text.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            Self::Utf16 | Self::Chars => text.chars().map(|c| self.of(c)).sum(),
        }
    }
}

/// The maximum length of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceLimit {
    /// The number of units. A single character is never split, even if it is longer than this.
    pub max: usize,
    /// The unit.
    pub unit: TextUnit,
}

/// A piece of a text. All bodies together are the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The line that opens the code block again. Empty if the piece does not begin inside one.
    pub opening: String,
    /// The part of the text.
    pub body: &'a str,
    /// What closes the code block. Empty if the piece does not end inside one.
    pub closing: String,
}

impl fmt::Display for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.opening, self.body, self.closing)
    }
}

/// Splits a text into pieces of at most `limit`. An empty text has no pieces.
pub fn split(text: &str, limit: PieceLimit) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut rest, mut fence) = (text, None);
    while !rest.is_empty() {
        let opening = fence.as_ref().map(Fence::opening).unwrap_or_default();
        let cut = Scan::new(limit, &opening).cut(rest, fence);
        let (body, after) = rest.split_at_checked(cut.at).unwrap_or((rest, ""));
        let closing = match &cut.fence {
            Some(fence) if !after.is_empty() => fence.closing(body),
            _ => String::new(),
        };
        pieces.push(Piece {
            opening,
            body,
            closing,
        });
        (rest, fence) = (after, cut.fence);
    }
    pieces
}

/// An open fenced code block.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fence<'a> {
    marker: &'a str,
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn opening(&self) -> String {
        format!("{}{}\n", self.marker, self.language)
    }

    fn closing(&self, body: &str) -> String {
        let line_end = if body.ends_with('\n') { "" } else { "\n" };
        format!("{line_end}{}", self.marker)
    }

    /// Returns the marker at the beginning of a line, and what follows it.
    fn marker(line: &'a str) -> Option<(&'a str, &'a str)> {
        let text = line.trim_start_matches(' ');
        let c = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(c);
        let marker = text.strip_suffix(info)?;
        (line.len() - text.len() <= 3 && marker.len() >= 3).then_some((marker, info.trim()))
    }

    /// Returns the block that is open after a line.
    fn after(open: Option<Self>, line: &'a str, limit: PieceLimit) -> Option<Self> {
        let Some((marker, info)) = Self::marker(line) else {
            return open;
        };
        if let Some(fence) = open {
            let closes = marker.starts_with(fence.marker) && info.is_empty();
            return (!closes).then_some(fence);
        }
        let language = info.split_whitespace().next().unwrap_or_default();
        // Fences that would take most of a piece are treated as text.
        let is_short = (marker.len() * 2 + language.len() + 2) * 4 <= limit.max;
        let is_fence = is_short && !(marker.starts_with('`') && info.contains('`'));
        is_fence.then_some(Self { marker, language })
    }
}

/// How good a place for the end of a piece is, the best first.
#[derive(Debug, Clone, Copy)]
enum Break {
    Paragraph,
    Line,
    Sentence,
    Word,
    Grapheme,
    Char,
}

/// Where a piece ends, and the code block that is open there.
#[derive(Debug, Clone, Default)]
struct Cut<'a> {
    at: usize,
    fence: Option<Fence<'a>>,
}

/// Looks for the end of one piece.
struct Scan<'a> {
    limit: PieceLimit,
    /// The units up to the current place, and what the end of a code block needs.
    used: usize,
    /// The last place of each sort at which the piece can end.
    best: [Option<Cut<'a>>; 6],
}

impl<'a> Scan<'a> {
    fn new(limit: PieceLimit, opening: &str) -> Self {
        Self {
            limit,
            used: limit.unit.measure(opening),
            best: Default::default(),
        }
    }

    fn cut(mut self, text: &'a str, open: Option<Fence<'a>>) -> Cut<'a> {
        let (mut at, mut fence, mut previous) = (0, open, "");
        for line in text.split_inclusive('\n') {
            let next = Fence::after(fence.clone(), line, self.limit);
            let closes = fence.is_some() && next.is_none();
            // Before the end of a code block, the next piece would begin with an empty one.
            if at > 0 && !closes {
                let rank = if previous.trim().is_empty() {
                    Break::Paragraph
                } else {
                    Break::Line
                };
                self.offer(rank, at, fence.as_ref(), previous);
            }
            if next == fence {
                self.scan_line(line, at, fence.as_ref());
            } else {
                self.used += self.limit.unit.measure(line);
            }
            if self.used > self.limit.max {
                return self.choose(text);
            }
            at += line.len();
            (fence, previous) = (next, line);
        }
        Cut {
            at: text.len(),
            fence: None,
        }
    }

    /// Looks for places inside a line.
    fn scan_line(&mut self, line: &'a str, at: usize, fence: Option<&Fence<'a>>) {
        let mut before = ['\n'; 2];
        let mut flags = 0;
        for (i, c) in line.char_indices() {
            let [older, last] = before;
            if i > 0 && !(last == '\r' && c == '\n') {
                let rank = if last.is_whitespace() && !c.is_whitespace() {
                    match older {
                        '.' | '!' | '?' | '…' => Break::Sentence,
                        _ => Break::Word,
                    }
                } else if matches!(last, '。' | '！' | '？') {
                    Break::Sentence
                } else if joins(last, c) || (is_flag(c) && flags % 2 == 1) {
                    Break::Char
                } else {
                    Break::Grapheme
                };
                self.offer(rank, at + i, fence, "");
            }
            flags = if is_flag(c) { flags + 1 } else { 0 };
            self.used += self.limit.unit.of(c);
            if self.used > self.limit.max {
                return;
            }
            before = [last, c];
        }
    }

    fn offer(&mut self, rank: Break, at: usize, fence: Option<&Fence<'a>>, body: &str) {
        let closing = fence.map_or(0, |fence| fence.closing(body).len());
        let fits = self.used + closing <= self.limit.max;
        if fits && let Some(best) = self.best.get_mut(rank as usize) {
            *best = Some(Cut {
                at,
                fence: fence.cloned(),
            });
        }
    }

    fn choose(self, text: &str) -> Cut<'a> {
        let furthest = self.best.iter().flatten().map(|cut| cut.at).max();
        let half = furthest.unwrap_or_default() / 2;
        let cuts = || self.best.iter().flatten();
        let is_whole = |cut: &&Cut<'a>| cut.at >= half;
        let chosen = cuts().find(is_whole).or_else(|| cuts().next()).cloned();
        chosen.unwrap_or_else(|| Cut {
            at: self.prefix(text),
            fence: None,
        })
    }

    /// Returns the length of the longest beginning that fits, at least one character.
    fn prefix(&self, text: &str) -> usize {
        let mut used = 0;
        let fits = |&(_, c): &(usize, char)| {
            used += self.limit.unit.of(c);
            used <= self.limit.max
        };
        let fitting = text.char_indices().take_while(fits).last();
        let (at, c) = fitting.unwrap_or((0, text.chars().next().unwrap_or_default()));
        at + c.len_utf8()
    }
}

fn is_flag(c: char) -> bool {
    ('\u{1F1E6}'..='\u{1F1FF}').contains(&c)
}

/// Returns whether two characters are one for the reader: accents, joined emoji, variants and skin tones.
fn joins(last: char, c: char) -> bool {
    const JOINER: char = '\u{200D}';
    last == JOINER
        || matches!(c, JOINER | '\u{20E3}' | '\u{0300}'..='\u{036F}' | '\u{FE00}'..='\u{FE0F}')
        || matches!(c, '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str, max: usize) -> Vec<String> {
        let limit = PieceLimit {
            max,
            unit: TextUnit::Chars,
        };
        split(text, limit).iter().map(Piece::to_string).collect()
    }

    #[test]
    fn a_piece_ends_at_the_best_place_of_its_second_half() {
        for (text, expected) in [
            ("one two\n\nthree four", ["one two\n\n", "three four"]),
            ("one two\nthree four x", ["one two\n", "three four x"]),
            ("One two. Three four.", ["One two. ", "Three four."]),
            ("one two three four", ["one two ", "three four"]),
            ("abcdefghijklmnop", ["abcdefghijkl", "mnop"]),
            ("A. bcdefghijk lmnop", ["A. bcdefghij", "k lmnop"]),
        ] {
            assert_eq!(texts(text, 12), expected, "{text}");
        }
        assert!(texts("", 12).is_empty());
    }

    #[test]
    fn what_readers_see_as_one_character_stays_whole() {
        for whole in ["👩‍👩‍👧", "👍🏽", "🇩🇪", "e\u{301}", "❤\u{fe0f}", "\r\n"]
        {
            let text = format!("{}{whole}", "x".repeat(9));
            let found = texts(&text, 10);
            assert_eq!(found.concat(), text);
            assert!(found[1].ends_with(whole), "{found:?}");
        }
    }

    // G55
    #[test]
    fn a_code_block_is_closed_and_opened_again_with_its_language() {
        let code = "let x = 1;\n".repeat(8);
        let text = format!("Look:\n\n```rust\n{code}```\nDone.\n");
        let found = texts(&text, 60);
        assert!(found.len() > 1);
        for piece in &found {
            assert_eq!(piece.matches("```").count() % 2, 0, "{piece}");
            assert!(!piece.contains("```rust\n```"), "{piece}");
        }
        assert!(found[1].starts_with("```rust\nlet"));
    }

    proptest! {
        // G55
        #[test]
        fn the_pieces_are_the_text_and_none_is_too_long(
            text in "([a-z .\n👍é]{0,30}(```(rust)?\n|\n~~~~\n|\n```\n|\n\n|🇩🇪|👩‍👧|\r\n)?){0,20}",
            max in 4_usize..90,
            unit in prop::sample::select(vec![TextUnit::Utf16, TextUnit::Bytes, TextUnit::Chars]),
        ) {
            let pieces = split(&text, PieceLimit { max, unit });
            let joined: String = pieces.iter().map(|piece| piece.body).collect();
            prop_assert_eq!(&joined, &text);
            for piece in &pieces {
                prop_assert!(!piece.body.is_empty());
                prop_assert!(unit.measure(&piece.to_string()) <= max, "{:?}", piece);
            }
            for (one, two) in pieces.iter().zip(pieces.iter().skip(1)) {
                prop_assert_eq!(one.closing.is_empty(), two.opening.is_empty());
            }
        }
    }
}
