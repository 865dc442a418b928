//! What a wire contract has to provide, so that the engine needs to know none.

use std::fmt;

use tenterhook_protocol::{AnyEffect, EventInfo, JsonObject};
use thiserror::Error;

use crate::event_ref::EventRef;
use crate::policy::{OnError, Policy};
use crate::tools::{ToolInputError, ToolNames};

/// One system's contract with a hook: a pure translation. How several hooks combine is not its business.
pub trait Dialect: Send + Sync + fmt::Debug {
    /// Returns the name. Two dialects of one name write the same bytes.
    fn name(&self) -> &'static str;

    /// Writes an event for a hook. Called at most once for each version of an event.
    ///
    /// # Errors
    /// When the dialect has no form for the event, or a value has no JSON form.
    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError>;

    /// Says whether the system has this occurrence of an event at all. A hook of it is not run for another one.
    fn has_event(&self, _event: &EventRef) -> bool {
        true
    }

    /// Returns the keys that an event may be written with, each with the value that it stands for where it is
    /// left out. `None` is an event whose keys are not known before it happens, and the default.
    fn skeleton(&self, _info: &EventInfo) -> Option<JsonObject> {
        None
    }

    /// Reads what a finished hook answered. `strict` refuses what a lenient reader would pass over.
    ///
    /// A dialect that cannot express an effect never rounds it down to something weaker.
    ///
    /// # Errors
    /// When the answer is none of this dialect; the engine treats that as a failure of the hook.
    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError>;

    /// Reads the answer to one event. A dialect whose answers are about what the event says, such as text that goes before another
    /// one, has it here.
    ///
    /// # Errors
    /// As [`read`](Self::read), which this is by default.
    fn read_answer(
        &self,
        event: &EventRef,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        self.read(event.info(), reply, strict)
    }

    /// Returns the tools of the hook system that speaks this dialect. [`EventRef::encoded`] and
    /// [`EventRef::read_answer`] translate tool calls with it. `None`, the default, is a hook that sees canonical tools.
    fn tools(&self) -> Option<&dyn ToolNames> {
        None
    }

    /// Returns what a failing hook of this dialect does on an event.
    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy;
}

/// How a command answered: it exited by itself, in time.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    /// The exit status.
    pub status: i32,
    /// What it printed.
    pub stdout: &'a [u8],
    /// What it printed as errors.
    pub stderr: &'a [u8],
    /// How many bytes of stdout were cut out because there were too many.
    pub stdout_omitted: u64,
}

/// An event that a dialect cannot write.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A value of the payload has no JSON form.
    #[error("failed to serialize hook input")]
    Payload(#[source] serde_json::Error),
    /// The tool call has no form in the hook's system.
    #[error(transparent)]
    Tool(#[from] ToolInputError),
    /// The dialect has no such event.
    #[error("the {dialect} dialect has no event `{event}`")]
    NoSuchEvent {
        /// The dialect.
        dialect: &'static str,
        /// The event.
        event: String,
    },
}

/// An answer that a dialect cannot read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The exit status is none that the dialect knows.
    #[error("exited with status {status}{}", .stderr.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// The status.
        status: i32,
        /// The end of stderr, if there was any.
        stderr: Option<String>,
    },
    /// The hook changed a tool call in a way that the tool here does not know.
    #[error(transparent)]
    Tool(#[from] ToolInputError),
    /// The answer is not in the dialect's form.
    #[error("invalid hook output: {problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
}

impl ReadError {
    /// Makes an error of an answer that is not in the dialect's form.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid {
            problem: problem.into(),
        }
    }
}
