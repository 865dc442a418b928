//! Escapes JSON so that hooks in every shell can pass it on unchanged.

/// Which other characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EscapeStyle {
    /// No other characters.
    Plain,
    /// The characters that Go's JSON encoder escapes: `<`, `>`, `&`, U+2028 and U+2029. Hooks may compare
    /// the text with Go's output.
    Go,
}

/// Rewrites escapes in the only form that survives every shell.
///
/// Many hooks pass the event to another program with `echo "$INPUT"`. In some shells, `echo` turns `\n`
/// and similar escapes into the character itself. The result is invalid JSON, and a guard that cannot
/// read the event denies nothing. All shells leave `\u000a` unchanged.
pub(crate) fn escape(json: String, style: EscapeStyle) -> Vec<u8> {
    let next = |rest: &[u8]| match style {
        EscapeStyle::Plain => memchr::memchr(b'\\', rest),
        EscapeStyle::Go => rest.iter().position(|byte| is_special(*byte)),
    };
    let mut rest = json.as_bytes();
    let mut escaped = Vec::new();
    while let Some(at) = next(rest) {
        let (plain, special) = rest.split_at(at);
        escaped.extend_from_slice(plain);
        let (long, taken) = long_form(special);
        escaped.extend_from_slice(long);
        rest = special.get(taken..).unwrap_or_default();
    }
    if escaped.is_empty() {
        return json.into_bytes();
    }
    escaped.extend_from_slice(rest);
    escaped
}

/// Returns whether Go's JSON encoder may escape a character that starts with this byte.
const fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'<' | b'>' | b'&' | LINE_SEPARATOR_START)
}

/// The first byte of U+2028 and U+2029, and of other characters, in UTF-8.
const LINE_SEPARATOR_START: u8 = 0xe2;

/// Returns the replacement for the start of `special`, and the number of bytes that it replaces.
fn long_form(special: &[u8]) -> (&[u8], usize) {
    match special {
        [b'\\', b'n', ..] => (b"\\u000a", 2),
        [b'\\', b't', ..] => (b"\\u0009", 2),
        [b'\\', b'r', ..] => (b"\\u000d", 2),
        [b'\\', b'b', ..] => (b"\\u0008", 2),
        [b'\\', b'f', ..] => (b"\\u000c", 2),
        [b'\\', b'"', ..] => (b"\\u0022", 2),
        [b'\\', b'\\', ..] => (b"\\u005c", 2),
        [b'<', ..] => (b"\\u003c", 1),
        [b'>', ..] => (b"\\u003e", 1),
        [b'&', ..] => (b"\\u0026", 1),
        [LINE_SEPARATOR_START, 0x80, 0xa8, ..] => (b"\\u2028", 3),
        [LINE_SEPARATOR_START, 0x80, 0xa9, ..] => (b"\\u2029", 3),
        first => (first.get(..1).unwrap_or_default(), 1),
    }
}
