//! Escapes untrusted text for a terminal: a model, a tool or a hook must not move the cursor, hide its requests, or
//! write lines that look like the program's own.
//!
//! - [`escape_untrusted`] is for prose. It keeps the spaces and joiners that ordinary text and emoji contain.
//! - [`escape_invisible`] is for text that a person decides about, such as a hook to approve or a command to allow.
//!   It escapes every invisible character.
//! - [`escape_line`] does the same for a name or a path.

/// Escapes characters that control a terminal or hide other text. Line ends and tabs stay.
pub fn escape_untrusted(text: &str) -> String {
    escape(&text.replace("\r\n", "\n"), |kind| {
        kind == Visibility::Hidden
    })
}

/// Escapes every invisible character, including spaces at the end of a line. Line ends stay, and so do tabs that are
/// not at the end of a line.
pub fn escape_invisible(text: &str) -> String {
    let escaped = escape(text, |kind| kind != Visibility::Shown);
    let lines = escaped.split('\n').map(|line| {
        let shown = line.trim_end_matches([' ', '\t']);
        let rest = line.get(shown.len()..).unwrap_or_default();
        let rest = rest.replace(' ', "\\u{20}").replace('\t', "\\t");
        format!("{shown}{rest}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes a name or a path, including line ends, so that it stays on one line.
pub fn escape_line(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    escape(&text, |kind| kind != Visibility::Shown).replace('\n', "\\n")
}

/// Escapes text within a line of the program. All lines but the first are indented by `indent` spaces.
pub fn escape_indented(text: &str, indent: usize) -> String {
    indented(&escape_untrusted(text.trim_end_matches('\n')), indent)
}

/// Escapes text that a person decides about, like [`escape_invisible`]. All lines but the first are
/// indented by `indent` spaces.
pub fn escape_invisible_indented(text: &str, indent: usize) -> String {
    indented(&escape_invisible(text.trim_end_matches('\n')), indent)
}

fn indented(text: &str, indent: usize) -> String {
    text.replace('\n', &format!("\n{:indent$}", ""))
}

fn escape(text: &str, is_escaped: impl Fn(Visibility) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(visibility(character)) {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// How visible a character is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Shown,
    /// Invisible or like a space, but used in ordinary text: joiners, emoji variants, non-breaking spaces.
    Faint,
    /// Invisible, or it changes how the text around it is shown.
    Hidden,
}

/// The invisible characters, in order. All others are visible.
const INVISIBLE: &[(char, char, Visibility)] = &[
    ('\u{0}', '\u{8}', Visibility::Hidden),
    ('\u{b}', '\u{1f}', Visibility::Hidden),
    ('\u{7f}', '\u{9f}', Visibility::Hidden),
    ('\u{a0}', '\u{a0}', Visibility::Faint),
    ('\u{ad}', '\u{ad}', Visibility::Hidden),
    ('\u{34f}', '\u{34f}', Visibility::Hidden),
    ('\u{61c}', '\u{61c}', Visibility::Hidden),
    ('\u{115f}', '\u{1160}', Visibility::Hidden),
    ('\u{1680}', '\u{1680}', Visibility::Faint),
    ('\u{17b4}', '\u{17b5}', Visibility::Hidden),
    ('\u{180b}', '\u{180f}', Visibility::Hidden),
    ('\u{2000}', '\u{200a}', Visibility::Faint),
    ('\u{200b}', '\u{200b}', Visibility::Hidden),
    ('\u{200c}', '\u{200d}', Visibility::Faint),
    ('\u{200e}', '\u{200f}', Visibility::Hidden),
    ('\u{2028}', '\u{202e}', Visibility::Hidden),
    ('\u{202f}', '\u{202f}', Visibility::Faint),
    ('\u{205f}', '\u{205f}', Visibility::Faint),
    ('\u{2060}', '\u{206f}', Visibility::Hidden),
    ('\u{2800}', '\u{2800}', Visibility::Faint),
    ('\u{3000}', '\u{3000}', Visibility::Faint),
    ('\u{3164}', '\u{3164}', Visibility::Hidden),
    ('\u{e000}', '\u{f8ff}', Visibility::Faint),
    ('\u{fe00}', '\u{fe0d}', Visibility::Hidden),
    ('\u{fe0e}', '\u{fe0f}', Visibility::Faint),
    ('\u{feff}', '\u{feff}', Visibility::Hidden),
    ('\u{ffa0}', '\u{ffa0}', Visibility::Hidden),
    ('\u{fff0}', '\u{fffb}', Visibility::Hidden),
    ('\u{1bca0}', '\u{1bca3}', Visibility::Hidden),
    ('\u{1d159}', '\u{1d159}', Visibility::Hidden),
    ('\u{1d173}', '\u{1d17a}', Visibility::Hidden),
    ('\u{e0000}', '\u{10ffff}', Visibility::Hidden),
];

fn visibility(character: char) -> Visibility {
    INVISIBLE
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&character))
        .map_or(Visibility::Shown, |(_, _, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_shown_instead() {
        for (text, expected) in [
            ("plain ünïcode\twith a tab", "plain ünïcode\twith a tab"),
            ("a\r\nb", "a\nb"),
            ("ls\rrm", "ls\\rrm"),
            ("\u{1b}[2Kls", "\\u{1b}[2Kls"),
            ("\u{9b}2K", "\\u{9b}2K"),
            ("\u{202e}sl", "\\u{202e}sl"),
            ("\u{7}\u{7f}", "\\u{7}\\u{7f}"),
        ] {
            assert_eq!(escape_untrusted(text), expected);
        }
    }

    #[test]
    fn prose_keeps_its_emoji_and_spaces_but_hides_nothing() {
        for text in [
            "❤\u{fe0f}",
            "👩\u{200d}💻",
            "dix\u{a0}mille",
            "二\u{3000}三",
        ] {
            assert_eq!(escape_untrusted(text), text);
        }
        for hidden in [
            "\u{200b}",
            "\u{2060}",
            "\u{feff}",
            "\u{e0061}",
            "\u{2028}",
            "\u{ad}",
        ] {
            let escaped = hidden.escape_unicode().to_string();
            assert_eq!(
                escape_untrusted(&format!("a{hidden}b")),
                format!("a{escaped}b")
            );
        }
    }

    #[test]
    fn every_character_that_does_not_show_is_revealed() {
        for character in [
            // Zero width.
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{2060}',
            '\u{feff}',
            '\u{ad}',
            '\u{34f}',
            '\u{180e}',
            // Direction.
            '\u{61c}',
            '\u{200e}',
            '\u{200f}',
            '\u{202a}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            // Variation selectors and tags.
            '\u{fe00}',
            '\u{fe0f}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
            '\u{e01ef}',
            // Separators and spaces.
            '\u{2028}',
            '\u{2029}',
            '\u{a0}',
            '\u{1680}',
            '\u{2003}',
            '\u{202f}',
            '\u{205f}',
            '\u{3000}',
            '\u{2800}',
            '\u{3164}',
            '\u{115f}',
            '\u{ffa0}',
            // Controls.
            '\u{0}',
            '\u{7}',
            '\u{8}',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{fff9}',
            '\u{10fffd}',
        ] {
            let escaped = character.escape_unicode().to_string();
            let text = format!("a{character}b");
            assert_eq!(escape_invisible(&text), format!("a{escaped}b"));
            assert_eq!(escape_line(&text), format!("a{escaped}b"));
        }
        for (text, expected) in [
            ("a  \n\tb\t\n", "a\\u{20}\\u{20}\n\tb\\t\n"),
            ("a b", "a b"),
            ("a\r\nb\r", "a\\r\nb\\r"),
            ("a\u{a0}", "a\\u{a0}"),
            ("ünï 日本 ❤", "ünï 日本 ❤"),
        ] {
            assert_eq!(escape_invisible(text), expected);
        }
    }

    #[test]
    fn further_lines_are_indented() {
        assert_eq!(escape_indented("ls\n● shell\n", 4), "ls\n    ● shell");
    }
}
