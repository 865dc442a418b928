//! Handlers that are functions of the host. A panic is a failure of the hook and stays in it.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tenterhook_protocol::{AnyEffect, AnyEvent, Effect, Event, Origin};

use super::{Call, Handler, HandlerError};
use crate::event_ref::EventRef;

/// A function that answers an event at once.
pub trait SyncFunction: Send + Sync + fmt::Debug {
    /// Answers one event of `origin`; no opinion is `None`.
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> Option<Box<AnyEffect>>;
}

/// A closure over the typed event.
pub(crate) struct Function<E, F> {
    function: F,
    event: PhantomData<fn(&E)>,
}

impl<E, F> Function<E, F> {
    pub(crate) fn new(function: F) -> Self {
        Self {
            function,
            event: PhantomData,
        }
    }
}

impl<E, F> fmt::Debug for Function<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("function")
    }
}

impl<E, R, F> SyncFunction for Function<E, F>
where
    E: Event,
    R: Into<Effect<E>>,
    F: Fn(&E, &Origin) -> R + Send + Sync,
{
    fn call(&self, event: &dyn AnyEvent, origin: &Origin) -> Option<Box<AnyEffect>> {
        let event = event.as_any().downcast_ref()?;
        (self.function)(event, origin).into().into_any()
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

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let Some(event) = call.event.downcast::<E>() else {
            return Box::pin(std::future::ready(Ok(AnyEffect::default())));
        };
        Box::pin(async move {
            let answer = AssertUnwindSafe(async { (self.function)(event).await })
                .catch_unwind()
                .await;
            let effect = answer.map_err(|panic| HandlerError::Panicked {
                message: panic_text(&*panic),
            })?;
            Ok(effect.into_any().map(|effect| *effect).unwrap_or_default())
        })
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

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let answer = std::panic::catch_unwind(AssertUnwindSafe(|| (self.function)(&call.event)))
            .map(|()| AnyEffect::default())
            .map_err(|panic| HandlerError::Panicked {
                message: panic_text(&*panic),
            });
        Box::pin(std::future::ready(answer))
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a message".to_owned())
}
