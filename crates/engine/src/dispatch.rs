//! Running the steps of a plan and settling what they answer.
//!
//! A plan whose hooks all answer at once runs on the caller's stack ([`run_inline`]); any other runs on shared
//! copies of the event ([`run_shared`]). Both settle every answer in the same place, in configured order.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::journal::{FORMAT_VERSION, RunRecord, RunStatus};
use tenterhook_protocol::{
    AnyEffect, AnyOutcome, Envelope, Event, EventClass, EventInfo, EventKind, Failure, HookId,
    JsonObject, Origin, Permission, RewriteError, Run,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::event_ref::EventRef;
use crate::fold::fold;
use crate::handler::{Call, Handler, HandlerError, SyncFunction, panic_text};
use crate::hook::{Handling, Phase};
use crate::plan::{Hook, Plan};
use crate::policy::{OnError, Policy, failure_effect};

type Answer = Result<AnyEffect, HandlerError>;

/// Runs a plan whose hooks all answer at once. Nothing is allocated unless a hook has an opinion.
pub(crate) fn run_inline<E: Event>(
    plan: &Plan,
    event: &mut E,
    origin: &Origin,
) -> Option<Box<AnyOutcome>> {
    let mut outcome: Option<Box<AnyOutcome>> = None;
    let mut ended = false;
    for hook in &plan.steps {
        let Handling::Sync(function) = &hook.spec.handling else {
            continue;
        };
        let phase = hook.spec.phase;
        if (ended && phase != Phase::Observe) || !hook.is_within(origin) {
            continue;
        }
        let answer = match call_sync(&**function, event, origin) {
            Ok(None) => continue,
            Ok(Some(effect)) => Ok(*effect),
            Err(error) => Err(error),
        };
        let outcome = outcome.get_or_insert_default();
        let settled = settle(E::INFO, hook, answer, outcome, |rewrite| {
            let mut next = event.clone();
            apply(&mut next, rewrite)?;
            *event = next;
            Ok(())
        });
        ended |= settled.ends && runs_in_series(E::INFO, phase);
    }
    outcome
}

fn runs_in_series(info: &EventInfo, phase: Phase) -> bool {
    match phase {
        Phase::Transform => true,
        Phase::Main => info.run == Run::Series,
        Phase::Guard | Phase::Observe => false,
    }
}

fn call_sync(
    function: &dyn SyncFunction,
    event: &dyn tenterhook_protocol::AnyEvent,
    origin: &Origin,
) -> Result<Option<Box<AnyEffect>>, HandlerError> {
    std::panic::catch_unwind(AssertUnwindSafe(|| function.call(event, origin))).map_err(|panic| {
        HandlerError::Panicked {
            message: panic_text(&*panic),
        }
    })
}

fn apply(
    event: &mut dyn tenterhook_protocol::AnyEvent,
    rewrite: &JsonObject,
) -> Result<(), RewriteError> {
    rewrite
        .iter()
        .try_for_each(|(field, value)| event.rewrite(field, value.clone()))
}

/// What came of a plan.
pub(crate) struct Finished {
    pub(crate) outcome: AnyOutcome,
    /// The event with every rewrite.
    pub(crate) event: EventRef,
    /// One record for every hook of the plan, in configured order; empty unless asked for.
    pub(crate) runs: Vec<RunRecord>,
}

/// What does not change while a plan runs.
pub(crate) struct Conditions {
    pub(crate) cancel: CancellationToken,
    /// Bounds every hook of the dispatch, beside its own timeout.
    pub(crate) group_timeout: Option<Duration>,
    pub(crate) with_records: bool,
}

/// Runs a plan on shared copies of the event.
pub(crate) async fn run_shared(plan: &Plan, event: EventRef, conditions: &Conditions) -> Finished {
    let info = event.info();
    let mut run = PlanRun {
        info,
        event,
        conditions,
        outcome: AnyOutcome::default(),
        runs: Vec::new(),
        ended_by: None,
    };
    for (phase, strategy, steps) in plan.phases(info.run) {
        if run.ended_by.is_some() && phase != Phase::Observe {
            for hook in steps {
                run.skip(hook);
            }
            continue;
        }
        match strategy {
            Run::Series => run.series(steps).await,
            Run::Parallel => run.parallel(steps).await,
        }
    }
    Finished {
        outcome: run.outcome,
        event: run.event,
        runs: run.runs,
    }
}

/// A plan under way.
struct PlanRun<'a> {
    info: &'static EventInfo,
    event: EventRef,
    conditions: &'a Conditions,
    outcome: AnyOutcome,
    runs: Vec<RunRecord>,
    ended_by: Option<HookId>,
}

