//! Shortens text without leaving a part of a secret at the cut.
//!
//! A redactor recognises a secret by its complete form, or by a name in front of it. If a cut
//! leaves only part of a secret, both are missing, and the redactor would not find it. Therefore a
//! cut never leaves part of a word: a beginning ends after a separator, and an end starts at a
//! line, because a name and its secret are on the same line. If a line is longer than 8 KiB, an end
//! may start at a word within the line.
//!
//! This works without knowing what secrets look like, and also for streams, whose rest is never
//! seen. Keys of several lines are left to the redactor, which recognises their first and last
//! lines. Lines that may be the middle of a key lack both, so an end never starts with them.
//!
//! `tenterhook-builtins` finds and redacts complete secrets.
//!
//! ```
//! assert_eq!(tenterhook_protocol::excerpt::shortened("two words", 7), "two…");
//! ```

use std::borrow::Cow;

/// The maximum number of additional bytes that a cut may drop. No known token is longer.
const MAX_WORD: usize = 8 << 10;

/// The minimum length of a line of a private key, except its last line, in bytes.
const MIN_KEY_LINE: usize = 40;

/// Returns the beginning of the text: at most `limit` bytes, ending with a complete word.
///
/// ```
/// assert_eq!(tenterhook_protocol::excerpt::head("two words", 20), "two words");
/// assert_eq!(tenterhook_protocol::excerpt::head("two words", 7), "two ");
/// ```
pub fn head(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let kept = text
        .get(..text.floor_char_boundary(limit))
        .unwrap_or_default();
    let end = text.floor_char_boundary(head_end(kept.as_bytes()));
    text.get(..end).unwrap_or_default()
}

/// Returns the end of the text: at most `limit` bytes, starting with a complete line, or at least
/// with a complete word.
///
/// ```
/// assert_eq!(tenterhook_protocol::excerpt::tail("first line\nsecond line\nthird line", 30), "second line\nthird line");
/// ```
pub fn tail(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let start = text.ceil_char_boundary(text.len() - limit);
    let kept = text.get(start..).unwrap_or_default();
    let start = kept.ceil_char_boundary(tail_start(kept.as_bytes()));
    kept.get(start..).unwrap_or_default()
}

/// Removes the middle of text that is longer than `head` and `tail` bytes together, and states
/// how many bytes are missing.
pub fn omit_middle(text: &str, head: usize, tail: usize) -> Cow<'_, str> {
    if text.len() <= head + tail {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (self::head(text, head), self::tail(text, tail));
    let omitted = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}{}{tail}", marker(omitted as u64)))
}

/// Returns the line that replaces the removed part.
pub fn marker(omitted: u64) -> String {
    format!("\n[... {omitted} bytes omitted ...]\n")
}

/// Returns the length of the part of `kept` that ends with a complete word. The rest of the text is
/// lost.
pub fn head_end(kept: &[u8]) -> usize {
    let floor = kept.len().saturating_sub(MAX_WORD);
    let edge = kept.get(floor..).unwrap_or_default();
    let separator = edge.iter().rposition(|byte| is_separator(*byte));
    separator.map_or(floor, |at| floor + at + 1)
}

/// Returns the position of the first complete line in text whose beginning is lost.
fn tail_start(kept: &[u8]) -> usize {
    let (edge, rest) = kept.split_at(kept.len().min(MAX_WORD));
    let start = if let Some(at) = edge.iter().position(|byte| *byte == b'\n') {
        at + 1
    } else {
        let word = rest.get(..rest.len().min(MAX_WORD)).unwrap_or_default();
        let separator = word.iter().position(|byte| is_separator(*byte));
        edge.len() + separator.unwrap_or_default()
    };
    start + length_of_key(kept.get(start..).unwrap_or_default())
}

/// Returns the length of the lines at the beginning of text that may belong to a key whose first
/// line is lost.
fn length_of_key(text: &[u8]) -> usize {
    let mut length = 0;
    loop {
        let rest = text.get(length..).unwrap_or_default();
        let start = rest.iter().position(|byte| !is_separator(*byte));
        let word = rest.get(start.unwrap_or_default()..).unwrap_or_default();
        let end = word.iter().position(|byte| is_separator(*byte));
        let word = word.get(..end.unwrap_or(word.len())).unwrap_or_default();
        let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        let is_line = (MIN_KEY_LINE..=MAX_WORD).contains(&word.len());
        if !is_line || !word.iter().all(is_of_key) {
            return length;
        }
        length += start.unwrap_or_default() + word.len();
    }
}

