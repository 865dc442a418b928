//! The errors of a hook run: an event that cannot be written for the hook, an answer that cannot be
//! read, and all other reasons why a handler gives no usable answer.
//!
//! `policy.rs` decides what a failure means for the operation.

use std::time::Duration;

use tenterhook_protocol::journal::RunStatus;
use tenterhook_protocol::{NotHonoured, RewriteError, error_chain};
use thiserror::Error;

use crate::tools::ToolInputError;

/// An event that a dialect cannot write.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A value of the payload cannot be represented in JSON.
    #[error("failed to serialize hook input")]
    Payload(#[source] serde_json::Error),
    /// The tool call cannot be expressed in the hook's system.
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
    /// The dialect does not define this exit status.
    #[error("exited with status {status}{}", .stderr.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Status {
        /// The status.
        status: i32,
        /// The end of stderr, if there was any.
        stderr: Option<String>,
    },
    /// The hook failed in a way that its system documents as a warning, such as an exit status that
    /// stops nothing. [`Policy::documented`](crate::Policy::documented) decides what that does.
    #[error("exited with status {status}{}", .stderr.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Documented {
        /// The status.
        status: i32,
        /// The end of stderr, if there was any.
        stderr: Option<String>,
    },
    /// The hook changed a tool call in a way that cannot be translated back.
    #[error(transparent)]
    Tool(#[from] ToolInputError),
    /// The answer is not in the dialect's format.
    #[error("invalid hook output: {problem}")]
    Invalid {
        /// What is wrong with the answer.
        problem: String,
    },
}

impl ReadError {
    /// Creates an error for an answer that is not in the dialect's format.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid {
            problem: problem.into(),
        }
    }
}

/// Why a handler gave no usable answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HandlerError {
    /// The handler could not be started.
    #[error("failed to start: {problem}")]
    Start {
        /// What went wrong.
        problem: String,
    },
    /// The handler did not answer before the deadline.
    #[error("timed out after {}", seconds(*.after))]
    TimedOut {
        /// The hook's timeout.
        after: Duration,
    },
    /// The host cancelled the dispatch.
    #[error("cancelled")]
    Cancelled,
    /// A signal killed the child process.
    #[error("killed by signal {signal}")]
    Signal {
        /// The signal's number.
        signal: i32,
    },
    /// The event could not be written for the hook.
    #[error("{}", error_chain(.0))]
    Write(#[source] WriteError),
    /// The answer could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The answer uses an effect that the event does not honour.
    #[error("{}", error_chain(.0))]
    NotHonoured(#[source] NotHonoured),
    /// The answer rewrites a field that it may not rewrite, or the new value has the wrong type.
    #[error("{}", error_chain(.0))]
    Rewrite(#[source] RewriteError),
    /// A hook of the guard phase rewrote something.
    #[error("a hook of the guard phase may not rewrite `{field}`")]
    GuardRewrites {
        /// The field that it rewrote.
        field: String,
    },
    /// The function panicked.
    #[error("panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The hook has lost what it needs to judge events, so it was not asked.
    #[error("{problem}")]
    NotReady {
        /// What it lacks, and why.
        problem: String,
    },
    /// A handler of another kind failed.
    #[error("{problem}")]
    Other {
        /// What went wrong.
        problem: String,
    },
}

impl HandlerError {
    /// Returns whether the hook never saw the event: the event could not be written for it, its
    /// tool call cannot be expressed in the hook's system, or the hook is not ready.
    pub(crate) fn kept_event_from_hook(&self) -> bool {
        matches!(
            self,
            Self::NotReady { .. } | Self::Write(WriteError::Payload(_) | WriteError::Tool(_))
        )
    }

    /// Returns whether the hook's system documents this failure as a warning.
    pub(crate) fn is_documented(&self) -> bool {
        matches!(self, Self::Read(ReadError::Documented { .. }))
    }

    /// Returns what went wrong without quoting any text from outside this crate. Such text may
    /// quote the event: a traceback on stderr, the answer that could not be read, the message of a
    /// panic.
    pub(crate) fn outline(&self) -> String {
        match self {
            Self::Start { .. } => "failed to start".to_owned(),
            Self::TimedOut { .. } | Self::Cancelled | Self::Signal { .. } => self.to_string(),
            Self::Write(_) => "the event could not be converted to its format".to_owned(),
            Self::Read(ReadError::Status { status, .. } | ReadError::Documented { status, .. }) => {
                format!("exited with status {status}")
            }
            Self::Read(ReadError::Invalid { .. }) => "its answer could not be read".to_owned(),
            Self::Read(ReadError::Tool(_)) => {
                "it changed a tool call in a way that cannot be translated".to_owned()
            }
            Self::NotHonoured(_) => {
                "its answer uses an effect that the event does not honour".to_owned()
            }
            Self::Rewrite(_) => "its rewrite is invalid".to_owned(),
            Self::GuardRewrites { .. } => "a hook of the guard phase may not rewrite".to_owned(),
            Self::Panicked { .. } => "panicked".to_owned(),
            Self::NotReady { .. } => "it has lost what it needs to judge events".to_owned(),
            Self::Other { .. } => "it could not complete".to_owned(),
        }
    }

    /// Returns the status of the run for its record.
    pub(crate) fn status(&self) -> RunStatus {
        if matches!(self, Self::TimedOut { .. }) {
            RunStatus::TimedOut
        } else if matches!(self, Self::Cancelled) {
            RunStatus::Cancelled
        } else {
            RunStatus::Failed
        }
    }
}

/// Returns a duration in seconds, rounded to milliseconds, without trailing zeros.
fn seconds(duration: Duration) -> String {
    format!("{}s", (duration.as_secs_f64() * 1e3).round() / 1e3)
}
