//! The record format of the journal, with one JSON object per line.
//!
//! A dispatch writes one [`RunRecord`] for every hook of its plan, followed by one
//! [`DispatchRecord`]. Readers ignore keys that they do not know. [`FORMAT_VERSION`] increases when
//! a key changes its meaning.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::JsonObject;
use crate::any_outcome::Failure;
use crate::id::{EventId, HookId, SessionId, ToolUseId};

use crate::message::Usage;
use crate::permission::Permission;
use crate::wire_enum::wire_enum;

/// The version of the record format.
pub const FORMAT_VERSION: u32 = 1;

wire_enum! {
    /// How one run of one handler ended.
    pub enum RunStatus {
        /// The handler answered.
        #[default] Completed = "completed",
        /// The handler failed. The cause is recorded.
        Failed = "failed",
        /// The handler exceeded its deadline.
        TimedOut = "timed_out",
        /// The dispatch was cancelled.
        Cancelled = "cancelled",
        /// The handler was not started, because an earlier hook ended the dispatch.
        Skipped = "skipped",
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "record", rename_all = "snake_case")]
#[non_exhaustive]
pub enum JournalRecord {
    /// One hook run of a dispatch.
    Run(RunRecord),
    /// A whole dispatch.
    Dispatch(DispatchRecord),
    /// A source of hooks that the user disabled or enabled.
    Source(SourceRecord),
    /// An exception that the user granted or revoked.
    Exception(ExceptionRecord),
    /// A line that a hook printed.
    Output(OutputRecord),
    /// A model call of an agent or a script.
    ModelCall(ModelCallRecord),
    /// An event of a coding agent that was not answered as the hooks wanted.
    Host(HostRecord),
    /// A reload of the hooks of a program that runs.
    Reload(ReloadRecord),
}

/// What happened to one hook of a dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// The id of the dispatched event.
    pub event_id: EventId,
    /// The name of the event.
    pub event: String,
    /// The id of the hook.
    pub hook: HookId,
    /// Where the hook comes from, in a form that people can read.
    pub source: String,
    /// The kind of its handler.
    pub handler: String,
    /// How the run ended.
    pub status: RunStatus,
    /// What went wrong, or which hook ended the dispatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The hook's answer in one word: `none`, `allow`, `deny`, `rewrite` … `withhold` means that
    /// the hook failed and a notice replaced the event's result.
    pub effect: String,
    /// The reason of a permission, a block or a request to end the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the hook failed on a gate and its policy let the operation continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_through: bool,
    /// The exception of the user that lifted the hook's denial: with which command it was made, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<String>,
    /// The size of the text that the hook added for the model, in bytes.
    #[serde(default)]
    pub context_bytes: u64,
    /// When the hook ran within the dispatch: `transform`, `main`, `guard` or `observe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// When the run started, in milliseconds after the start of the dispatch. `None` if it did not
    /// start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<f64>,
    /// The duration of the run, in milliseconds.
    pub duration_ms: f64,
    /// How long parts of the run took, if the handler measures them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RunStep>,
    /// What went wrong although the handler answered, for example that one of several recordings
    /// was not understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A part of a run that its handler measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunStep {
    /// What was done, for example `transcription`.
    pub name: String,
    /// The duration of the part, in milliseconds.
    pub duration_ms: f64,
}

impl RunStep {
    /// Creates the record of a part that took this time.
    pub fn new(name: impl Into<String>, took: Duration) -> Self {
        Self {
            name: name.into(),
            duration_ms: (took.as_secs_f64() * 1e6).round() / 1e3,
        }
    }
}

/// The result of a whole dispatch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatchRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// The id of the dispatched event.
    pub event_id: EventId,
    /// The name of the event.
    pub event: String,
    /// The event's position among the session's dispatched events, starting at 1.
    pub sequence: u64,
    /// When the dispatch began.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The id of the session.
    pub session_id: SessionId,
    /// The name of the agent.
    pub agent: String,
    /// The value that matchers checked, such as the tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The id of the tool call that the event belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
    /// The strongest permission that a hook gave.
    pub permission: Permission,
    /// Whether hooks stopped the operation.
    pub stopped: bool,
    /// The reason of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why hooks for the shell judged the call to a tool that is not in the agent's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as_shell: Option<String>,
    /// The fields that hooks changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewritten: Vec<String>,
    /// The hooks that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// The number of hooks in the plan.
    pub hooks: u32,
    /// The values that the host added to the event: its `extra`.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub extra: JsonObject,
    /// The values that the host added to all events of the session.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub origin_extra: JsonObject,
    /// The duration of the dispatch, in milliseconds.
    pub duration_ms: f64,
}

wire_enum! {
    /// What the user did with a source of hooks.
    pub enum SourceAction {
        /// From now on, its hooks do not run.
        #[default] Disabled = "disabled",
        /// Its hooks run again.
        Enabled = "enabled",
    }
}

/// A source of hooks that the user disabled or enabled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// When it happened.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// Whether the user disabled or enabled the source.
    pub action: SourceAction,
    /// The path of the file or folder.
    pub path: String,
}

wire_enum! {
    /// What the user did with an exception.
    pub enum ExceptionAction {
        /// The hook's denial does not stop the call.
        #[default] Granted = "granted",
        /// The hook decides about the call again.
        Revoked = "revoked",
    }
}

