//! The engine: who registers hooks, and where dispatchers come from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use tenterhook_protocol::{Event, EventKind, EventName, HookId, Origin};

use crate::dispatcher::Dispatcher;
use crate::event_ref::EventRef;
use crate::function_hook::FunctionHook;
use crate::handler::{IntoEffect, Subscriber};
use crate::hook::{DEFAULT_TIMEOUT, Handling, HookSpec, Phase, Scope, Source};
use crate::matcher::Matcher;
use crate::plan::Hook;
use crate::policy::{OnError, Policy};
use crate::registry::{RegisteredHook, Registry, interest_bit, without};
use crate::sink::JournalSink;
use crate::tools::ToolNames;

/// What every part of one engine shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: ArcSwap<Registry>,
    /// One bit for each kind of event that anyone hooks; read before an event is built.
    interest: [AtomicU64; 2],
    /// Held while a new registry is made, so that two changes never lose one.
    writer: Mutex<()>,
    next_position: AtomicU64,
    /// A number tells functions without a name apart.
    next_function: AtomicU64,
    pub(crate) journal: Option<Arc<dyn JournalSink>>,
    pub(crate) strict: bool,
    pub(crate) session_end_timeout: Duration,
    /// The tools of hooks that do not say whose names they use.
    tools: Option<Arc<dyn ToolNames>>,
}

impl Shared {
    /// Says whether anyone hooks `kind`.
    pub(crate) fn is_hooked(&self, kind: EventKind) -> bool {
        let (word, bit) = interest_bit(kind);
        self.interest
            .get(word)
            .is_some_and(|bits| bits.load(Ordering::Relaxed) & bit != 0)
    }

    /// Swaps in the registry that `change` makes of the present hooks.
    fn change(&self, change: impl FnOnce(&[Arc<Hook>]) -> Vec<Arc<Hook>>) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let registry = Registry::new(change(self.registry.load().hooks()));
        let interest = registry.interest();
        self.registry.store(Arc::new(registry));
        for (word, bits) in self.interest.iter().zip(interest) {
            word.store(bits, Ordering::Relaxed);
        }
    }

    fn hook(&self, mut spec: HookSpec, scope: Scope) -> Arc<Hook> {
        if self.strict
            && let Some(event) = &spec.event
        {
            spec.policy = spec.policy.strict(event.info(), spec.phase);
        }
        spec.tools = spec.tools.or_else(|| self.tools.clone());
        let position = self.next_position.fetch_add(1, Ordering::Relaxed);
        Arc::new(Hook {
            spec,
            scope,
            position,
            strict: self.strict,
        })
    }
}

/// Settings of an engine.
#[derive(Debug, Default)]
pub struct EngineBuilder {
    journal: Option<Arc<dyn JournalSink>>,
    strict: bool,
    session_end_timeout: Option<Duration>,
    tools: Option<Arc<dyn ToolNames>>,
}

/// How long the hooks of `session_end` may take together, unless configured otherwise.
const SESSION_END_TIMEOUT: Duration = Duration::from_secs(10);

impl EngineBuilder {
    /// Records every run and every dispatch. The default records nothing.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn JournalSink>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Makes every gate deny when a hook of it fails, whatever the hook or its dialect says. The default is off.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Bounds all hooks of one `session_end` together. The default is ten seconds.
    #[must_use]
    pub fn session_end_timeout(mut self, timeout: Duration) -> Self {
        self.session_end_timeout = Some(timeout);
        self
    }

    /// Says which other names the tools have, so that a matcher of a native hook or of a function finds a tool by every
    /// name. The default knows canonical names only.
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn ToolNames>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Makes the engine. It has no hooks yet.
    pub fn build(self) -> Engine {
        Engine {
            shared: Arc::new(Shared {
                registry: ArcSwap::from_pointee(Registry::new(Vec::new())),
                interest: Default::default(),
                writer: Mutex::default(),
                next_position: AtomicU64::new(0),
                next_function: AtomicU64::new(0),
                journal: self.journal,
                strict: self.strict,
                session_end_timeout: self.session_end_timeout.unwrap_or(SESSION_END_TIMEOUT),
                tools: self.tools,
            }),
        }
    }
}

/// A set of hooks and the means to run events through them. Clones share the hooks.
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
    /// Makes an engine without hooks and without a journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts the settings of an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Makes the means to dispatch the events of one session.
    pub fn dispatcher(&self, origin: Origin) -> Dispatcher {
        Dispatcher::new(Arc::clone(&self.shared), origin)
    }

    /// Registers and clears hooks that belong to `scope`.
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

    /// Registers an async function for event `E` in the global scope. See [`Scoped::on_async`].
    pub fn on_async<E: Event, R: IntoEffect<E> + 'static>(
        &self,
        function: impl for<'a> Fn(&'a E) -> BoxFuture<'a, R> + Send + Sync + 'static,
    ) -> Registration {
        self.scope(Scope::Global).on_async(function)
    }

    /// Describes a function hook of the global scope, called `id` in journals and messages.
    pub fn hook(&self, id: impl Into<HookId>) -> FunctionHook {
        self.scope(Scope::Global).hook(id)
    }

    /// Registers a hook in the global scope.
    pub fn register(&self, spec: HookSpec) -> Registration {
        self.scope(Scope::Global).register(spec)
    }

    /// Tells `function` of every event, after everything is decided. What it does cannot affect the result.
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

    /// Returns how many hooks `event` has, whatever they match.
    pub fn handler_count(&self, event: &EventName) -> usize {
        self.shared.registry.load().handler_count(event)
    }

    /// Says whether any hook of `kind` does more than watch: what comes of such an event may be another thing than what is sent.
    pub fn may_change(&self, kind: EventKind) -> bool {
        self.shared.registry.load().may_change(kind)
    }

    /// Returns the events that have hooks, in the order of the catalogue, without those that only a subscriber hears.
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

    /// Describes every hook, event by event in the order in which they run.
    pub fn hooks(&self) -> Vec<RegisteredHook> {
        self.shared.registry.load().describe()
    }
}

