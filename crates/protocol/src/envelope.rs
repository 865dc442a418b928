//! What every event carries beside its payload.

use std::path::PathBuf;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{AgentId, EventId, SessionId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Whose life the event belongs to.
    pub enum InvokedBy {
        /// The agent that the user talks to.
        #[default] Main = "main",
        /// An agent that another agent gave a task.
        Subagent = "subagent",
    }
}

/// The agent whose life an event describes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentRef {
    /// The configured name.
    pub name: String,
    /// The id of this instance.
    pub id: AgentId,
    /// The agent that gave this one its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<AgentId>,
}

/// Where events come from: constant through a session, shared by all its events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Origin {
    /// The session.
    pub session_id: SessionId,
    /// The directory that the agent works in. Hooks run there unless configured otherwise.
    pub cwd: PathBuf,
    /// The agent.
    pub agent: AgentRef,
    /// Main agent or subagent.
    pub invoked_by: InvokedBy,
    /// The workspace's name, where the host has workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The recipe that the run was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
}

/// The part of an event that is not its payload.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// This event.
    pub event_id: EventId,
    /// Position among the session's dispatched events, from 1. Events that nobody hooks are not counted.
    pub sequence: u64,
    /// When the dispatch began.
    pub timestamp: Timestamp,
    /// Where the event comes from.
    pub origin: std::sync::Arc<Origin>,
}
