//! Splits what a terminal sends into keys.

use std::time::{Duration, Instant};

/// How long the rest of a key may take. After that, what has arrived counts as a key, such as Escape.
const PATIENCE: Duration = Duration::from_millis(30);

/// The maximum length of a key, or of a pasted text, in bytes. A longer one is split.
const MAX_KEY: usize = 64 * 1024;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

const CTRL_C: u8 = 0x03;

/// Ctrl-C, as a control character and in Kitty's protocol.
const INTERRUPTS: [&str; 2] = ["\u{3}", "\u{1b}[99;5u"];

/// Returns whether a key is Ctrl-C.
pub(super) fn is_interrupt(key: &str) -> bool {
    INTERRUPTS.contains(&key)
}

/// The bytes of a key that is not complete yet.
#[derive(Debug, Default)]
pub(super) struct KeySequences {
    pending: Vec<u8>,
    began: Option<Instant>,
}

/// What bytes begin with.
enum Head {
    /// A key of this many bytes.
    Key(usize),
    /// An answer of the terminal or an invalid byte, which is not a key.
    Noise(usize),
    Incomplete,
}

impl KeySequences {
    /// Adds bytes of the terminal, and returns the complete keys. A pasted text is one key, with its marks.
    pub(super) fn push(&mut self, bytes: &[u8], now: Instant) -> Vec<String> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        loop {
            let length = match head(&self.pending) {
                _ if self.pending.is_empty() => break,
                Head::Incomplete if self.pending.len() < MAX_KEY => break,
                Head::Incomplete => self.pending.len(),
                Head::Noise(length) => {
                    self.pending.drain(..length);
                    continue;
                }
                Head::Key(length) => length,
            };
            let key: Vec<u8> = self.pending.drain(..length).collect();
            keys.push(String::from_utf8_lossy(&key).into_owned());
        }
        let is_begun = !self.pending.is_empty() && !self.pending.starts_with(PASTE_BEGINS);
        self.began = is_begun.then_some(now);
        keys
    }

    /// Returns what has arrived of a key, if its rest takes too long.
    pub(super) fn take_late(&mut self, now: Instant) -> Option<String> {
        let began = self.began?;
        if now.saturating_duration_since(began) < PATIENCE {
            return None;
        }
        self.began = None;
        let key = std::mem::take(&mut self.pending);
        Some(String::from_utf8_lossy(&key).into_owned())
    }
}

/// Reads a pasted text up to the sequence that ends it.
fn pasted(bytes: &[u8]) -> Head {
    let mut places = 0..bytes.len();
    let ends = |at: &usize| {
        let rest = bytes.get(*at..).unwrap_or_default();
        rest.starts_with(PASTE_ENDS) || rest.first() == Some(&CTRL_C)
    };
    match places.find(ends) {
        // Pasted text has no Ctrl-C, so the end of the text is missing.
        Some(at) if bytes.get(at) == Some(&CTRL_C) => Head::Key(at),
        Some(at) => Head::Key(at + PASTE_ENDS.len()),
        None => Head::Incomplete,
    }
}

fn head(bytes: &[u8]) -> Head {
    match bytes {
        [] | [0x1b] => Head::Incomplete,
        // Escape, before another sequence.
        [0x1b, 0x1b, ..] => Head::Key(1),
        [0x1b, b'[', ..] if bytes.starts_with(PASTE_BEGINS) => pasted(bytes),
        [0x1b, b'[', rest @ ..] => {
            let last = rest.iter().position(|byte| matches!(byte, 0x40..=0x7e));
            last.map_or(Head::Incomplete, |at| Head::Key(at + 3))
        }
        [0x1b, b'O', rest @ ..] => match rest {
            [] => Head::Incomplete,
            [..] => Head::Key(3),
        },
        [0x1b, b']' | b'P' | b'_', rest @ ..] => {
            let end = rest
                .iter()
                .position(|byte| matches!(byte, 0x07 | 0x9c | b'\\'));
            end.map_or(Head::Incomplete, |at| Head::Noise(at + 3))
        }
        [0x1b, rest @ ..] => match head(rest) {
            Head::Key(length) => Head::Key(length + 1),
            Head::Noise(length) => Head::Noise(length + 1),
            Head::Incomplete => Head::Incomplete,
        },
        [first, ..] => {
            let length = match first {
                0x00..=0x7f => 1,
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return Head::Noise(1),
            };
            match bytes.get(..length) {
                Some(character) if std::str::from_utf8(character).is_ok() => Head::Key(length),
                Some(_) => Head::Noise(1),
                None => Head::Incomplete,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_split_as_the_terminal_sends_them() {
        let now = Instant::now();
        for (bytes, expected) in [
            ("ab", vec!["a", "b"]),
            ("é日👩", vec!["é", "日", "👩"]),
            ("\u{1b}[A\u{1b}[1;5Cx", vec!["\u{1b}[A", "\u{1b}[1;5C", "x"]),
            ("\u{1b}OP\r", vec!["\u{1b}OP", "\r"]),
            ("\u{1b}bé", vec!["\u{1b}b", "é"]),
            ("\u{1b}\u{1b}[B", vec!["\u{1b}", "\u{1b}[B"]),
            ("\u{1b}[3~\u{3}", vec!["\u{1b}[3~", "\u{3}"]),
            ("\u{1b}]11;rgb:0/0/0\u{7}x", vec!["x"]),
            (
                "\u{1b}[200~a\rb\u{1b}[201~c",
                vec!["\u{1b}[200~a\rb\u{1b}[201~", "c"],
            ),
        ] {
            let mut keys = KeySequences::default();
            assert_eq!(keys.push(bytes.as_bytes(), now), expected, "{bytes:?}");
            // In pieces, the keys are the same.
            let mut keys = KeySequences::default();
            let pieces = bytes.bytes().map(|byte| keys.push(&[byte], now));
            let split: Vec<String> = pieces.flatten().collect();
            assert_eq!(split, expected, "{bytes:?}");
            assert_eq!(keys.take_late(now + 2 * PATIENCE), None);
        }
        let mut keys = KeySequences::default();
        assert_eq!(keys.push(b"\xff\xc3a", now), ["a"]);
    }

    #[test]
    fn escape_counts_when_nothing_follows_and_a_paste_is_bounded() {
        let now = Instant::now();
        let mut keys = KeySequences::default();
        assert_eq!(keys.push(b"\x1b", now), Vec::<String>::new());
        assert_eq!(keys.take_late(now), None);
        assert_eq!(keys.take_late(now + PATIENCE).as_deref(), Some("\u{1b}"));
        assert_eq!(keys.push(b"\x1b[200~ab", now), Vec::<String>::new());
        assert_eq!(keys.push(b"c\x03", now), ["\u{1b}[200~abc", "\u{3}"]);
        let mut pasted = PASTE_BEGINS.to_vec();
        pasted.resize(MAX_KEY, b'x');
        assert_eq!(keys.push(&pasted, now).len(), 1);
        assert!(is_interrupt("\u{3}") && !is_interrupt("c"));
    }
}