wire_enum! {
    /// How long the user lets a denied call through.
    pub enum ExceptionScope {
        /// The next time.
        #[default] Once = "once",
        /// Until a time.
        Until = "until",
        /// In the project, until the user revokes it.
        Project = "project",
    }
}

/// An exception that the user granted or revoked. There is no record of its end: `expires_at` says when that is, and
/// the [`RunRecord`] of a lifted denial says which exception it used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExceptionRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// When it happened.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// Whether the user granted or revoked the exception.
    pub action: ExceptionAction,
    /// The name of the user's account, if the system knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The id of the denial.
    pub id: String,
    /// What is let through. `None` if a damaged exception was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exception: Option<ExceptionDetails>,
}

/// What an exception lets through, and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExceptionDetails {
    /// The hook whose denial does not count.
    pub hook: String,
    /// Where the hook is defined, in a form that people can read.
    pub source: String,
    /// The event of the hook.
    pub event: String,
    /// The tool.
    pub tool: String,
    /// The arguments of the call as JSON text, as the user saw them: without secrets, and without the middle of long
    /// arguments.
    pub input: String,
    /// The folder of the project.
    pub project: String,
    /// How long the call is let through.
    pub scope: ExceptionScope,
    /// When the exception ends. `None` if only the user ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub expires_at: Option<Timestamp>,
}

impl ExceptionRecord {
    /// Creates the record of something that the user does now.
    pub fn now(
        action: ExceptionAction,
        id: impl Into<String>,
        exception: Option<ExceptionDetails>,
    ) -> Self {
        Self {
            v: FORMAT_VERSION,
            timestamp: Timestamp::now(),
            action,
            user: None,
            id: id.into(),
            exception,
        }
    }
}

/// A line that the hooks of a worker printed or logged. It belongs to no particular event, because
/// hooks also print while they are loaded and between events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// When the line arrived.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The name of the worker or extension.
    pub worker: String,
    /// The line, without its end. A long line is cut.
    pub line: String,
}

impl OutputRecord {
    /// Creates the record of a line that has just arrived.
    pub fn now(worker: impl Into<String>, line: impl Into<String>) -> Self {
        Self {
            v: FORMAT_VERSION,
            timestamp: Timestamp::now(),
            worker: worker.into(),
            line: line.into(),
        }
    }
}

/// An event of a coding agent that was not answered as the hooks wanted: the agent cannot honour an
/// effect, or the hooks could not be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// When the event was answered.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The name of the coding agent.
    pub host: String,
    /// The coding agent's name for the event.
    pub event: String,
    /// The id of the session, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// What replaced the effects that the coding agent cannot honour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downgrades: Vec<String>,
    /// Why the hooks could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether the operation may have continued although hooks should have judged it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub let_through: bool,
}

impl HostRecord {
    /// Creates the record of an event that is answered now.
    pub fn now(host: impl Into<String>, event: impl Into<String>) -> Self {
        Self {
            v: FORMAT_VERSION,
            timestamp: Timestamp::now(),
            host: host.into(),
            event: event.into(),
            session_id: None,
            downgrades: Vec::new(),
            problem: None,
            let_through: false,
        }
    }
}

/// A model call: of an agent, or of a script through its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelCallRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// When the call ended.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// The model, as `provider/model`.
    pub model: String,
    /// The id of the session whose agent made the call. Absent for calls of scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The name of the agent that made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tokens that the call used, if the service reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The cost in US dollars, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The duration of the call, in milliseconds.
    pub duration_ms: f64,
}

impl ModelCallRecord {
    /// Creates the record of a call that has just ended.
    pub fn now(model: impl Into<String>, duration_ms: f64) -> Self {
        Self {
            v: FORMAT_VERSION,
            timestamp: Timestamp::now(),
            model: model.into(),
            session_id: None,
            agent: None,
            usage: None,
            cost: None,
            error: None,
            duration_ms,
        }
    }
}

/// The hooks in which two loads of the same sources differ. Each entry has the name of a hook, its event
/// and its source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HookChanges {
    /// The hooks that are new.
    #[serde(default)]
    pub added: Vec<String>,
    /// The hooks that are still there, and whose file has changed.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The hooks that are gone.
    #[serde(default)]
    pub removed: Vec<String>,
}

/// A reload of the hooks of a program that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReloadRecord {
    /// The [`FORMAT_VERSION`] that the writer used.
    pub v: u32,
    /// When the reload ended.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub timestamp: Timestamp,
    /// What differs from the hooks before the reload.
    #[serde(flatten)]
    pub changes: HookChanges,
    /// Why the hooks were not reloaded. Then the old hooks stay in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl ReloadRecord {
    /// Creates the record of a reload that has just put other hooks in force.
    pub fn now(changes: HookChanges) -> Self {
        Self {
            v: FORMAT_VERSION,
            timestamp: Timestamp::now(),
            changes,
            problem: None,
        }
    }

    /// Creates the record of a reload that has just failed.
    pub fn failed(problem: impl Into<String>) -> Self {
        Self {
            problem: Some(problem.into()),
            ..Self::now(HookChanges::default())
        }
    }
}
