//! The interface through which a host sends events.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tenterhook_protocol::journal::{DispatchRecord, FORMAT_VERSION, JournalRecord};
use tenterhook_protocol::{
    AnyEvent, AnyOutcome, Decision, Envelope, Event, EventInfo, EventKind, Failure, HookId, Origin,
    Outcome,
};
use tokio_util::sync::CancellationToken;

use crate::as_shell::command_of;
use crate::dispatch::{Conditions, Finished, milliseconds, run_inline, run_shared};
use crate::event_ref::EventRef;
use crate::exceptions::LiftedDenials;
use crate::fold::{fold, fold_operation};
use crate::lineage::Lineage;
use crate::observer::LeftOutReason;
use crate::operation::Operations;
use crate::plan::{Hook, Plan};
use crate::shared::Shared;
use crate::sink::JournalSink;
use crate::span::Span;
use crate::tools::{CommandReading, ToolInputError, ToolNames};
use crate::versions::{AnyVersions, TypedVersions, Versions};
use crate::watch::{is_watched, report_event_end, requests_details};

/// Sends the events of one session through an engine's hooks. Clones share the session's sequence.
///
/// Requires a tokio runtime with time and I/O enabled if any hook may wait. Dropping a dispatch
/// cancels it and kills the process groups of its commands.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use tenterhook_engine::event::{PreToolUse, TurnStart};
/// use tenterhook_engine::{Decision, Engine, Origin};
///
/// let engine = Engine::new();
/// let hooks = engine.dispatcher(Origin::new("session-1", "/home/ada/project"));
/// // No hook is registered, so this event is not even built.
/// let _ = hooks.dispatch_with(TurnStart::default).await;
/// assert_eq!(hooks.dispatch(PreToolUse::new("shell")).await.decision(), Decision::Proceed);
/// # }
/// ```
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<Shared>,
    lineage: Lineage,
    sequence: Arc<AtomicU64>,
    cancel: CancellationToken,
    /// The tools of the hook system that makes the calls, unless calls are canonical.
    tools: Option<Arc<dyn ToolNames>>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("origin", self.origin())
            .finish_non_exhaustive()
    }
}

/// The result of an event whose type is only known at run time.
#[must_use = "the decision may be to stop the operation or to ask a person"]
#[derive(Debug)]
pub struct Dispatched {
    /// The combined effects of all hooks.
    pub outcome: AnyOutcome,
    /// The event, including the rewrites of the hooks.
    pub event: EventRef,
}

impl Dispatched {
    /// Returns what the host must do with the operation. An observer event always proceeds.
    pub fn decision(&self) -> Decision {
        self.event.info().decision(&self.outcome)
    }
}

impl Dispatcher {
    pub(crate) fn new(shared: Arc<Shared>, origin: Origin) -> Self {
        Self {
            shared,
            lineage: Lineage::new(origin),
            sequence: Arc::new(AtomicU64::new(0)),
            cancel: CancellationToken::new(),
            tools: None,
        }
    }

    /// Returns a dispatcher of the same session with the hooks of another engine.
    pub(crate) fn with_hooks_of(&self, shared: Arc<Shared>) -> Self {
        Self {
            shared,
            ..self.clone()
        }
    }

    /// Returns a dispatcher of the same session for calls that use the tools of another hook
    /// system. Each hook judges every operation of a call, under the tool names of the hook's own
    /// system. One deny stops the call. Hooks cannot change a call that consists of several
    /// operations.
    #[must_use]
    pub fn with_tools(&self, tools: Arc<dyn ToolNames>) -> Self {
        Self {
            tools: Some(tools),
            ..self.clone()
        }
    }

