//! Reports one run of a hook to the host's observer and to spans.
//!
//! A [`HookWatch`] reports the end when the hook has answered, and a cancellation if it is dropped
//! earlier. There is no cost unless the engine has an observer or spans are enabled.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::event_ref::EventRef;
use crate::handler::Call;
use crate::observer::{HookObserver, HookRun, HookVerdict, LeftOutHook, LeftOutReason};
use crate::phase::Phase;
use crate::plan::Hook;
use crate::raw_exchange::ExchangeSlot;
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
    exchange: ExchangeSlot,
    number: u64,
    began: Instant,
    span: Span,
    is_over: bool,
}

impl<'a> HookWatch<'a> {
    /// Reports the start of a run, if it is watched.
    pub(crate) fn start(shared: &'a Shared, hook: &Arc<Hook>, call: &Call) -> Option<Self> {
        if !is_watched(shared) {
            return None;
        }
        let watch = Self {
            shared,
            hook: Arc::clone(hook),
            event: call.event.clone(),
            exchange: call.exchange.clone(),
            number: shared.next_run.fetch_add(1, Ordering::Relaxed) + 1,
            began: Instant::now(),
            span: Span::of_hook(&hook.spec),
            is_over: false,
        };
        watch.report(None, |observer, run| observer.hook_started(run));
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

    /// Returns the event as the hook saw it.
    pub(crate) fn event(&self) -> &EventRef {
        &self.event
    }

    /// Reports how the run ended, and the event if the run has changed it.
    pub(crate) fn end(mut self, verdict: HookVerdict<'_>, rewritten: Option<&EventRef>) {
        self.is_over = true;
        self.report_end(verdict, rewritten);
    }

    fn report_end(&self, verdict: HookVerdict<'_>, rewritten: Option<&EventRef>) {
        let took = self.began.elapsed();
        self.span.end(verdict.as_str(), took);
        self.report(rewritten, |observer, run| {
            observer.hook_ended(run, took, verdict);
        });
    }

    fn report(
        &self,
        rewritten: Option<&EventRef>,
        call: impl FnOnce(&dyn HookObserver, &HookRun<'_>),
    ) {
        let Some(observer) = &self.shared.observer else {
            return;
        };
        let run = HookRun {
            number: self.number,
            hook: &self.hook.spec.id,
            handler: self.hook.spec.handling.kind(),
            source: &self.hook.spec.source,
            matcher: &self.hook.spec.matcher,
            phase: self.hook.spec.phase,
            event: &self.event,
            rewritten,
            exchange: self.exchange.get(),
        };
        report_to(&**observer, |observer| call(observer, &run));
    }
}

/// Calls an observer. The panic hook reports a panic of the observer, and no decision depends on it.
fn report_to(observer: &dyn HookObserver, call: impl FnOnce(&dyn HookObserver)) {
    let _caught = std::panic::catch_unwind(AssertUnwindSafe(|| call(observer)));
}

/// Returns whether an observer requests what hooks exchange, and which hooks do not take part.
pub(crate) fn requests_details(shared: &Shared) -> bool {
    let observer = shared.observer.as_deref();
    observer.is_some_and(HookObserver::requests_details)
}

/// Reports that all hooks of an event have ended, if the engine has an observer.
pub(crate) fn report_event_end(
    shared: &Shared,
    event: &EventRef,
    left_out: &[(Arc<Hook>, LeftOutReason)],
) {
    let Some(observer) = &shared.observer else {
        return;
    };
    let left_out: Vec<LeftOutHook<'_>> = left_out
        .iter()
        .map(|(hook, reason)| LeftOutHook {
            hook: &hook.spec.id,
            matcher: &hook.spec.matcher,
            reason: *reason,
        })
        .collect();
    report_to(&**observer, |observer| {
        observer.event_ended(event, &left_out);
    });
}

/// Returns the slot for what the hook of a call receives and returns.
pub(crate) fn exchange_slot(shared: &Shared) -> ExchangeSlot {
    if requests_details(shared) {
        ExchangeSlot::requested()
    } else {
        ExchangeSlot::default()
    }
}

impl Drop for HookWatch<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.report_end(HookVerdict::Cancelled, None);
        }
    }
}
