//! Functions of the host as hooks, with the policy that the host chooses.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenterhook_protocol::{Event, EventKind, EventName, HookId, Origin};

use crate::engine::{Registration, Scoped};
use crate::handler::{AsyncFunction, Function, IntoEffect, closure};
use crate::hook::{DEFAULT_TIMEOUT, Handling, HookSpec, NO_TIMEOUT, Phase, Source};
use crate::matcher::Matcher;
use crate::policy::{OnError, native_policy};

/// A function hook that is being described. Nothing is registered before [`on`](Self::on),
/// [`on_from`](Self::on_from) or [`on_async`](Self::on_async).
///
/// | setting | default |
/// |---|---|
/// | matcher | every subject |
/// | phase | [`Phase::Main`] |
/// | priority | 0 |
/// | timeout | none for a function on the caller's thread, 60 s for an async one |
/// | `on_error` | block on gate events, warn on observer events |
///
/// ```
/// use std::time::Duration;
/// use tenterhook::event::PreToolUse;
/// use tenterhook::{Effect, Engine, Matcher, Phase};
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
/// # Ok::<(), tenterhook::MatcherError>(())
/// ```
#[must_use = "no hook is registered before `on`, `on_from` or `on_async`"]
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
    /// Starts the description. Without an `id`, the hook gets one of its own.
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

    /// Chooses which events of the kind the hook is for, by their subject.
    pub fn matcher(mut self, matcher: Matcher) -> Self {
        self.matcher = matcher;
        self
    }

    /// Chooses when the hook runs within a dispatch.
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Chooses the hook's place within its phase. Higher runs first.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Bounds one run. A function that answers later has timed out, also where it blocked its thread.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Chooses what a failure does: an error, a panic, a timeout, or an answer that the event does not honour.
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

    /// Registers a function that also gets the origin of the event. It must not wait.
    pub fn on_from<E: Event, R: IntoEffect<E>>(
        self,
        function: impl Fn(&E, &Origin) -> R + Send + Sync + 'static,
    ) -> Registration {
        let closure = closure(function);
        self.register(
            E::INFO.kind,
            Handling::Sync(Arc::new(Function { closure })),
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
            Handling::Waiting(Arc::new(handler)),
            DEFAULT_TIMEOUT,
        )
    }

    fn register(self, kind: EventKind, handling: Handling, timeout: Duration) -> Registration {
        let id = self.id.unwrap_or_else(|| {
            let number = self.scoped.next_function();
            HookId::new(format!("function {number} on {}", kind.info().name))
        });
        self.scoped.register(HookSpec {
            event: Some(EventName::Known(kind)),
            id,
            matcher: self.matcher,
            agent: None,
            handling,
            phase: self.phase,
            priority: self.priority,
            among: None,
            timeout: self.timeout.unwrap_or(timeout),
            policy: native_policy(kind.info(), self.on_error),
            source: Source::CODE,
            tools: None,
            definition: None,
        })
    }
}
