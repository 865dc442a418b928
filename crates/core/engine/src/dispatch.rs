//! Runs the steps of a plan and applies the answers.
//!
//! A plan whose hooks all answer immediately runs on the caller's stack ([`run_inline`]). Every
//! other plan runs on shared copies of the event ([`run_shared`]). Both apply all answers in
//! configured order, with the same code.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::{Either, join_all, poll_immediate, select};
use tenterhook_protocol::journal::{FORMAT_VERSION, RunRecord, RunStatus};
use tenterhook_protocol::{
    AnyEffect, AnyOutcome, Decision, Event, EventClass, EventInfo, Failure, HookId, Origin,
    Permission, Run,
};
use tokio_util::sync::CancellationToken;

use crate::error::HandlerError;
use crate::event_ref::EventRef;
use crate::exceptions::{DenialRuling, Exceptions, HookDenial, LiftedDenial, LiftedDenials, lift};
use crate::fold::fold;
use crate::handler::{Answer, AsyncHandler, Call, panic_text};
use crate::hook::{Handler, NO_TIMEOUT};
use crate::lineage::Lineage;
use crate::observer::HookVerdict;
use crate::phase::Phase;
use crate::plan::{Hook, InlineCall, Plan};
use crate::policy::{OnError, Policy, failure_effect, may_rewrite_result, withheld_notice};
use crate::run_notes::RunNotes;
use crate::shared::Shared;
use crate::span::warn_of_failure;
use crate::task::OwnedTask;
use crate::versions::{Change, InPlace, Versions};
use crate::watch::{HookWatch, exchange_slot};

/// Runs a plan whose hooks all answer immediately. Returns the outcome and the number of hooks that
/// ran. Allocates nothing unless a hook has an opinion.
pub(crate) fn run_inline<E: Event>(
    calls: &[InlineCall<E>],
    event: &mut E,
    lineage: &Lineage,
) -> (Option<Box<AnyOutcome>>, u32) {
    let info = event.info();
    let mut outcome = None;
    let mut hooks_run = 0;
    let mut ended = false;
    for call in calls {
        let is_due = (call.is_everywhere || call.hook.is_within(info, lineage))
            && (!ended || call.hook.spec.phase == Phase::Observe);
        if !is_due {
            continue;
        }
        hooks_run += 1;
        match call_inline(call, event, lineage.origin()) {
            Ok(None) => {}
            answer => ended |= apply_answer_inline(&call.hook, answer, event, &mut outcome),
        }
    }
    if let Some(outcome) = &mut outcome {
        count_let_through(info, outcome);
        outcome.hooks_run = hooks_run;
    }
    (outcome, hooks_run)
}

/// Calls one function. An answer that comes after the deadline counts as a timeout.
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

/// Applies one answer and returns whether it ends the series.
#[cold]
fn apply_answer_inline<E: Event>(
    hook: &Hook,
    answer: Answer,
    event: &mut E,
    outcome: &mut Option<Box<AnyOutcome>>,
) -> bool {
    let info = event.info();
    let outcome = outcome.get_or_insert_default();
    let phase = hook.spec.phase;
    let applied = apply_answer(info, (hook, phase), answer, outcome, &mut InPlace(event));
    applied.ends && runs_in_series(info, hook.spec.phase)
}

/// Clears `let_through` of failed hooks if another hook stopped the operation. Returns how many
/// failures let the operation continue.
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

/// The result of a plan. By then, the event contains every rewrite.
pub(crate) struct Finished {
    pub(crate) outcome: AnyOutcome,
    /// One record for every hook of the plan, in configured order. Empty unless records are
    /// requested.
    pub(crate) runs: Vec<RunRecord>,
}

/// The values that stay the same while a plan runs.
pub(crate) struct Conditions<'a> {
    pub(crate) lineage: Lineage,
    pub(crate) cancel: CancellationToken,
    /// Limits the time of all hooks of the dispatch together, in addition to the timeout of each
    /// hook.
    pub(crate) deadline: Option<Instant>,
    /// When the dispatch began.
    pub(crate) began: Instant,
    pub(crate) with_records: bool,
    /// The parts of the engine to which runs of hooks are reported.
    pub(crate) shared: &'a Shared,
}

