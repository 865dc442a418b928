//! Running the steps of a plan and settling what they answer.
//!
//! A plan whose hooks all answer at once runs on the caller's stack ([`run_inline`]); any other runs on shared
//! copies of the event ([`run_shared`]). Both settle every answer in the same place, in configured order.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{Either, join_all};
use tenterhook_protocol::journal::{FORMAT_VERSION, RunRecord, RunStatus};
use tenterhook_protocol::{
    AnyEffect, AnyOutcome, Decision, Event, EventClass, EventInfo, Failure, HookId, Origin,
    Permission, Run,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::fold::fold;
use crate::handler::{Answer, Call, Handler, HandlerError, Late, panic_text};
use crate::hook::{Handling, NO_TIMEOUT, Phase};
use crate::lineage::Lineage;
use crate::plan::{Hook, InlineCall, Plan};
use crate::policy::{OnError, Policy, failure_effect, may_rewrite_result, withheld_notice};
use crate::sink::JournalSink;
use crate::versions::{Change, InPlace, Versions};

/// Runs a plan whose hooks all answer at once. Nothing is allocated unless a hook has an opinion.
pub(crate) fn run_inline<E: Event>(
    calls: &[InlineCall<E>],
    event: &mut E,
    lineage: &Lineage,
) -> Option<Box<AnyOutcome>> {
    let info = event.info();
    let mut outcome = None;
    let mut ended = false;
    for call in calls {
        let is_due = (call.is_everywhere || call.hook.is_within(info, lineage))
            && (!ended || call.hook.spec.phase == Phase::Observe);
        if !is_due {
            continue;
        }
        match call_inline(call, event, lineage.origin()) {
            Ok(None) => {}
            answer => ended |= settle_inline(&call.hook, answer, event, &mut outcome),
        }
    }
    if let Some(outcome) = &mut outcome {
        count_let_through(info, outcome);
    }
    outcome
}

/// Calls one function. What it did not answer in its time is no answer.
fn call_inline<E: Event>(call: &InlineCall<E>, event: &E, origin: &Origin) -> Answer {
    let timeout = call.hook.spec.timeout;
    // Most functions have no deadline, and reading the clock costs more than they do.
    let began = (timeout != NO_TIMEOUT).then(Instant::now);
    let answer = std::panic::catch_unwind(AssertUnwindSafe(|| call.function.call(event, origin)))
        .unwrap_or_else(|panic| Err(Box::new(panicked(&*panic))));
    if began.is_some_and(|began| began.elapsed() > timeout) {
        return Err(HandlerError::TimedOut { after: timeout });
    }
    answer.map_err(|error| *error)
}

/// Settles one answer and returns whether it ends the series.
#[cold]
fn settle_inline<E: Event>(
    hook: &Hook,
    answer: Answer,
    event: &mut E,
    outcome: &mut Option<Box<AnyOutcome>>,
) -> bool {
    let info = event.info();
    let outcome = outcome.get_or_insert_default();
    let settled = settle(info, hook, answer, outcome, &mut InPlace(event));
    settled.ends && runs_in_series(info, hook.spec.phase)
}

/// Takes back that failed hooks let the operation through, where another hook stopped it, and returns how many did.
fn count_let_through(info: &EventInfo, outcome: &mut AnyOutcome) -> usize {
    let is_stopped = matches!(info.decision(outcome), Decision::Stop { .. });
    for failure in &mut outcome.failures {
        failure.let_through &= !is_stopped;
    }
    outcome
        .failures
        .iter()
        .filter(|failure| failure.let_through)
        .count()
}

fn runs_in_series(info: &EventInfo, phase: Phase) -> bool {
    match phase {
        Phase::Transform => true,
        Phase::Main => info.run == Run::Series,
        Phase::Guard | Phase::Observe => false,
    }
}

#[cold]
fn panicked(panic: &(dyn Any + Send)) -> HandlerError {
    HandlerError::Panicked {
        message: panic_text(panic),
    }
}

/// The result of a plan. The event has every rewrite by then.
pub(crate) struct Finished {
    pub(crate) outcome: AnyOutcome,
    /// One record for every hook of the plan, in configured order; empty unless asked for.
    pub(crate) runs: Vec<RunRecord>,
}

/// What does not change while a plan runs.
pub(crate) struct Conditions {
    pub(crate) lineage: Lineage,
    pub(crate) cancel: CancellationToken,
    /// Bounds all hooks of the dispatch together, beside the timeout of each.
    pub(crate) deadline: Option<Instant>,
    pub(crate) with_records: bool,
    pub(crate) journal: Option<Arc<dyn JournalSink>>,
}

/// Runs a plan on shared copies of the event.
pub(crate) async fn run_shared(
    plan: &Plan,
    event: &mut dyn Versions,
    conditions: &Conditions,
) -> Finished {
    let info = event.newest().info();
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
    if count_let_through(info, &mut run.outcome) == 0 {
        for record in &mut run.runs {
            record.let_through = false;
        }
    }
    Finished {
        outcome: run.outcome,
        runs: run.runs,
    }
}

/// A plan under way.
struct PlanRun<'a> {
    info: &'static EventInfo,
    event: &'a mut dyn Versions,
    conditions: &'a Conditions,
    outcome: AnyOutcome,
    runs: Vec<RunRecord>,
    ended_by: Option<HookId>,
}