    /// Returns a dispatcher of the same session. When `cancel` is cancelled, its running hooks
    /// fail. The token is a `CancellationToken` of the crate `tokio-util`, version 0.7.
    #[must_use]
    pub fn with_cancel(&self, cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..self.clone()
        }
    }

    /// Returns a dispatcher that continues the same session with another origin, for example after
    /// the session's id has changed.
    #[must_use]
    pub fn with_origin(&self, origin: Origin) -> Self {
        Self {
            lineage: self.lineage.with_origin(origin),
            ..self.clone()
        }
    }

    /// Returns a dispatcher for the session of a subagent, with the same hooks. Gates of the parent
    /// also apply to the subagent, including gates that are only for the parent's agent or session.
    #[must_use]
    pub fn child(&self, origin: Origin) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            lineage: self.lineage.child(origin),
            sequence: Arc::new(AtomicU64::new(0)),
            cancel: self.cancel.clone(),
            tools: self.tools.clone(),
        }
    }

    /// Returns the origin of the events.
    pub fn origin(&self) -> &Arc<Origin> {
        self.lineage.origin()
    }

    /// Returns the token that cancels the dispatches.
    pub(crate) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns whether any hook may be interested in `E`. This only reads one word of memory.
    #[inline]
    pub fn is_hooked<E: Event>(&self) -> bool {
        self.shared.is_hooked(E::INFO.kind)
    }

    /// Returns whether any hook of `kind` does more than watch. If so, the outcome of such an event
    /// may differ from the event that was sent.
    pub fn may_change(&self, kind: EventKind) -> bool {
        self.shared.is_hooked(kind) && self.shared.registry.load().may_change(kind)
    }

    /// Writes a record that belongs to no dispatch to the engine's journal. `build` is only called if
    /// there is a journal. Does not wait; if the journal has no room, the record is lost.
    pub fn record(&self, build: impl FnOnce() -> JournalRecord) {
        if let Some(journal) = &self.shared.journal {
            journal.record_at_once(build());
        }
    }

    /// Sends an event. `build` is only called if the event has hooks.
    pub async fn dispatch_with<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        if self.is_hooked::<E>() {
            self.dispatch_hooked(build()).await
        } else {
            Outcome::default()
        }
    }

    /// Sends an event and returns the combined effects of its hooks.
    pub async fn dispatch<E: Event>(&self, event: E) -> Outcome<E> {
        self.dispatch_with(|| event).await
    }

    async fn dispatch_hooked<E: Event>(&self, mut event: E) -> Outcome<E> {
        if let Some((tools, reading)) = self.command(&event) {
            let plan = self.plan_as_shell(&event, tools, &reading);
            let mut versions = TypedVersions::new(event, self.next_envelope());
            versions.guess(reading.guess);
            let outcome = match plan {
                Some(plan) => Box::pin(self.run(&plan, &mut versions)).await,
                None => AnyOutcome::default(),
            };
            return Outcome::new(outcome, versions.into_event());
        }
        if let Some(operations) = self.operations(&event) {
            let mut versions = TypedVersions::new(event, self.next_envelope());
            let outcome = Box::pin(self.run_operations(operations, &mut versions)).await;
            return Outcome::new(outcome, versions.into_event());
        }
        let plan = {
            let registry = self.shared.registry.load();
            let Some(plan) = registry.plan(&event) else {
                return Outcome::default();
            };
            if self.shared.journal.is_none()
                && self.shared.exceptions.is_none()
                && !is_watched(&self.shared)
                && let Some(calls) = plan.inline::<E>()
            {
                self.sequence.fetch_add(1, Ordering::Relaxed);
                let (outcome, hooks_run) = run_inline(calls, &mut event, &self.lineage);
                return match outcome {
                    Some(outcome) => Outcome::new(*outcome, event),
                    None => Outcome::without_effects(hooks_run),
                };
            }
            Arc::clone(&plan)
        };
        let mut versions = TypedVersions::new(event, self.next_envelope());
        let outcome = Box::pin(self.run(&plan, &mut versions)).await;
        Outcome::new(outcome, versions.into_event())
    }

    /// Sends an event whose type is only known at run time.
    pub async fn dispatch_any(&self, event: Box<dyn AnyEvent>) -> Dispatched {
        if let Some((tools, reading)) = self.command(&*event) {
            let plan = self.plan_as_shell(&*event, tools, &reading);
            let mut versions = AnyVersions::new(event, self.next_envelope());
            versions.guess(reading.guess);
            let outcome = match plan {
                Some(plan) => self.run(&plan, &mut versions).await,
                None => AnyOutcome::default(),
            };
            return Dispatched {
                outcome,
                event: versions.into_event(),
            };
        }
        if let Some(operations) = self.operations(&*event) {
            let mut versions = AnyVersions::new(event, self.next_envelope());
            let outcome = self.run_operations(operations, &mut versions).await;
            return Dispatched {
                outcome,
                event: versions.into_event(),
            };
        }
        let plan = self
            .shared
            .registry
            .load()
            .plan(&*event)
            .map(|plan| Arc::clone(&plan));
        let Some(plan) = plan else {
            let envelope = Envelope::new(Arc::clone(self.origin()), 0);
            return Dispatched {
                outcome: AnyOutcome::default(),
                event: AnyVersions::new(event, envelope).into_event(),
            };
        };
        let mut versions = AnyVersions::new(event, self.next_envelope());
        let outcome = self.run(&plan, &mut versions).await;
        Dispatched {
            outcome,
            event: versions.into_event(),
        }
    }

    /// Reads the command line of an event's call whose tool is not the shell but also runs one.
    /// Without tools of the calling system, the tools of the engine count.
    fn command(&self, event: &dyn AnyEvent) -> Option<(&Arc<dyn ToolNames>, CommandReading)> {
        let tools = self.tools.as_ref().or(self.shared.tools.as_ref())?;
        let is_hooked = self.shared.is_hooked(event.info().kind);
        let reading = is_hooked.then(|| command_of(event, &**tools)).flatten()?;
        Some((tools, reading))
    }

    fn plan_as_shell(
        &self,
        event: &dyn AnyEvent,
        tools: &Arc<dyn ToolNames>,
        reading: &CommandReading,
    ) -> Option<Arc<Plan>> {
        let (written, _) = event.tool_call()?;
        let tool = tools.spelling(written);
        let registry = self.shared.registry.load();
        registry.plan_as_shell(event, tool, tools, reading.guess.is_none())
    }

    /// Returns the operations that hooks have to judge, if another hook system made the call.
    fn operations(&self, event: &dyn AnyEvent) -> Option<Result<Operations, ToolInputError>> {
        let tools = self.tools.as_ref()?;
        let is_hooked = self.shared.is_hooked(event.info().kind);
        is_hooked.then(|| Operations::of(event, tools)).flatten()
    }

    async fn run_operations(
        &self,
        operations: Result<Operations, ToolInputError>,
        whole: &mut dyn Versions,
    ) -> AnyOutcome {
        let info = whole.newest().info();
        let operations = match operations {
            Ok(operations) => operations,
            Err(error) => return self.refuse(whole.newest(), &error).await,
        };
        let mut outcome = AnyOutcome::default();
        let mut lifted = LiftedDenials::default();
        for (position, operation) in operations.calls.iter().enumerate() {
            let (foreign, mut versions) = operations.event(position, operation, whole);
            let plan = {
                let registry = self.shared.registry.load();
                let event = versions.newest().event();
                let plan = registry.plan_of_operation(event, Some(&foreign));
                plan.map(|plan| Arc::clone(&plan))
            };
            if let Some(plan) = plan {
                let is_last = position + 1 == operations.calls.len();
                let next = self.run_part(&plan, &mut versions, (&mut lifted, is_last));
                let next = next.await;
                fold_operation(&mut outcome, next);
            }
            if matches!(info.decision(&outcome), Decision::Stop { .. }) {
                // The call is stopped, so earlier failures let nothing through.
                for failure in &mut outcome.failures {
                    failure.let_through = false;
                }
                return outcome;
            }
        }
        // No hook matched the last operation.
        if let Some(exceptions) = &self.shared.exceptions {
            lifted.use_up(&**exceptions, info, &mut outcome).await;
        }
        outcome
    }

    /// Refuses a call whose operations cannot be read. No hook runs, but the journal records the
    /// refusal.
    async fn refuse(&self, event: &EventRef, error: &ToolInputError) -> AnyOutcome {
        let began = Instant::now();
        let mut outcome = refused(event.info(), error);
        if let Some(journal) = &self.shared.journal {
            let record = dispatch_record(event, &outcome, began);
            journal.record(vec![JournalRecord::Dispatch(record)]).await;
            outcome.notices.extend(journal.take_problem());
        }
        outcome
    }

    fn next_envelope(&self) -> Envelope {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        Envelope::new(Arc::clone(self.origin()), sequence)
    }

    async fn run(&self, plan: &Plan, versions: &mut dyn Versions) -> AnyOutcome {
        let mut lifted = LiftedDenials::default();
        self.run_part(plan, versions, (&mut lifted, true)).await
    }

    /// Returns the hooks that the plan leaves out, if an observer wants to know.
    fn left_out(&self, event: &EventRef, plan: &Plan) -> Vec<(Arc<Hook>, LeftOutReason)> {
        if !requests_details(&self.shared) {
            return Vec::new();
        }
        let registry = self.shared.registry.load();
        registry.left_out(event.event(), plan, &self.lineage)
    }

    /// Runs the plan of one operation of a call. The exceptions in `lifted` are used up with the last one.
    async fn run_part(
        &self,
        plan: &Plan,
        versions: &mut dyn Versions,
        lifted: (&mut LiftedDenials, bool),
    ) -> AnyOutcome {
        let began = Instant::now();
        let first = versions.newest().clone();
        if self.shared.journal.is_some() {
            // The record must contain the time when the dispatch began, not the time when it was
            // written.
            first.envelope().timestamp();
        }
        let left_out = self.left_out(&first, plan);
        let is_session_end = first.info().kind == EventKind::SessionEnd;
        let mut unfinished = Unfinished {
            journal: self.shared.journal.as_deref(),
            event: first,
            began,
        };
        let conditions = Conditions {
            lineage: self.lineage.clone(),
            cancel: self.cancel.clone(),
            began,
            deadline: is_session_end.then(|| began + self.shared.session_end_timeout),
            with_records: self.shared.journal.is_some(),
            shared: &self.shared,
        };
        let span = Span::of_event(&unfinished.event);
        let mut finished = span
            .clone()
            .cover(run_shared(plan, versions, &conditions, lifted))
            .await;
        if Span::is_enabled() {
            let word = decision_word(versions.newest().info(), &finished.outcome);
            span.end(word, began.elapsed());
        }
        report_event_end(&self.shared, versions.newest(), &left_out);
        if let Some(journal) = unfinished.journal.take() {
            journal
                .record(records(&finished, versions.newest(), began))
                .await;
            finished.outcome.notices.extend(journal.take_problem());
        }
        finished.outcome
    }
}