impl Conditions<'_> {
    /// Returns the call of a hook that starts now.
    fn call(&self, hook: &Hook, event: EventRef) -> Call {
        let own = hook.spec.timeout;
        Call {
            event,
            timeout: self.deadline.map_or(own, |end| {
                own.min(end.saturating_duration_since(Instant::now()))
            }),
            cancel: self.cancel.clone(),
            exchange: exchange_slot(self.shared),
            // Functions do not see their call.
            notes: RunNotes::new(
                self.with_records && matches!(hook.spec.handling, Handler::Async(_)),
            ),
        }
    }
}

/// Runs a plan on shared copies of the event. The exceptions in `lifted` are used up if this is the last
/// plan for the call.
pub(crate) async fn run_shared(
    plan: &Plan,
    event: &mut dyn Versions,
    conditions: &Conditions<'_>,
    (lifted, is_last): (&mut LiftedDenials, bool),
) -> Finished {
    let info = event.newest().info();
    let mut run = PlanRun {
        info,
        event,
        conditions,
        outcome: AnyOutcome::default(),
        runs: Vec::new(),
        ended_by: None,
        lifted,
    };
    for (phase, strategy, steps) in plan.phases(info.run) {
        if run.ended_by.is_some() && phase != Phase::Observe {
            for hook in steps {
                run.after_end(hook).await;
            }
            continue;
        }
        match strategy {
            Run::Series => run.series(steps).await,
            Run::Parallel => run.parallel(steps).await,
        }
    }
    if is_last && let Some(exceptions) = &conditions.shared.exceptions {
        let used_up = run.lifted.use_up(&**exceptions, info, &mut run.outcome);
        let standing = used_up.await;
        for record in &mut run.runs {
            record
                .exception
                .take_if(|_| standing.contains(&record.hook));
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

/// A plan that is running.
struct PlanRun<'a> {
    info: &'static EventInfo,
    event: &'a mut dyn Versions,
    conditions: &'a Conditions<'a>,
    outcome: AnyOutcome,
    runs: Vec<RunRecord>,
    ended_by: Option<HookId>,
    lifted: &'a mut LiftedDenials,
}

impl<'a> PlanRun<'a> {
    fn call(&self, hook: &Hook) -> Call {
        self.conditions.call(hook, self.event.newest().clone())
    }

    fn applies(&self, hook: &Hook) -> bool {
        hook.is_within(self.info, &self.conditions.lineage)
    }

    async fn series(&mut self, steps: &[Arc<Hook>]) {
        for hook in steps {
            if self.ended_by.is_some() {
                self.after_end(hook).await;
            } else if self.applies(hook) && self.run(hook, hook.spec.phase).await {
                self.ended_by = Some(hook.spec.id.clone());
            }
        }
    }

    /// Runs one hook in a phase and returns whether it ends a series.
    async fn run(&mut self, hook: &Arc<Hook>, phase: Phase) -> bool {
        let call = self.call(hook);
        let watch = HookWatch::start(self.conditions.shared, hook, &call);
        let run = run_step(hook, &call, self.conditions.with_records);
        let (answer, timing) = within(watch.as_ref(), run).await;
        self.record_answer((hook, phase), answer, &timing, watch)
            .await
    }

    /// Handles a hook after the end of the series: it only observes, or it is skipped.
    async fn after_end(&mut self, hook: &Arc<Hook>) {
        if !hook.spec.hears_stops {
            self.skip(hook);
        } else if self.applies(hook) {
            self.run(hook, Phase::Observe).await;
        }
    }

    async fn parallel(&mut self, steps: &[Arc<Hook>]) {
        let steps: Vec<&Arc<Hook>> = steps.iter().filter(|hook| self.applies(hook)).collect();
        let heavy = steps.iter().filter(|hook| runs_on_own_task(hook)).count();
        let place = |hook: &Hook| {
            if heavy > 1 && runs_on_own_task(hook) {
                Place::OwnTask
            } else {
                Place::Here
            }
        };
        let has_sequences = steps.iter().any(|hook| hook.sequence.is_some());
        let answers = if has_sequences {
            let started = lanes(&steps).into_iter().map(|lane| {
                let event = self.event.newest().clone();
                run_lane(lane, place, event, self.conditions)
            });
            let answers = join_all(started).await;
            let mut answers: Vec<_> = answers.into_iter().flatten().collect();
            // Answers apply in running order, whichever lane they come from.
            answers.sort_unstable_by_key(|(number, _)| *number);
            answers.into_iter().map(|(_, answer)| answer).collect()
        } else {
            let started = steps
                .iter()
                .map(|&hook| start(hook, self.call(hook), place(hook), self.conditions));
            join_all(started).await
        };
        for (hook, (answer, timing)) in steps.into_iter().zip(answers) {
            self.record_answer((hook, hook.spec.phase), answer, &timing, None)
                .await;
        }
    }

    /// Applies one answer, reports it to `watch` and returns whether it ends a series.
    async fn record_answer(
        &mut self,
        (hook, phase): (&Hook, Phase),
        mut answer: Answer,
        timing: &Timing,
        watch: Option<HookWatch<'_>>,
    ) -> bool {
        let ruled = match self.denial((hook, phase), &answer) {
            Some((exceptions, stop, denial)) => Some((stop, exceptions.rule(denial).await)),
            None => None,
        };
        if let (Some((_, ruling)), Ok(Some(effect))) = (&ruled, &mut answer)
            && ruling.exception.is_some()
        {
            lift(effect);
        }
        let event = &mut *self.event;
        // A subscriber receives every event, so counting it would hide that no hook matched.
        if hook.spec.event.is_some() || hook.spec.phase != Phase::Observe {
            self.outcome.hooks_run += 1;
        }
        let mut applied = apply_answer(self.info, (hook, phase), answer, &mut self.outcome, event);
        if let Some((stop, ruling)) = ruled {
            self.apply_ruling(hook, stop, ruling, &mut applied.summary);
        }
        if let Some(watch) = watch {
            let newest = self.event.newest();
            let is_changed = !newest.is_same_version(watch.event());
            let rewritten = is_changed.then(|| newest.clone());
            watch.end(applied.summary.verdict(), rewritten.as_ref());
        }
        if self.conditions.with_records {
            let record = self.record((hook, phase), applied.summary, timing);
            self.runs.push(record);
        }
        applied.ends
    }

    /// Returns the denial in an answer, if the user may lift it. A failed hook has denied nothing.
    fn denial(
        &self,
        (hook, phase): (&Hook, Phase),
        answer: &Answer,
    ) -> Option<(&'a dyn Exceptions, AnyEffect, HookDenial)> {
        let exceptions = self.conditions.shared.exceptions.as_deref()?;
        let effect = answer.as_ref().ok()?.as_ref()?;
        if phase == Phase::Observe || accept(self.info, phase, effect).is_err() {
            return None;
        }
        let stop = stop_of(self.info, effect)?;
        let denial = HookDenial::of(&hook.spec, self.event.newest(), &stop)?;
        Some((exceptions, stop, denial))
    }

    /// Records whether a denial stands.
    fn apply_ruling(
        &mut self,
        hook: &Hook,
        stop: AnyEffect,
        ruling: DenialRuling,
        summary: &mut Summary,
    ) {
        let DenialRuling {
            exception,
            remedy,
            problem,
        } = ruling;
        self.outcome.notices.extend(problem);
        let hook = hook.spec.id.clone();
        let Some(exception) = exception else {
            // The outcome has the reason of one hook only.
            if self.info.decision(&self.outcome).by() == Some(&hook) {
                self.outcome.remedy = self.outcome.remedy.take().or(remedy);
            }
            return;
        };
        if summary.status == RunStatus::Completed {
            let context_bytes = summary.context_bytes;
            describe(&stop, summary);
            summary.context_bytes = context_bytes;
            summary.exception = Some(exception.origin.clone());
        }
        self.lifted.add(LiftedDenial {
            hook,
            stop,
            exception,
            remedy,
        });
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
        let record = self.record((hook, hook.spec.phase), summary, &Timing::default());
        self.runs.push(record);
    }

    fn record(
        &self,
        (hook, phase): (&Hook, Phase),
        summary: Summary,
        timing: &Timing,
    ) -> RunRecord {
        let since = |began: Instant| began.saturating_duration_since(self.conditions.began);
        let noted = timing.notes.take();
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
            exception: summary.exception,
            context_bytes: summary.context_bytes,
            phase: Some(phase.as_str().to_owned()),
            started_ms: timing.began.map(|began| milliseconds(since(began))),
            duration_ms: milliseconds(timing.took),
            steps: noted.steps,
            problems: noted.problems,
        }
    }
}

/// When a hook ran, and what its handler noted.
#[derive(Debug, Default)]
struct Timing {
    /// When it started, if times are recorded and it ran.
    began: Option<Instant>,
    took: Duration,
    notes: RunNotes,
}

/// Returns a duration in milliseconds, for a record.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Hooks of a parallel phase that do not overlap, each with its number in running order.
type Lane<'a> = Vec<(usize, &'a Arc<Hook>)>;

