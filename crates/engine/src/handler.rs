//! What runs when a hook fires.

mod command;
mod function;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenterhook_protocol::journal::{FORMAT_VERSION, JournalRecord, RunRecord, RunStatus};
use tenterhook_protocol::{AnyEffect, HookId, NotHonoured, RewriteError};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::dialect::{ReadError, WriteError};
use crate::dispatch::milliseconds;
use crate::event_ref::EventRef;
use crate::sink::JournalSink;

pub use command::{AnswerEnd, CommandHandler};
pub(crate) use function::{
    AsyncFunction, Function, Subscriber, TypedFunction, closure, panic_text,
};
pub use function::{IntoEffect, SyncAnswer, SyncFunction};

/// One call of a handler.
#[derive(Debug, Clone)]
pub struct Call {
    /// The event, with the rewrites of the hooks before.
    pub event: EventRef,
    /// How long the call may take.
    pub timeout: Duration,
    /// Cancelled when the host gives up the dispatch.
    pub cancel: CancellationToken,
    /// Where the handler tells what comes to light after its answer; `None` where nobody keeps a journal.
    pub late: Option<Late>,
}

/// Takes what a handler finds out after it has answered.
#[derive(Debug, Clone)]
pub struct Late {
    pub(crate) journal: Arc<dyn JournalSink>,
    pub(crate) hook: HookId,
    pub(crate) source: String,
}

impl Late {
    /// Puts a failure that came after the answer into the journal: a record of its own, beside that of the run.
    pub fn failed(&self, call: &Call, kind: &str, error: &HandlerError, took: Duration) {
        // The policy is not known here, and the journal outlives what may have been withheld.
        let cause = if call.event.info().hands_on_result() {
            error.outline()
        } else {
            error.to_string()
        };
        self.journal.record_dropped(JournalRecord::Run(RunRecord {
            v: FORMAT_VERSION,
            event_id: call.event.envelope().event_id(),
            event: call.event.event().name().to_owned(),
            hook: self.hook.clone(),
            source: self.source.clone(),
            handler: kind.to_owned(),
            status: error.status(),
            cause: Some(format!("after its answer: {cause}")),
            effect: "none".to_owned(),
            reason: None,
            let_through: false,
            context_bytes: 0,
            duration_ms: milliseconds(took),
        }));
    }
}

/// What a handler answers; `None` is no opinion.
pub type Answer = Result<Option<Box<AnyEffect>>, HandlerError>;

/// Something that answers events and may wait before it does.
pub trait Handler: Send + Sync + fmt::Debug {
    /// Returns the kind for people and journals: `command`, `builtin` …
    fn kind(&self) -> &'static str;

    /// Returns what runs, for people: the command line, the built-in's name.
    fn describe(&self) -> String;

    /// Answers one event. Called once for each dispatch that the hook takes part in; calls may overlap.
    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer>;

    /// Says whether the handler keeps `call.timeout` and `call.cancel` by itself. Where it does not, the
    /// engine drops its future when either is reached.
    fn is_bounded(&self) -> bool {
        false
    }

    /// Says whether runs should be spread over threads when several start at once.
    fn is_heavy(&self) -> bool {
        false
    }

    /// Returns what keeps the handler from working, if that is known before any event: a missing executable. Or what
    /// has kept it until now from working in the way that it was asked to.
    fn problem(&self) -> Option<String> {
        None
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
    /// The deadline passed.
    #[error("timed out after {}", seconds(*.after))]
    TimedOut {
        /// The hook's timeout.
        after: Duration,
    },
    /// The host gave up the dispatch.
    #[error("cancelled")]
    Cancelled,
    /// The child died by a signal.
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
    /// The answer asks for something that the event does not honour.
    #[error("{}", error_chain(.0))]
    NotHonoured(#[source] NotHonoured),
    /// The answer rewrites something that it may not, or with a value that does not fit.
    #[error("{}", error_chain(.0))]
    Rewrite(#[source] RewriteError),
    /// A hook of the guard phase rewrote something.
    #[error("a hook of the guard phase may not rewrite `{field}`")]
    GuardRewrites {
        /// What it rewrote.
        field: String,
    },
    /// The function panicked.
    #[error("panicked: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// A handler of another kind failed.
    #[error("{problem}")]
    Other {
        /// What went wrong.
        problem: String,
    },
}

impl HandlerError {
    /// Returns whether the hook did not get to see the event: it could not be written for it, or its tool call has no
    /// form in the hook's system.
    pub(crate) fn is_blind(&self) -> bool {
        matches!(
            self,
            Self::Write(WriteError::Payload(_) | WriteError::Tool(_))
        )
    }

    /// Returns what went wrong in words of this crate only. Other words of an error may quote the event: a traceback on
    /// stderr, the answer that could not be read, the message of a panic.
    pub(crate) fn outline(&self) -> String {
        match self {
            Self::Start { .. } => "failed to start".to_owned(),
            Self::TimedOut { .. } | Self::Cancelled | Self::Signal { .. } => self.to_string(),
            Self::Write(_) => "the event could not be written for it".to_owned(),
            Self::Read(ReadError::Status { status, .. }) => format!("exited with status {status}"),
            Self::Read(ReadError::Invalid { .. }) => "its answer could not be read".to_owned(),
            Self::Read(ReadError::Tool(_)) => {
                "it changed a tool call in a way that cannot be translated".to_owned()
            }
            Self::NotHonoured(_) => "it asked for what the event does not honour".to_owned(),
            Self::Rewrite(_) => "its new value does not fit".to_owned(),
            Self::GuardRewrites { .. } => "a hook of the guard phase may not rewrite".to_owned(),
            Self::Panicked { .. } => "panicked".to_owned(),
            Self::Other { .. } => "it could not do its work".to_owned(),
        }
    }

    /// Returns how a record names the run.
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

/// Returns the error with its causes, `: ` between them: a cause is one line in a journal.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Returns a duration in seconds, to the millisecond, without needless digits.
fn seconds(duration: Duration) -> String {
    format!("{}s", (duration.as_secs_f64() * 1e3).round() / 1e3)
}
