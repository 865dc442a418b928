//! The handlers that run when a hook fires.

mod function;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenterhook_protocol::AnyEffect;
use tokio_util::sync::CancellationToken;

use crate::error::HandlerError;
use crate::event_ref::EventRef;
use crate::raw_exchange::ExchangeSlot;
use crate::run_notes::RunNotes;

pub(crate) use function::{
    AsyncFunction, Function, Subscriber, TypedFunction, closure, panic_text,
};
pub use function::{InlineAnswer, InlineFunction, IntoEffect};

/// One call of a handler.
#[derive(Debug, Clone)]
pub struct Call {
    /// The event, including the rewrites of earlier hooks.
    pub event: EventRef,
    /// The time limit of the call.
    pub timeout: Duration,
    /// Cancelled when the host cancels the dispatch.
    pub cancel: CancellationToken,
    /// Takes what the hook receives and returns, if an observer requests it.
    pub exchange: ExchangeSlot,
    /// Takes what the handler notes for the journal, if there is one.
    pub notes: RunNotes,
}

/// What a handler answers. `None` means that it has no opinion.
pub type Answer = Result<Option<Box<AnyEffect>>, HandlerError>;

/// A handler that may wait before it answers an event.
pub trait AsyncHandler: Send + Sync + fmt::Debug {
    /// Returns the kind of the handler for people and journals, such as `command` or `builtin`.
    fn kind(&self) -> &'static str;

    /// Returns what runs, for people: the command line or the name of the built-in.
    fn describe(&self) -> String;

    /// Answers one event. The engine calls it once for each dispatch that the hook takes part in.
    /// Calls may overlap.
    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer>;

    /// Returns whether the handler enforces `call.timeout` and `call.cancel` itself. If not, the
    /// engine drops its future when the time is over or the call is cancelled.
    fn enforces_deadline(&self) -> bool {
        false
    }

    /// Returns whether the engine should spread runs over threads if several start at once.
    fn runs_on_own_task(&self) -> bool {
        false
    }

    /// Returns the name of the sequence that the handler belongs to. In a parallel phase, handlers of
    /// the same sequence run one after another, in running order, because their hook system promises
    /// that. They still overlap with all other handlers.
    fn sequence(&self) -> Option<&'static str> {
        None
    }

    /// Returns the problem that keeps the handler from working, or from working as configured, if
    /// one is known. An example is a missing executable.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Returns what the handler covers and what it cannot see, a sentence each, for a report that its author reads.
    /// Most handlers have nothing to add to their description.
    fn coverage(&self) -> Vec<String> {
        Vec::new()
    }
}