/// Splits the hooks of a parallel phase into lanes, which run at the same time. The hooks of a sequence
/// share a lane, and every other hook has its own.
fn lanes<'a>(steps: &[&'a Arc<Hook>]) -> Vec<Lane<'a>> {
    let mut lanes: Vec<(Option<&str>, Lane<'a>)> = Vec::with_capacity(steps.len());
    for (number, &hook) in steps.iter().enumerate() {
        let sequence = hook.sequence;
        let open = lanes
            .iter_mut()
            .find(|(name, _)| sequence.is_some() && *name == sequence);
        match open {
            Some((_, lane)) => lane.push((number, hook)),
            None => lanes.push((sequence, vec![(number, hook)])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// Runs the hooks of one lane one after another.
async fn run_lane(
    lane: Lane<'_>,
    place: impl Fn(&Hook) -> Place,
    event: EventRef,
    conditions: &Conditions<'_>,
) -> Vec<(usize, (Answer, Timing))> {
    let mut answers = Vec::with_capacity(lane.len());
    for (number, hook) in lane {
        let call = conditions.call(hook, event.clone());
        let run = start(hook, call, place(hook), conditions);
        answers.push((number, run.await));
    }
    answers
}

fn runs_on_own_task(hook: &Hook) -> bool {
    matches!(&hook.spec.handling, Handler::Async(handler) if handler.runs_on_own_task())
}

/// Where a hook of a parallel phase runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the task of the dispatch.
    Here,
    /// In its own task, so that hooks that need much CPU time start on all cores.
    OwnTask,
}

/// Starts one of several hooks. Reports its end as soon as it answers, because the others may take
/// much longer.
fn start<'a>(
    hook: &'a Arc<Hook>,
    call: Call,
    place: Place,
    conditions: &'a Conditions<'_>,
) -> impl Future<Output = (Answer, Timing)> + 'a {
    let timed = conditions.with_records;
    let info = call.event.info();
    if place == Place::Here {
        return Either::Left(async move {
            let watch = HookWatch::start(conditions.shared, hook, &call);
            let run = run_step(hook, &call, timed);
            let (answer, timing) = within(watch.as_ref(), run).await;
            report_end(watch, info, &answer);
            (answer, timing)
        });
    }
    let watch = HookWatch::start(conditions.shared, hook, &call);
    let owned = Arc::clone(hook);
    let run = async move { run_step(&owned, &call, timed).await };
    let task = OwnedTask::spawn(within(watch.as_ref(), run));
    Either::Right(async move {
        let joined = task.await;
        let (answer, timing) =
            joined.unwrap_or_else(|error| (Err(task_error(error)), Timing::default()));
        report_end(watch, info, &answer);
        (answer, timing)
    })
}

/// Reports the end of a hook of a parallel phase.
fn report_end(watch: Option<HookWatch<'_>>, info: &EventInfo, answer: &Answer) {
    if let Some(watch) = watch {
        let summary = summarise(info, watch.phase(), answer);
        watch.end(summary.verdict(), None);
    }
}

/// Runs a hook in its span, if it has one.
fn within<F: Future>(
    watch: Option<&HookWatch<'_>>,
    run: F,
) -> impl Future<Output = F::Output> + use<F> {
    match watch {
        Some(watch) => Either::Left(watch.span().cover(run)),
        None => Either::Right(run),
    }
}

fn task_error(error: tokio::task::JoinError) -> HandlerError {
    match error.try_into_panic() {
        Ok(panic) => panicked(&*panic),
        Err(_) => HandlerError::Cancelled,
    }
}

async fn run_step(hook: &Hook, call: &Call, timed: bool) -> (Answer, Timing) {
    let began = timed.then(Instant::now);
    let answer = match &hook.spec.handling {
        Handler::Inline(function) => in_time(call, || {
            let answer = std::panic::catch_unwind(AssertUnwindSafe(|| {
                function.call(call.event.event(), &call.event.envelope().origin)
            }));
            match answer {
                Ok(answer) => answer.map_err(|error| *error),
                Err(panic) => Err(panicked(&*panic)),
            }
        }),
        Handler::Async(handler) if handler.enforces_deadline() => {
            let run = AssertUnwindSafe(async { handler.handle(call).await })
                .catch_unwind()
                .await;
            run.unwrap_or_else(|panic| Err(panicked(&*panic)))
        }
        Handler::Async(_) if call.cancel.is_cancelled() => Err(HandlerError::Cancelled),
        Handler::Async(handler) => run_bounded(&**handler, call).await,
    };
    let took = began.map_or(Duration::ZERO, |began| began.elapsed());
    let notes = call.notes.clone();
    (answer, Timing { began, took, notes })
}

/// Runs `work` and returns its answer, or a timeout if it blocked the thread beyond the deadline.
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

/// Runs a handler that does not enforce its own deadline. The timer is armed only if the handler
/// has to wait.
async fn run_bounded(handler: &dyn AsyncHandler, call: &Call) -> Answer {
    let deadline = Instant::now().checked_add(call.timeout);
    let mut running = pin!(AssertUnwindSafe(async { handler.handle(call).await }).catch_unwind());
    let answer = if let Some(answer) = poll_immediate(running.as_mut()).await {
        answer
    } else {
        let cancelled = pin!(call.cancel.cancelled());
        let timer = pin!(tokio::time::sleep(call.timeout));
        // The answer is polled first, so that an answer that arrives exactly at the deadline
        // counts.
        match select(running, select(cancelled, timer)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((Either::Left(_), _)) => return Err(HandlerError::Cancelled),
            Either::Right((Either::Right(_), _)) => {
                return Err(HandlerError::TimedOut {
                    after: call.timeout,
                });
            }
        }
    };
    // A handler that blocks the thread keeps the timer from firing.
    if deadline.is_some_and(|deadline| Instant::now() > deadline) {
        return Err(HandlerError::TimedOut {
            after: call.timeout,
        });
    }
    answer.unwrap_or_else(|panic| Err(panicked(&*panic)))
}

/// What the record of a run contains about one answer.
#[derive(Debug, Default)]
struct Summary {
    status: RunStatus,
    cause: Option<String>,
    effect: &'static str,
    reason: Option<String>,
    let_through: bool,
    /// The exception that lifted the denial.
    exception: Option<String>,
    /// Whether the failure withheld the event's result.
    withholds: bool,
    context_bytes: u64,
}

impl Summary {
    fn of_no_opinion() -> Self {
        Self {
            effect: "none",
            ..Self::default()
        }
    }

    /// Returns how the run ended, for an observer.
    fn verdict(&self) -> HookVerdict<'_> {
        let (reason, cause) = (self.reason.as_deref(), self.cause.as_deref());
        HookVerdict::new(self.status, self.effect, reason, cause)
    }
}

