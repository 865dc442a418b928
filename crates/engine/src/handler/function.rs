//! Handlers that are functions of the host. A panic is a failure of the hook and stays in it.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{AnyEffect, AnyEvent, Effect, Event, Origin};

use super::{Answer, Call, Handler};
use crate::event_ref::EventRef;

/// A function that answers an event at once.
pub trait SyncFunction: Any + Send + Sync + fmt::Debug {
    /// Answers one event of `origin`; no opinion is `None`.
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> Option<Box<AnyEffect>>;
}

/// A closure over the typed event.
pub(crate) type Closure<E> = Arc<dyn Fn(&E, &Origin) -> Effect<E> + Send + Sync>;

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
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> Option<Box<AnyEffect>> {
        let event: &dyn Any = event;
        (self.closure)(event.downcast_ref()?, origin).into_any()
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

    pub(crate) fn call(&self, event: &E, origin: &Origin) -> Option<Box<AnyEffect>> {
        match self {
            Self::Closure(closure) => closure(event, origin).into_any(),
            Self::Other(function) => function.call(event, origin),
        }
    }
}

/// A closure over the typed event that may wait.
pub(crate) struct AsyncFunction<E, F> {
    function: F,
    event: PhantomData<fn(&E)>,
}

impl<E, F> AsyncFunction<E, F> {
    pub(crate) fn new(function: F) -> Self {
        Self {
            function,
            event: PhantomData,
        }
    }
}

impl<E, F> fmt::Debug for AsyncFunction<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("function")
    }
}

impl<E, F> Handler for AsyncFunction<E, F>
where
    E: Event,
    F: for<'a> Fn(&'a E) -> BoxFuture<'a, Effect<E>> + Send + Sync,
{
    fn kind(&self) -> &'static str {
        "function"
    }

    fn describe(&self) -> String {
        "function".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        let Some(event) = call.event.downcast::<E>() else {
            return Box::pin(std::future::ready(Ok(None)));
        };
        Box::pin(async move { Ok((self.function)(event).await.into_any()) })
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
