//! The state that all parts of one engine share: its hooks, and how they change.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tenterhook_protocol::EventKind;

use crate::exceptions::Exceptions;
use crate::hook::{Handler, HookSpec, Scope};
use crate::observer::HookObserver;
use crate::plan::Hook;
use crate::registry::{Registry, interest_bit};
use crate::sink::JournalSink;
use crate::tools::ToolNames;

/// The state that all parts of one engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: ArcSwap<Registry>,
    /// One bit for each kind of event that has hooks. Read before an event is built.
    pub(crate) interest: [AtomicU64; 2],
    /// Held while a new registry is created, so that concurrent changes are not lost.
    pub(crate) writer: Mutex<()>,
    pub(crate) next_position: AtomicU64,
    /// The number of the next function without a name.
    pub(crate) next_function: AtomicU64,
    /// The number of the next hook run that is reported to the observer.
    pub(crate) next_run: AtomicU64,
    pub(crate) observer: Option<Arc<dyn HookObserver>>,
    pub(crate) journal: Option<Arc<dyn JournalSink>>,
    pub(crate) exceptions: Option<Arc<dyn Exceptions>>,
    pub(crate) strict: bool,
    pub(crate) session_end_timeout: Duration,
    /// The tools of hooks that do not specify whose names they use.
    pub(crate) tools: Option<Arc<dyn ToolNames>>,
}

impl Shared {
    /// Returns whether `kind` has hooks.
    pub(crate) fn is_hooked(&self, kind: EventKind) -> bool {
        let (word, bit) = interest_bit(kind);
        self.interest
            .get(word)
            .is_some_and(|bits| bits.load(Ordering::Relaxed) & bit != 0)
    }

    /// Replaces the registry with one that has the hooks that `change` returns for the current
    /// hooks.
    pub(crate) fn change(&self, change: impl FnOnce(&[Arc<Hook>]) -> Vec<Arc<Hook>>) {
        let _writer = self.writer.lock();
        let registry = Registry::new(change(self.registry.load().hooks()));
        let interest = registry.interest();
        self.registry.store(Arc::new(registry));
        for (word, bits) in self.interest.iter().zip(interest) {
            word.store(bits, Ordering::Relaxed);
        }
    }

    pub(crate) fn hook(&self, mut spec: HookSpec, scope: Scope) -> Arc<Hook> {
        if self.strict
            && let Some(event) = &spec.event
        {
            spec.policy = spec.policy.strict(event.info(), spec.phase);
        }
        spec.tools = spec.tools.or_else(|| self.tools.clone());
        let position = self.next_position.fetch_add(1, Ordering::Relaxed);
        let sequence = match &spec.handling {
            Handler::Inline(_) => None,
            Handler::Async(handler) => handler.sequence(),
        };
        Arc::new(Hook {
            sequence,
            spec,
            scope,
            position,
            strict: self.strict,
        })
    }
}
