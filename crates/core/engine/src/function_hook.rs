//! Functions of the host as hooks, with settings that the host chooses.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{Event, EventKind, EventName, HookId, Origin};

use crate::handler::{AsyncFunction, Function, IntoEffect, closure};
use crate::hook::{DEFAULT_TIMEOUT, Handler, HookSpec, NO_TIMEOUT, Source};
use crate::matcher::Matcher;
use crate::phase::Phase;
use crate::policy::{OnError, native_policy};
use crate::registration::{Registration, Scoped};

/// Describes a function hook. The hook is registered by [`on`](Self::on),
/// [`on_from`](Self::on_from) or [`on_async`](Self::on_async).
///
/// | setting | default |
/// |---|---|
/// | matcher | every subject |
/// | phase | [`Phase::Main`] |
/// | priority | 0 |
/// | timeout | none for an inline function, 60 s for an async one |
/// | `on_error` | block on gate events, warn on observer events |
///
/// ```
/// use std::time::Duration;
/// use tenterhook_engine::event::PreToolUse;
/// use tenterhook_engine::{Effect, Engine, Matcher, Phase};
///
/// let engine = Engine::new();
/// engine
///     .hook("no-force-push")
///     .matcher(Matcher::parse("shell")?)
///     .phase(Phase::Guard)
///     .timeout(Duration::from_millis(100))
///     .on(|event: &PreToolUse| match event.tool_input.get("cmd") {
///         Some(cmd) if cmd == "git push --force" => Effect::deny("history stays as it is"),
///         _ => Effect::none(),
///     });
/// # Ok::<(), tenterhook_engine::MatcherError>(())
/// ```
#[must_use = "the hook is not registered until you call `on`, `on_from` or `on_async`"]
#[derive(Debug)]
pub struct FunctionHook {
    scoped: Scoped,
    id: Option<HookId>,
    matcher: Matcher,
    phase: Phase,
    priority: i32,
    timeout: Option<Duration>,
    on_error: Option<OnError>,
}

impl FunctionHook {
    /// Starts the description. Without an `id`, the hook gets a generated one.
    pub(crate) fn new(scoped: Scoped, id: Option<HookId>) -> Self {
        Self {
            scoped,
            id,
            matcher: Matcher::everything(),
            phase: Phase::Main,
            priority: 0,
            timeout: None,
            on_error: None,
        }
    }

    /// Selects the events that the hook is for, by their subject. By default, all events match.
    pub fn matcher(mut self, matcher: Matcher) -> Self {
        self.matcher = matcher;
        self
    }

    /// Sets when the hook runs within a dispatch.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Sets the priority within the phase. Higher priorities run first. Hooks with the same
    /// priority run in the order of their registration.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Limits the time of one run. If an inline function answers later, the run counts as timed
    /// out.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets what a failure does: an error, a panic, a timeout, or an answer that the event does not
    /// honour.
    ///
    /// A panic is caught if your program unwinds. With `panic = "abort"` in its Cargo profile, a
    /// panic in a hook ends your program.
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = Some(on_error);
        self
    }

    /// Registers a function that runs on the dispatching thread and must not wait.
    pub fn on<E: Event, R: IntoEffect<E>>(
        self,
        function: impl Fn(&E) -> R + Send + Sync + 'static,
    ) -> Registration {
        self.on_from(move |event: &E, _: &Origin| function(event))
    }

    /// Registers a function that also receives the origin of the event. It must not wait.
    pub fn on_from<E: Event, R: IntoEffect<E>>(
        self,
        function: impl Fn(&E, &Origin) -> R + Send + Sync + 'static,
    ) -> Registration {
        let closure = closure(function);
        self.register(
            E::INFO.kind,
            Handler::Inline(Arc::new(Function { closure })),
            NO_TIMEOUT,
        )
    }

    /// Registers an async function.
    pub fn on_async<E: Event, R: IntoEffect<E> + 'static>(
        self,
        function: impl for<'a> Fn(&'a E) -> BoxFuture<'a, R> + Send + Sync + 'static,
    ) -> Registration {
        let handler = AsyncFunction::<E, R, _>::new(function);
        self.register(
            E::INFO.kind,
            Handler::Async(Arc::new(handler)),
            DEFAULT_TIMEOUT,
        )
    }

    fn register(self, kind: EventKind, handling: Handler, timeout: Duration) -> Registration {
        let id = self.id.unwrap_or_else(|| {
            let number = self.scoped.next_function();
            HookId::new(format!("function {number} on {}", kind.info().name))
        });
        self.scoped.register(HookSpec {
            event: Some(EventName::Known(kind)),
            id,
            matcher: self.matcher,
            agent: None,
            includes_unnamed: false,
            handling,
            phase: self.phase,
            priority: self.priority,
            order_within_layer: None,
            hears_stops: false,
            timeout: self.timeout.unwrap_or(timeout),
            policy: native_policy(kind.info(), self.on_error),
            source: Source::CODE,
            tools: None,
            definition: None,
        })
    }
}

impl Scoped {
    /// Registers a function for event `E`. It runs on the dispatching thread, in the main phase,
    /// and must not wait.
    ///
    /// The function returns an [`Effect`](tenterhook_protocol::Effect), nothing, or a `Result` of
    /// either. Use [`Scoped::hook`] for a function with a name, a matcher or a policy.
    pub fn on<E: Event, R: IntoEffect<E>>(
        &self,
        function: impl Fn(&E) -> R + Send + Sync + 'static,
    ) -> Registration {
        FunctionHook::new(self.clone(), None).on(function)
    }

    /// Registers a function for event `E` that also receives the origin of the event.
    pub fn on_from<E: Event, R: IntoEffect<E>>(
        &self,
        function: impl Fn(&E, &Origin) -> R + Send + Sync + 'static,
    ) -> Registration {
        FunctionHook::new(self.clone(), None).on_from(function)
    }

    /// Registers an async function for event `E`, in the main phase, with a timeout of 60 seconds.
    pub fn on_async<E: Event, R: IntoEffect<E> + 'static>(
        &self,
        function: impl for<'a> Fn(&'a E) -> BoxFuture<'a, R> + Send + Sync + 'static,
    ) -> Registration {
        FunctionHook::new(self.clone(), None).on_async(function)
    }

    /// Starts the description of a function hook. Journals and messages call it `id`.
    pub fn hook(&self, id: impl Into<HookId>) -> FunctionHook {
        FunctionHook::new(self.clone(), Some(id.into()))
    }
}
