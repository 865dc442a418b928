//! Which hooks run for one event, and in which order. Pure, and computed once for each subject.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use tenterhook_protocol::{Event, EventKind, EventName, Run};

use crate::handler::TypedFunction;
use crate::hook::{Handler, HookSpec, Scope};
use crate::phase::Phase;

/// A hook in a registry.
#[derive(Debug)]
pub(crate) struct Hook {
    pub(crate) spec: HookSpec,
    pub(crate) scope: Scope,
    /// The position in the order of registration.
    pub(crate) position: u64,
    /// Whether every gate blocks if the hook fails, whatever its policy specifies.
    pub(crate) strict: bool,
    /// The sequence of its handler.
    pub(crate) sequence: Option<&'static str>,
}

impl Hook {
    /// Returns whether the hook is for events called `event`. A hook for the kind `Custom` is for
    /// every user-defined event.
    pub(crate) fn is_for(&self, event: &str) -> bool {
        match &self.spec.event {
            None | Some(EventName::Known(EventKind::Custom)) => true,
            Some(name) => name.as_str() == event,
        }
    }
}

/// A hook that answers immediately, in the form that a dispatch of `E` calls.
pub(crate) struct InlineCall<E> {
    pub(crate) hook: Arc<Hook>,
    pub(crate) function: TypedFunction<E>,
    /// Whether the hook is for every session, workspace and agent.
    pub(crate) is_everywhere: bool,
}

impl<E: Event> InlineCall<E> {
    fn new(hook: &Arc<Hook>) -> Option<Self> {
        let Handler::Inline(function) = &hook.spec.handling else {
            return None;
        };
        let is_everywhere =
            hook.spec.agent.is_none() && matches!(hook.scope, Scope::Global | Scope::File(_));
        Some(Self {
            hook: Arc::clone(hook),
            function: TypedFunction::new(function),
            is_everywhere,
        })
    }
}

/// The hooks for one event and subject: matched, sorted and without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Arc<Hook>>,
    /// If every hook answers immediately: a `Vec<InlineCall<E>>` in the order of the steps. Created
    /// by the first dispatch.
    inline: OnceLock<Option<Box<dyn Any + Send + Sync>>>,
}

impl Plan {
    /// Creates the plan of `event` from the hooks that match it, which are already in running
    /// order.
    pub(crate) fn build<'a>(hooks: impl Iterator<Item = &'a Arc<Hook>>, event: &str) -> Self {
        let mut steps: Vec<Arc<Hook>> = hooks.filter(|hook| hook.is_for(event)).cloned().collect();
        dedupe(&mut steps);
        Self::of(steps)
    }

    fn of(steps: Vec<Arc<Hook>>) -> Self {
        Self {
            steps,
            inline: OnceLock::new(),
        }
    }

    /// Replaces each hook of the plan.
    pub(crate) fn replace<I>(self, replacements: impl Fn(Arc<Hook>) -> I) -> Self
    where
        I: IntoIterator<Item = Arc<Hook>>,
    {
        Self::of(self.steps.into_iter().flat_map(replacements).collect())
    }

    /// Returns all hooks of the plan, ready to be called with an `E`. Returns `None` unless every
    /// hook answers immediately. The caller then runs the plan step by step, so that no hook is
    /// left out.
    pub(crate) fn inline<E: Event>(&self) -> Option<&[InlineCall<E>]> {
        let calls = self.inline.get_or_init(|| {
            let calls: Option<Vec<InlineCall<E>>> =
                self.steps.iter().map(InlineCall::new).collect();
            calls.map(|calls| Box::new(calls) as _)
        });
        calls
            .as_deref()?
            .downcast_ref::<Vec<_>>()
            .map(Vec::as_slice)
    }

    /// Returns the hooks of each phase and how that phase runs, in the order of the phases.
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

/// Sorts hooks into running order: phase, priority (higher first), layer, position.
pub(crate) fn sort(hooks: &mut [Arc<Hook>]) {
    hooks.sort_by_key(|hook| {
        let spec = &hook.spec;
        (
            spec.phase,
            std::cmp::Reverse(spec.priority),
            spec.order_within_layer.unwrap_or(spec.source.layer),
            hook.position,
        )
    });
}

/// Removes hooks that have the same definition, scope, agent and hook system as an earlier hook.
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
