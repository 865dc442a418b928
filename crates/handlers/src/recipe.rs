//! Handlers that recipes name: code of the program that acts on the thread of one conversation.
//!
//! | handler | event | what it does |
//! |---|---|---|
//! | `swap_context` | `turn_end` | the conversation goes on with nothing but the model's answer, as a message of the user |
//!
//! A program adds handlers of its own by implementing [`RecipeHandler`], whose methods do nothing unless they are
//! overridden, and registering them in a [`RecipeHandlers`].

mod swap_context;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tenterhook::event::{PostToolUse, PreToolUse, Stop, TurnEnd, UserPromptSubmit};
use tenterhook::{
    Answer, Call, Effect, Event, EventClass, EventKind, Handler, HandlerError, InvokedBy, SessionId,
};

pub use swap_context::SwapContext;

/// How many sessions a handler that runs once remembers. The oldest is forgotten first.
const SESSIONS: usize = 1_024;

/// What a handler answers.
pub type Handled<'a, E> = BoxFuture<'a, Result<Effect<E>, HandlerError>>;

/// Puts a summary in the place of a conversation. The program that leads conversations implements it.
pub trait ContextSwapper: Send + Sync + fmt::Debug {
    /// Lets the conversation of a session go on with nothing but `summary`.
    ///
    /// # Errors
    /// Says why that cannot be done.
    fn swap_context(&self, session: &SessionId, summary: &str) -> Result<(), String>;
}

/// The conversation that an event comes from.
#[derive(Debug, Clone, Copy)]
pub struct Thread<'a> {
    session: &'a SessionId,
    swapper: Option<&'a dyn ContextSwapper>,
}

impl Thread<'_> {
    /// Returns the id of its session.
    pub fn session(&self) -> &SessionId {
        self.session
    }

    /// Lets the conversation go on with nothing but `summary`, as a message of the user.
    ///
    /// # Errors
    /// When the program that leads the conversation cannot do that.
    pub fn swap_context(&self, summary: &str) -> Result<(), HandlerError> {
        let swapped = match self.swapper {
            Some(swapper) => swapper.swap_context(self.session, summary),
            None => Err("thread does not support context swapping".to_owned()),
        };
        swapped.map_err(|problem| HandlerError::Other { problem })
    }
}

/// A handler that recipes can name. Each method does nothing unless it is overridden; [`RecipeHandler::events`] says which
/// are, so that a recipe that asks for another one is refused when it is loaded.
pub trait RecipeHandler: Send + Sync + fmt::Debug {
    /// Returns the name by which recipes know it.
    fn name(&self) -> &str;

    /// Returns the events that it does something on.
    fn events(&self) -> &[EventKind];

    /// The user is about to send a message.
    fn user_prompt_submit<'a>(
        &'a self,
        _thread: Thread<'a>,
        _event: &'a UserPromptSubmit,
    ) -> Handled<'a, UserPromptSubmit> {
        nothing()
    }

    /// A tool is about to run.
    fn pre_tool_use<'a>(
        &'a self,
        _thread: Thread<'a>,
        _event: &'a PreToolUse,
    ) -> Handled<'a, PreToolUse> {
        nothing()
    }

    /// A tool ran, or was denied.
    fn post_tool_use<'a>(
        &'a self,
        _thread: Thread<'a>,
        _event: &'a PostToolUse,
    ) -> Handled<'a, PostToolUse> {
        nothing()
    }

    /// The model is done.
    fn stop<'a>(&'a self, _thread: Thread<'a>, _event: &'a Stop) -> Handled<'a, Stop> {
        nothing()
    }

    /// A turn whose answer has text is over.
    fn turn_end<'a>(&'a self, _thread: Thread<'a>, _event: &'a TurnEnd) -> Handled<'a, TurnEnd> {
        nothing()
    }
}

fn nothing<'a, E: Event>() -> Handled<'a, E> {
    ready(Ok(Effect::none())).boxed()
}

/// The handlers that recipes can name.
#[derive(Debug, Clone)]
pub struct RecipeHandlers {
    handlers: Vec<Arc<dyn RecipeHandler>>,
}

/// The handlers that come along.
impl Default for RecipeHandlers {
    fn default() -> Self {
        Self {
            handlers: vec![Arc::new(SwapContext)],
        }
    }
}

impl RecipeHandlers {
    /// Adds a handler, in the place of one of the same name.
    pub fn register(&mut self, handler: Arc<dyn RecipeHandler>) {
        self.handlers.retain(|known| known.name() != handler.name());
        self.handlers.push(handler);
    }

    /// Returns the handler of a name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn RecipeHandler>> {
        self.handlers.iter().find(|handler| handler.name() == name)
    }

    /// Returns every name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.handlers.iter().map(|handler| handler.name())
    }
}

