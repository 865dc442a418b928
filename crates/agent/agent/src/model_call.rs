//! Runs one model call with its retries, and streams the answer to the screen.
//!
//! | what happens | result |
//! |---|---|
//! | the service is busy or unreachable | a retry after a pause, within [`RetryPolicy`](crate::limit::RetryPolicy) |
//! | the stream breaks before anything was shown | the same |
//! | the stream breaks after something was shown | an error; the partial answer is not stored |
//! | the run is cancelled | no error; the partial answer is not stored |
//!
//! A message whose stream breaks has a `message_start` but no `message_end`.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use serde_json::Value;
use tenterhook_protocol::event::{
    MessageStart, MessageUpdate, NotificationLevel, ProviderRequest, ProviderResponse, RetryEnd,
    RetryStart,
};
use tenterhook_protocol::journal::{JournalRecord, ModelCallRecord};
use tenterhook_protocol::{EventId, Message, Outcome, Role, ToolCall, Usage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::hooks::Hooks;
use crate::models::SelectedModel;
use crate::sessions::json_len;
use crate::state::AgentState;
use tenterhook_providers::{
    ExchangeStep, ModelEvent, ModelRequest, ProviderError, ProviderErrorKind, ProviderExchange,
    Purpose,
};

/// The maximum number of bytes of an answer. No model writes that much, but a service whose answer never ends
/// would fill the memory.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// A call of a model by an agent.
pub(crate) struct ModelCall<'a> {
    pub(crate) state: &'a AgentState,
    /// The model to call.
    pub(crate) selected: &'a SelectedModel,
    pub(crate) agent: &'a str,
    pub(crate) hooks: &'a Hooks,
    pub(crate) cancel: &'a CancellationToken,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ModelAnswer {
    pub(crate) message: Message,
    pub(crate) usage: Option<Usage>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum ModelCallError {
    Cancelled,
    Failed(ProviderError),
}

/// An answer that is arriving.
#[derive(Default)]
struct PartialAnswer {
    answer: ModelAnswer,
    /// Whether `message_start` was sent.
    is_announced: bool,
    /// Whether the user has seen some of it.
    is_shown: bool,
    /// How many bytes have arrived.
    bytes: usize,
}

/// The part of an answer that a `message_update` adds to. Hooks see it in the event's `extra`.
#[derive(Clone, Copy)]
enum Part {
    Text,
    Reasoning,
    /// A complete tool call. The added text is its arguments as JSON.
    ToolCall,
    /// Nothing is added, because the answer is complete.
    End,
}

impl Part {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool_call",
            Self::End => "end",
        }
    }
}

