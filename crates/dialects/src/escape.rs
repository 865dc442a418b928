//! How JSON is written so that every shell hands it on as it is.

/// What else is escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing.
    Plain,
    /// What encoders of Go escape, which hooks may compare with: `<`, `>`, `&`, U+2028 and U+2029.
    Go,
}

/// Writes escapes in the one form that survives every shell.
///
/// Many hooks hand the event on with `echo "$INPUT"`. The `echo` of some shells turns `\n` and its like into the
/// character itself, which breaks the JSON behind the pipe, and a guard that reads nothing denies nothing. It
/// leaves `\u000a` alone.
pub(crate) fn escape(json: String, form: Form) -> Vec<u8> {
    let next = |rest: &[u8]| match form {
        Form::Plain => memchr::memchr(b'\\', rest),
        Form::Go => rest.iter().position(|byte| is_special(*byte)),
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

/// Says whether an encoder of Go does not write the byte as it is.
const fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'<' | b'>' | b'&' | LINE_SEPARATOR_START)
}

/// The first byte of U+2028 and U+2029, and of other characters, in UTF-8.
const LINE_SEPARATOR_START: u8 = 0xe2;

/// Returns what is written for the beginning of `special`, and how many bytes it stands for.
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