/// The hooks of one scope.
#[derive(Debug, Clone)]
pub struct Scoped {
    shared: Arc<Shared>,
    scope: Scope,
}

impl Scoped {
    /// Registers a function for event `E`. It runs on the dispatching thread, in the main phase, and must not wait.
    ///
    /// It returns an [`Effect`](tenterhook_protocol::Effect), nothing at all, or a `Result` of one of them. See
    /// [`Scoped::hook`] for a function with a name, a matcher or a policy.
    pub fn on<E: Event, R: IntoEffect<E>>(
        &self,
        function: impl Fn(&E) -> R + Send + Sync + 'static,
    ) -> Registration {
        FunctionHook::new(self.clone(), None).on(function)
    }

    /// Registers a function for event `E` that also gets the origin of the event.
    pub fn on_from<E: Event, R: IntoEffect<E>>(
        &self,
        function: impl Fn(&E, &Origin) -> R + Send + Sync + 'static,
    ) -> Registration {
        FunctionHook::new(self.clone(), None).on_from(function)
    }

    /// Registers an async function for event `E`, in the main phase. It has sixty seconds.
    pub fn on_async<E: Event, R: IntoEffect<E> + 'static>(
        &self,
        function: impl for<'a> Fn(&'a E) -> BoxFuture<'a, R> + Send + Sync + 'static,
    ) -> Registration {
        FunctionHook::new(self.clone(), None).on_async(function)
    }

    /// Describes a function hook, called `id` in journals and messages.
    pub fn hook(&self, id: impl Into<HookId>) -> FunctionHook {
        FunctionHook::new(self.clone(), Some(id.into()))
    }

    /// Returns the number of the next function without a name, from 1.
    pub(crate) fn next_function(&self) -> u64 {
        self.shared.next_function.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Tells `function` of every event, after everything is decided.
    pub fn subscribe(&self, function: impl Fn(&EventRef) + Send + Sync + 'static) -> Registration {
        self.register(HookSpec {
            event: None,
            id: HookId::new(format!("subscriber {}", self.next_function())),
            matcher: Matcher::everything(),
            agent: None,
            handling: Handling::Waiting(Arc::new(Subscriber::new(function))),
            phase: Phase::Observe,
            priority: 0,
            among: None,
            timeout: DEFAULT_TIMEOUT,
            policy: Policy::new(OnError::Ignore, "a subscriber stops nothing"),
            source: Source::CODE,
            tools: None,
            definition: None,
        })
    }

    /// Registers a hook.
    pub fn register(&self, spec: HookSpec) -> Registration {
        let hook = self.shared.hook(spec, self.scope.clone());
        let position = hook.position;
        self.shared
            .change(|hooks| hooks.iter().cloned().chain([hook]).collect());
        Registration {
            shared: Arc::downgrade(&self.shared),
            position,
        }
    }

    /// Puts `specs` in the place of all hooks of the scope at once: no event sees a part of the change.
    pub fn replace(&self, specs: Vec<HookSpec>) {
        let new: Vec<Arc<Hook>> = specs
            .into_iter()
            .map(|spec| self.shared.hook(spec, self.scope.clone()))
            .collect();
        self.shared.change(|hooks| {
            let mut all = without(hooks, |hook| hook.scope == self.scope);
            all.extend(new);
            all
        });
        self.shared.registry.load().prepare();
    }

    /// Removes the hooks of the scope for one event. Hooks of other scopes stay.
    pub fn clear(&self, event: &EventName) {
        self.shared.change(|hooks| {
            without(hooks, |hook| {
                hook.scope == self.scope && hook.spec.event.as_ref() == Some(event)
            })
        });
    }

    /// Removes all hooks of the scope. Hooks of other scopes stay.
    pub fn clear_all(&self) {
        self.shared
            .change(|hooks| without(hooks, |hook| hook.scope == self.scope));
    }
}

/// A registered hook. Dropping it leaves the hook registered.
#[derive(Debug, Clone)]
pub struct Registration {
    shared: Weak<Shared>,
    position: u64,
}

impl Registration {
    /// Removes the hook. Dispatches under way keep it.
    pub fn unsubscribe(self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.change(|hooks| without(hooks, |hook| hook.position == self.position));
        }
    }
}
