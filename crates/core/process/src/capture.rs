//! A bounded record of one output: its head and its tail.
//!
//! However much the child prints, memory use is limited to the head, twice the tail and one read.

use std::borrow::Cow;
use std::fmt;

use tenterhook_protocol::excerpt;

use crate::Capture;

/// The size of the first read of a stream. Most answers fit, and an unused stream takes little memory.
const FIRST_READ: usize = 4 * 1024;

/// The size of a read once the head is full. This is the default capacity of a pipe.
const BULK_READ: usize = 64 * 1024;

/// The kept parts of one output.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The kept bytes: the head directly followed by the tail, without a marker between them.
    pub bytes: Vec<u8>,
    /// How many bytes were dropped between the head and the tail.
    pub omitted: u64,
    cut_at: usize,
}

impl Captured {
    /// Returns the output as text, with invalid UTF-8 replaced, and with a line that reports the
    /// cut. Words at the cut are removed completely, because a part of a word may be a part of a
    /// secret.
    pub fn text(&self) -> Cow<'_, str> {
        if !self.is_cut() {
            return String::from_utf8_lossy(&self.bytes);
        }
        let (head, tail) = excerpt::sides(self.head(), self.tail());
        let trimmed = self.bytes.len() - head.len() - tail.len();
        let marker = excerpt::marker(self.omitted + trimmed as u64);
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        Cow::Owned(format!("{head}{marker}{tail}"))
    }

    /// Returns the kept beginning, or the whole output if nothing was cut.
    pub fn head(&self) -> &[u8] {
        self.bytes.get(..self.cut_at).unwrap_or(&self.bytes)
    }

    /// Returns the kept end. It is empty if nothing was cut.
    pub fn tail(&self) -> &[u8] {
        self.bytes.get(self.cut_at..).unwrap_or_default()
    }

    /// Returns whether bytes were dropped.
    pub fn is_cut(&self) -> bool {
        self.omitted > 0
    }

    /// Returns whether the kept bytes are valid UTF-8. A cut may split a character.
    pub fn is_utf8(&self) -> bool {
        std::str::from_utf8(&self.bytes).is_ok()
    }
}

/// Uses the bytes as a complete output.
impl From<Vec<u8>> for Captured {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            cut_at: bytes.len(),
            bytes,
            omitted: 0,
        }
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Captured")
            .field("text", &self.text())
            .field("omitted", &self.omitted)
            .finish_non_exhaustive()
    }
}

/// Records an output while it is being read.
#[derive(Debug)]
pub(crate) struct Recorder {
    limit: Capture,
    head: Vec<u8>,
    tail: Vec<u8>,
    dropped: u64,
}

impl Recorder {
    pub(crate) fn new(limit: Capture) -> Self {
        Self {
            limit,
            head: Vec::new(),
            tail: Vec::new(),
            dropped: 0,
        }
    }

    /// Returns the buffer to append the next read to. It has spare capacity.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.head.len() < self.limit.head {
            if self.head.len() == self.head.capacity() {
                let room = self.limit.head - self.head.len();
                let step = self.head.len().max(FIRST_READ);
                self.head.reserve_exact(step.min(room));
            }
            return &mut self.head;
        }
        if self.tail.capacity() == 0 {
            let room = self.limit.tail.max(BULK_READ);
            self.tail
                .reserve_exact(self.limit.tail.saturating_add(room));
        } else if self.tail.len() == self.tail.capacity() {
            self.trim();
        }
        &mut self.tail
    }

    /// Returns the beginning that is kept so far.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the kept parts.
    pub(crate) fn finish(mut self) -> Captured {
        // An allocator may return more than was requested, and a read fills all of it.
        if self.head.len() > self.limit.head {
            let excess = self.head.split_off(self.limit.head);
            self.tail.splice(0..0, excess);
        }
        self.trim();
        let cut_at = self.head.len();
        let mut bytes = self.head;
        bytes.append(&mut self.tail);
        Captured {
            cut_at: if self.dropped > 0 {
                cut_at
            } else {
                bytes.len()
            },
            bytes,
            omitted: self.dropped,
        }
    }

    fn trim(&mut self) {
        let excess = self.tail.len().saturating_sub(self.limit.tail);
        self.tail.drain(..excess);
        self.dropped += excess as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `input` in reads of at most `step` bytes.
    fn record(input: &[u8], step: usize, limit: Capture) -> Captured {
        let mut recorder = Recorder::new(limit);
        let mut rest = input;
        while !rest.is_empty() {
            let buffer = recorder.buffer();
            let room = buffer.capacity() - buffer.len();
            assert!(room > 0);
            let (now, later) = rest.split_at(step.min(room).min(rest.len()));
            buffer.extend_from_slice(now);
            rest = later;
        }
        recorder.finish()
    }

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| u8::try_from(i % 251).unwrap()).collect()
    }

    #[test]
    fn output_within_the_limit_is_whole() {
        let limit = Capture { head: 10, tail: 5 };
        for len in 0..=15 {
            let input = pattern(len);
            for step in 1..=16 {
                let captured = record(&input, step, limit);
                assert_eq!(captured.bytes, input);
                assert_eq!(captured.head(), input);
                assert_eq!(captured.tail(), b"");
                assert!(!captured.is_cut());
            }
        }
    }

    #[test]
    fn longer_output_keeps_its_head_and_its_tail() {
        let limit = Capture {
            head: 1000,
            tail: 300,
        };
        for len in [1301, 2000, 70_000, 150_000] {
            let input = pattern(len);
            for step in [97, 4096, 65_536] {
                let captured = record(&input, step, limit);
                assert_eq!(captured.head(), &input[..1000]);
                assert_eq!(captured.tail(), &input[len - 300..]);
                assert_eq!(captured.omitted, (len - 1300) as u64);
            }
        }
    }

    #[test]
    fn nothing_is_kept_with_a_limit_of_zero() {
        let captured = record(&pattern(200_000), 65_536, Capture { head: 0, tail: 0 });
        assert_eq!(captured.bytes, b"");
        assert_eq!(captured.omitted, 200_000);
    }

    #[test]
    fn text_names_the_cut() {
        let printed = b"one two\nthree\nfour\nfive\nsix\n";
        let captured = record(printed, 4, Capture { head: 6, tail: 11 });
        assert_eq!(
            captured.text(),
            "one \n[... 15 bytes omitted ...]\nfive\nsix\n"
        );
    }

    #[test]
    fn no_part_of_a_token_is_left_where_a_stream_was_cut() {
        let token = ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat();
        let printed = format!("{}{token}\n", "some words\n".repeat(20)).repeat(2);
        for limit in 1..printed.len() / 2 {
            let sides = Capture {
                head: limit,
                tail: limit,
            };
            let text = record(printed.as_bytes(), 97, sides).text().into_owned();
            let rest = text.replace(&token, "");
            for part in token.as_bytes().windows(6) {
                let part = std::str::from_utf8(part).unwrap();
                assert!(!rest.contains(part), "{limit}: {text}");
            }
        }
    }

    #[test]
    fn memory_stays_bounded() {
        let limit = Capture {
            head: 1024,
            tail: 2048,
        };
        let mut recorder = Recorder::new(limit);
        for _ in 0..100 {
            let buffer = recorder.buffer();
            let room = buffer.capacity() - buffer.len();
            buffer.extend(std::iter::repeat_n(b'x', room));
        }
        assert!(recorder.head.capacity() <= 4096);
        assert!(recorder.tail.capacity() <= 2048 + 2 * BULK_READ);
    }
}