impl PlanRun<'_> {
    fn call(&self, hook: &Hook) -> Call {
        let own = hook.spec.timeout;
        Call {
            event: self.event.clone(),
            timeout: self
                .conditions
                .group_timeout
                .map_or(own, |group| own.min(group)),
            cancel: self.conditions.cancel.clone(),
        }
    }

    fn applies(&self, hook: &Hook) -> bool {
        hook.is_within(&self.event.envelope().origin)
    }

    async fn series(&mut self, steps: &[Arc<Hook>]) {
        for hook in steps {
            if self.ended_by.is_some() {
                self.skip(hook);
            } else if self.applies(hook) {
                let (answer, duration) = run_step(hook, &self.call(hook)).await;
                if self.settle(hook, answer, duration) {
                    self.ended_by = Some(hook.spec.id.clone());
                }
            }
        }
    }

    async fn parallel(&mut self, steps: &[Arc<Hook>]) {
        let steps: Vec<&Arc<Hook>> = steps.iter().filter(|hook| self.applies(hook)).collect();
        let heavy = steps.iter().filter(|hook| is_heavy(hook)).count();
        let started = steps
            .iter()
            .map(|hook| start(hook, self.call(hook), heavy > 1));
        let answers = join_all(started).await;
        for (hook, (answer, duration)) in steps.into_iter().zip(answers) {
            self.settle(hook, answer, duration);
        }
    }

    /// Settles one answer and says whether it ends a series.
    fn settle(&mut self, hook: &Hook, answer: Answer, duration: Duration) -> bool {
        let event = &mut self.event;
        let settled = settle(self.info, hook, answer, &mut self.outcome, |rewrite| {
            let mut next = event.event().boxed_clone();
            apply(&mut *next, rewrite)?;
            *event = EventRef::new(Arc::from(next), Arc::clone(event.envelope()));
            Ok(())
        });
        if self.conditions.with_records {
            let record = self.record(hook, settled.summary, duration);
            self.runs.push(record);
        }
        settled.ends
    }

    fn skip(&mut self, hook: &Hook) {
        if !self.conditions.with_records || !self.applies(hook) {
            return;
        }
        let cause = self
            .ended_by
            .as_ref()
            .map(|by| format!("`{by}` ended the dispatch"));
        let summary = Summary {
            status: RunStatus::Skipped,
            cause,
            effect: "none",
            ..Summary::default()
        };
        let record = self.record(hook, summary, Duration::ZERO);
        self.runs.push(record);
    }

    fn record(&self, hook: &Hook, summary: Summary, duration: Duration) -> RunRecord {
        RunRecord {
            v: FORMAT_VERSION,
            event_id: self.event.envelope().event_id,
            event: self.event.event().name().to_owned(),
            hook: hook.spec.id.clone(),
            source: hook.spec.source.to_string(),
            handler: hook.spec.handling.kind().to_owned(),
            status: summary.status,
            cause: summary.cause,
            effect: summary.effect.to_owned(),
            reason: summary.reason,
            let_through: summary.let_through,
            context_bytes: summary.context_bytes,
            duration_ms: milliseconds(duration),
        }
    }
}

/// Returns a duration in milliseconds, for a record.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

fn is_heavy(hook: &Hook) -> bool {
    matches!(&hook.spec.handling, Handling::Waiting(handler) if handler.is_heavy())
}