/// Returns the complete words on both sides of a cut.
pub fn sides<'a>(head: &'a [u8], tail: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    (
        head.get(..head_end(head)).unwrap_or_default(),
        tail.get(tail_start(tail)..).unwrap_or_default(),
    )
}

/// Returns whether a byte cannot be part of a token. Tokens are ASCII, without quotes and brackets.
fn is_separator(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"\"'`,;<>(){}[]|\\".contains(&byte)
}

/// Returns the first words of the text, at most `longest` bytes, followed by `…` if something was
/// cut.
pub fn shortened(text: &str, longest: usize) -> String {
    let head = head(text, longest);
    if head.len() == text.len() {
        text.to_owned()
    } else {
        format!("{}…", head.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token of a common form. It is assembled here so that no file of the repository contains
    /// one.
    fn token() -> String {
        ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat()
    }

    /// Returns whether the text contains a part of a secret that is long enough to be useful.
    fn has_part(text: &str, secret: &str) -> bool {
        let parts = secret.as_bytes().windows(8);
        let mut parts = parts.map(|part| std::str::from_utf8(part).unwrap());
        parts.any(|part| text.contains(part))
    }

    #[test]
    fn a_token_at_a_size_limit_is_there_whole_or_not_at_all() {
        let token = token();
        for (before, behind) in [("the token is ", " .\n"), ("{\"token\":\"", "\"}")] {
            let text = format!(
                "{}{before}{token}{behind}{}",
                "some words\n".repeat(100),
                "more words\n".repeat(100)
            );
            for limit in 0..text.len() {
                let head = head(&text, limit);
                assert!(head.len() <= limit && text.starts_with(head));
                assert!(head.contains(&token) || !has_part(head, &token), "{limit}");
                let tail = tail(&text, limit);
                assert!(tail.len() <= limit && text.ends_with(tail));
                assert!(tail.contains(&token) || !has_part(tail, &token), "{limit}");
            }
        }
    }

    #[test]
    fn a_value_whose_name_was_cut_away_is_cut_away_too() {
        let secret = "x9Kq2vR7tB4mW8zL1";
        let text = format!(
            "{}\"password\" : \"{secret}\", {}\n{}",
            "long ".repeat(20),
            "line ".repeat(20),
            "other lines\n".repeat(20),
        );
        for limit in 0..text.len() {
            let tail = tail(&text, limit);
            assert!(
                !has_part(tail, secret) || tail.contains("password"),
                "{limit}"
            );
        }
    }

    #[test]
    fn most_of_a_text_of_one_word_is_kept() {
        let text = "x_".repeat(50_000);
        assert_eq!(head(&text, 50_000).len(), 50_000 - MAX_WORD);
        assert_eq!(tail(&text, 50_000).len(), 50_000 - MAX_WORD);
    }

    #[test]
    fn an_end_does_not_begin_with_the_middle_of_a_key() {
        let line = "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoIqB7nXr/+aBcDeFgHiJkLmNoPqRsT";
        for end in ["\n", "\\n"] {
            let text = format!("first{end}{}last", format!("{line}{end}").repeat(300));
            for limit in (0..text.len() - 100).step_by(7) {
                let tail = tail(&text, limit);
                assert!(!has_part(tail, line), "{limit}: {tail:.200}");
            }
        }
    }

    #[test]
    fn no_character_is_split() {
        let text = "é".repeat(1000);
        for limit in 0..600 {
            assert_eq!(head(&text, limit).len(), limit / 2 * 2);
            assert!(text.ends_with(tail(&text, limit)));
        }
    }

    #[test]
    fn what_is_missing_is_counted() {
        let text = "a b\n".repeat(1000);
        let cut = omit_middle(&text, 1001, 1001);
        assert_eq!(
            cut,
            format!(
                "{}\n[... 2000 bytes omitted ...]\n{}",
                "a b\n".repeat(250),
                "a b\n".repeat(250)
            )
        );
        assert_eq!(omit_middle("short", 3, 2), "short");
    }

    #[test]
    fn a_shortened_text_says_that_it_is() {
        assert_eq!(shortened("éa b", 5), "éa b");
        assert_eq!(shortened("éa bc", 5), "éa…");
    }
}
