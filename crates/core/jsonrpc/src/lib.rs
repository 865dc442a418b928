//! JSON-RPC 2.0: messages, framings, and calls that wait for their answers.
//!
//! This crate reads and writes messages. It opens no pipes, starts no tasks and defines no methods.
//! Workers (`tenterhook-runners`) and the RPC mode of the command line use it.
//!
//! - [`Framing`] and [`FrameReader`] convert between bytes and messages of limited size. Each
//!   message is one line, or follows a `Content-Length` header.
//! - [`Incoming`] reads messages of a client strictly. [`PeerMessage`] reads messages of a trusted
//!   peer without copying their results.
//! - [`PendingCalls`] matches answers to calls. [`wait_for_answer`] waits until a deadline or a
//!   cancellation.
//!
//! ```
//! use tenterhook_jsonrpc::{FrameReader, Framing, Incoming};
//!
//! let mut reader = FrameReader::new(Framing::Lines, 1 << 10, 1 << 20);
//! reader.room(64).extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
//! let message = reader.next_frame()?.ok_or("incomplete")?;
//! let Ok(Incoming::Request(request)) = Incoming::parse(&message) else {
//!     return Err("not a request".into());
//! };
//! assert_eq!(request.method, "ping");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod framing;
mod incoming;
mod peer;
mod pending;
mod write;

pub use error::RpcError;
pub use framing::{FrameError, FrameReader, Framing};
pub use incoming::{Incoming, RpcRequest};
pub use peer::{MalformedMessage, PeerMessage};
pub use pending::{NoAnswer, PendingCalls, TooManyCalls, wait_for_answer};
pub use write::{call_head, error, notification, request, result};

/// The version that every message contains.
pub(crate) const VERSION: &str = "2.0";