impl ModelCall<'_> {
    /// Calls the model. The journal gets a record of the call, so that the cost of a session can be seen.
    pub(crate) async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelCallError> {
        let began = Instant::now();
        let answered = self.ask_with_retries(request).await;
        if !matches!(answered, Err(ModelCallError::Cancelled)) {
            let record = || JournalRecord::ModelCall(self.journal_record(&answered, began));
            self.hooks.dispatcher().record(record);
        }
        answered
    }

    fn journal_record(
        &self,
        answered: &Result<ModelAnswer, ModelCallError>,
        began: Instant,
    ) -> ModelCallRecord {
        let took = began.elapsed().as_secs_f64() * 1000.0;
        let usage = answered.as_ref().ok().and_then(|answer| answer.usage);
        ModelCallRecord {
            session_id: Some(self.hooks.session().clone()),
            agent: Some(self.agent.to_owned()),
            usage,
            cost: self.selected.cost(usage.as_ref()),
            error: match answered {
                Err(ModelCallError::Failed(error)) => Some(error.to_string()),
                Ok(_) | Err(ModelCallError::Cancelled) => None,
            },
            ..ModelCallRecord::now(self.selected.id(), took)
        }
    }

    async fn ask_with_retries(
        &self,
        request: &ModelRequest,
    ) -> Result<ModelAnswer, ModelCallError> {
        let retries = self.state.config.retry.attempts.saturating_sub(1);
        let mut retry = 0;
        loop {
            let mut draft = PartialAnswer::default();
            let tried = self.attempt(request, &mut draft).await;
            if retry > 0 {
                self.end_retry(retry, &tried).await;
            }
            let error = match tried {
                Ok(()) => return Ok(draft.answer),
                Err(ModelCallError::Failed(error)) => error,
                Err(ModelCallError::Cancelled) => return Err(ModelCallError::Cancelled),
            };
            if retry == retries || draft.is_shown || !error.is_retryable() {
                return Err(ModelCallError::Failed(error));
            }
            retry += 1;
            self.start_retry(retry, retries, &error).await?;
        }
    }

    /// Announces a retry and waits for the pause before it.
    async fn start_retry(
        &self,
        retry: u32,
        retries: u32,
        error: &ProviderError,
    ) -> Result<(), ModelCallError> {
        let pause = self.state.config.retry.pause(retry, error.retry_after);
        let text = format!(
            "the model call failed ({error}); retry {retry} of {retries} in {}",
            seconds(pause)
        );
        self.hooks
            .frontend()
            .notification(NotificationLevel::Warning, &text);
        let error = error.to_string();
        self.show_retry(retry, Some(&error));
        let started = || RetryStart::new(retry, retries);
        self.hooks.announce(started).await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                self.end_retry(retry, &Err(ModelCallError::Cancelled)).await;
                Err(ModelCallError::Cancelled)
            }
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    fn show_retry(&self, number: u32, error: Option<&str>) {
        let max = self.state.config.retry.attempts.saturating_sub(1);
        let frontend = self.hooks.frontend();
        frontend.model_retry(self.agent, number, max, error);
    }

    async fn end_retry(&self, attempt: u32, tried: &Result<(), ModelCallError>) {
        let error = match tried {
            Ok(()) => {
                self.show_retry(attempt, None);
                None
            }
            Err(ModelCallError::Cancelled) => Some("cancelled".to_owned()),
            Err(ModelCallError::Failed(error)) => Some(error.to_string()),
        };
        let ended = || RetryEnd::new(attempt, error.is_none()).with_error(error);
        self.hooks.announce(ended).await;
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        draft: &mut PartialAnswer,
    ) -> Result<(), ModelCallError> {
        let is_shown = request.purpose == Purpose::Turn;
        let (exchange, mut exchange_steps) = self.exchange().unzip();
        let mut stream = self.selected.provider.stream(ModelRequest {
            exchange,
            thinking: self.selected.thinking,
            ..request.clone()
        });
        loop {
            let event = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(ModelCallError::Cancelled),
                Some(step) = next_step(&mut exchange_steps) => {
                    self.show_exchange_step(step).await;
                    continue;
                }
                event = stream.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::End)) => break,
                Some(Ok(event)) => {
                    draft.bytes = draft.bytes.saturating_add(bytes_of(&event));
                    if draft.bytes > MAX_ANSWER_BYTES {
                        return Err(ModelCallError::Failed(too_long()));
                    }
                    self.apply_event(event, draft, is_shown).await;
                }
                Some(Err(error)) => return Err(ModelCallError::Failed(error)),
                None => {
                    let error =
                        ProviderError::new(ProviderErrorKind::Broken, "the answer ended early");
                    return Err(ModelCallError::Failed(error));
                }
            }
        }
        draft.answer.message.role = Role::Assistant;
        if is_shown {
            self.announce_start(draft).await;
            self.announce_update(draft, Part::End, String::new()).await;
        }
        Ok(())
    }

    /// Returns the channel that reports the exchange with the service, if any hook is interested in it.
    fn exchange(&self) -> Option<(ProviderExchange, mpsc::Receiver<ExchangeStep>)> {
        let hooks = self.hooks.dispatcher();
        let sees_payload = hooks.is_hooked::<ProviderRequest>();
        let is_wanted = sees_payload || hooks.is_hooked::<ProviderResponse>();
        is_wanted.then(|| ProviderExchange::new(sees_payload))
    }

    /// Sends a step of the exchange to hooks.
    async fn show_exchange_step(&self, step: ExchangeStep) {
        match step {
            ExchangeStep::Request { payload, reply } => {
                let outcome = self.hooks.fire(|| ProviderRequest::new(payload)).await;
                let sent = self.payload_to_send(outcome);
                // The provider may have been dropped meanwhile; then there is nothing left to send.
                drop(reply.send(sent));
            }
            ExchangeStep::Response {
                status,
                headers,
                heard,
            } => {
                self.hooks
                    .announce(|| ProviderResponse::new(status).with_headers(headers))
                    .await;
                heard.send(()).unwrap_or_default();
            }
        }
    }

    /// Returns the body to send: `None` if hooks left it unchanged. A body that its hooks could not judge is not
    /// sent.
    fn payload_to_send(
        &self,
        outcome: Outcome<ProviderRequest>,
    ) -> Result<Option<Value>, ProviderError> {
        let refused = |message: &str| Err(ProviderError::new(ProviderErrorKind::Refused, message));
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

    async fn apply_event(&self, event: ModelEvent, draft: &mut PartialAnswer, is_shown: bool) {
        match event {
            ModelEvent::Text(text) => {
                draft.answer.message.content.push_str(&text);
                if is_shown {
                    self.hooks.frontend().text_delta(self.agent, &text);
                    draft.is_shown = true;
                    self.announce_update(draft, Part::Text, text).await;
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
                    draft.is_shown = true;
                    self.announce_update(draft, Part::Reasoning, text).await;
                }
            }
            ModelEvent::ToolCall(call) => {
                let call = with_id(call, &draft.answer.message.tool_calls);
                let arguments = call.arguments.to_string();
                draft.answer.message.tool_calls.push(call);
                if is_shown {
                    self.announce_update(draft, Part::ToolCall, arguments).await;
                }
            }
            ModelEvent::Usage(usage) => draft.answer.usage = Some(usage),
            ModelEvent::End => {}
        }
    }

    async fn announce_update(&self, draft: &mut PartialAnswer, part: Part, delta: String) {
        self.announce_start(draft).await;
        let updated = || {
            let mut message = draft.answer.message.clone();
            message.role = Role::Assistant;
            MessageUpdate::new(message, delta).with_extra("part", part.as_str())
        };
        self.hooks.announce(updated).await;
    }

    async fn announce_start(&self, draft: &mut PartialAnswer) {
        if !std::mem::replace(&mut draft.is_announced, true) {
            let started = || MessageStart::new(Message::assistant(""));
            self.hooks.announce(started).await;
        }
    }
}

/// Waits for a step of the exchange. Returns `None` if there is no exchange, or after its last step.
async fn next_step(
    exchange_steps: &mut Option<mpsc::Receiver<ExchangeStep>>,
) -> Option<ExchangeStep> {
    exchange_steps.as_mut()?.recv().await
}

fn bytes_of(event: &ModelEvent) -> usize {
    match event {
        ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
        ModelEvent::ToolCall(call) => call.name.len() + json_len(&call.arguments),
        ModelEvent::Usage(_) | ModelEvent::End => 0,
    }
}

fn too_long() -> ProviderError {
    let message = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
    ProviderError::new(ProviderErrorKind::Refused, message)
}

/// Gives a call an id if the service gave none, or gave the same id twice. Results are matched to calls by their ids.
fn with_id(mut call: ToolCall, others: &[ToolCall]) -> ToolCall {
    if !call.id.as_str().is_empty() && others.iter().all(|other| other.id != call.id) {
        return call;
    }
    let id = EventId::generate();
    call.id = format!("call_{id}").into();
    call
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