impl PlanRun<'_> {
    fn call(&self, hook: &Hook) -> Call {
        let own = hook.spec.timeout;
        Call {
            event: self.event.newest().clone(),
            timeout: self.conditions.deadline.map_or(own, |end| {
                own.min(end.saturating_duration_since(Instant::now()))
            }),
            cancel: self.conditions.cancel.clone(),
            late: self.conditions.journal.clone().map(|journal| Late {
                journal,
                hook: hook.spec.id.clone(),
                source: hook.spec.source.to_string(),
            }),
        }
    }

    fn applies(&self, hook: &Hook) -> bool {
        hook.is_within(self.info, &self.conditions.lineage)
    }

    async fn series(&mut self, steps: &[Arc<Hook>]) {
        for hook in steps {
            if self.ended_by.is_some() {
                self.skip(hook);
            } else if self.applies(hook) {
                let (answer, duration) =
                    run_step(hook, &self.call(hook), self.conditions.with_records).await;
                if self.settle(hook, answer, duration) {
                    self.ended_by = Some(hook.spec.id.clone());
                }
            }
        }
    }

    async fn parallel(&mut self, steps: &[Arc<Hook>]) {
        let steps: Vec<&Arc<Hook>> = steps.iter().filter(|hook| self.applies(hook)).collect();
        let heavy = steps.iter().filter(|hook| is_heavy(hook)).count();
        let timed = self.conditions.with_records;
        let place = |hook: &Hook| {
            if heavy > 1 && is_heavy(hook) {
                Place::OwnTask
            } else {
                Place::Here
            }
        };
        let started = steps
            .iter()
            .map(|hook| start(hook, self.call(hook), place(hook), timed));
        let answers = join_all(started).await;
        for (hook, (answer, duration)) in steps.into_iter().zip(answers) {
            self.settle(hook, answer, duration);
        }
    }

    /// Settles one answer and says whether it ends a series.
    fn settle(&mut self, hook: &Hook, answer: Answer, duration: Duration) -> bool {
        let event = &mut *self.event;
        let settled = settle(self.info, hook, answer, &mut self.outcome, event);
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
            event_id: self.event.newest().envelope().event_id(),
            event: self.event.newest().event().name().to_owned(),
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

/// Where one of several hooks runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the task of the dispatch.
    Here,
    /// In a task of its own, so that heavy hooks start on all cores.
    OwnTask,
}

