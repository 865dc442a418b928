//! Sending events: the surface that a host calls.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use tenterhook_protocol::journal::{DispatchRecord, FORMAT_VERSION, JournalRecord};
use tenterhook_protocol::{AnyEvent, AnyOutcome, Envelope, Event, EventKind, Origin, Outcome};
use tokio_util::sync::CancellationToken;

use crate::dispatch::{Conditions, Finished, milliseconds, run_inline, run_shared};
use crate::engine::Shared;
use crate::event_ref::EventRef;
use crate::plan::Plan;
use crate::sink::JournalSink;

/// Sends the events of one session through an engine's hooks. Clones share the session's sequence.
///
/// Needs a tokio runtime with time and I/O where any hook may wait. Dropping a dispatch cancels it: the
/// process groups of its commands are killed.
#[derive(Clone)]
pub struct Dispatcher {
    shared: Arc<Shared>,
    /// Where events come from, then the agents that gave that one its task, nearest first.
    lineage: Arc<[Arc<Origin>]>,
    sequence: Arc<AtomicU64>,
    cancel: CancellationToken,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("origin", self.origin())
            .finish_non_exhaustive()
    }
}

/// The origin of nothing.
static NOWHERE: LazyLock<Arc<Origin>> = LazyLock::new(Arc::default);

/// What came of an event whose type is known at run time only.
#[derive(Debug)]
pub struct Dispatched {
    /// All effects, folded.
    pub outcome: AnyOutcome,
    /// The event as the hooks left it.
    pub event: EventRef,
}

impl Dispatcher {
    pub(crate) fn new(shared: Arc<Shared>, origin: Origin) -> Self {
        Self {
            shared,
            lineage: Arc::new([Arc::new(origin)]),
            sequence: Arc::new(AtomicU64::new(0)),
            cancel: CancellationToken::new(),
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
        let parents = self.lineage.iter().skip(1).cloned();
        Self {
            lineage: [Arc::new(origin)].into_iter().chain(parents).collect(),
            ..self.clone()
        }
    }

    /// Returns a dispatcher of a subagent's session through the same hooks. The subagent passes every gate that
    /// its parent passes, also those that are for the parent's agent or session only.
    #[must_use]
    pub fn child(&self, origin: Origin) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            lineage: [Arc::new(origin)]
                .into_iter()
                .chain(self.lineage.iter().cloned())
                .collect(),
            sequence: Arc::new(AtomicU64::new(0)),
            cancel: self.cancel.clone(),
        }
    }

    /// Returns where the events come from.
    pub fn origin(&self) -> &Arc<Origin> {
        // A lineage is made with its origin and only ever grows.
        self.lineage.first().unwrap_or(&NOWHERE)
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
        let plan = {
            let registry = self.shared.registry.load();
            let Some(plan) = registry.plan(&event) else {
                return Outcome::default();
            };
            if plan.is_sync && self.shared.journal.is_none() {
                self.sequence.fetch_add(1, Ordering::Relaxed);
                let outcome = run_inline(&plan, &mut event, &self.lineage);
                return outcome
                    .map_or_else(Outcome::default, |outcome| Outcome::new(*outcome, event));
            }
            Arc::clone(&plan)
        };
        let dispatched = Box::pin(self.run(&plan, Arc::new(event))).await;
        // The event kept its type, so the downcast of what comes back cannot miss.
        match dispatched.event.downcast::<E>() {
            Some(event) => Outcome::new(dispatched.outcome, event.clone()),
            None => Outcome::default(),
        }
    }

    /// Sends an event whose type is known at run time only.
    pub async fn dispatch_any(&self, event: Box<dyn AnyEvent>) -> Dispatched {
        let plan = self
            .shared
            .registry
            .load()
            .plan(&*event)
            .map(|plan| Arc::clone(&plan));
        if let Some(plan) = plan {
            return self.run(&plan, Arc::from(event)).await;
        }
        let envelope = Envelope::new(Arc::clone(self.origin()), 0);
        let event = EventRef::new(Arc::from(event), Arc::new(envelope));
        Dispatched {
            outcome: AnyOutcome::default(),
            event,
        }
    }

    async fn run(&self, plan: &Plan, event: Arc<dyn AnyEvent>) -> Dispatched {
        let began = Instant::now();
        let kind = event.info().kind;
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let envelope = Envelope::new(Arc::clone(self.origin()), sequence);
        if self.shared.journal.is_some() {
            // A record says when the dispatch began, not when it was written.
            envelope.timestamp();
        }
        let event = EventRef::new(event, Arc::new(envelope));
        let mut unfinished = Unfinished {
            journal: self.shared.journal.as_deref(),
            event: event.clone(),
            began,
        };
        let conditions = Conditions {
            lineage: Arc::clone(&self.lineage),
            cancel: self.cancel.clone(),
            deadline: (kind == EventKind::SessionEnd)
                .then(|| began + self.shared.session_end_timeout),
            with_records: self.shared.journal.is_some(),
            journal: self.shared.journal.clone(),
        };
        let mut finished = run_shared(plan, event, &conditions).await;
        if let Some(journal) = unfinished.journal.take() {
            journal.record(records(&finished, began)).await;
            finished.outcome.notices.extend(journal.take_problem());
        }
        Dispatched {
            outcome: finished.outcome,
            event: finished.event,
        }
    }
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

fn records(finished: &Finished, began: Instant) -> Vec<JournalRecord> {
    let Finished {
        outcome,
        event,
        runs,
    } = finished;
    let mut record = dispatch_record(event, outcome, began);
    record.hooks = u32::try_from(runs.len()).unwrap_or(u32::MAX);
    runs.iter()
        .cloned()
        .map(JournalRecord::Run)
        .chain([JournalRecord::Dispatch(record)])
        .collect()
}

fn dispatch_record(event: &EventRef, outcome: &AnyOutcome, began: Instant) -> DispatchRecord {
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
        stopped: event.info().is_stopped(outcome),
        reason: outcome.stop_reason().map(str::to_owned),
        rewritten: outcome.rewritten.clone(),
        failures: outcome.failures.clone(),
        hooks: 0,
        duration_ms: milliseconds(began.elapsed()),
    }
}
