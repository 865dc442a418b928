//! A line that a script draws: coloured, harmless, and cut to the width of the screen.

use std::borrow::Cow;
use std::str::Chars;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use tenterhook_protocol::escape::escape_untrusted;

/// The maximum length of a sequence that sets colours, in characters. Longer ones are escaped.
const MAX_STYLE: usize = 64;

/// Ends all colours and styles.
pub const RESET: &str = "\u{1b}[0m";

/// A part of a line.
enum Piece<'a> {
    /// A sequence that sets colours and styles. It takes no room.
    Style(&'a str),
    /// Text, in which control characters are escaped.
    Text(Cow<'a, str>),
}

/// Splits a line into styles and text. Everything that is not a complete style is text.
fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut text = line;
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        let (_, from) = rest.split_at(at);
        match style_length(from) {
            Some(length) => {
                let (style, after) = from.split_at(length);
                let before = text.len() - from.len();
                push_text(&mut pieces, text.get(..before).unwrap_or_default());
                pieces.push(Piece::Style(style));
                (text, rest) = (after, after);
            }
            None => rest = from.get(1..).unwrap_or_default(),
        }
    }
    push_text(&mut pieces, text);
    pieces
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if text.is_empty() {
        return;
    }
    // Most lines of a drawing need no change.
    let is_plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    pieces.push(Piece::Text(if is_plain {
        Cow::Borrowed(text)
    } else {
        let escaped = escape_untrusted(&text.replace('\t', " "));
        Cow::Owned(escaped.replace('\n', "\\n"))
    }));
}

/// Returns the length of the style at the beginning of a text: `ESC [`, numbers, `m`.
fn style_length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let is_number = |character: &char| matches!(character, '0'..='9' | ';' | ':');
    let length = parameters
        .chars()
        .take(MAX_STYLE)
        .take_while(is_number)
        .count();
    parameters
        .get(length..)?
        .starts_with('m')
        .then_some(length + 3)
}

/// Returns a line of a script for the screen, at most `columns` wide. Only colours and styles keep their effect, and
/// they end with the line. Without `is_coloured`, they are removed.
pub fn drawn_line(line: &str, columns: usize, is_coloured: bool) -> String {
    let mut drawn = String::with_capacity(line.len() + RESET.len());
    let mut room = columns;
    for piece in pieces(line) {
        match piece {
            Piece::Style(style) if is_coloured => drawn.push_str(style),
            Piece::Style(_) => {}
            Piece::Text(text) => {
                let shown = fitting(&text, room);
                room = room.saturating_sub(shown.width());
                drawn.push_str(shown);
                if shown.len() < text.len() {
                    break;
                }
            }
        }
    }
    if is_coloured && drawn.contains('\u{1b}') {
        drawn.push_str(RESET);
    }
    drawn
}

/// Returns the beginning of a text that fits into `room` columns.
fn fitting(text: &str, room: usize) -> &str {
    if text.width() <= room {
        return text;
    }
    let mut used = 0;
    let fits = |character: &char| {
        used += character.width().unwrap_or(0);
        used <= room
    };
    let kept: Chars<'_> = text.chars();
    let length = kept.take_while(fits).map(char::len_utf8).sum::<usize>();
    text.get(..length).unwrap_or_default()
}

/// Returns the width of a drawn line, in columns.
pub fn drawn_width(line: &str) -> usize {
    let widths = pieces(line).into_iter().map(|piece| match piece {
        Piece::Style(_) => 0,
        Piece::Text(text) => text.width(),
    });
    widths.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_keep_their_effect_and_a_line_stays_one_line() {
        for (line, expected) in [
            ("plain", "plain"),
            ("\u{1b}[31mred", "\u{1b}[31mred\u{1b}[0m"),
            (
                "\u{1b}[38;2;1;2;3ma\u{1b}[m",
                "\u{1b}[38;2;1;2;3ma\u{1b}[m\u{1b}[0m",
            ),
            ("\u{1b}[4:3ma", "\u{1b}[4:3ma\u{1b}[0m"),
            ("\u{1b}[2Ja", "\\u{1b}[2Ja"),
            ("\u{1b}[1;1Ha", "\\u{1b}[1;1Ha"),
            ("\u{1b}[?25hm", "\\u{1b}[?25hm"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            (
                "\u{1b}]8;;http://a\u{1b}\\b",
                "\\u{1b}]8;;http://a\\u{1b}\\b",
            ),
            ("\u{1b}_pi:c\u{7}", "\\u{1b}_pi:c\\u{7}"),
            ("\u{1b}\u{1b}[31mr", "\\u{1b}\u{1b}[31mr\u{1b}[0m"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}c\u{9b}2J\u{85}", "\\u{1b}c\\u{9b}2J\\u{85}"),
            ("a\tb\nc\rd\u{8}", "a b\\nc\\rd\\u{8}"),
            ("\u{202e}evil\u{200b}", "\\u{202e}evil\\u{200b}"),
        ] {
            assert_eq!(drawn_line(line, 80, true), expected, "{line:?}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(MAX_STYLE));
        assert!(drawn_line(&long, 200, true).starts_with("\\u{1b}[1;"));
        assert_eq!(drawn_line("\u{1b}[31mred\u{1b}[0m", 80, false), "red");
    }

    #[test]
    fn a_line_is_cut_to_the_width_of_the_screen_also_with_wide_characters() {
        for (line, columns, expected) in [
            ("abcdef", 3, "abc"),
            ("abc", 3, "abc"),
            ("日本語", 5, "日本"),
            ("日本語", 6, "日本語"),
            ("a\u{301}bc", 2, "a\u{301}b"),
            ("👩\u{200d}💻", 2, "👩\u{200d}💻"),
            (
                "\u{1b}[31mabc\u{1b}[32mdef",
                4,
                "\u{1b}[31mabc\u{1b}[32md\u{1b}[0m",
            ),
            ("abc\u{1b}[31m", 3, "abc\u{1b}[31m\u{1b}[0m"),
            ("abcd\u{1b}[31m", 3, "abc"),
            ("abc", 0, ""),
        ] {
            let drawn = drawn_line(line, columns, true);
            assert_eq!(drawn, expected, "{line:?}");
            assert!(drawn_width(&drawn) <= columns, "{line:?}");
        }
    }
}
