//! Events of hosts, as they are handed over and as they are read.

use tenterhook_engine::{AnyEvent, EventKind, Origin, ToolCall, ToolResult};
use tenterhook_protocol::JsonObject;

/// An event of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostEvent {
    /// The host's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// What an answer to the event can do.
    pub role: EventRole,
}

impl HostEvent {
    /// Creates an event.
    pub const fn new(name: &'static str, kind: EventKind, role: EventRole) -> Self {
        Self { name, kind, role }
    }
}

/// What an answer to a host's event can do, which decides what a failure means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventRole {
    /// Hooks judge a tool call before it runs. A failure denies the call.
    ToolGate,
    /// Hooks judge an input of the user. A failure blocks it.
    PromptGate,
    /// Hooks judge something else that the host is about to do, such as a compaction. A failure stops it.
    OtherGate,
    /// Hooks see the result of a tool and may replace it.
    ToolResult,
    /// Hooks may keep the agent working. A failure lets it end.
    Stop,
    /// Hooks can add context or only watch.
    Observer,
}

impl EventRole {
    /// Returns whether a failure stops the operation.
    pub const fn is_gate(self) -> bool {
        matches!(self, Self::ToolGate | Self::PromptGate | Self::OtherGate)
    }
}

/// What a host handed over.
#[derive(Debug, Clone, Copy)]
pub struct HostInput<'a> {
    /// The JSON object of the host.
    pub object: &'a JsonObject,
    /// The host's [variables](super::HostAgent::variables) that are set.
    pub variables: &'a [(String, String)],
}

impl HostInput<'_> {
    /// Returns the value of an environment variable of the host.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Whether a person can answer questions of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostMode {
    /// No one can be asked.
    Headless,
    /// A person can be asked. Also the mode of a host that does not say which it is.
    Interactive,
}

/// An event of a host, in the terms of the catalogue. Tools keep the host's names.
#[derive(Debug)]
pub struct HostCall {
    /// Where the event comes from: the session, the folder, and the host's other data in `extra`.
    pub origin: Origin,
    /// Whether a person can be asked.
    pub mode: HostMode,
    /// What happened.
    pub event: HostedEvent,
}

/// What happened in a host.
#[derive(Debug)]
pub enum HostedEvent {
    /// The model requests a tool call, and hooks judge it.
    ToolCall(ToolCall),
    /// A tool has run.
    ToolResult {
        /// The call that ran.
        call: ToolCall,
        /// What it returned.
        result: ToolResult,
        /// How long it ran, if the host says so, in milliseconds.
        duration_ms: Option<u64>,
    },
    /// Any other event.
    Other(Box<dyn AnyEvent>),
    /// Nothing that hooks have not seen already, such as a prompt that the host announces again.
    Repeated,
}