/// Summarises an answer before it is applied. This is final because hooks of a parallel phase
/// cannot rewrite, so applying the answer cannot turn it into a failure.
fn summarise(info: &EventInfo, phase: Phase, answer: &Answer) -> Summary {
    let failed = |error: &HandlerError| Summary {
        status: error.status(),
        cause: Some(if may_rewrite_result(info, phase) {
            error.outline()
        } else {
            error.to_string()
        }),
        ..Summary::default()
    };
    let effect = match answer {
        Ok(Some(effect)) => effect,
        Ok(None) => return Summary::of_no_opinion(),
        Err(error) => return failed(error),
    };
    match accept(info, phase, effect) {
        Ok(()) => {
            let mut summary = Summary::default();
            describe(effect, &mut summary);
            summary
        }
        Err(error) => failed(&error),
    }
}

struct AppliedAnswer {
    summary: Summary,
    ends: bool,
}

/// Checks one answer, applies its rewrites, replaces a failure with the effect of the hook's
/// policy, and folds the effect.
fn apply_answer(
    info: &EventInfo,
    (hook, phase): (&Hook, Phase),
    answer: Answer,
    outcome: &mut AnyOutcome,
    event: &mut (impl Change + ?Sized),
) -> AppliedAnswer {
    let mut refused_stop = None;
    let answer = match answer {
        Ok(Some(effect)) => Ok(effect),
        Ok(None) => {
            return AppliedAnswer {
                summary: Summary::of_no_opinion(),
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
            let (effect, summary) = fail(info, (hook, phase), &error, outcome, event);
            // The hook did refuse. An error in the rest of its answer must not turn that into an
            // approval.
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
    AppliedAnswer { summary, ends }
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

/// Records a failure and returns the effect that the hook's policy gives it.
fn fail(
    info: &EventInfo,
    (hook, phase): (&Hook, Phase),
    error: &HandlerError,
    outcome: &mut AnyOutcome,
    event: &mut (impl Change + ?Sized),
) -> (AnyEffect, Summary) {
    let spec = &hook.spec;
    // A hook that only observes guards nothing, so its failure neither stops nor lets anything
    // through.
    let guards = info.class == EventClass::Gate && phase != Phase::Observe;
    let policy = match (phase, spec.policy.on_error) {
        (Phase::Observe, OnError::Block) => Policy::new(
            OnError::Warn,
            "hooks of the observe phase cannot stop anything",
        ),
        // No one can know how the hook would have judged an event that it never saw, so its policy
        // does not apply.
        _ if error.kept_event_from_hook() && (guards || may_rewrite_result(info, phase)) => {
            Policy::new(OnError::Block, "the hook could not see the event")
        }
        _ if hook.strict => spec.policy.strict(info, phase),
        _ => spec.policy,
    };
    let policy = if error.is_documented() {
        Policy::new(policy.documented, policy.because)
    } else {
        policy
    };
    let withholds = policy.on_error == OnError::Block && may_rewrite_result(info, phase);
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
        message.push_str(
            "; the result is withheld, and so are the error's details, which may quote it",
        );
    }
    warn_of_failure(info.name, &spec.id, &cause);
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
            // On a gate, the record names the stop, which is the stronger effect.
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

/// Returns whether an effect ends a series, because the operation can no longer happen or is
/// already done.
fn ends_series(info: &EventInfo, effect: &AnyEffect) -> bool {
    let ends_run = info.stops_by_ending_the_run() && effect.stop_run.is_some();
    effect.is_stop() || effect.handled || ends_run
}

/// Describes an effect in one word: its strongest part.
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