/// Starts one of several hooks.
fn start(
    hook: &Arc<Hook>,
    call: Call,
    place: Place,
    timed: bool,
) -> impl Future<Output = (Answer, Duration)> {
    let hook = Arc::clone(hook);
    let run = async move { run_step(&hook, &call, timed).await };
    if place == Place::Here {
        return Either::Left(run);
    }
    let task = AbortOnDropHandle::new(tokio::spawn(run));
    Either::Right(
        task.map(|joined| joined.unwrap_or_else(|error| (Err(task_error(error)), Duration::ZERO))),
    )
}

fn task_error(error: tokio::task::JoinError) -> HandlerError {
    match error.try_into_panic() {
        Ok(panic) => panicked(&*panic),
        Err(_) => HandlerError::Cancelled,
    }
}

async fn run_step(hook: &Hook, call: &Call, timed: bool) -> (Answer, Duration) {
    let began = timed.then(Instant::now);
    let answer = match &hook.spec.handling {
        Handling::Sync(function) => in_time(call, || {
            let answer = std::panic::catch_unwind(AssertUnwindSafe(|| {
                function.call(call.event.event(), &call.event.envelope().origin)
            }));
            match answer {
                Ok(answer) => answer.map_err(|error| *error),
                Err(panic) => Err(panicked(&*panic)),
            }
        }),
        Handling::Waiting(handler) if handler.is_bounded() => {
            let run = AssertUnwindSafe(async { handler.handle(call).await })
                .catch_unwind()
                .await;
            run.unwrap_or_else(|panic| Err(panicked(&*panic)))
        }
        Handling::Waiting(_) if call.cancel.is_cancelled() => Err(HandlerError::Cancelled),
        Handling::Waiting(handler) => run_bounded(&**handler, call).await,
    };
    (
        answer,
        began.map_or(Duration::ZERO, |began| began.elapsed()),
    )
}

/// Returns what `work` answers, unless it blocked the thread past its deadline.
fn in_time(call: &Call, work: impl FnOnce() -> Answer) -> Answer {
    let began = Instant::now();
    let answer = work();
    if began.elapsed() > call.timeout {
        return Err(HandlerError::TimedOut {
            after: call.timeout,
        });
    }
    answer
}

