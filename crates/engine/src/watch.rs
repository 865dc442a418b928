//! Reports one run of a hook to the host's observer and to spans.
//!
//! A [`HookWatch`] reports the end when the hook has answered, and a cancellation if it is dropped
//! earlier. There is no cost unless the engine has an observer or spans are enabled.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::event_ref::EventRef;
use crate::observer::{HookObserver, HookRun, HookVerdict};
use crate::phase::Phase;
use crate::plan::Hook;
use crate::shared::Shared;
use crate::span::Span;

/// Returns whether runs of hooks are reported at all, to an observer or to spans.
pub(crate) fn is_watched(shared: &Shared) -> bool {
    shared.observer.is_some() || Span::is_enabled()
}

/// A run of a hook that has started. If it is dropped before its end, it reports a cancellation.
pub(crate) struct HookWatch<'a> {
    shared: &'a Shared,
    hook: Arc<Hook>,
    event: EventRef,
    number: u64,
    began: Instant,
    span: Span,
    is_over: bool,
}

impl<'a> HookWatch<'a> {
    /// Reports the start of a run, if it is watched.
    pub(crate) fn start(shared: &'a Shared, hook: &Arc<Hook>, event: &EventRef) -> Option<Self> {
        if !is_watched(shared) {
            return None;
        }
        let watch = Self {
            shared,
            hook: Arc::clone(hook),
            event: event.clone(),
            number: shared.next_run.fetch_add(1, Ordering::Relaxed) + 1,
            began: Instant::now(),
            span: Span::of_hook(&hook.spec),
            is_over: false,
        };
        watch.report(|observer, run| observer.hook_started(run));
        Some(watch)
    }

    /// Returns the phase of the hook.
    pub(crate) fn phase(&self) -> Phase {
        self.hook.spec.phase
    }

    /// Returns the span in which the hook runs.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Reports how the run ended.
    pub(crate) fn end(mut self, verdict: HookVerdict<'_>) {
        self.is_over = true;
        self.report_end(verdict);
    }

    fn report_end(&self, verdict: HookVerdict<'_>) {
        let took = self.began.elapsed();
        self.span.end(verdict.as_str(), took);
        self.report(|observer, run| observer.hook_ended(run, took, verdict));
    }

    fn report(&self, call: impl FnOnce(&dyn HookObserver, &HookRun<'_>)) {
        let Some(observer) = &self.shared.observer else {
            return;
        };
        let run = HookRun {
            number: self.number,
            hook: &self.hook.spec.id,
            handler: self.hook.spec.handling.kind(),
            source: &self.hook.spec.source,
            event: &self.event,
        };
        // The panic hook has already reported the panic. A decision must not depend on a failing
        // display.
        let _caught = std::panic::catch_unwind(AssertUnwindSafe(|| call(&**observer, &run)));
    }
}

impl Drop for HookWatch<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.report_end(HookVerdict::Cancelled);
        }
    }
}
