//! Cutting a text so that no part of a secret is left at the cut.
//!
//! A redactor recognises a secret by its whole form, or by a name in front of it. What is left of a secret at a cut has
//! neither, so it would pass. Therefore a cut never leaves a part of a word: a beginning ends behind a separator, and an
//! end begins with a line, because a name in front of a secret is on the same line. Only of a line that goes on for
//! 8 KiB the rest is kept, from a whole word on.
//!
//! This works without knowing secrets, so it also serves streams, of which the rest is never seen. Keys of several lines
//! are for the redactor, which knows their first and last lines. Lines that can be the middle of a key have neither, so
//! an end does not begin with them.

use std::borrow::Cow;

/// How much more than asked for may be dropped at a cut, in bytes. No known token is longer.
const MAX_WORD: usize = 8 << 10;

/// The shortest line of a private key but its last one, in bytes.
const MIN_KEY_LINE: usize = 40;

/// Returns the beginning of a text: at most `limit` bytes that end with a whole word.
///
/// ```
/// use tenterhook_process::cut;
///
/// assert_eq!(cut::head("two words", 20), "two words");
/// assert_eq!(cut::head("two words", 7), "two ");
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

/// Returns the end of a text: at most `limit` bytes that begin with a whole line, or at least with a whole word.
///
/// ```
/// use tenterhook_process::cut;
///
/// assert_eq!(cut::tail("first line\nsecond line\nthird line", 30), "second line\nthird line");
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

/// Cuts the middle out of a text that is longer than `head` and `tail` bytes together, and says how much is missing.
pub fn omit_middle(text: &str, head: usize, tail: usize) -> Cow<'_, str> {
    if text.len() <= head + tail {
        return Cow::Borrowed(text);
    }
    let (head, tail) = (self::head(text, head), self::tail(text, tail));
    let omitted = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}{}{tail}", marker(omitted as u64)))
}

/// Returns the line that stands for what was cut out.
pub(crate) fn marker(omitted: u64) -> String {
    format!("\n[... {omitted} bytes omitted ...]\n")
}

/// Returns how much of a text, whose rest is lost, ends with a whole word.
pub fn head_end(kept: &[u8]) -> usize {
    let floor = kept.len().saturating_sub(MAX_WORD);
    let edge = kept.get(floor..).unwrap_or_default();
    let separator = edge.iter().rposition(|byte| is_separator(*byte));
    separator.map_or(floor, |at| floor + at + 1)
}

/// Returns where the first whole line begins in a text whose beginning is lost.
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

/// Returns how much of the beginning of a text may be lines of a key, of which the first line is lost.
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

/// Returns the whole words of both sides of a cut.
pub(crate) fn sides<'a>(head: &'a [u8], tail: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    (
        head.get(..head_end(head)).unwrap_or_default(),
        tail.get(tail_start(tail)..).unwrap_or_default(),
    )
}

/// Returns whether a byte cannot be part of a token. Tokens are ASCII, without quotes and brackets.
fn is_separator(byte: u8) -> bool {
    !byte.is_ascii_graphic() || b"\"'`,;<>(){}[]|\\".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token of a common form, put together so that no file of the repository holds one.
    fn token() -> String {
        ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat()
    }

    /// Returns whether a text has a part of a secret that is long enough to be of use.
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
}
