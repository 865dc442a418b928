//! Registers, replaces and removes the hooks of one scope.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use tenterhook_protocol::{EventName, HookId};

use crate::event_ref::EventRef;
use crate::handler::Subscriber;
use crate::hook::{DEFAULT_TIMEOUT, Handler, HookSpec, Scope, Source};
use crate::matcher::Matcher;
use crate::phase::Phase;
use crate::plan::Hook;
use crate::policy::{OnError, Policy};
use crate::registry::without;
use crate::shared::Shared;

/// The hooks of one scope.
#[derive(Debug, Clone)]
pub struct Scoped {
    pub(crate) shared: Arc<Shared>,
    pub(crate) scope: Scope,
}

impl Scoped {
    /// Returns the number of the next function without a name, starting at 1.
    pub(crate) fn next_function(&self) -> u64 {
        self.shared.next_function.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Calls `function` for every event, after everything is decided. It cannot affect the result,
    /// and [`Outcome::hooks_run`](crate::Outcome::hooks_run) does not count it.
    pub fn subscribe(&self, function: impl Fn(&EventRef) + Send + Sync + 'static) -> Registration {
        self.register(HookSpec {
            event: None,
            id: HookId::new(format!("subscriber {}", self.next_function())),
            matcher: Matcher::everything(),
            agent: None,
            includes_unnamed: false,
            handling: Handler::Async(Arc::new(Subscriber::new(function))),
            phase: Phase::Observe,
            priority: 0,
            order_within_layer: None,
            hears_stops: false,
            timeout: DEFAULT_TIMEOUT,
            policy: Policy::new(OnError::Ignore, "subscribers stop nothing"),
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

    /// Replaces all hooks of the scope with `specs` in one step. No event sees only a part of the
    /// change.
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
///
/// ```
/// use tenterhook_engine::event::PreToolUse;
/// use tenterhook_engine::{Effect, Engine, EventKind};
///
/// let engine = Engine::new();
/// let registration = engine.on(|_: &PreToolUse| Effect::allow());
/// assert_eq!(engine.handler_count(&EventKind::PreToolUse.into()), 1);
/// registration.unsubscribe();
/// assert_eq!(engine.handler_count(&EventKind::PreToolUse.into()), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Registration {
    shared: Weak<Shared>,
    position: u64,
}

impl Registration {
    /// Removes the hook. Dispatches that are already running still use it.
    pub fn unsubscribe(self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.change(|hooks| without(hooks, |hook| hook.position == self.position));
        }
    }
}
