//! One model call with its retries, streamed to the screen.
//!
//! | what happens | what follows |
//! |---|---|
//! | the service is busy or unreachable | another try after a pause, within [`RetryPolicy`](crate::limit::RetryPolicy) |
//! | the stream breaks before anything was shown | the same |
//! | the stream breaks after something was shown | an error; what arrived stays out of the session |
//! | the run is cancelled | the same, without an error |
//!
//! A message whose stream breaks has a `message_start` and no `message_end`.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use tenterhook_protocol::event::{
    MessageStart, MessageUpdate, NotificationLevel, ProviderRequest, ProviderResponse, RetryEnd,
    RetryStart,
};
use tenterhook_protocol::{EventId, Message, Outcome, Role, ToolCall, Usage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::hooks::Hooks;
use crate::life::Setup;
use crate::model::Selected;
use crate::provider::{
    Exchange, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Purpose, Step,
};
use crate::session::json_bytes;

/// The most bytes of an answer. No model writes that much; a service that never ends would fill the memory.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Who asks the model.
pub(crate) struct Asker<'a> {
    pub(crate) setup: &'a Setup,
    /// The model that is asked.
    pub(crate) selected: &'a Selected,
    pub(crate) agent: &'a str,
    pub(crate) hooks: &'a Hooks,
    pub(crate) cancel: &'a CancellationToken,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Answer {
    pub(crate) message: Message,
    pub(crate) usage: Option<Usage>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum AskError {
    Canceled,
    Failed(ModelError),
}

/// An answer that is arriving.
#[derive(Default)]
struct Draft {
    answer: Answer,
    /// `message_start` was sent.
    is_announced: bool,
    /// The human saw some of it.
    is_shown: bool,
    /// How much has arrived.
    bytes: usize,
}

impl Asker<'_> {
    pub(crate) async fn ask(&self, request: &ModelRequest) -> Result<Answer, AskError> {
        let retries = self.setup.retry.attempts.saturating_sub(1);
        let mut retry = 0;
        loop {
            let mut draft = Draft::default();
            let tried = self.attempt(request, &mut draft).await;
            if retry > 0 {
                self.end_retry(retry, &tried).await;
            }
            let error = match tried {
                Ok(()) => return Ok(draft.answer),
                Err(AskError::Failed(error)) => error,
                Err(AskError::Canceled) => return Err(AskError::Canceled),
            };
            if retry == retries || draft.is_shown || !error.is_retryable() {
                return Err(AskError::Failed(error));
            }
            retry += 1;
            self.start_retry(retry, retries, &error).await?;
        }
    }

    /// Announces a retry and waits for its time.
    async fn start_retry(
        &self,
        retry: u32,
        retries: u32,
        error: &ModelError,
    ) -> Result<(), AskError> {
        let pause = self.setup.retry.pause(retry, error.retry_after);
        let text = format!(
            "the model call failed ({error}); retry {retry} of {retries} in {}",
            seconds(pause)
        );
        self.hooks
            .frontend()
            .notification(NotificationLevel::Warning, &text);
        let started = || RetryStart {
            attempt: retry,
            max_retries: retries,
        };
        self.hooks.tell(started).await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                self.end_retry(retry, &Err(AskError::Canceled)).await;
                Err(AskError::Canceled)
            }
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    async fn end_retry(&self, attempt: u32, tried: &Result<(), AskError>) {
        let error = match tried {
            Ok(()) => None,
            Err(AskError::Canceled) => Some("cancelled".to_owned()),
            Err(AskError::Failed(error)) => Some(error.to_string()),
        };
        let ended = || RetryEnd {
            attempt,
            success: error.is_none(),
            error,
        };
        self.hooks.tell(ended).await;
    }

    async fn attempt(&self, request: &ModelRequest, draft: &mut Draft) -> Result<(), AskError> {
        let is_shown = request.purpose == Purpose::Turn;
        let (exchange, mut hearing) = self.exchange().unzip();
        let mut stream = self.selected.provider.stream(ModelRequest {
            exchange,
            thinking: self.selected.thinking,
            ..request.clone()
        });
        loop {
            let event = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(AskError::Canceled),
                Some(step) = next_step(&mut hearing) => {
                    self.hear(step).await;
                    continue;
                }
                event = stream.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::End)) => break,
                Some(Ok(event)) => {
                    draft.bytes = draft.bytes.saturating_add(bytes_of(&event));
                    if draft.bytes > MOST_BYTES {
                        return Err(AskError::Failed(too_long()));
                    }
                    self.take(event, draft, is_shown).await;
                }
                Some(Err(error)) => return Err(AskError::Failed(error)),
                None => {
                    let error = ModelError::new(
                        ModelErrorKind::Broken,
                        "the answer stopped before its end",
                    );
                    return Err(AskError::Failed(error));
                }
            }
        }
        draft.answer.message.role = Role::Assistant;
        if is_shown {
            self.announce(draft).await;
        }
        Ok(())
    }

    /// Returns what lets hooks hear of the exchange with the service, if any of them wants to.
    fn exchange(&self) -> Option<(Exchange, mpsc::Receiver<Step>)> {
        let hooks = self.hooks.dispatcher();
        let sees_payload = hooks.is_hooked::<ProviderRequest>();
        let is_wanted = sees_payload || hooks.is_hooked::<ProviderResponse>();
        is_wanted.then(|| Exchange::new(sees_payload))
    }

    /// Lets hooks hear a step of the exchange. A provider that went away does not wait for the answer.
    async fn hear(&self, step: Step) {
        match step {
            Step::Request { payload, reply } => {
                let outcome = self.hooks.fire(|| ProviderRequest { payload }).await;
                let sent = self.payload_to_send(outcome);
                // A provider that went away has nothing left to send.
                drop(reply.send(sent));
            }
            Step::Response {
                status,
                headers,
                heard,
            } => {
                self.hooks
                    .tell(|| ProviderResponse { status, headers })
                    .await;
                heard.send(()).unwrap_or_default();
            }
        }
    }

    /// Returns the body that hooks agreed to, `None` for the same. What no hook has judged is not sent.
    fn payload_to_send(
        &self,
        outcome: Outcome<ProviderRequest>,
    ) -> Result<Option<Value>, ModelError> {
        let refused = |message: &str| Err(ModelError::new(ModelErrorKind::Refused, message));
        if self.cancel.is_cancelled() {
            return refused("the run was cancelled");
        }
        if let Some(hook) = outcome.withheld_by() {
            return refused(&format!(
                "the request was withheld, because the provider_request hook `{hook}` failed"
            ));
        }
        Ok(outcome.into_rewritten().map(|event| event.payload))
    }

    async fn take(&self, event: ModelEvent, draft: &mut Draft, is_shown: bool) {
        match event {
            ModelEvent::Text(text) => {
                draft.answer.message.content.push_str(&text);
                if is_shown {
                    self.hooks.frontend().text_delta(self.agent, &text);
                    self.grow(draft, text).await;
                }
            }
            ModelEvent::Reasoning(text) => {
                draft
                    .answer
                    .message
                    .reasoning
                    .get_or_insert_default()
                    .push_str(&text);
                if is_shown {
                    self.hooks.frontend().reasoning_delta(self.agent, &text);
                    self.grow(draft, text).await;
                }
            }
            ModelEvent::ToolCall(call) => {
                let call = with_id(call, &draft.answer.message.tool_calls);
                draft.answer.message.tool_calls.push(call);
            }
            ModelEvent::Usage(usage) => draft.answer.usage = Some(usage),
            ModelEvent::End => {}
        }
    }

    async fn grow(&self, draft: &mut Draft, delta: String) {
        draft.is_shown = true;
        self.announce(draft).await;
        let updated = || MessageUpdate {
            message: Message {
                role: Role::Assistant,
                ..draft.answer.message.clone()
            },
            delta,
        };
        self.hooks.tell(updated).await;
    }

    async fn announce(&self, draft: &mut Draft) {
        if !std::mem::replace(&mut draft.is_announced, true) {
            let started = || MessageStart {
                message: Message::assistant(""),
            };
            self.hooks.tell(started).await;
        }
    }
}

/// Waits for a step of the exchange. Without an exchange there is none.
async fn next_step(hearing: &mut Option<mpsc::Receiver<Step>>) -> Option<Step> {
    hearing.as_mut()?.recv().await
}

fn bytes_of(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ToolCall(call) => call.name.len() + json_bytes(&call.arguments),
        ModelEvent::Usage(_) | ModelEvent::End => 0,
    }
}

fn too_long() -> ModelError {
    let message = format!("the answer has more than {MOST_BYTES} bytes");
    ModelError::new(ModelErrorKind::Refused, message)
}

/// Gives a call an id where the service gave none, or gave one twice: results are matched by it.
fn with_id(call: ToolCall, others: &[ToolCall]) -> ToolCall {
    if !call.id.as_str().is_empty() && others.iter().all(|other| other.id != call.id) {
        return call;
    }
    let id = EventId::generate();
    ToolCall {
        id: format!("call_{id}").into(),
        ..call
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
