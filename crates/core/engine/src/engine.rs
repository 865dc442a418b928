//! The engine, with which a host registers hooks and creates dispatchers.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_protocol::{Event, EventKind, EventName, HookId, Origin};

use crate::dispatcher::Dispatcher;
use crate::event_ref::EventRef;
use crate::exceptions::Exceptions;
use crate::function_hook::FunctionHook;
use crate::handler::IntoEffect;
use crate::hook::{HookSpec, Scope};
use crate::observer::HookObserver;
use crate::registration::{Registration, Scoped};
use crate::registry::{RegisteredHook, Registry};
use crate::shared::Shared;
use crate::sink::JournalSink;
use crate::tools::ToolNames;

/// Settings of an engine.
#[derive(Debug, Default)]
pub struct EngineBuilder {
    journal: Option<Arc<dyn JournalSink>>,
    observer: Option<Arc<dyn HookObserver>>,
    exceptions: Option<Arc<dyn Exceptions>>,
    strict: bool,
    session_end_timeout: Option<Duration>,
    tools: Option<Arc<dyn ToolNames>>,
}

/// The default timeout for all hooks of one `session_end` event together.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(10);

impl EngineBuilder {
    /// Records every run of a hook and every dispatch. By default nothing is recorded.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn JournalSink>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Notifies `observer` when a hook starts and when it ends. By default there is no observer.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn HookObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Lets the user lift denials of tool calls. By default every denial stands.
    #[must_use]
    pub fn exceptions(mut self, exceptions: Arc<dyn Exceptions>) -> Self {
        self.exceptions = Some(exceptions);
        self
    }

    /// Makes every gate deny if one of its hooks fails, whatever the hook or its dialect specifies.
    /// Off by default.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Limits the time of all hooks of one `session_end` event together. The default is ten
    /// seconds.
    #[must_use]
    pub fn session_end_timeout(mut self, timeout: Duration) -> Self {
        self.session_end_timeout = Some(timeout);
        self
    }

    /// Sets the tool names of other hook systems, so that matchers of native hooks and of functions
    /// match a tool by any of its names. By default they match canonical names only.
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn ToolNames>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Creates the engine, without hooks.
    pub fn build(self) -> Engine {
        Engine {
            shared: Arc::new(Shared {
                registry: ArcSwap::from_pointee(Registry::new(Vec::new())),
                interest: Default::default(),
                writer: Mutex::default(),
                next_position: AtomicU64::new(0),
                next_function: AtomicU64::new(0),
                next_run: AtomicU64::new(0),
                observer: self.observer,
                exceptions: self.exceptions,
                journal: self.journal,
                strict: self.strict,
                session_end_timeout: self.session_end_timeout.unwrap_or(SESSION_END_TIMEOUT),
                tools: self.tools,
            }),
        }
    }
}

/// A set of hooks, and the means to run events through them. Clones share the hooks.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use tenterhook_engine::event::PreToolUse;
/// use tenterhook_engine::{Effect, Engine, Origin};
///
/// let engine = Engine::new();
/// engine.on(|event: &PreToolUse| match event.tool_name.as_str() {
///     "shell" => Effect::deny("no shell in this session"),
///     _ => Effect::none(),
/// });
///
/// let hooks = engine.dispatcher(Origin::default());
/// let decision = hooks.dispatch(PreToolUse::new("shell")).await.decision();
/// assert_eq!(decision.reason(), Some("no shell in this session"));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Engine {
    /// Creates an engine without hooks and without a journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Creates a dispatcher, which sends the events of one session.
    pub fn dispatcher(&self, origin: Origin) -> Dispatcher {
        Dispatcher::new(Arc::clone(&self.shared), origin)
    }

    /// Returns a dispatcher that continues the session of another engine's dispatcher with the hooks of
    /// this engine, for example after a reload. Both share the session's sequence.
    pub fn dispatcher_after(&self, before: &Dispatcher) -> Dispatcher {
        before.with_hooks_of(Arc::clone(&self.shared))
    }

    /// Returns the hooks of `scope`, for registering and clearing them.
    pub fn scope(&self, scope: Scope) -> Scoped {
        Scoped {
            shared: Arc::clone(&self.shared),
            scope,
        }
    }

    /// Registers a function for event `E` in the global scope. See [`Scoped::on`].
    pub fn on<E: Event, R: IntoEffect<E>>(
        &self,
        function: impl Fn(&E) -> R + Send + Sync + 'static,
    ) -> Registration {
        self.scope(Scope::Global).on(function)
    }

    /// Registers a function for event `E` that also receives the origin of the event, in the global
    /// scope. See [`Scoped::on_from`].
    pub fn on_from<E: Event, R: IntoEffect<E>>(
        &self,
        function: impl Fn(&E, &Origin) -> R + Send + Sync + 'static,
    ) -> Registration {
        self.scope(Scope::Global).on_from(function)
    }

    /// Registers an async function for event `E` in the global scope. See [`Scoped::on_async`].
    pub fn on_async<E: Event, R: IntoEffect<E> + 'static>(
        &self,
        function: impl for<'a> Fn(&'a E) -> BoxFuture<'a, R> + Send + Sync + 'static,
    ) -> Registration {
        self.scope(Scope::Global).on_async(function)
    }

    /// Starts the description of a function hook in the global scope. Journals and messages call it
    /// `id`.
    pub fn hook(&self, id: impl Into<HookId>) -> FunctionHook {
        self.scope(Scope::Global).hook(id)
    }

    /// Registers a hook in the global scope.
    pub fn register(&self, spec: HookSpec) -> Registration {
        self.scope(Scope::Global).register(spec)
    }

    /// Calls `function` for every event, after everything is decided. It cannot affect the result,
    /// and [`Outcome::hooks_run`](crate::Outcome::hooks_run) does not count it.
    pub fn subscribe(&self, function: impl Fn(&EventRef) + Send + Sync + 'static) -> Registration {
        self.scope(Scope::Global).subscribe(function)
    }

    /// Removes the hooks of the global scope for one event.
    pub fn clear(&self, event: &EventName) {
        self.scope(Scope::Global).clear(event);
    }

    /// Removes all hooks of the global scope.
    pub fn clear_all(&self) {
        self.scope(Scope::Global).clear_all();
    }

    /// Returns the number of hooks of `event`, whatever they match.
    pub fn handler_count(&self, event: &EventName) -> usize {
        self.shared.registry.load().handler_count(event)
    }

    /// Returns whether any hook of `kind` does more than watch. If so, the outcome of such an event
    /// may differ from the event that was sent.
    pub fn may_change(&self, kind: EventKind) -> bool {
        self.shared.registry.load().may_change(kind)
    }

    /// Returns the events that have hooks, in the order of the catalogue. Events that only
    /// subscribers receive are not included.
    pub fn registered_events(&self) -> Vec<EventName> {
        let registry = self.shared.registry.load();
        let mut events: Vec<EventName> = registry
            .hooks()
            .iter()
            .filter_map(|hook| hook.spec.event.clone())
            .collect();
        events.sort();
        events.dedup();
        events
    }

    /// Returns a description of every hook, event by event, in the order in which they run.
    pub fn hooks(&self) -> Vec<RegisteredHook> {
        self.shared.registry.load().describe()
    }
}