/// Starts one of several hooks. Heavy ones get a task each, so that they start on all cores.
fn start(hook: &Arc<Hook>, call: Call, spread: bool) -> BoxFuture<'_, (Answer, Duration)> {
    if !(spread && is_heavy(hook)) {
        return Box::pin(async move { run_step(hook, &call).await });
    }
    let hook = Arc::clone(hook);
    let task = AbortOnDropHandle::new(tokio::spawn(async move { run_step(&hook, &call).await }));
    Box::pin(
        task.map(|joined| joined.unwrap_or_else(|error| (Err(task_error(error)), Duration::ZERO))),
    )
}

fn task_error(error: tokio::task::JoinError) -> HandlerError {
    match error.try_into_panic() {
        Ok(panic) => HandlerError::Panicked {
            message: panic_text(&*panic),
        },
        Err(_) => HandlerError::Cancelled,
    }
}

async fn run_step(hook: &Hook, call: &Call) -> (Answer, Duration) {
    let began = Instant::now();
    let answer = match &hook.spec.handling {
        Handling::Sync(function) => call_sync(
            &**function,
            call.event.event(),
            &call.event.envelope().origin,
        )
        .map(|effect| effect.map(|effect| *effect).unwrap_or_default()),
        Handling::Waiting(_) if call.cancel.is_cancelled() => Err(HandlerError::Cancelled),
        Handling::Waiting(handler) if handler.is_bounded() => handler.handle(call).await,
        Handling::Waiting(handler) => run_bounded(&**handler, call).await,
    };
    (answer, began.elapsed())
}

/// Runs a handler that does not keep its deadline by itself. The timer is armed only when it has to wait.
async fn run_bounded(handler: &dyn Handler, call: &Call) -> Answer {
    let caught = AssertUnwindSafe(async { handler.handle(call).await }).catch_unwind();
    let mut running = pin!(caught.map(|answer| {
        answer.unwrap_or_else(|panic| {
            Err(HandlerError::Panicked {
                message: panic_text(&*panic),
            })
        })
    }));
    if let Poll::Ready(answer) = futures_util::poll!(running.as_mut()) {
        return answer;
    }
    tokio::select! {
        biased;
        answer = running => answer,
        () = call.cancel.cancelled() => Err(HandlerError::Cancelled),
        () = tokio::time::sleep(call.timeout) => Err(HandlerError::TimedOut { after: call.timeout }),
    }
}

/// What a record says of one settled answer.
#[derive(Debug, Default)]
struct Summary {
    status: RunStatus,
    cause: Option<String>,
    effect: &'static str,
    reason: Option<String>,
    let_through: bool,
    context_bytes: u64,
}

struct Settled {
    summary: Summary,
    ends: bool,
}

/// Checks one answer, applies its rewrites, turns a failure into what the hook's policy says, and folds it.
fn settle(
    info: &EventInfo,
    hook: &Hook,
    answer: Answer,
    outcome: &mut AnyOutcome,
    apply: impl FnOnce(&JsonObject) -> Result<(), RewriteError>,
) -> Settled {
    let phase = hook.spec.phase;
    let accepted = answer.and_then(|effect| {
        accept(info, phase, &effect)?;
        if phase != Phase::Observe && !effect.rewrite.is_empty() {
            apply(&effect.rewrite).map_err(HandlerError::Rewrite)?;
        }
        Ok(effect)
    });
    let (effect, mut summary) = match accepted {
        Ok(effect) => (effect, Summary::default()),
        Err(error) => fail(info, hook, &error, outcome),
    };
    describe(&effect, &mut summary);
    let ends = ends_series(info, &effect);
    if phase == Phase::Observe {
        outcome.notices.extend(effect.notices);
    } else {
        fold(outcome, &hook.spec.id, effect);
    }
    Settled { summary, ends }
}

