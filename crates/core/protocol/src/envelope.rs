//! What every event carries in addition to its payload.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JsonObject;
use crate::field::{IntoField, extra_setter, setters};
use crate::id::{AgentId, EventId, SessionId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// Which kind of agent the event belongs to.
    pub enum InvokedBy {
        /// The agent that the user talks to.
        #[default] Main = "main",
        /// An agent to which another agent gave a task.
        Subagent = "subagent",
    }
}

/// The agent that an event belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentRef {
    /// The configured name.
    pub name: String,
    /// The id of this instance.
    pub id: AgentId,
    /// The agent that gave this agent its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<AgentId>,
}

impl AgentRef {
    /// Creates an agent with a configured name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

setters! { AgentRef { id (with_id): AgentId, parent_id (with_parent_id): Option<AgentId> } }

/// Where events come from. It is constant during a session, and all events of the session share it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Origin {
    /// The id of the session.
    pub session_id: SessionId,
    /// The directory that the agent works in. Hooks run there unless configured otherwise.
    pub cwd: PathBuf,
    /// The agent that the event belongs to.
    pub agent: AgentRef,
    /// Whether the event belongs to the main agent or to a subagent.
    pub invoked_by: InvokedBy,
    /// The name of the workspace, if the host has workspaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The recipe that the run was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// Values that the host adds and that the protocol does not define, such as `transcript_path`.
    /// The JSON key is `origin_extra`, because an origin and a payload are merged into one object
    /// for hooks. Omitted when empty.
    #[serde(rename = "origin_extra", skip_serializing_if = "JsonObject::is_empty")]
    pub extra: JsonObject,
}

impl Origin {
    /// Creates the origin of the events of a session that works in `cwd`.
    ///
    /// ```
    /// use tenterhook_protocol::{AgentRef, Origin, SessionId};
    ///
    /// let origin = Origin::new(SessionId::generate(), "/home/ada/project")
    ///     .with_agent(AgentRef::new("coder"))
    ///     .with_extra("model", "gpt-5");
    /// ```
    pub fn new(session_id: impl IntoField<SessionId>, cwd: impl IntoField<PathBuf>) -> Self {
        Self {
            session_id: session_id.into_field(),
            cwd: cwd.into_field(),
            ..Self::default()
        }
    }
}

setters! {
    Origin {
        agent (with_agent): AgentRef,
        invoked_by (with_invoked_by): InvokedBy,
        workspace (with_workspace): Option<String>,
        recipe (with_recipe): Option<String>,
    }
}
extra_setter! { Origin }

/// The part of an event that is not its payload.
///
/// The id and the time are created when they are first read, so that an event that is only passed
/// to functions pays for neither.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// Where the event comes from.
    pub origin: Arc<Origin>,
    /// The position among the session's dispatched events, starting at 1. Events without hooks are
    /// not counted.
    pub sequence: u64,
    stamp: OnceLock<(EventId, Timestamp)>,
}

impl Envelope {
    /// Creates the envelope of an event that is dispatched now.
    pub fn new(origin: Arc<Origin>, sequence: u64) -> Self {
        Self {
            origin,
            sequence,
            stamp: OnceLock::new(),
        }
    }

    /// Creates the envelope of an event that was dispatched earlier.
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

    /// Returns when the dispatch began. If only functions handle the event, it is the time of the
    /// first call of this method or of [`event_id`](Self::event_id).
    pub fn timestamp(&self) -> Timestamp {
        self.stamp().1
    }

    fn stamp(&self) -> (EventId, Timestamp) {
        *self
            .stamp
            .get_or_init(|| (EventId::generate(), Timestamp::now()))
    }
}
