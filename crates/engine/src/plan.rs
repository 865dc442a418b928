//! Which hooks one event goes through, in which order. Pure, and made once for each subject.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use tenterhook_protocol::{Event, EventName, Run};

use crate::handler::TypedFunction;
use crate::hook::{Handling, HookSpec, Phase, Scope};

/// A hook as it stands in a registry.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) spec: HookSpec,
    pub(crate) scope: Scope,
    /// The order of registration.
    pub(crate) position: u64,
    /// Every gate blocks when the hook fails, whatever its policy says.
    pub(crate) strict: bool,
}

impl Hook {
    /// Says whether the hook is one of `event`'s.
    pub(crate) fn is_for(&self, event: &EventName) -> bool {
        self.spec.event.as_ref().is_none_or(|name| name == event)
    }
}

/// What a dispatch of `E` needs of a hook that answers at once.
pub(crate) struct SyncCall<E> {
    pub(crate) function: TypedFunction<E>,
    /// The hook is for every session, workspace and agent.
    pub(crate) is_everywhere: bool,
    pub(crate) phase: Phase,
}

impl<E: Event> SyncCall<E> {
    fn new(hook: &Hook) -> Option<Self> {
        let Handling::Sync(function) = &hook.spec.handling else {
            return None;
        };
        let is_everywhere =
            hook.spec.agent.is_none() && matches!(hook.scope, Scope::Global | Scope::File(_));
        Some(Self {
            function: TypedFunction::new(function),
            is_everywhere,
            phase: hook.spec.phase,
        })
    }
}

/// The hooks of one event and subject: matched, ordered, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Arc<Hook>>,
    /// Every hook answers at once, so the dispatch needs neither tasks nor timers.
    pub(crate) is_sync: bool,
    /// Where every hook answers at once: a `Vec<SyncCall<E>>` in the order of the steps, made by the first dispatch.
    calls: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Plan {
    /// Makes the plan of `event` out of hooks that match it, in the order in which they run.
    pub(crate) fn build<'a>(hooks: impl Iterator<Item = &'a Arc<Hook>>, event: &EventName) -> Self {
        let mut steps: Vec<Arc<Hook>> = hooks.filter(|hook| hook.is_for(event)).cloned().collect();
        dedupe(&mut steps);
        let is_sync = steps
            .iter()
            .all(|hook| matches!(hook.spec.handling, Handling::Sync(_)));
        Self {
            steps,
            is_sync,
            calls: OnceLock::new(),
        }
    }

    /// Returns the hooks of a plan of functions, ready to be called with an `E`.
    pub(crate) fn calls<E: Event>(&self) -> &[SyncCall<E>] {
        let calls = self.calls.get_or_init(|| {
            let calls: Vec<SyncCall<E>> = self
                .steps
                .iter()
                .filter_map(|hook| SyncCall::new(hook))
                .collect();
            Box::new(calls)
        });
        calls
            .downcast_ref::<Vec<SyncCall<E>>>()
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Returns the steps of each phase in the order in which phases run, and how that phase runs.
    pub(crate) fn phases(&self, run: Run) -> impl Iterator<Item = (Phase, Run, &[Arc<Hook>])> {
        self.steps
            .chunk_by(|a, b| a.spec.phase == b.spec.phase)
            .filter_map(move |steps| {
                let phase = steps.first()?.spec.phase;
                let run = match phase {
                    Phase::Transform => Run::Series,
                    Phase::Main => run,
                    Phase::Guard | Phase::Observe => Run::Parallel,
                };
                Some((phase, run, steps))
            })
    }
}

/// Puts hooks in the order in which they run: phase, priority (higher first), layer, position.
pub(crate) fn sort(hooks: &mut [Arc<Hook>]) {
    hooks.sort_by_key(|hook| {
        let spec = &hook.spec;
        (
            spec.phase,
            std::cmp::Reverse(spec.priority),
            spec.among.unwrap_or(spec.source.layer),
            hook.position,
        )
    });
}

/// Keeps the first of hooks with the same whole definition, scope, agent and hook system.
fn dedupe(steps: &mut Vec<Arc<Hook>>) {
    if steps.len() < 2 {
        return;
    }
    let mut kept: Vec<Arc<Hook>> = Vec::with_capacity(steps.len());
    let mut seen = std::collections::HashSet::new();
    for hook in steps.drain(..) {
        let is_new = match &hook.spec.definition {
            Some(definition) => seen.insert((
                hook.scope.clone(),
                hook.spec.agent.clone(),
                hook.spec.system(),
                definition.clone(),
            )),
            None => true,
        };
        if is_new {
            kept.push(hook);
        }
    }
    *steps = kept;
}
