//! The journal's record format, one JSON object a line.
//!
//! A dispatch writes one [`RunRecord`] for every hook that its plan held and then one [`DispatchRecord`].
//! Readers ignore keys that they do not know; [`FORMAT_VERSION`] grows when a key changes its meaning.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{EventId, HookId, SessionId, ToolUseId};
use crate::outcome::Failure;
use crate::permission::Permission;
use crate::wire_enum::wire_enum;

/// The version of the format.
pub const FORMAT_VERSION: u32 = 1;

wire_enum! {
    /// How one run of one handler ended.
    pub enum RunStatus {
        /// It answered.
        #[default] Completed = "completed",
        /// It failed; the cause says how.
        Failed = "failed",
        /// Its deadline passed.
        TimedOut = "timed_out",
        /// The dispatch was cancelled.
        Cancelled = "cancelled",
        /// It was not started, because a hook before it ended the dispatch.
        Skipped = "skipped",
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JournalRecord {
    /// One hook of a dispatch.
    Run(RunRecord),
    /// A whole dispatch.
    Dispatch(DispatchRecord),
    /// A source of hooks that the user disabled or enabled.
    Source(SourceRecord),
}

/// What happened to one hook of a dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRecord {
    /// [`FORMAT_VERSION`] of the writer.
    pub v: u32,
    /// The dispatched event.
    pub event_id: EventId,
    /// Its name.
    pub event: String,
    /// The hook.
    pub hook: HookId,
    /// Where the hook comes from, for a person.
    pub source: String,
    /// The kind of its handler.
    pub handler: String,
    /// How the run ended.
    pub status: RunStatus,
    /// What went wrong, or which hook ended the dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What the hook answered, in one word: `none`, `allow`, `deny`, `rewrite` … `withhold` is a failure that
    /// replaced the event's result by a notice.
    pub effect: String,
    /// The reason of a permission, block or stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hook failed on a gate and its policy let the operation through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_through: bool,
    /// Text that the hook gave the model, in bytes.
    #[serde(default)]
    pub context_bytes: u64,
    /// How long the run took, in milliseconds.
    pub duration_ms: f64,
}

/// What came of a dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DispatchRecord {
    /// [`FORMAT_VERSION`] of the writer.
    pub v: u32,
    /// The dispatched event.
    pub event_id: EventId,
    /// Its name.
    pub event: String,
    /// Its position among the session's dispatched events.
    pub sequence: u64,
    /// When the dispatch began.
    #[schemars(with = "String")]
    pub timestamp: Timestamp,
    /// The session.
    pub session_id: SessionId,
    /// The agent's name.
    pub agent: String,
    /// What matchers looked at: the tool's name, the source …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The tool call, where the event belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
    /// The folded permission.
    pub permission: Permission,
    /// The operation must not happen.
    pub stopped: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The fields that hooks changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<String>,
    /// Hooks that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// How many hooks the plan held.
    pub hooks: u32,
    /// How long the dispatch took, in milliseconds.
    pub duration_ms: f64,
}

wire_enum! {
    /// What the user did with a source of hooks.
    pub enum SourceAction {
        /// Its hooks do not run from now on.
        #[default] Disabled = "disabled",
        /// Its hooks run again.
        Enabled = "enabled",
    }
}

/// A source of hooks that the user disabled or enabled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRecord {
    /// [`FORMAT_VERSION`] of the writer.
    pub v: u32,
    /// When it happened.
    #[schemars(with = "String")]
    pub timestamp: Timestamp,
    /// What the user did.
    pub action: SourceAction,
    /// The file or folder.
    pub path: String,
}
