//! The messages between the shim and the daemon.
//!
//! Every message begins with a header that never changes: [`MAGIC`], the version of the protocol, and
//! the length of the body. The daemon sends a header without a body as soon as it accepts a
//! connection. If a connection ends before that, the daemon never saw the request, so the shim may
//! send it again.

use std::fmt;

/// The first bytes of every message.
pub const MAGIC: [u8; 3] = *b"THK";
/// The version of the protocol.
pub const PROTOCOL: u8 = 1;
/// The length of a header in bytes.
pub const HEADER: usize = 8;
/// The maximum length of a host's event in bytes.
pub const MAX_EVENT: usize = 64 << 20;
/// The maximum length of a body in bytes: an event, and little else.
pub const MAX_BODY: usize = MAX_EVENT + (1 << 20);

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The version of the sender's protocol.
    pub protocol: u8,
    /// The length of the body in bytes.
    pub length: usize,
}

impl Header {
    /// Writes the header of a body with this length.
    pub fn write(length: usize) -> [u8; HEADER] {
        // A body that is longer than any reader accepts has a length that no reader accepts.
        let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        let bytes = MAGIC.into_iter().chain([PROTOCOL]).chain(length);
        let mut header = [0; HEADER];
        for (slot, byte) in header.iter_mut().zip(bytes) {
            *slot = byte;
        }
        header
    }

    /// Reads a header.
    ///
    /// # Errors
    /// Fails if the bytes are not a header.
    pub fn read(bytes: [u8; HEADER]) -> Result<Self, InvalidFrame> {
        let parts = bytes.split_first_chunk::<3>();
        let Some((&MAGIC, [protocol, length @ ..])) = parts else {
            return Err(InvalidFrame("it does not start with a header"));
        };
        let (protocol, length) = (*protocol, <[u8; 4]>::try_from(length));
        let length = length.map_or(u32::MAX, u32::from_be_bytes);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > MAX_BODY {
            return Err(InvalidFrame("it is too long"));
        }
        Ok(Self { protocol, length })
    }
}

/// A message that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidFrame(&'static str);

impl fmt::Display for InvalidFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidFrame {}

/// A request to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonRequest {
    /// An event of a host.
    Event(EventRequest),
    /// A request of a command, as JSON.
    Control(Vec<u8>),
}

/// An event of a host, as the shim got it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventRequest {
    /// The name of the host.
    pub host: String,
    /// The host's name for the event.
    pub event: String,
    /// The shim's working directory. Bytes, because paths need not be UTF-8.
    pub directory: Vec<u8>,
    /// How long the shim waits for the answer, in milliseconds.
    pub patience_ms: u64,
    /// The host's environment variables that the daemon needs.
    pub variables: Vec<(String, String)>,
    /// The standard input.
    pub input: Vec<u8>,
}

/// An answer of the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonAnswer {
    /// What the shim prints, and its exit status.
    Print(Printed),
    /// The daemon is ending and has not handled the request. The next daemon will.
    Retry,
    /// The answer to a command, as JSON.
    Control(Vec<u8>),
}

/// What a shim prints, and its exit status.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Printed {
    /// The standard output.
    pub stdout: Vec<u8>,
    /// The standard error output.
    pub stderr: Vec<u8>,
    /// The exit status.
    pub status: u8,
}

const EVENT: u8 = b'E';
const CONTROL: u8 = b'C';
const PRINT: u8 = b'P';
const RETRY: u8 = b'R';

impl DaemonRequest {
    /// Returns the complete message.
    pub fn write(&self) -> Vec<u8> {
        match self {
            Self::Event(event) => {
                let mut message = Message::new(EVENT, event.input.len() + 512);
                message.field(event.host.as_bytes());
                message.field(event.event.as_bytes());
                message.field(&event.directory);
                message.field(&event.patience_ms.to_be_bytes());
                message.count(event.variables.len());
                for (name, value) in &event.variables {
                    message.field(name.as_bytes());
                    message.field(value.as_bytes());
                }
                message.field(&event.input);
                message.finish()
            }
            Self::Control(json) => {
                let mut message = Message::new(CONTROL, json.len() + 16);
                message.field(json);
                message.finish()
            }
        }
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// Fails if the body is not a request.
    pub fn read(body: &[u8]) -> Result<Self, InvalidFrame> {
        let mut fields = Fields(body);
        let request = match fields.byte()? {
            EVENT => {
                let (host, event) = (fields.text()?, fields.text()?);
                let directory = fields.field()?.to_owned();
                let patience = fields.field()?.try_into();
                let patience_ms = patience
                    .map(u64::from_be_bytes)
                    .map_err(|_| InvalidFrame("a number has the wrong length"))?;
                let mut variables = Vec::new();
                for _ in 0..fields.count()? {
                    variables.push((fields.text()?, fields.text()?));
                }
                Self::Event(EventRequest {
                    host,
                    event,
                    directory,
                    patience_ms,
                    variables,
                    input: fields.field()?.to_owned(),
                })
            }
            CONTROL => Self::Control(fields.field()?.to_owned()),
            _ => return Err(InvalidFrame("it is of an unknown kind")),
        };
        fields.end(request)
    }
}

impl DaemonAnswer {
    /// Returns the complete message.
    pub fn write(&self) -> Vec<u8> {
        match self {
            Self::Print(printed) => {
                let size = printed.stdout.len() + printed.stderr.len() + 32;
                let mut message = Message::new(PRINT, size);
                message.field(&[printed.status]);
                message.field(&printed.stdout);
                message.field(&printed.stderr);
                message.finish()
            }
            Self::Retry => Message::new(RETRY, 16).finish(),
            Self::Control(json) => {
                let mut message = Message::new(CONTROL, json.len() + 16);
                message.field(json);
                message.finish()
            }
        }
    }

