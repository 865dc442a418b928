//! Messages as bytes: where one ends, and the few words in which the protocols differ.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::LONGEST_LINE;

/// The longest head of a message, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// The part of the room for a read that has to be there.
const LEAST_ROOM: usize = 8;
/// How much a frame adds to a message.
const FRAME: usize = 48;

/// What one protocol has otherwise than another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire {
    pub(super) framing: Framing,
    /// The notification that nobody waits for a call.
    pub(super) cancel: &'static str,
    /// The request by which a call says what it has so far, if it does not do so by a notification.
    pub(super) update: Option<&'static str>,
    /// The request to end. Where there is none, who is not needed is killed.
    pub(super) end: Option<&'static str>,
    /// How long it may go on with a call after it was told to give it up; for ever where this is none.
    pub(super) let_go: Option<Duration>,
    /// An answer without `result` and `error` is that nothing came of it.
    pub(super) may_leave_out_result: bool,
}

impl Wire {
    /// Workers, as `docs/worker-protocol.md` has them.
    pub(super) const WORKER: Self = Self {
        framing: Framing::Lines,
        cancel: "$/cancel",
        update: None,
        end: Some("shutdown"),
        let_go: Some(Duration::from_secs(2)),
        may_leave_out_result: false,
    };

    /// Extensions of kodelet. kodelet lets a handler go on that was told to give up, so one call costs the others nothing.
    pub(super) const EXTENSION: Self = Self {
        framing: Framing::ContentLength,
        cancel: "$/cancelRequest",
        update: Some("kodelet.tool.update"),
        end: None,
        let_go: None,
        may_leave_out_result: true,
    };
}

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Each is a line.
    Lines,
    /// Before each stands a head that says how long it is.
    ContentLength,
}

impl Framing {
    /// Puts a message together from the parts of its parts.
    pub(super) fn frame(self, parts: &[&[&[u8]]]) -> Vec<u8> {
        let parts = parts.iter().copied().flatten();
        let length: usize = parts.clone().map(|part| part.len()).sum();
        let mut frame = Vec::with_capacity(length + FRAME);
        if self == Self::ContentLength {
            frame.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        }
        for part in parts {
            frame.extend_from_slice(part);
        }
        if self == Self::Lines {
            frame.push(b'\n');
        }
        frame
    }
}

/// What was read, and the messages in it.
#[derive(Debug)]
pub(super) struct Messages {
    framing: Framing,
    buffer: BytesMut,
    /// How much of the buffer holds no end of a line.
    looked_at: usize,
    head: Head,
}

/// What the head of the message says that is being read.
#[derive(Debug, Default)]
struct Head {
    bytes: usize,
    length: Option<usize>,
    is_over: bool,
}

impl Messages {
    pub(super) fn new(framing: Framing, capacity: usize) -> Self {
        Self {
            framing,
            buffer: BytesMut::with_capacity(capacity),
            looked_at: 0,
            head: Head::default(),
        }
    }

    /// Returns where to read to, with room for some more. As much as that is made at once, for many short messages.
    pub(super) fn room(&mut self, more: usize) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < more / LEAST_ROOM {
            self.buffer.reserve(more);
        }
        &mut self.buffer
    }

    /// Returns the next message, or nothing while it is not whole yet.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, String> {
        match self.framing {
            Framing::Lines => match self.line() {
                None if self.buffer.len() > LONGEST_LINE => {
                    Err(format!("it said a line of more than {LONGEST_LINE} bytes"))
                }
                line => Ok(line),
            },
            Framing::ContentLength => self.behind_head(),
        }
    }

    fn line(&mut self) -> Option<Bytes> {
        let new = self.buffer.get(self.looked_at..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', new) else {
            self.looked_at = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.looked_at + end + 1).freeze();
        self.looked_at = 0;
        Some(line)
    }

    fn behind_head(&mut self) -> Result<Option<Bytes>, String> {
        while !self.head.is_over {
            let line = self.line();
            let unfinished = line.as_ref().map_or(self.buffer.len(), Bytes::len);
            if self.head.bytes + unfinished > LONGEST_HEAD {
                return Err(format!(
                    "the head of a message has more than {LONGEST_HEAD} bytes"
                ));
            }
            match line {
                Some(line) => self.head.take(&line)?,
                None => return Ok(None),
            }
        }
        let length = self.head.length.unwrap_or_default();
        if self.buffer.len() < length {
            return Ok(None);
        }
        self.head = Head::default();
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

impl Head {
    /// Takes a line. One without a colon is passed over, as kodelet does: it was printed by what knows no protocol.
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        self.bytes += line.len();
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        if line.is_empty() {
            self.is_over = true;
            return match self.length {
                Some(_) => Ok(()),
                None => Err("it said a message without `Content-Length`".to_owned()),
            };
        }
        let Some((name, value)) = line.split_once(':') else {
            return Ok(());
        };
        if !name.trim().eq_ignore_ascii_case("content-length") {
            return Ok(());
        }
        let length = value.trim().parse().map_err(|_| {
            format!(
                "its `Content-Length` is `{}`, expected a number",
                value.trim().escape_debug()
            )
        })?;
        if length > LONGEST_LINE {
            return Err(format!(
                "it said a message of {length} bytes, expected at most {LONGEST_LINE}"
            ));
        }
        self.length = Some(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Framing, Messages};

    #[test]
    fn messages_are_the_same_wherever_a_read_ends() {
        let sent: [&[u8]; 4] = [b"{}", b"{\"a\":1}", b"[\"\xc3\xa4\"]", b"7"];
        for framing in [Framing::Lines, Framing::ContentLength] {
            let bytes: Vec<u8> = sent
                .iter()
                .flat_map(|message| framing.frame(&[&[&message[..1]], &[&message[1..]]]))
                .collect();
            for size in 1..=bytes.len() {
                let mut messages = Messages::new(framing, 16);
                let mut heard: Vec<Bytes> = Vec::new();
                for part in bytes.chunks(size) {
                    messages.room(part.len()).extend_from_slice(part);
                    while let Some(message) = messages.next().unwrap() {
                        heard.push(message);
                    }
                }
                let heard: Vec<&[u8]> = heard.iter().map(|it| it.trim_ascii_end()).collect();
                assert_eq!(heard, sent, "{framing:?} in parts of {size}");
            }
        }
    }
}
