//! Handlers that are functions of the host. If a function panics, only its hook fails.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{AnyEffect, AnyEvent, Effect, Event, Origin, error_chain};

use super::{Answer, AsyncHandler, Call};
use crate::error::HandlerError;
use crate::event_ref::EventRef;

/// What an inline function answers: an effect, no opinion (`None`), or a failure.
pub type InlineAnswer = Result<Option<Box<AnyEffect>>, Box<HandlerError>>;

/// A function that answers an event immediately, on the caller's thread.
pub trait InlineFunction: Any + Send + Sync + fmt::Debug {
    /// Answers one event of `origin`. `Ok(None)` means no opinion.
    ///
    /// # Errors
    /// Fails if the function fails. The hook's failure policy then decides.
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> InlineAnswer;
}

/// What a closure may return: an [`Effect`], nothing (which means no opinion), or a `Result` of
/// either. An error is a failure of the hook. On a gate event it denies, unless the hook's policy
/// specifies otherwise.
pub trait IntoEffect<E> {
    /// Returns the effect.
    ///
    /// # Errors
    /// Fails if the closure returned an error.
    fn into_effect(self) -> Result<Effect<E>, BoxError>;
}

/// Any error that a closure may return.
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

/// Converts the return value of a closure to an answer.
fn answer<E: Event>(returned: impl IntoEffect<E>) -> InlineAnswer {
    match returned.into_effect() {
        Ok(effect) => Ok(effect.into_any()),
        Err(error) => Err(Box::new(HandlerError::Other {
            problem: error_chain(&*error),
        })),
    }
}

/// Returns the error for a function that received an event of another type.
#[cold]
fn wrong_event<E: Event>(event: &dyn AnyEvent) -> HandlerError {
    HandlerError::Other {
        problem: format!(
            "the function expects a `{}` event, but received `{}`",
            E::INFO.name,
            event.name()
        ),
    }
}

/// A closure over the typed event.
pub(crate) type Closure<E> = Arc<dyn Fn(&E, &Origin) -> InlineAnswer + Send + Sync>;

/// Wraps a function so that its return value is an answer.
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

impl<E: Event> InlineFunction for Function<E> {
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> InlineAnswer {
        match event.as_any().downcast_ref() {
            Some(event) => (self.closure)(event, origin),
            None => Err(Box::new(wrong_event::<E>(event))),
        }
    }
}

/// A function in the form that a dispatch of `E` calls. A closure needs no check of the event's
/// type.
pub(crate) enum TypedFunction<E> {
    Closure(Closure<E>),
    Other(Arc<dyn InlineFunction>),
}

impl<E: Event> TypedFunction<E> {
    pub(crate) fn new(function: &Arc<dyn InlineFunction>) -> Self {
        let any: &dyn Any = &**function;
        match any.downcast_ref::<Function<E>>() {
            Some(function) => Self::Closure(Arc::clone(&function.closure)),
            None => Self::Other(Arc::clone(function)),
        }
    }

    pub(crate) fn call(&self, event: &E, origin: &Origin) -> InlineAnswer {
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

impl<E, R, F> AsyncHandler for AsyncFunction<E, R, F>
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

/// A closure that receives every event. Its return value is ignored.
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

impl<F: Fn(&EventRef) + Send + Sync> AsyncHandler for Subscriber<F> {
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

    /// It never waits, and it also receives events of cancelled dispatches.
    fn enforces_deadline(&self) -> bool {
        true
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