/// Returns the decision in one word, for a span.
fn decision_word(info: &EventInfo, outcome: &AnyOutcome) -> &'static str {
    match info.decision(outcome) {
        Decision::Proceed => "proceed",
        Decision::Ask { .. } => "ask",
        Decision::Stop { .. } => "stop",
    }
}

/// Returns the outcome of a call whose operations cannot be read. It is denied, because no guard
/// could judge it.
fn refused(info: &EventInfo, error: &ToolInputError) -> AnyOutcome {
    let reader = HookId::new(format!("tools of {}", error.system));
    let mut outcome = AnyOutcome::default();
    fold(
        &mut outcome,
        &reader,
        info.stopping_effect(error.to_string()),
    );
    outcome.failures.push(Failure {
        hook: reader,
        cause: error.to_string(),
        let_through: false,
    });
    outcome
}

/// A dispatch that is running. If it is dropped before its end, it is recorded as cancelled.
struct Unfinished<'a> {
    journal: Option<&'a dyn JournalSink>,
    event: EventRef,
    began: Instant,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(journal) = self.journal {
            let mut record = dispatch_record(&self.event, &AnyOutcome::default(), self.began);
            record.reason = Some("the host dropped the dispatch".to_owned());
            journal.record_dropped(JournalRecord::Dispatch(record));
        }
    }
}

