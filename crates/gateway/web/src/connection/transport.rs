//! Who and what connections are made of.

use std::time::Duration;

use tenterhook_protocol::event::SenderRole;

use crate::client_frame::ClientRefusal;

/// Who a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The user. It is the sender's id of all messages.
    pub user: String,
    /// What the user may do over this connection.
    pub role: SenderRole,
}

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A WebSocket. A client that is slow or silent is disconnected, and can come back.
    Socket,
    /// Standard input and output. The program on the other side may take its time, and messages wait in the pipe.
    Pipe,
}

impl Transport {
    /// Returns how often a client is asked whether it is there.
    pub(super) fn ping_interval(self) -> Option<Duration> {
        (self == Self::Socket).then_some(Duration::from_secs(20))
    }

    /// Returns how long a client may send nothing. The answer to a ping counts.
    pub(super) fn max_silence(self) -> Option<Duration> {
        (self == Self::Socket).then_some(Duration::from_mins(1))
    }

    /// Returns how long a client may take to read one frame.
    pub(super) fn write_timeout(self) -> Option<Duration> {
        (self == Self::Socket).then_some(Duration::from_secs(30))
    }
}

/// What arrives from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A text that should be a frame.
    Text(String),
    /// Something that cannot be a frame.
    Malformed(ClientRefusal),
    /// A sign of life.
    Alive,
    /// Something after which nothing can be read.
    Unreadable,
}

/// What leaves for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// A frame in JSON.
    Text(String),
    /// A request for a sign of life.
    Ping,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The client left.
    Left,
    /// The client did not read fast enough.
    Slow,
    /// The client gave no sign of life.
    Idle,
    /// The client did not log in.
    Unauthorized,
    /// The client sent something after which nothing can be read.
    Unreadable,
    /// The gateway stops.
    Stopped,
}

impl ConnectionEnd {
    /// Returns the word for `bye`, and the close code of a WebSocket.
    pub fn word_and_code(self) -> (&'static str, u16) {
        match self {
            Self::Left => ("left", 1000),
            Self::Slow => ("slow", 1013),
            Self::Idle => ("idle", 1008),
            Self::Unauthorized => ("unauthorized", 1008),
            Self::Unreadable => ("unreadable", 1009),
            Self::Stopped => ("shutdown", 1001),
        }
    }
}