/// Runs a recipe's handler as a hook.
#[derive(Debug)]
pub struct RecipeHook {
    handler: Arc<dyn RecipeHandler>,
    swapper: Option<Arc<dyn ContextSwapper>>,
    /// The sessions that it ran in, if it runs once in each.
    once: Option<Mutex<VecDeque<SessionId>>>,
}

impl RecipeHook {
    /// Makes a hook of a handler. With `once` it runs once in a session: a run that failed does not count.
    pub fn new(
        handler: Arc<dyn RecipeHandler>,
        swapper: Option<Arc<dyn ContextSwapper>>,
        once: bool,
    ) -> Self {
        Self {
            handler,
            swapper,
            once: once.then(Mutex::default),
        }
    }

    /// Says whether it may run in a session now, and counts it as run.
    fn begin(&self, session: &SessionId) -> bool {
        let Some(once) = &self.once else {
            return true;
        };
        let mut ran = once.lock().unwrap_or_else(PoisonError::into_inner);
        if ran.contains(session) {
            return false;
        }
        if ran.len() == SESSIONS {
            ran.pop_front();
        }
        ran.push_back(session.clone());
        true
    }

    fn take_back(&self, session: &SessionId) {
        if let Some(once) = &self.once {
            let mut ran = once.lock().unwrap_or_else(PoisonError::into_inner);
            ran.retain(|known| known != session);
        }
    }

    async fn run(&self, call: &Call) -> Answer {
        let thread = Thread {
            session: &call.event.envelope().origin.session_id,
            swapper: self.swapper.as_deref(),
        };
        let event = &call.event;
        let handler = &self.handler;
        if let Some(event) = event.downcast::<UserPromptSubmit>() {
            return answer(handler.user_prompt_submit(thread, event)).await;
        }
        if let Some(event) = event.downcast::<PreToolUse>() {
            return answer(handler.pre_tool_use(thread, event)).await;
        }
        if let Some(event) = event.downcast::<PostToolUse>() {
            return answer(handler.post_tool_use(thread, event)).await;
        }
        if let Some(event) = event.downcast::<Stop>() {
            return answer(handler.stop(thread, event)).await;
        }
        if let Some(event) = event.downcast::<TurnEnd>() {
            return answer(handler.turn_end(thread, event)).await;
        }
        Ok(None)
    }
}

async fn answer<E: Event>(handled: Handled<'_, E>) -> Answer {
    Ok(handled.await?.into_any())
}

impl Handler for RecipeHook {
    fn kind(&self) -> &'static str {
        "recipe"
    }

    fn describe(&self) -> String {
        let once = if self.once.is_some() { " once" } else { "" };
        format!("{}{once}", self.handler.name())
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            let is_silent = call
                .event
                .downcast::<TurnEnd>()
                .is_some_and(|turn| turn.response.is_empty());
            let origin = &call.event.envelope().origin;
            // A recipe is one conversation's. What judges something judges it for subagents too.
            let is_elsewhere = origin.invoked_by == InvokedBy::Subagent
                && call.event.info().class == EventClass::Observer;
            let session = &origin.session_id;
            if is_silent || is_elsewhere || !self.begin(session) {
                return Ok(None);
            }
            let answer = self.run(call).await;
            if answer.is_err() {
                self.take_back(session);
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(handlers: &RecipeHandlers) -> Vec<&str> {
        handlers.names().collect()
    }

    #[derive(Debug)]
    struct Named(&'static str, &'static [EventKind]);

    impl RecipeHandler for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn events(&self) -> &[EventKind] {
            self.1
        }
    }

    #[test]
    fn handlers_are_known_by_their_names_and_a_later_one_takes_the_place() {
        let mut handlers = RecipeHandlers::default();
        assert_eq!(names(&handlers), ["swap_context"]);
        handlers.register(Arc::new(Named("mine", &[])));
        handlers.register(Arc::new(Named("mine", &[EventKind::Stop])));
        assert_eq!(names(&handlers), ["swap_context", "mine"]);
        assert_eq!(handlers.get("mine").unwrap().events(), [EventKind::Stop]);
        assert!(handlers.get("other").is_none());
    }

    #[test]
    fn a_hook_that_runs_once_remembers_a_bounded_number_of_sessions() {
        let hook = RecipeHook::new(Arc::new(SwapContext), None, true);
        let session = |number: usize| SessionId::new(number.to_string());
        assert!(hook.begin(&session(0)) && !hook.begin(&session(0)));
        hook.take_back(&session(0));
        assert!(hook.begin(&session(0)));
        for number in 1..=SESSIONS {
            assert!(hook.begin(&session(number)));
        }
        assert!(hook.begin(&session(0)), "the oldest is forgotten");
        assert!(!hook.begin(&session(SESSIONS)));
    }
}