    /// Reads the body of a message.
    ///
    /// # Errors
    /// Fails if the body is not an answer.
    pub fn read(body: &[u8]) -> Result<Self, InvalidFrame> {
        let mut fields = Fields(body);
        let answer = match fields.byte()? {
            PRINT => {
                let &[status] = fields.field()? else {
                    return Err(InvalidFrame("the exit status has the wrong length"));
                };
                Self::Print(Printed {
                    status,
                    stdout: fields.field()?.to_owned(),
                    stderr: fields.field()?.to_owned(),
                })
            }
            RETRY => Self::Retry,
            CONTROL => Self::Control(fields.field()?.to_owned()),
            _ => return Err(InvalidFrame("it is of an unknown kind")),
        };
        fields.end(answer)
    }
}

/// A message that is being written.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u8, capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity + HEADER);
        bytes.extend_from_slice(&[0; HEADER]);
        bytes.push(kind);
        Self(bytes)
    }

    fn count(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&count.to_be_bytes());
    }

    fn field(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn finish(mut self) -> Vec<u8> {
        let header = Header::write(self.0.len() - HEADER);
        for (byte, of_header) in self.0.iter_mut().zip(header) {
            *byte = of_header;
        }
        self.0
    }
}

/// The fields of a body that are not yet read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn byte(&mut self) -> Result<u8, InvalidFrame> {
        let (byte, rest) = self.0.split_first().ok_or(InvalidFrame("it is empty"))?;
        self.0 = rest;
        Ok(*byte)
    }

    fn count(&mut self) -> Result<usize, InvalidFrame> {
        let split = self.0.split_first_chunk::<4>();
        let (count, rest) = split.ok_or(InvalidFrame("it ends early"))?;
        self.0 = rest;
        Ok(usize::try_from(u32::from_be_bytes(*count)).unwrap_or(usize::MAX))
    }

    fn field(&mut self) -> Result<&'a [u8], InvalidFrame> {
        let length = self.count()?;
        let split = self.0.split_at_checked(length);
        let (field, rest) = split.ok_or(InvalidFrame("it ends early"))?;
        self.0 = rest;
        Ok(field)
    }

    fn text(&mut self) -> Result<String, InvalidFrame> {
        let text = std::str::from_utf8(self.field()?);
        text.map(str::to_owned)
            .map_err(|_| InvalidFrame("a text is not UTF-8"))
    }

    fn end<T>(self, message: T) -> Result<T, InvalidFrame> {
        if self.0.is_empty() {
            Ok(message)
        } else {
            Err(InvalidFrame("it has more fields than expected"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(message: &[u8]) -> &[u8] {
        let (header, body) = message.split_first_chunk::<HEADER>().unwrap();
        let header = Header::read(*header).unwrap();
        assert_eq!((header.protocol, header.length), (PROTOCOL, body.len()));
        body
    }

    fn requests() -> [DaemonRequest; 2] {
        [
            DaemonRequest::Event(EventRequest {
                host: "acme".to_owned(),
                event: "before".to_owned(),
                directory: b"/tmp/\xff".to_vec(),
                patience_ms: 25_000,
                variables: vec![("ACME_MODE".to_owned(), "x=y".to_owned())],
                input: b"{}".to_vec(),
            }),
            DaemonRequest::Control(b"{\"status\":true}".to_vec()),
        ]
    }

    fn answers() -> [DaemonAnswer; 3] {
        [
            DaemonAnswer::Print(Printed {
                stdout: b"out".to_vec(),
                stderr: Vec::new(),
                status: 2,
            }),
            DaemonAnswer::Retry,
            DaemonAnswer::Control(b"null".to_vec()),
        ]
    }

    #[test]
    fn every_message_is_read_as_it_was_written() {
        for request in requests() {
            assert_eq!(
                DaemonRequest::read(body(&request.write())).unwrap(),
                request
            );
        }
        for answer in answers() {
            assert_eq!(DaemonAnswer::read(body(&answer.write())).unwrap(), answer);
        }
    }

    #[test]
    fn a_message_that_was_cut_or_extended_is_refused() {
        for request in requests() {
            let message = request.write();
            let whole = body(&message);
            for end in 0..whole.len() {
                assert!(DaemonRequest::read(&whole[..end]).is_err(), "{end}");
            }
            let longer = [whole, b"x"].concat();
            assert!(DaemonRequest::read(&longer).is_err());
        }
        for answer in answers() {
            let message = answer.write();
            let whole = body(&message);
            for end in 0..whole.len() {
                assert!(DaemonAnswer::read(&whole[..end]).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn a_header_of_anything_else_or_of_too_much_is_refused() {
        assert!(Header::read(*b"HTTP/1.1").is_err());
        assert!(Header::read(Header::write(MAX_BODY + 1)).is_err());
        assert!(Header::read(Header::write(usize::MAX)).is_err());
    }
}
