//! Comments in JSON, which coding agents allow in their settings.

/// Returns the text with spaces instead of comments, so that all positions stay the same.
pub(super) fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' => comment_length(rest),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if first == '/' && length > 1 {
            pad(token, &mut plain);
        } else {
            plain.push_str(token);
        }
        rest = after;
    }
    plain
}

/// Returns the length of a string with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a comment, or 1 for a slash that does not start one.
fn comment_length(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    let end = text.strip_prefix("/*").and_then(|rest| rest.find("*/"));
    end.map_or(1, |end| end + 4)
}

/// Writes a space for each byte, and keeps the ends of lines.
fn pad(comment: &str, plain: &mut String) {
    plain.extend(comment.bytes().map(|byte| match byte {
        b'\n' => '\n',
        _ => ' ',
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_spaces() {
        for (text, expected) in [
            ("{\"a\": 1} // b", "{\"a\": 1}     "),
            ("[1, /* ä\n */ 2]", "[1,      \n    2]"),
            ("[1 // one\n]", "[1       \n]"),
            ("[\"//\", \"/* \\\" */\"]", "[\"//\", \"/* \\\" */\"]"),
            ("[1, /* open", "[1, /* open"),
            ("\"open", "\"open"),
            ("1 / 2", "1 / 2"),
        ] {
            let plain = without_comments(text);
            assert_eq!(plain, expected);
            assert_eq!(plain.len(), text.len());
        }
    }
}
