//! How the agent speaks to its hooks: every dispatch, with what it has to say to the human.

use std::sync::Arc;

use tenterhook::Dispatcher;
use tenterhook_protocol::event::{AgentError, MessageEnd, Notification, NotificationLevel};
use tenterhook_protocol::{Event, Message, Outcome, SessionId};
use tokio_util::sync::CancellationToken;

use crate::frontend::{Frontend, HookFailure, RESULT_EVENTS};

/// What is said when a hook stops something without a reason.
pub(crate) const NO_REASON: &str = "no reason was given";

/// The hooks of one session, as one run sees them.
#[derive(Debug, Clone)]
pub(crate) struct Hooks {
    steady: Dispatcher,
    cancellable: Dispatcher,
    cancel: CancellationToken,
    frontend: Arc<dyn Frontend>,
}

impl Hooks {
    pub(crate) fn new(dispatcher: Dispatcher, frontend: Arc<dyn Frontend>) -> Self {
        Self {
            cancellable: dispatcher.clone(),
            cancel: CancellationToken::new(),
            steady: dispatcher,
            frontend,
        }
    }

    /// Returns the same hooks for a run that `cancel` ends.
    pub(crate) fn for_run(&self, cancel: &CancellationToken) -> Self {
        Self {
            cancellable: self.steady.with_cancel(cancel.clone()),
            cancel: cancel.clone(),
            ..self.clone()
        }
    }

    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.steady
    }

    /// Returns the id of the session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.steady.origin().session_id
    }

    pub(crate) fn frontend(&self) -> &Arc<dyn Frontend> {
        &self.frontend
    }

    /// Says whether any hook could be interested in `E`.
    pub(crate) fn are_there<E: Event>(&self) -> bool {
        self.steady.is_hooked::<E>()
    }

    /// Says whether any hook could change what a tool returned.
    pub(crate) fn may_change_results(&self) -> bool {
        let mut kinds = RESULT_EVENTS.into_iter();
        kinds.any(|kind| self.steady.may_change(kind))
    }

    /// Sends an event whose hooks end with the run. A caller that acts on the outcome looks at the
    /// cancellation first: a gate whose hooks were cancelled denies.
    pub(crate) async fn fire<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        self.dispatch(&self.cancellable, build).await
    }

    /// Sends an event that is heard even when the run is cancelled.
    pub(crate) async fn fire_always<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        self.dispatch(&self.steady, build).await
    }

    #[cfg(not(unhooked))]
    async fn dispatch<E: Event>(
        &self,
        dispatcher: &Dispatcher,
        build: impl FnOnce() -> E,
    ) -> Outcome<E> {
        let outcome = dispatcher.dispatch_with(build).await;
        self.show(&outcome);
        outcome
    }

    /// What the hook layer is measured against: the same agent, and nobody is told anything.
    #[cfg(unhooked)]
    #[expect(clippy::unused_async, reason = "the other one waits")]
    async fn dispatch<E: Event>(&self, _: &Dispatcher, _: impl FnOnce() -> E) -> Outcome<E> {
        Outcome::default()
    }

    /// Sends an event that nobody can answer.
    pub(crate) async fn tell<E: Event>(&self, build: impl FnOnce() -> E) {
        let _told = self.fire_always(build).await;
    }

    /// Lets hooks replace a complete message before it is stored. Its role stays.
    pub(crate) async fn finish_message(&self, message: Message) -> Message {
        let ended = || MessageEnd {
            message: message.clone(),
        };
        let outcome = self.fire_always(ended).await;
        match outcome.into_rewritten() {
            Some(event) => Message {
                role: message.role,
                tool_call_id: message.tool_call_id,
                ..event.message
            },
            None => message,
        }
    }

    #[cfg_attr(unhooked, expect(dead_code, reason = "there are no outcomes"))]
    fn show<E: Event>(&self, outcome: &Outcome<E>) {
        for notice in outcome.notices() {
            self.frontend.hook_notice(E::INFO.name, notice);
        }
        if self.cancel.is_cancelled() {
            // Hooks that the user interrupted are no news to the user.
            return;
        }
        for failure in outcome.failures() {
            let shown = HookFailure {
                hook: failure.hook.as_str(),
                cause: &failure.cause,
                let_through: failure.let_through,
            };
            self.frontend.hook_failure(E::INFO.name, &shown);
        }
    }

    /// Makes something known to the human and to hooks.
    pub(crate) async fn notify(&self, level: NotificationLevel, kind: &str, message: &str) {
        self.frontend.notification(level, message);
        let build = || Notification {
            level,
            message: message.to_owned(),
            kind: kind.to_owned(),
        };
        self.tell(build).await;
    }

    /// Makes a runtime error known: a notification and an error event, in this order.
    pub(crate) async fn report_error(&self, kind: &str, message: &str, retryable: bool) {
        self.notify(NotificationLevel::Error, kind, message).await;
        let build = || AgentError {
            error: message.to_owned(),
            retryable,
        };
        self.tell(build).await;
    }
}

/// Returns the reason of a stop, or words for its absence.
pub(crate) fn reason_or_none(reason: &str) -> String {
    if reason.is_empty() {
        NO_REASON.to_owned()
    } else {
        reason.to_owned()
    }
}
