//! The human's side: what is shown, and who answers questions.

use std::fmt;

use futures_util::future::{self, BoxFuture};
use tenterhook_protocol::event::NotificationLevel;
use tenterhook_protocol::{EventKind, JsonObject, Message, ToolCall, ToolResult};

#[cfg(unix)]
pub use crate::extension::Question;

/// The events whose hooks may change what a tool returned. Where any does more than watch, what a tool has so far is for hooks of
/// `tool_execution_update` only: nobody else sees what is taken out of the result later.
pub const RESULT_EVENTS: [EventKind; 2] =
    [EventKind::ToolResponseTransform, EventKind::PostToolUse];

/// Shows what an agent does and answers its questions.
///
/// The showing methods must not block and default to showing nothing. They are called in the order in
/// which things happen; with parallel tool calls those of different calls interleave.
pub trait Frontend: Send + Sync {
    /// A piece of the model's answer arrived.
    fn text_delta(&self, _agent: &str, _text: &str) {}

    /// A piece of the model's reasoning arrived.
    fn reasoning_delta(&self, _agent: &str, _text: &str) {}

    /// A message of the model is complete, as the session keeps it.
    fn message(&self, _agent: &str, _message: &Message) {}

    /// A tool call begins. Its arguments may still be changed.
    fn tool_start(&self, _agent: &str, _call: &ToolCall) {}

    /// Hooks changed the arguments of a call that may run: it runs with `input`.
    fn tool_rewritten(&self, _agent: &str, _call: &ToolCall, _input: &JsonObject) {}

    /// Says whether partial results of tools are shown. The default is no: tools do not work for them then.
    fn shows_progress(&self) -> bool {
        false
    }

    /// A running tool has this so far. Each call of this tells all there is, or the end of it. Left out where hooks may change results: nobody sees
    /// what they take out.
    fn tool_update(&self, _agent: &str, _call: &ToolCall, _partial: &ToolResult) {}

    /// A tool call is over; the result is what the model gets.
    fn tool_end(&self, _agent: &str, _call: &ToolCall, _result: &ToolResult) {}

    /// A tool call was denied.
    fn tool_denied(&self, _agent: &str, _denial: &Denial<'_>) {}

    /// A hook wants something shown to the human.
    fn hook_notice(&self, _event: &'static str, _text: &str) {}

    /// A hook failed.
    fn hook_failure(&self, _event: &'static str, _failure: &HookFailure<'_>) {}

    /// The agent wants something known: a warning, an error, a retry.
    fn notification(&self, _level: NotificationLevel, _text: &str) {}

    /// A script printed a line; `worker` is the process that it runs in.
    fn script_output(&self, _worker: &str, _line: &str) {}

    /// Says whether somebody is there to answer. If not, what would be asked is denied.
    fn is_interactive(&self) -> bool;

    /// Asks whether a tool call may run. Called only when somebody is there, one question at a time;
    /// the answer is dropped when the run is cancelled.
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval>;

    /// Asks the user something for a script. Called only when somebody is there, one question at a time. `None` is no answer, and the
    /// default.
    #[cfg(unix)]
    fn question<'a>(&'a self, _question: &'a Question) -> BoxFuture<'a, Option<String>> {
        Box::pin(future::ready(None))
    }

    /// Asks whether the agent may go on after `limit` model calls, and for how many more. The default
    /// is no.
    fn more_iterations(&self, _limit: u32) -> BoxFuture<'_, Option<u32>> {
        Box::pin(future::ready(None))
    }
}

/// A tool call that does not run.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// The event whose hook denied it, if a hook did.
    pub event: Option<&'static str>,
    /// That hook, where it is known.
    pub hook: Option<&'a str>,
    /// Why, in words for the human.
    pub reason: &'a str,
}

/// A hook that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure<'a> {
    /// The hook.
    pub hook: &'a str,
    /// What went wrong.
    pub cause: &'a str,
    /// The hook stands on a gate and the operation went on all the same.
    pub let_through: bool,
}

/// The question whether a tool call may run.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest<'a> {
    /// The agent that wants it.
    pub agent: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The arguments it would run with, after every change by hooks.
    pub input: &'a JsonObject,
    /// Why it is asked: a hook's or a rule's words, if there are any.
    pub reason: Option<&'a str>,
    /// Who wants it asked.
    pub by: AskedBy<'a>,
    /// What hooks add to the question.
    pub metadata: &'a JsonObject,
    /// The rule that [`Approval::AllowSession`] stands for.
    pub suggestion: &'a str,
}

/// Who wants the user asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskedBy<'a> {
    /// A hook.
    Hook {
        /// Its event.
        event: &'static str,
        /// The hook, where it is known.
        hook: Option<&'a str>,
    },
    /// A rule that asks.
    Rule,
    /// No one: the call changes a [protected file](crate::ProtectedFiles). The answer is about this one change, so
    /// [`Approval::AllowSession`] means [`Approval::AllowOnce`].
    Protection,
    /// Nobody: no rule allows the call.
    Default,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It may run.
    AllowOnce,
    /// It may run, and calls like it for the rest of the session.
    AllowSession,
    /// It may not run. The model is told the reason.
    Deny {
        /// Why, if the user says.
        reason: Option<String>,
    },
}

/// Shows nothing and answers nothing: what would be asked is denied.
#[derive(Debug, Clone, Copy, Default)]
pub struct NonInteractive;

impl Frontend for NonInteractive {
    fn is_interactive(&self) -> bool {
        false
    }

    fn approve<'a>(&'a self, _request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(future::ready(Approval::Deny { reason: None }))
    }
}

impl fmt::Debug for dyn Frontend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frontend")
    }
}
