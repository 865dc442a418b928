//! The name of a session: one line that is short enough for a list.

use tenterhook_protocol::excerpt;

/// The longest name of a session, in characters.
const MAX_NAME_CHARS: usize = 200;

/// Returns text as one line that is short enough for a list.
pub(crate) fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    excerpt::head(&line, MAX_NAME_CHARS).trim_end().to_owned()
}
