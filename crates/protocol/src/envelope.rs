//! What every event carries beside its payload.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

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
///
/// Id and time are made when they are first asked for, so that an event that only functions look at pays for
/// neither.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Where the event comes from.
    pub origin: Arc<Origin>,
    /// Position among the session's dispatched events, from 1. Events that nobody hooks are not counted.
    pub sequence: u64,
    stamp: OnceLock<(EventId, Timestamp)>,
}

impl Envelope {
    /// Makes the envelope of an event that is dispatched now.
    pub fn new(origin: Arc<Origin>, sequence: u64) -> Self {
        Self {
            origin,
            sequence,
            stamp: OnceLock::new(),
        }
    }

    /// Makes the envelope of an event that was dispatched before.
    pub fn stamped(origin: Arc<Origin>, sequence: u64, id: EventId, timestamp: Timestamp) -> Self {
        Self {
            origin,
            sequence,
            stamp: OnceLock::from((id, timestamp)),
        }
    }

    /// Returns this event's id.
    pub fn event_id(&self) -> EventId {
        self.stamp().0
    }

    /// Returns when the dispatch began; where only functions looked at it, when the first of them asked.
    pub fn timestamp(&self) -> Timestamp {
        self.stamp().1
    }

    fn stamp(&self) -> (EventId, Timestamp) {
        *self
            .stamp
            .get_or_init(|| (EventId::generate(), Timestamp::now()))
    }
}