/// Runs a handler that does not keep its deadline by itself. The timer is armed only when it has to wait.
async fn run_bounded(handler: &dyn Handler, call: &Call) -> Answer {
    let deadline = Instant::now().checked_add(call.timeout);
    let mut running = pin!(AssertUnwindSafe(async { handler.handle(call).await }).catch_unwind());
    let answer = match futures_util::poll!(running.as_mut()) {
        Poll::Ready(answer) => answer,
        Poll::Pending => tokio::select! {
            biased;
            answer = running => answer,
            () = call.cancel.cancelled() => return Err(HandlerError::Cancelled),
            () = tokio::time::sleep(call.timeout) => return Err(HandlerError::TimedOut { after: call.timeout }),
        },
    };
    // A handler that blocks the thread gives the timer no chance to run.
    if deadline.is_some_and(|deadline| Instant::now() > deadline) {
        return Err(HandlerError::TimedOut {
            after: call.timeout,
        });
    }
    answer.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// What a record says of one settled answer.
#[derive(Debug, Default)]
struct Summary {
    status: RunStatus,
    cause: Option<String>,
    effect: &'static str,
    reason: Option<String>,
    let_through: bool,
    /// The failure withheld the event's result.
    withholds: bool,
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
    event: &mut (impl Change + ?Sized),
) -> Settled {
    let phase = hook.spec.phase;
    let mut refused_stop = None;
    let answer = match answer {
        Ok(Some(effect)) => Ok(effect),
        Ok(None) => {
            return Settled {
                summary: Summary {
                    effect: "none",
                    ..Summary::default()
                },
                ends: false,
            };
        }
        Err(error) => Err(error),
    };
    let accepted = answer.and_then(|effect| {
        let taken = accept(info, phase, &effect).and_then(|()| {
            if phase == Phase::Observe || effect.rewrite.is_empty() {
                return Ok(());
            }
            event
                .rewrite(&effect.rewrite)
                .map_err(HandlerError::Rewrite)
        });
        match taken {
            Ok(()) => Ok(effect),
            Err(error) => {
                refused_stop = stop_of(info, &effect);
                Err(error)
            }
        }
    });
    let (effect, mut summary) = match accepted {
        Ok(effect) => (*effect, Summary::default()),
        Err(error) => {
            let (effect, summary) = fail(info, hook, &error, outcome, event);
            // The hook did say no. That the rest of its answer cannot be used does not turn it into a yes.
            (refused_stop.unwrap_or(effect), summary)
        }
    };
    describe(&effect, &mut summary);
    let ends = ends_series(info, &effect);
    if phase == Phase::Observe {
        summary.effect = "none";
        outcome.notices.extend(effect.notices);
    } else {
        fold(outcome, &hook.spec.id, effect);
    }
    Settled { summary, ends }
}

/// Returns the part of an effect that stops the operation, if the event honours it.
fn stop_of(info: &EventInfo, effect: &AnyEffect) -> Option<AnyEffect> {
    let stop = AnyEffect {
        permission: effect
            .permission
            .clone()
            .filter(|verdict| verdict.permission == Permission::Deny),
        block: effect.block.clone(),
        ..AnyEffect::default()
    };
    (stop.is_stop() && info.check(&stop).is_ok()).then_some(stop)
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
    event: &mut (impl Change + ?Sized),
) -> (AnyEffect, Summary) {
    let spec = &hook.spec;
    // A hook that only observes guards nothing, so its failure stops nothing and lets nothing through.
    let guards = info.class == EventClass::Gate && spec.phase != Phase::Observe;
    let policy = match (spec.phase, spec.policy.on_error) {
        (Phase::Observe, OnError::Block) => Policy::new(OnError::Warn, "the phase stops nothing"),
        // What the hook would have said of a call that it never saw is not its author's to choose.
        _ if error.is_blind() && (guards || may_rewrite_result(info, spec.phase)) => {
            Policy::new(OnError::Block, "the hook could not see the event")
        }
        _ if hook.strict => spec.policy.strict(info, spec.phase),
        _ => spec.policy,
    };
    let withholds = policy.on_error == OnError::Block && may_rewrite_result(info, spec.phase);
    let cause = if withholds {
        event.withhold(&withheld_notice(&spec.id, error));
        note_withheld(info, &spec.id, outcome);
        error.outline()
    } else {
        error.to_string()
    };
    let let_through = guards && policy.on_error != OnError::Block;
    let mut message = format!(
        "{} hook failed to execute: hook \"{}\": {cause}",
        info.name, spec.id
    );
    if withholds {
        message.push_str("; the result is withheld, and so are the details, which may quote it");
    }
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
            // On a gate the stop is the stronger word.
            withholds: withholds && info.class == EventClass::Observer,
            ..Summary::default()
        },
    )
}

fn note_withheld(info: &EventInfo, hook: &HookId, outcome: &mut AnyOutcome) {
    outcome.withheld_by.get_or_insert_with(|| hook.clone());
    for rewrite in info.rewrites.iter().filter(|rewrite| rewrite.is_result) {
        if !outcome.rewritten.iter().any(|field| field == rewrite.field) {
            outcome.rewritten.push(rewrite.field.to_owned());
        }
    }
}

/// Says whether an effect ends a series: what it stops can no longer happen, or is done already.
fn ends_series(info: &EventInfo, effect: &AnyEffect) -> bool {
    let ends_run = info.stops_by_ending_the_run() && effect.stop_run.is_some();
    effect.is_stop() || effect.handled || ends_run
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
    if summary.withholds {
        summary.effect = "withhold";
    }
    summary.reason = permission
        .and_then(|verdict| verdict.reason.clone())
        .or_else(|| effect.block.clone())
        .or_else(|| effect.stop_run.clone());
    summary.context_bytes = effect.context.iter().map(|text| text.len() as u64).sum();
}