fn accept(info: &EventInfo, phase: Phase, effect: &AnyEffect) -> Result<(), HandlerError> {
    info.check(effect).map_err(HandlerError::NotHonoured)?;
    match effect.rewrite.keys().next() {
        Some(field) if phase == Phase::Guard => Err(HandlerError::GuardRewrites {
            field: field.clone(),
        }),
        _ => Ok(()),
    }
}

/// Turns a failure into the effect that the hook's policy gives it, and notes it.
fn fail(
    info: &EventInfo,
    hook: &Hook,
    error: &HandlerError,
    outcome: &mut AnyOutcome,
) -> (AnyEffect, Summary) {
    let spec = &hook.spec;
    let cause = error.to_string();
    // A hook that only observes guards nothing, so its failure stops nothing and lets nothing through.
    let policy = match (spec.phase, spec.policy.on_error) {
        (Phase::Observe, OnError::Block) => Policy::new(OnError::Warn, "the phase stops nothing"),
        _ => spec.policy,
    };
    let is_guarding = info.class == EventClass::Gate && spec.phase != Phase::Observe;
    let let_through = is_guarding && policy.on_error != OnError::Block;
    let message = format!(
        "{} hook failed to execute: hook \"{}\": {cause}",
        info.name, spec.id
    );
    let effect = failure_effect(info, policy, message);
    outcome.failures.push(Failure {
        hook: spec.id.clone(),
        cause: cause.clone(),
        let_through,
    });
    (
        effect,
        Summary {
            status: error.status(),
            cause: Some(cause),
            let_through,
            ..Summary::default()
        },
    )
}

/// Says whether an effect ends a series: what it stops can no longer happen, or is done already.
fn ends_series(info: &EventInfo, effect: &AnyEffect) -> bool {
    let stop_is_strongest = info.class == EventClass::Gate
        && !info.honours(Capability::Permission)
        && !info.honours(Capability::Block)
        && effect.stop_run.is_some();
    effect.is_stop() || effect.handled || stop_is_strongest
}

/// Names an effect in one word, the strongest part first.
fn describe(effect: &AnyEffect, summary: &mut Summary) {
    let permission = effect
        .permission
        .as_ref()
        .filter(|verdict| verdict.permission != Permission::None);
    let words = [
        ("block", effect.block.is_some()),
        ("stop_run", effect.stop_run.is_some()),
        ("handled", effect.handled),
        ("rewrite", !effect.rewrite.is_empty()),
        ("supply", effect.supply.is_some()),
        ("follow_up", !effect.follow_up.is_empty()),
        ("inject", !effect.inject.is_empty()),
        ("context", !effect.context.is_empty()),
        ("collect", !effect.collect.is_empty()),
        ("notice", !effect.notices.is_empty()),
    ];
    let is_rewriting_allow = |verdict: &tenterhook_protocol::Verdict| {
        verdict.permission == Permission::Allow && !effect.rewrite.is_empty()
    };
    summary.effect = match permission {
        Some(verdict) if !is_rewriting_allow(verdict) => verdict.permission.as_str(),
        _ => words
            .iter()
            .find_map(|(word, used)| used.then_some(*word))
            .unwrap_or("none"),
    };
    summary.reason = permission
        .and_then(|verdict| verdict.reason.clone())
        .or_else(|| effect.block.clone())
        .or_else(|| effect.stop_run.clone());
    summary.context_bytes = effect.context.iter().map(|text| text.len() as u64).sum();
}

/// Returns the bound on all hooks of one dispatch together, where the event has one.
pub(crate) fn group_timeout(kind: EventKind, session_end: Duration) -> Option<Duration> {
    (kind == EventKind::SessionEnd).then_some(session_end)
}

/// Makes the envelope of a dispatch that begins now.
pub(crate) fn envelope(origin: &Arc<Origin>, sequence: u64) -> Arc<Envelope> {
    Arc::new(Envelope {
        event_id: tenterhook_protocol::EventId::generate(),
        sequence,
        timestamp: jiff::Timestamp::now(),
        origin: Arc::clone(origin),
    })
}
