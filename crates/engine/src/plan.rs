//! Which hooks one event goes through, in which order. Pure, and made once for each subject.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use tenterhook_protocol::{Event, EventKind, EventName, Run};

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
    /// Returns whether the hook is for events called `event`. A hook of the kind `Custom` is for every
    /// user-defined event.
    pub(crate) fn is_for(&self, event: &str) -> bool {
        match &self.spec.event {
            None | Some(EventName::Known(EventKind::Custom)) => true,
            Some(name) => name.as_str() == event,
        }
    }
}

/// A hook that answers at once, as a dispatch of `E` calls it.
pub(crate) struct InlineCall<E> {
    pub(crate) hook: Arc<Hook>,
    pub(crate) function: TypedFunction<E>,
    /// The hook is for every session, workspace and agent.
    pub(crate) is_everywhere: bool,
}

impl<E: Event> InlineCall<E> {
    fn new(hook: &Arc<Hook>) -> Option<Self> {
        let Handling::Sync(function) = &hook.spec.handling else {
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

/// The hooks of one event and subject: matched, ordered, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Arc<Hook>>,
    /// Where every hook answers at once: a `Vec<InlineCall<E>>` in the order of the steps, made by the first dispatch.
    inline: OnceLock<Option<Box<dyn Any + Send + Sync>>>,
}

impl Plan {
    /// Makes the plan of events called `event` out of hooks that match it, in the order in which they run.
    pub(crate) fn build<'a>(hooks: impl Iterator<Item = &'a Arc<Hook>>, event: &str) -> Self {
        let mut steps: Vec<Arc<Hook>> = hooks.filter(|hook| hook.is_for(event)).cloned().collect();
        dedupe(&mut steps);
        Self {
            steps,
            inline: OnceLock::new(),
        }
    }

    /// Returns all hooks of the plan ready to be called with an `E`; `None` unless every one of them answers at once.
    /// The plan runs by its steps then, so no hook is ever left out.
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
