//! Fits text into the width of the terminal.

use std::io::{self, IsTerminal as _};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns how many columns stdout has, or `None` if it is not a terminal, because a program that reads lines expects
/// them whole.
pub fn terminal_columns() -> Option<usize> {
    let is_terminal = io::stdout().is_terminal();
    is_terminal.then(|| termimad::terminal_size().0.into())
}

/// Breaks a text between words into lines of at most `columns`. A longer word gets a line of its own.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Cuts a text to at most `columns`, with `…` at the end if it was longer.
pub fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|it| {
        used += it.width().unwrap_or_default();
        used <= columns
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal_unless_a_word_is() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("überlang ab cd", 5), ["überlang", "ab cd"]);
        assert_eq!(wrap("", 5), Vec::<String>::new());
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        // Each of these characters has two columns.
        assert_eq!(cut("日本語日本語", 6), "日本…");
    }
}
