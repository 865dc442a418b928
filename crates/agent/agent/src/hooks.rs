//! Dispatches events to the hooks of a session, and shows their notices and failures to the user.

use std::sync::Arc;

use tenterhook_engine::Dispatcher;
use tenterhook_protocol::event::{AgentError, MessageEnd, Notification, NotificationLevel};
use tenterhook_protocol::message_extra::REPEATS_CONTENT;
use tenterhook_protocol::{Event, Failure, Message, Outcome, SessionId};
use tokio_util::sync::CancellationToken;

use crate::frontend::{Frontend, HookFailure, RESULT_EVENTS};

/// The text that is shown when a hook stops something without a reason.
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

    /// Returns the dispatcher of events whose hooks are cancelled with the run.
    pub(crate) fn cancellable(&self) -> &Dispatcher {
        &self.cancellable
    }

    /// Returns the id of the session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.steady.origin().session_id
    }

    pub(crate) fn frontend(&self) -> &Arc<dyn Frontend> {
        &self.frontend
    }

    /// Returns whether any hook could be interested in `E`.
    pub(crate) fn is_hooked<E: Event>(&self) -> bool {
        self.steady.is_hooked::<E>()
    }

    /// Returns whether any hook could change the result of a tool.
    pub(crate) fn may_change_results(&self) -> bool {
        let mut kinds = RESULT_EVENTS.into_iter();
        kinds.any(|kind| self.steady.may_change(kind))
    }

    /// Sends an event whose hooks are cancelled with the run. A caller that acts on the outcome must check for a
    /// cancellation first, because a gate whose hooks were cancelled denies.
    pub(crate) async fn fire<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        self.dispatch(&self.cancellable, build).await
    }

    /// Sends an event whose hooks run even if the run is cancelled.
    pub(crate) async fn fire_always<E: Event>(&self, build: impl FnOnce() -> E) -> Outcome<E> {
        self.dispatch(&self.steady, build).await
    }

    async fn dispatch<E: Event>(
        &self,
        dispatcher: &Dispatcher,
        build: impl FnOnce() -> E,
    ) -> Outcome<E> {
        let outcome = dispatcher.dispatch_with(build).await;
        self.show(E::INFO.name, outcome.notices(), outcome.failures());
        outcome
    }

    /// Sends an event whose outcome is not used.
    pub(crate) async fn announce<E: Event>(&self, build: impl FnOnce() -> E) {
        let _notified = self.fire_always(build).await;
    }

    /// Lets hooks replace a complete message before it is stored. Its role does not change, and neither does what its
    /// `extra` tells about its origin.
    pub(crate) async fn finish_message(&self, message: Message) -> Message {
        let ended = || MessageEnd::new(message.clone());
        let outcome = self.fire_always(ended).await;
        match outcome.into_rewritten() {
            Some(event) => {
                let mut rewritten = event.message;
                rewritten.role = message.role;
                rewritten.tool_call_id = message.tool_call_id;
                let is_same = rewritten.content == message.content;
                for (key, value) in message.extra {
                    // A value that repeats the old content would bring back what the hook removed.
                    if is_same || !REPEATS_CONTENT.contains(&key.as_str()) {
                        rewritten.extra.entry(key).or_insert(value);
                    }
                }
                rewritten
            }
            None => message,
        }
    }

    /// Shows the notices of the hooks of `event`, and the hooks that failed.
    pub(crate) fn show(&self, event: &'static str, notices: &[String], failures: &[Failure]) {
        for notice in notices {
            self.frontend.hook_notice(event, notice);
        }
        if self.cancel.is_cancelled() {
            // The user interrupted these hooks, so their failures are not worth showing.
            return;
        }
        for failure in failures {
            let shown = HookFailure {
                hook: failure.hook.as_str(),
                cause: &failure.cause,
                let_through: failure.let_through,
            };
            self.frontend.hook_failure(event, &shown);
        }
    }

    /// Notifies the user and hooks.
    pub(crate) async fn notify(&self, level: NotificationLevel, kind: &str, message: &str) {
        self.frontend.notification(level, message);
        let build = || Notification::new(level, message.to_owned()).with_kind(kind.to_owned());
        self.announce(build).await;
    }

    /// Reports a runtime error: sends a notification and then an error event.
    pub(crate) async fn report_error(&self, kind: &str, message: &str, retryable: bool) {
        self.notify(NotificationLevel::Error, kind, message).await;
        let build = || AgentError::new(message.to_owned()).with_retryable(retryable);
        self.announce(build).await;
    }
}

/// Returns the reason for a stop, or a placeholder if no reason was given.
pub(crate) fn reason_or_none(reason: &str) -> String {
    if reason.is_empty() {
        NO_REASON.to_owned()
    } else {
        reason.to_owned()
    }
}
