//! Sending events: the surface that a host calls.

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

use crate::dispatch::{Conditions, Finished, milliseconds, run_inline, run_shared};
use crate::engine::Shared;
use crate::event_ref::EventRef;
use crate::fold::{fold, fold_operation};
use crate::lineage::Lineage;
use crate::operation::Operations;
use crate::plan::Plan;
use crate::sink::JournalSink;
use crate::tools::{ToolInputError, ToolNames};
use crate::versions::{AnyVersions, TypedVersions, Versions};

/// Sends the events of one session through an engine's hooks. Clones share the session's sequence.
///
/// Needs a tokio runtime with time and I/O where any hook may wait. Dropping a dispatch cancels it: the
/// process groups of its commands are killed.
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<Shared>,
    lineage: Lineage,
    sequence: Arc<AtomicU64>,
    cancel: CancellationToken,
    /// The tools of the system that makes the calls, where those are not canonical.
    tools: Option<Arc<dyn ToolNames>>,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("origin", self.origin())
            .finish_non_exhaustive()
    }
}

/// The result of an event whose type is known at run time only.
#[must_use = "the operation may have to be stopped or put to a person"]
#[derive(Debug)]
pub struct Dispatched {
    /// All effects, folded.
    pub outcome: AnyOutcome,
    /// The event as the hooks left it.
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

    /// Returns a dispatcher of the same session for calls that are made with the tools of another hook system. Hooks
    /// judge each operation of a call under the names of their own system, and one deny stops the call. A hook cannot
    /// change a call that is several operations.
    #[must_use]
    pub fn with_tools(&self, tools: Arc<dyn ToolNames>) -> Self {
        Self {
            tools: Some(tools),
            ..self.clone()
        }
    }

    /// Returns a dispatcher of the same session whose dispatches fail their hooks when `cancel` is cancelled.
    #[must_use]
    pub fn with_cancel(&self, cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..self.clone()
        }
    }

    /// Returns a dispatcher of the same session from here on under another origin, as when the host gives it another id.
    #[must_use]
    pub fn with_origin(&self, origin: Origin) -> Self {
        Self {
            lineage: self.lineage.with_origin(origin),
            ..self.clone()
        }
    }

    /// Returns a dispatcher of a subagent's session through the same hooks. The subagent passes every gate that
    /// its parent passes, also those that are for the parent's agent or session only.
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

    /// Returns where the events come from.
    pub fn origin(&self) -> &Arc<Origin> {
        self.lineage.origin()
    }

    /// Says whether any hook could be interested in `E`. Reads one word of memory.
    #[inline]
    pub fn is_hooked<E: Event>(&self) -> bool {
        self.shared.is_hooked(E::INFO.kind)
    }

    /// Says whether any hook of `kind` does more than watch: what comes of such an event may be another thing than what is sent.
    pub fn may_change(&self, kind: EventKind) -> bool {
        self.shared.is_hooked(kind) && self.shared.registry.load().may_change(kind)
    }

    /// Sends an event that is built only if anyone hooks its kind.
    pub async fn dispatch_with<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        if self.is_hooked::<E>() {
            self.dispatch_hooked(build()).await
        } else {
            Outcome::default()
        }
    }

    /// Sends an event and folds what its hooks answer.
    pub async fn dispatch<E: Event>(&self, event: E) -> Outcome<E> {
        self.dispatch_with(|| event).await
    }

    async fn dispatch_hooked<E: Event>(&self, mut event: E) -> Outcome<E> {
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
                && let Some(calls) = plan.inline::<E>()
            {
                self.sequence.fetch_add(1, Ordering::Relaxed);
                let outcome = run_inline(calls, &mut event, &self.lineage);
                return outcome
                    .map_or_else(Outcome::default, |outcome| Outcome::new(*outcome, event));
            }
            Arc::clone(&plan)
        };
        let mut versions = TypedVersions::new(event, self.next_envelope());
        let outcome = Box::pin(self.run(&plan, &mut versions)).await;
        Outcome::new(outcome, versions.into_event())
    }

    /// Sends an event whose type is known at run time only.
    pub async fn dispatch_any(&self, event: Box<dyn AnyEvent>) -> Dispatched {
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

    /// Returns the operations of a call that another system made, if hooks have to judge them.
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
        for (position, operation) in operations.calls.iter().enumerate() {
            let (foreign, mut versions) = operations.event(position, operation, whole);
            let plan = {
                let registry = self.shared.registry.load();
                let event = versions.newest().event();
                let plan = registry.plan_of_operation(event, Some(&foreign));
                plan.map(|plan| Arc::clone(&plan))
            };
            if let Some(plan) = plan {
                let next = self.run(&plan, &mut versions).await;
                fold_operation(&mut outcome, next);
            }
            if matches!(info.decision(&outcome), Decision::Stop { .. }) {
                // What failed before let nothing through after all.
                for failure in &mut outcome.failures {
                    failure.let_through = false;
                }
                break;
            }
        }
        outcome
    }

    /// Refuses a call whose operations cannot be read. No hook runs, but the journal has the refusal.
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
        let began = Instant::now();
        let first = versions.newest().clone();
        if self.shared.journal.is_some() {
            // A record says when the dispatch began, not when it was written.
            first.envelope().timestamp();
        }
        let is_session_end = first.info().kind == EventKind::SessionEnd;
        let mut unfinished = Unfinished {
            journal: self.shared.journal.as_deref(),
            event: first,
            began,
        };
        let conditions = Conditions {
            lineage: self.lineage.clone(),
            cancel: self.cancel.clone(),
            deadline: is_session_end.then(|| began + self.shared.session_end_timeout),
            with_records: self.shared.journal.is_some(),
            journal: self.shared.journal.clone(),
        };
        let mut finished = run_shared(plan, versions, &conditions).await;
        if let Some(journal) = unfinished.journal.take() {
            journal
                .record(records(&finished, versions.newest(), began))
                .await;
            finished.outcome.notices.extend(journal.take_problem());
        }
        finished.outcome
    }
}

/// Returns the outcome of a call whose operations cannot be read: no guard could judge them.
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

/// A dispatch under way. Dropped before its end, it is recorded as cancelled.
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
        rewritten: outcome.rewritten.clone(),
        failures: outcome.failures.clone(),
        hooks: 0,
        duration_ms: milliseconds(began.elapsed()),
    }
}
