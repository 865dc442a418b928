//! The interface of a recipe's handler, and what the handler may do.

use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop, TurnEnd, UserPromptSubmit};
use tenterhook_engine::{Effect, Event, EventKind, HandlerError, SessionId};

/// The answer of a handler.
pub type Handled<'a, E> = BoxFuture<'a, Result<Effect<E>, HandlerError>>;

/// Replaces a conversation with a summary. The program that runs conversations implements it.
pub trait ContextSwapper: Send + Sync + fmt::Debug {
    /// Replaces everything in the conversation of a session with `summary`.
    ///
    /// # Errors
    /// Returns why the conversation cannot be replaced.
    fn swap_context(&self, session: &SessionId, summary: &str) -> Result<(), String>;
}

/// The conversation that an event comes from.
#[derive(Debug, Clone, Copy)]
pub struct Thread<'a> {
    pub(super) session: &'a SessionId,
    pub(super) swapper: Option<&'a dyn ContextSwapper>,
}

impl Thread<'_> {
    /// Returns the id of the conversation's session.
    pub fn session(&self) -> &SessionId {
        self.session
    }

    /// Replaces everything in the conversation with `summary`, as a message of the user.
    ///
    /// # Errors
    /// Fails if the program that runs the conversation cannot replace it.
    pub fn swap_context(&self, summary: &str) -> Result<(), HandlerError> {
        let swapped = match self.swapper {
            Some(swapper) => swapper.swap_context(self.session, summary),
            None => Err("thread does not support context swapping".to_owned()),
        };
        swapped.map_err(|problem| HandlerError::Other { problem })
    }
}

/// A handler that recipes can select by name.
///
/// Each method does nothing unless it is overridden. [`RecipeHandler::events`] lists the events
/// whose methods are overridden, so that a recipe that uses the handler on another event is refused
/// when it is loaded.
pub trait RecipeHandler: Send + Sync + fmt::Debug {
    /// Returns the name that recipes use.
    fn name(&self) -> &str;

    /// Returns the events that the handler handles.
    fn events(&self) -> &[EventKind];

    /// Runs when the user is about to send a message.
    fn user_prompt_submit<'a>(
        &'a self,
        _thread: Thread<'a>,
        _event: &'a UserPromptSubmit,
    ) -> Handled<'a, UserPromptSubmit> {
        nothing()
    }

    /// Runs when a tool is about to run.
    fn pre_tool_use<'a>(
        &'a self,
        _thread: Thread<'a>,
        _event: &'a PreToolUse,
    ) -> Handled<'a, PreToolUse> {
        nothing()
    }

    /// Runs after a tool ran or was denied.
    fn post_tool_use<'a>(
        &'a self,
        _thread: Thread<'a>,
        _event: &'a PostToolUse,
    ) -> Handled<'a, PostToolUse> {
        nothing()
    }

    /// Runs when the model is done.
    fn stop<'a>(&'a self, _thread: Thread<'a>, _event: &'a Stop) -> Handled<'a, Stop> {
        nothing()
    }

    /// Runs after a turn whose answer has text.
    fn turn_end<'a>(&'a self, _thread: Thread<'a>, _event: &'a TurnEnd) -> Handled<'a, TurnEnd> {
        nothing()
    }
}

fn nothing<'a, E: Event>() -> Handled<'a, E> {
    ready(Ok(Effect::none())).boxed()
}
