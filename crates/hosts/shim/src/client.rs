//! One request to the daemon and its answer.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::descriptor::Patience;
use crate::frame::{DaemonAnswer, HEADER, Header, InvalidFrame, PROTOCOL};
use crate::launch::Launcher;
use crate::place::DaemonPlace;

/// The first pause between two attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause between two attempts to connect.
const MAX_PAUSE: Duration = Duration::from_millis(40);
/// How many daemons with another protocol may answer one call.
const MAX_OTHER_DAEMONS: usize = 2;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// No daemon listens, and none was to be started.
    NotRunning,
    /// The folder of the socket cannot be used.
    Place(io::Error),
    /// The daemon cannot be started.
    Launch(String),
    /// The connection failed.
    Connection(io::Error),
    /// There was no answer in time.
    Late,
    /// The daemon ended before it answered.
    Ended,
    /// The answer cannot be read.
    Malformed(InvalidFrame),
    /// The daemon has another version, and does not end.
    OtherProtocol(u8),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRunning => f.write_str("no daemon runs"),
            Self::Place(error) => write!(f, "{error}"),
            Self::Launch(problem) => f.write_str(problem),
            Self::Connection(error) => write!(f, "the connection to its daemon failed: {error}"),
            Self::Late => f.write_str("its daemon did not answer in time"),
            Self::Ended => f.write_str("its daemon ended before it answered"),
            Self::Malformed(error) => write!(f, "its daemon's answer cannot be read: {error}"),
            Self::OtherProtocol(version) => write!(
                f,
                "its daemon speaks version {version} of the protocol, expected {PROTOCOL}; run \
                 `tenterhook install` again"
            ),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::TimedOut {
            Self::Late
        } else {
            Self::Connection(error)
        }
    }
}

/// The result of one connection.
enum Exchanged {
    Answer(DaemonAnswer),
    /// The daemon never saw the request, so it can be sent again.
    Unseen,
    /// The daemon has another protocol, and never looked at the request.
    Other(u8),
}

/// Sends a request and returns the answer. Starts the daemon if it does not run and a launcher is given.
pub(crate) fn ask(
    place: &DaemonPlace,
    message: &[u8],
    mut launcher: Option<Launcher<'_>>,
    patience: &mut Patience<'_>,
) -> Result<DaemonAnswer, ClientError> {
    let mut pause = FIRST_PAUSE;
    let mut others = 0;
    loop {
        if let Some(stream) = connect_to(place)? {
            match exchange(stream, message, patience)? {
                Exchanged::Answer(DaemonAnswer::Retry) | Exchanged::Unseen => {}
                Exchanged::Answer(answer) => return Ok(answer),
                Exchanged::Other(version) => {
                    others += 1;
                    if others > MAX_OTHER_DAEMONS {
                        return Err(ClientError::OtherProtocol(version));
                    }
                }
            }
        } else {
            let launcher = launcher.as_mut().ok_or(ClientError::NotRunning)?;
            launcher.start(place).map_err(ClientError::Launch)?;
        }
        patience.pause(pause)?;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

/// Connects to the daemon. `None` means that none listens, or that it cannot take more connections now.
fn connect_to(place: &DaemonPlace) -> Result<Option<UnixStream>, ClientError> {
    match place.check() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ClientError::Place(error)),
    }
    // A connection in blocking mode could wait longer than the deadline.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None);
    let socket = socket.map_err(io::Error::from)?;
    let address = SocketAddrUnix::new(&place.socket).map_err(io::Error::from)?;
    match connect(&socket, &address) {
        Ok(()) => Ok(Some(UnixStream::from(socket))),
        Err(Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN) => Ok(None),
        Err(error) => Err(ClientError::Connection(error.into())),
    }
}

fn exchange(
    mut stream: UnixStream,
    message: &[u8],
    patience: &mut Patience<'_>,
) -> Result<Exchanged, ClientError> {
    // A daemon that does not read the request may still have sent a header.
    send(&mut stream, message, patience)?;
    let mut greeting = [0; HEADER];
    if !receive(&mut stream, &mut greeting, patience)? {
        return Ok(Exchanged::Unseen);
    }
    let greeting = Header::read(greeting).map_err(ClientError::Malformed)?;
    if greeting.protocol != PROTOCOL {
        return Ok(Exchanged::Other(greeting.protocol));
    }
    let mut header = [0; HEADER];
    if !receive(&mut stream, &mut header, patience)? {
        return Err(ClientError::Ended);
    }
    let header = Header::read(header).map_err(ClientError::Malformed)?;
    let mut body = vec![0; header.length];
    if !receive(&mut stream, &mut body, patience)? {
        return Err(ClientError::Ended);
    }
    let answer = DaemonAnswer::read(&body).map_err(ClientError::Malformed)?;
    Ok(Exchanged::Answer(answer))
}

/// Sends a message. A peer that closes the connection is not an error, because it may have answered.
fn send(
    stream: &mut UnixStream,
    mut message: &[u8],
    patience: &mut Patience<'_>,
) -> Result<(), ClientError> {
    while !message.is_empty() {
        match stream.write(message) {
            Ok(written) => message = message.get(written..).unwrap_or_default(),
            Err(error) if is_full(&error) => patience.writable(&*stream)?,
            Err(error) if is_closed(&error) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fills `bytes`. Returns `false` if the connection ended before.
fn receive(
    stream: &mut UnixStream,
    mut bytes: &mut [u8],
    patience: &mut Patience<'_>,
) -> Result<bool, ClientError> {
    while !bytes.is_empty() {
        match stream.read(bytes) {
            Ok(0) => return Ok(false),
            Ok(read) => bytes = bytes.get_mut(read..).unwrap_or_default(),
            Err(error) if is_full(&error) => patience.readable(&*stream)?,
            Err(error) if is_closed(&error) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Returns whether the connection has no room, or no data yet.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn is_closed(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
    kinds.contains(&error.kind())
}
