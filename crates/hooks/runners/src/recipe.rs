//! Handlers that recipes select by name: code of the program that acts on one conversation.
//!
//! | handler | event | what it does |
//! |---|---|---|
//! | `swap_context` | `turn_end` | replaces the conversation with the model's answer, as a message of the user |
//!
//! To add a handler, implement [`RecipeHandler`] and register the handler in a [`RecipeHandlers`].
//! Methods that are not overridden do nothing.

mod handler;
mod swap_context;

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop, TurnEnd, UserPromptSubmit};
use tenterhook_engine::{Answer, AsyncHandler, Call, Event, EventClass, InvokedBy, SessionId};

pub use handler::{ContextSwapper, Handled, RecipeHandler, Thread};
pub use swap_context::SwapContext;

/// How many sessions a handler that runs once per session remembers. The oldest is forgotten first.
const SESSIONS: usize = 1_024;

/// The handlers that recipes can name.
#[derive(Debug, Clone)]
pub struct RecipeHandlers {
    handlers: Vec<Arc<dyn RecipeHandler>>,
}

/// The handlers that are built in.
impl Default for RecipeHandlers {
    fn default() -> Self {
        Self {
            handlers: vec![Arc::new(SwapContext)],
        }
    }
}

impl RecipeHandlers {
    /// Adds a handler. It replaces an earlier handler of the same name.
    pub fn register(&mut self, handler: Arc<dyn RecipeHandler>) {
        self.handlers.retain(|known| known.name() != handler.name());
        self.handlers.push(handler);
    }

    /// Returns the handler with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn RecipeHandler>> {
        self.handlers.iter().find(|handler| handler.name() == name)
    }

    /// Returns the names of all handlers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.handlers.iter().map(|handler| handler.name())
    }
}

/// Runs a recipe's handler as a hook.
#[derive(Debug)]
pub struct RecipeHook {
    handler: Arc<dyn RecipeHandler>,
    swapper: Option<Arc<dyn ContextSwapper>>,
    /// The sessions in which it has run. `None` if it runs on every event.
    once: Option<Mutex<VecDeque<SessionId>>>,
}

impl RecipeHook {
    /// Makes a hook from a handler. With `once`, it runs once per session. A run that fails does not count.
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

    /// Returns whether the handler may run in this session now, and if so, counts the run.
    fn begin(&self, session: &SessionId) -> bool {
        let Some(once) = &self.once else {
            return true;
        };
        let mut ran = once.lock();
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
            let mut ran = once.lock();
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

impl AsyncHandler for RecipeHook {
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
            // A recipe belongs to one conversation, so its observers do not see subagents. Its
            // gates do: otherwise a subagent could do what the recipe forbids.
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
    use tenterhook_engine::EventKind;

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
