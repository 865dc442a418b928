//! Splits bytes into messages, and frames messages as bytes.

use bytes::{Bytes, BytesMut};
use thiserror::Error;

/// The maximum length of the header of a message, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// The buffer grows when less than this fraction (one eighth) of the requested room is left.
const MIN_ROOM: usize = 8;
/// The maximum number of bytes that a frame adds to a message.
const FRAME: usize = 48;

/// How messages are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Each message is one line.
    Lines,
    /// Each message follows a header that contains its length.
    ContentLength,
}

impl Framing {
    /// Returns a message with its frame. The message is given in parts.
    pub fn frame(self, parts: &[&[&[u8]]]) -> Vec<u8> {
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

/// Why bytes are not a message. With lines, reading continues after the invalid line. After an
/// invalid header, reading cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A line exceeds the maximum length.
    #[error("it sent a line of more than {max} bytes")]
    LineTooLong {
        /// The maximum length in bytes.
        max: usize,
    },
    /// A header exceeds the maximum length.
    #[error("the header of a message has more than {MAX_HEAD} bytes")]
    HeadTooLong,
    /// A header does not contain the length of its message.
    #[error("it sent a message without `Content-Length`")]
    NoLength,
    /// The length in a header is not a number.
    #[error("its `Content-Length` is `{value}`, expected a number")]
    BadLength {
        /// The value that was found.
        value: String,
    },
    /// A header contains the length more than once. Choosing one would be a guess, and a peer that
    /// chooses another one would read other messages from the same bytes.
    #[error("it sent a header with more than one `Content-Length`, expected exactly one")]
    RepeatedLength,
    /// A message exceeds the maximum length.
    #[error("it sent a message of {length} bytes, expected at most {max}")]
    MessageTooLong {
        /// The length of the message in bytes.
        length: usize,
        /// The maximum length in bytes.
        max: usize,
    },
}

/// Collects bytes that were read, and splits them into messages.
#[derive(Debug)]
pub struct FrameReader {
    framing: Framing,
    max: usize,
    buffer: BytesMut,
    /// The length of the part of the buffer that is known to contain no line end.
    searched: usize,
    /// Whether the rest of a line that was too long is being skipped.
    is_skipping: bool,
    head: Head,
}

/// The parsed part of the header of the current message.
#[derive(Debug, Default)]
struct Head {
    bytes: usize,
    length: Option<usize>,
    is_complete: bool,
}

impl FrameReader {
    /// Creates a reader of messages of at most `max` bytes.
    pub fn new(framing: Framing, capacity: usize, max: usize) -> Self {
        Self {
            framing,
            max,
            buffer: BytesMut::with_capacity(capacity),
            searched: 0,
            is_skipping: false,
            head: Head::default(),
        }
    }

    /// Returns the buffer to read into. If little room is left, it first reserves `more` bytes, so
    /// that many short messages need only one allocation.
    pub fn room(&mut self, more: usize) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < more / MIN_ROOM {
            self.buffer.reserve(more);
        }
        &mut self.buffer
    }

    /// Returns the next message, or `None` if it is not complete yet. A line includes its line end.
    ///
    /// # Errors
    /// Fails if the bytes are not a message, or if the message is too long.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        match self.framing {
            Framing::Lines => self.next_line(),
            Framing::ContentLength => self.next_with_head(),
        }
    }

    /// Returns the rest at the end of the input: a last line without a line end.
    pub fn take_rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (!self.is_skipping && !rest.is_empty()).then_some(rest)
    }

    fn next_line(&mut self) -> Result<Option<Bytes>, FrameError> {
        if self.is_skipping {
            if self.line().is_none() {
                self.buffer.clear();
                self.searched = 0;
                return Ok(None);
            }
            self.is_skipping = false;
        }
        let line = self.line();
        let length = line
            .as_ref()
            .map_or(self.buffer.len(), |line| line.len() - 1);
        if length <= self.max {
            return Ok(line);
        }
        self.is_skipping = line.is_none();
        Err(FrameError::LineTooLong { max: self.max })
    }

    fn line(&mut self) -> Option<Bytes> {
        let new = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', new) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end + 1).freeze();
        self.searched = 0;
        Some(line)
    }

    fn next_with_head(&mut self) -> Result<Option<Bytes>, FrameError> {
        while !self.head.is_complete {
            let line = self.line();
            let unfinished = line.as_ref().map_or(self.buffer.len(), Bytes::len);
            if self.head.bytes + unfinished > MAX_HEAD {
                return Err(FrameError::HeadTooLong);
            }
            match line {
                Some(line) => self.head.read_line(&line, self.max)?,
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
    /// Reads one line of the header. A line without a colon is skipped, because other code in the
    /// peer may have printed it.
    fn read_line(&mut self, line: &[u8], max: usize) -> Result<(), FrameError> {
        self.bytes += line.len();
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        if line.is_empty() {
            self.is_complete = true;
            return self.length.map(drop).ok_or(FrameError::NoLength);
        }
        let Some((name, value)) = line.split_once(':') else {
            return Ok(());
        };
        if !name.trim().eq_ignore_ascii_case("content-length") {
            return Ok(());
        }
        let length = value.trim().parse().map_err(|_| FrameError::BadLength {
            value: value.trim().escape_debug().to_string(),
        })?;
        if length > max {
            return Err(FrameError::MessageTooLong { length, max });
        }
        match self.length.replace(length) {
            None => Ok(()),
            Some(_) => Err(FrameError::RepeatedLength),
        }
    }
}
