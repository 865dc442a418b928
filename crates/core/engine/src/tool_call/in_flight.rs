//! One tool call that is in progress, and the code that sends its events.

use std::time::{Duration, Instant};

use serde_json::Value;
use tenterhook_protocol::event::{ApprovalDecision, DecisionSource, ToolApprovalDecision};
use tenterhook_protocol::{Event, HookId, JsonObject, Outcome, ToolCall, ToolResult};
use tokio_util::sync::CancellationToken;

use super::host::{ToolCallHost, ToolCallView};
use crate::dispatcher::Dispatcher;

/// A hook's request to end the agent run after this tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStop {
    /// The event whose hook requested it.
    pub event: &'static str,
    /// The reason. Never empty.
    pub reason: String,
}

impl RunStop {
    pub(super) fn new(event: &'static str, reason: &str) -> Self {
        let reason = if reason.is_empty() {
            "no reason was given"
        } else {
            reason
        };
        Self {
            event,
            reason: reason.to_owned(),
        }
    }
}

/// One tool call that is in progress.
pub(super) struct InFlight<'a> {
    /// Sends events whose hooks are cancelled with the run.
    hooks: &'a Dispatcher,
    /// Sends events that must reach their hooks even if the run is cancelled.
    steady: Dispatcher,
    pub(super) host: &'a dyn ToolCallHost,
    /// The call as the model made it.
    pub(super) call: &'a ToolCall,
    /// The arguments, including all changes by hooks.
    pub(super) input: JsonObject,
    /// The number of the current attempt, starting at 1.
    pub(super) attempt: u32,
    pub(super) contexts: Vec<String>,
    pub(super) stop: Option<RunStop>,
    /// The arguments that a person has agreed to.
    pub(super) approved: Option<JsonObject>,
    /// The result of the previous attempt, which failed.
    pub(super) failure: Option<ToolResult>,
    /// The first hook whose failure withheld the result.
    pub(super) withheld_by: Option<HookId>,
    pub(super) clock: RunClock,
}

/// Measures how long the runs of a tool take.
#[derive(Debug, Default)]
pub(super) struct RunClock {
    /// When the first run began.
    pub(super) began: Option<Instant>,
    /// The duration of the latest run.
    pub(super) last: Duration,
}

impl RunClock {
    /// Returns the time since the first run began.
    pub(super) fn total(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }
}

/// Returns a function that builds an event about the call and its current arguments. The `with_…`
/// calls are setters of the event.
macro_rules! call_event {
    ($event:ident, $in_flight:expr $(, $with:ident($value:expr))* $(,)?) => {
        || {
            let view = $in_flight.view();
            let mut event = $event::new(view.name)
                .with_tool_use_id(view.id.clone())
                .with_tool_input(view.input.clone())
                .with_attempt(view.attempt)
                $(.$with($value))*;
            event.tool_category = $in_flight.host.category(view);
            event.extra = $in_flight.host.extra($in_flight.view());
            event
        }
    };
}
pub(super) use call_event;

impl<'a> InFlight<'a> {
    pub(super) fn new(
        hooks: &'a Dispatcher,
        host: &'a dyn ToolCallHost,
        call: &'a ToolCall,
    ) -> Self {
        Self {
            hooks,
            steady: hooks.with_cancel(CancellationToken::new()),
            host,
            call,
            input: input_for_hooks(call),
            attempt: 1,
            contexts: Vec::new(),
            stop: None,
            approved: None,
            failure: None,
            withheld_by: None,
            clock: RunClock::default(),
        }
    }

    pub(super) fn view(&self) -> ToolCallView<'_> {
        self.view_with(&self.input)
    }

    /// Returns the call with other arguments.
    pub(super) fn view_with<'b>(&'b self, input: &'b JsonObject) -> ToolCallView<'b> {
        ToolCallView {
            id: &self.call.id,
            name: &self.call.name,
            input,
            attempt: self.attempt,
        }
    }

    /// Returns whether hooks changed the arguments that the model wrote.
    pub(super) fn is_rewritten(&self) -> bool {
        self.call.arguments.as_object() != Some(&self.input)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.hooks.cancellation().is_cancelled()
    }

    /// Waits for `pause`. Returns whether the run was still active at its end.
    pub(super) async fn wait(&self, pause: impl Future<Output = ()>) -> bool {
        let cancel = self.hooks.cancellation();
        cancel.run_until_cancelled(pause).await.is_some()
    }

    /// Sends an event whose hooks are cancelled with the run. A caller that acts on the outcome
    /// must check for cancellation first, because a gate whose hooks were cancelled denies.
    pub(super) async fn fire<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        self.dispatch(self.hooks, build).await
    }

    /// Sends an event that must reach its hooks even if the run is cancelled.
    pub(super) async fn fire_always<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        self.dispatch(&self.steady, build).await
    }

    /// Sends an event whose outcome is ignored.
    pub(super) async fn announce<E: Event>(&self, build: impl FnOnce() -> E) {
        let _heard = self.fire_always(build).await;
    }

    async fn dispatch<E: Event>(
        &self,
        dispatcher: &Dispatcher,
        build: impl FnOnce() -> E,
    ) -> Outcome<E> {
        let outcome = dispatcher.dispatch_with(build).await;
        let (notices, failures) = (outcome.notices(), outcome.failures());
        if !(notices.is_empty() && failures.is_empty()) {
            self.host.show(E::INFO, notices, failures);
        }
        outcome
    }

    pub(super) async fn announce_decision(
        &self,
        decision: ApprovalDecision,
        source: impl Into<DecisionSource>,
    ) {
        let source = source.into();
        let event = call_event!(
            ToolApprovalDecision,
            self,
            with_decision(decision),
            with_source(source)
        );
        self.announce(event).await;
    }
}

/// Returns the arguments in the form that hooks see. Hooks expect an object. Any other value is
/// passed as the key `arguments`, because an empty object would hide what the model asked for.
fn input_for_hooks(call: &ToolCall) -> JsonObject {
    match &call.arguments {
        Value::Object(input) => input.clone(),
        Value::Null => JsonObject::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            JsonObject::from_iter([("arguments".to_owned(), other.clone())])
        }
    }
}
