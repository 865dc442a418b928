//! Handlers that are functions of the host. A panic is a failure of the hook and stays in it.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{AnyEffect, AnyEvent, Effect, Event, Origin};

use super::{Answer, Call, Handler, HandlerError, error_chain};
use crate::event_ref::EventRef;

/// What a function on the caller's thread answers: an effect, no opinion, or a failure.
pub type SyncAnswer = Result<Option<Box<AnyEffect>>, Box<HandlerError>>;

/// A function that answers an event at once.
pub trait SyncFunction: Any + Send + Sync + fmt::Debug {
    /// Answers one event of `origin`; no opinion is `Ok(None)`.
    ///
    /// # Errors
    /// When the function failed. The hook's failure policy then decides.
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> SyncAnswer;
}

/// What a closure may return: an [`Effect`], nothing at all for no opinion, or a `Result` of one of them. An error is
/// a failure of the hook, so it denies on a gate event unless the hook's policy says otherwise.
pub trait IntoEffect<E> {
    /// Returns the effect.
    ///
    /// # Errors
    /// When the closure returned an error.
    fn into_effect(self) -> Result<Effect<E>, BoxError>;
}

/// Any error of a closure.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<E> IntoEffect<E> for Effect<E> {
    fn into_effect(self) -> Result<Self, BoxError> {
        Ok(self)
    }
}

impl<E> IntoEffect<E> for () {
    fn into_effect(self) -> Result<Effect<E>, BoxError> {
        Ok(Effect::default())
    }
}

impl<E, R: IntoEffect<E>, X: Into<BoxError>> IntoEffect<E> for Result<R, X> {
    fn into_effect(self) -> Result<Effect<E>, BoxError> {
        self.map_err(Into::into)?.into_effect()
    }
}

/// Returns the answer of a closure.
fn answer<E: Event>(returned: impl IntoEffect<E>) -> SyncAnswer {
    match returned.into_effect() {
        Ok(effect) => Ok(effect.into_any()),
        Err(error) => Err(Box::new(HandlerError::Other {
            problem: error_chain(&*error),
        })),
    }
}

/// Returns the failure of a function that got an event of another type than its own.
#[cold]
fn wrong_event<E: Event>(event: &dyn AnyEvent) -> HandlerError {
    HandlerError::Other {
        problem: format!(
            "the function takes `{}` events and got `{}`",
            E::INFO.name,
            event.name()
        ),
    }
}

/// A closure over the typed event.
pub(crate) type Closure<E> = Arc<dyn Fn(&E, &Origin) -> SyncAnswer + Send + Sync>;

/// Makes a closure whose answer is ready to be folded.
pub(crate) fn closure<E: Event, R: IntoEffect<E>>(
    function: impl Fn(&E, &Origin) -> R + Send + Sync + 'static,
) -> Closure<E> {
    Arc::new(move |event, origin| answer(function(event, origin)))
}

/// A function of the host that is a closure over the typed event.
pub(crate) struct Function<E> {
    pub(crate) closure: Closure<E>,
}

impl<E> fmt::Debug for Function<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("function")
    }
}

impl<E: Event> SyncFunction for Function<E> {
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> SyncAnswer {
        match event.as_any().downcast_ref() {
            Some(event) => (self.closure)(event, origin),
            None => Err(Box::new(wrong_event::<E>(event))),
        }
    }
}

/// A function in the form in which a dispatch of `E` calls it: a closure needs no look at the event's type.
pub(crate) enum TypedFunction<E> {
    Closure(Closure<E>),
    Other(Arc<dyn SyncFunction>),
}

impl<E: Event> TypedFunction<E> {
    pub(crate) fn new(function: &Arc<dyn SyncFunction>) -> Self {
        let any: &dyn Any = &**function;
        match any.downcast_ref::<Function<E>>() {
            Some(function) => Self::Closure(Arc::clone(&function.closure)),
            None => Self::Other(Arc::clone(function)),
        }
    }

    pub(crate) fn call(&self, event: &E, origin: &Origin) -> SyncAnswer {
        match self {
            Self::Closure(closure) => closure(event, origin),
            Self::Other(function) => function.call(event, origin),
        }
    }
}

/// A closure over the typed event that may wait.
pub(crate) struct AsyncFunction<E, R, F> {
    function: F,
    types: PhantomData<fn(&E) -> R>,
}

impl<E, R, F> AsyncFunction<E, R, F> {
    pub(crate) fn new(function: F) -> Self {
        Self {
            function,
            types: PhantomData,
        }
    }
}

impl<E, R, F> fmt::Debug for AsyncFunction<E, R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("function")
    }
}

impl<E, R, F> Handler for AsyncFunction<E, R, F>
where
    E: Event,
    R: IntoEffect<E> + 'static,
    F: for<'a> Fn(&'a E) -> BoxFuture<'a, R> + Send + Sync,
{
    fn kind(&self) -> &'static str {
        "function"
    }

    fn describe(&self) -> String {
        "function".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        let Some(event) = call.event.downcast::<E>() else {
            let error = wrong_event::<E>(call.event.event());
            return Box::pin(std::future::ready(Err(error)));
        };
        Box::pin(async move { answer((self.function)(event).await).map_err(|error| *error) })
    }
}

/// A closure that is told of every event; what it returns is ignored.
pub(crate) struct Subscriber<F> {
    function: F,
}

impl<F> Subscriber<F> {
    pub(crate) fn new(function: F) -> Self {
        Self { function }
    }
}

impl<F> fmt::Debug for Subscriber<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("subscriber")
    }
}

impl<F: Fn(&EventRef) + Send + Sync> Handler for Subscriber<F> {
    fn kind(&self) -> &'static str {
        "subscriber"
    }

    fn describe(&self) -> String {
        "subscriber".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        (self.function)(&call.event);
        Box::pin(std::future::ready(Ok(None)))
    }

    /// It never waits, and it is told of cancelled dispatches too.
    fn is_bounded(&self) -> bool {
        true
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
