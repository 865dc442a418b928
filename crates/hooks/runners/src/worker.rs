//! Workers: long-lived processes that serve many hooks, so that an event does not wait for an
//! interpreter to start.
//!
//! `docs/reference/worker-protocol.md` describes the messages. This module starts a worker when it
//! is first needed, matches its answers to the calls, and restarts it after it has ended:
//!
//! | problem | result |
//! |---|---|
//! | a call is not answered in time | the call fails, the worker receives `$/cancel`, a late answer is dropped |
//! | the worker keeps working on such a call for two seconds | the worker is killed |
//! | two calls in a row are not answered, and the worker sends nothing else | the worker is killed |
//! | after a restart, a script has changed, has other hooks or cannot be loaded | only calls of its hooks fail |
//! | a malformed message, a line over 16 MiB, or an answer to a call that was never made | the worker is killed |
//! | the worker ends or is killed | every pending call fails; the next call restarts it, after 100 ms, 200 ms, … 2 s |
//! | after a restart, a session continues | each script handles the `session_start` that it has heard again, before anything else |
//! | the worker fails three times without running for a minute | calls fail at once for 30 seconds |
//!
//! An [`Extension`] is a worker too: a program of another system, whose messages are framed
//! differently. It may keep working on a call that was cancelled.
//!
//! The hook's policy decides what a failed call means, as with every other handler.

mod calls;
mod check;
mod connection;
mod error;
mod extension;
mod extension_in_force;
mod extension_protocol;
mod handler;
mod host;
mod load_request;
mod node;
mod pipe;
mod protocol;
mod python;
mod recording_host;
mod refusal;
mod requests;
mod script;
mod script_calls;
mod script_loads;
mod script_server;
mod script_session;
mod script_sessions;
mod scripts;
mod source_ahead;
mod stderr;
mod supervisor;
mod version;
mod wire;

pub use check::{CheckStep, check};
pub use error::WorkerError;
pub use extension::{
    CommandOutput, Extension, ExtensionCommand, ExtensionRegistration, ExtensionTool, Invocation,
    MAX_CALL, Subscription, ToolOutput, ToolSnapshot, ToolSnapshots,
};
pub use extension_in_force::ExtensionInForce;
pub use extension_protocol::{ExtensionProtocol, HostRequest};
pub use handler::WorkerHandler;
pub use host::{Host, NoHost};
pub use node::node;
pub use protocol::{MAX_LINE, PROTOCOL_VERSION};
pub use python::python;
pub use recording_host::RecordingHost;
pub use refusal::Refusal;
pub use script::{
    ApprovedCopy, Registered, Script, ScriptCommand, ScriptCredentials, ScriptFlag, ScriptHook,
    ScriptModel, ScriptModelEnd, ScriptModelPart, ScriptProvider, ScriptTool, ToolAnswer,
};
pub use script_calls::ModelUpdates;
pub use script_loads::ScriptLoads;
pub use script_server::{
    Rendered, ScriptAddition, ScriptInForce, ScriptServer, ScriptToolCall, ToolUpdates,
};
pub use scripts::{Lease, Worker};
pub use version::ScriptVersion;