fn records(finished: &Finished, event: &EventRef, began: Instant) -> Vec<JournalRecord> {
    let Finished { outcome, runs } = finished;
    let mut record = dispatch_record(event, outcome, began);
    record.hooks = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    runs.iter()
        .cloned()
        .map(JournalRecord::Run)
        .chain([JournalRecord::Dispatch(record)])
        .collect()
}

fn dispatch_record(event: &EventRef, outcome: &AnyOutcome, began: Instant) -> DispatchRecord {
    let decision = event.info().decision(outcome);
    let envelope = event.envelope();
    let tool_use_id = event
        .event()
        .tool_use_id()
        .filter(|id| !id.as_str().is_empty());
    DispatchRecord {
        v: FORMAT_VERSION,
        event_id: envelope.event_id(),
        event: event.event().name().to_owned(),
        sequence: envelope.sequence,
        timestamp: envelope.timestamp(),
        session_id: envelope.origin.session_id.clone(),
        agent: envelope.origin.agent.name.clone(),
        subject: event.event().subject().map(str::to_owned),
        tool_use_id: tool_use_id.cloned(),
        permission: outcome.permission,
        stopped: matches!(decision, Decision::Stop { .. }),
        reason: decision
            .reason()
            .or(outcome.stop_run.as_deref())
            .map(str::to_owned),
        read_as_shell: event.shell_guess().map(|guess| guess.because.clone()),
        rewritten: outcome.rewritten.clone(),
        failures: outcome.failures.clone(),
        hooks: 0,
        extra: event.event().extra().cloned().unwrap_or_default(),
        origin_extra: envelope.origin.extra.clone(),
        duration_ms: milliseconds(began.elapsed()),
    }
}
