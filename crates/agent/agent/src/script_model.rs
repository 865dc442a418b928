//! Model calls of scripts.
//!
//! The host makes the call, so that the user's keys stay with the host. No hook runs for it: a hook that calls a model
//! would otherwise run for its own call. The call counts towards the token budget, and the journal records it.

use std::collections::BTreeMap;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use crate::sessions::json_len;
use futures_util::StreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::{JsonObject, Message, Role, ToolSpec, Usage};
use tenterhook_providers::{
    ModelEvent, ModelRequest, Provider, ProviderError, ProviderErrorKind, ScriptEndpoint,
    ThinkingLevel,
};
use tenterhook_runners::worker::{Refusal, ScriptCredentials};

use crate::script_view::{AgentView, model_name, read};

/// How long a model call of a script may take, including the time that it waits for other calls.
const MAX_CALL: Duration = Duration::from_mins(10);

/// The maximum number of bytes of an answer.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// Why a call has no complete answer.
enum Unanswered {
    Cancelled,
    Failed(String),
}

impl AgentView {
    /// Calls a model for a script.
    pub(crate) async fn call_model(&self, params: &Value) -> Result<Value, Refusal> {
        let name = model_name(params.get("model").unwrap_or(&Value::Null))?;
        let params: CallParams = read(params)?;
        let open = params
            .cancel_id
            .clone()
            .map(|id| self.model_calls.cancellable.open(id));
        let withdrawn = async {
            match &open {
                Some(call) => call.withdrawn().await,
                None => future::pending().await,
            }
        };
        let run = self.current_run();
        let interrupted = async {
            match &run {
                Some(run) => run.cancelled().await,
                None => future::pending().await,
            }
        };
        let mut answer = Answer::default();
        let ended = tokio::select! {
            biased;
            () = withdrawn => Err(Unanswered::Cancelled),
            () = interrupted => Err(Unanswered::Cancelled),
            () = self.model_calls.ended() => Err(Unanswered::Cancelled),
            () = tokio::time::sleep(MAX_CALL) => Err(Unanswered::Failed(format!(
                "the model did not answer within {} minutes", MAX_CALL.as_secs() / 60
            ))),
            ended = self.ask_model(&name, params, &mut answer) => ended,
        };
        if let Some(usage) = &answer.usage {
            self.state.spend(usage);
        }
        Ok(answer.describe(&name, ended))
    }

    async fn ask_model(
        &self,
        name: &str,
        params: CallParams,
        answer: &mut Answer,
    ) -> Result<(), Unanswered> {
        let failed = |error: ProviderError| Unanswered::Failed(error.to_string());
        let _place = self
            .model_calls
            .place()
            .await
            .ok_or(Unanswered::Cancelled)?;
        if let Some(budget) = self.state.config.limits.token_budget
            && self.state.spent_tokens() >= budget
        {
            let message = format!("the token budget of {budget} tokens is used up");
            return Err(Unanswered::Failed(message));
        }
        let provider = self.model_of_call(name, &params).await?;
        let thinking = params.thinking.as_deref().map(str::parse::<ThinkingLevel>);
        let thinking = thinking
            .transpose()
            .map_err(|error| Unanswered::Failed(error.to_string()))?;
        let mut stream = provider.stream(ModelRequest {
            messages: params.messages.into(),
            tools: params.tools.into_iter().map(ToolParams::spec).collect(),
            thinking,
            max_output_tokens: params.max_output_tokens,
            ..ModelRequest::default()
        });
        let mut bytes = 0_usize;
        while let Some(event) = stream.next().await {
            bytes = bytes.saturating_add(answer.add(event.map_err(failed)?));
            if bytes > MAX_ANSWER_BYTES {
                let message = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
                return Err(Unanswered::Failed(message));
            }
            if answer.is_complete {
                answer.cost = answer
                    .usage
                    .as_ref()
                    .and_then(|usage| provider.price()?.cost(usage));
                return Ok(());
            }
        }
        Err(failed(ProviderError::new(
            ProviderErrorKind::Broken,
            "the answer ended early",
        )))
    }

    /// Opens the model of a call. At an address that the script chose, only the script's own key is used.
    async fn model_of_call(
        &self,
        name: &str,
        params: &CallParams,
    ) -> Result<Arc<dyn Provider>, Unanswered> {
        let models = &self.state.config.models;
        let key = params.api_key.as_deref().filter(|key| !key.is_empty());
        if let Some(endpoint) = &params.endpoint {
            let Some(extensions) = models.extensions() else {
                let message = "this agent does not let scripts choose the address of a model";
                return Err(Unanswered::Failed(message.to_owned()));
            };
            let endpoint = ScriptEndpoint {
                service: endpoint.service.clone(),
                base_url: endpoint.base_url.clone(),
                credentials: ScriptCredentials {
                    api_key: key.map(str::to_owned),
                    headers: endpoint.headers.clone(),
                },
            };
            let Some(id) = name.split_once([':', '/']) else {
                let message = format!("`{name}` is not a model; expected `PROVIDER/MODEL`");
                return Err(Unanswered::Failed(message));
            };
            let opened = extensions.open_at(id, endpoint).await;
            return opened.map_err(|error| Unanswered::Failed(error.to_string()));
        }
        let found = models.find(name).await;
        let found = found.map_err(|error| Unanswered::Failed(error.to_string()))?;
        Ok(key.and_then(|key| found.with_key(key)).unwrap_or(found))
    }

    /// Cancels a model call of a script.
    pub(crate) fn cancel_model_call(&self, params: &Value) -> Result<Value, Refusal> {
        let CancelParams { cancel_id } = read(params)?;
        Ok(json!({ "cancelled": self.model_calls.cancellable.dismiss(&cancel_id) }))
    }
}

/// An answer, as far as it has arrived.
#[derive(Default)]
struct Answer {
    message: Message,
    usage: Option<Usage>,
    cost: Option<f64>,
    is_complete: bool,
}

impl Answer {
    /// Adds an event, and returns its size in bytes.
    fn add(&mut self, event: ModelEvent) -> usize {
        let message = &mut self.message;
        match event {
            ModelEvent::Text(text) => {
                message.content.push_str(&text);
                text.len()
            }
            ModelEvent::Reasoning(text) => {
                message.reasoning.get_or_insert_default().push_str(&text);
                text.len()
            }
            ModelEvent::ToolCall(call) => {
                let size = json_len(&call.arguments);
                message.tool_calls.push(call);
                size
            }
            ModelEvent::Usage(usage) => {
                self.usage = Some(usage);
                0
            }
            ModelEvent::End => {
                self.is_complete = true;
                0
            }
        }
    }

    /// Describes the answer to the script. The journal records the model, the usage, the cost and the error.
    fn describe(mut self, model: &str, ended: Result<(), Unanswered>) -> Value {
        self.message.role = Role::Assistant;
        let (error, is_cancelled) = match ended {
            Ok(()) => (None, false),
            Err(Unanswered::Cancelled) => (Some("the call was cancelled".to_owned()), true),
            Err(Unanswered::Failed(message)) => (Some(message), false),
        };
        json!({
            "model": model, "message": self.message, "usage": self.usage, "cost": self.cost,
            "error": error, "cancelled": is_cancelled,
        })
    }
}

#[derive(Deserialize)]
struct CallParams {
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<ToolParams>,
    #[serde(default)]
    max_output_tokens: Option<u32>,
    #[serde(default)]
    thinking: Option<String>,
    /// The key to use instead of the user's, for this call only.
    #[serde(default)]
    api_key: Option<String>,
    /// The address to use instead of the provider's.
    #[serde(default)]
    endpoint: Option<EndpointParams>,
    /// The id by which the script can cancel the call.
    #[serde(default)]
    cancel_id: Option<String>,
}

#[derive(Deserialize)]
struct ToolParams {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    schema: JsonObject,
}

impl ToolParams {
    fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name,
            description: self.description,
            schema: self.schema.into(),
        }
    }
}

#[derive(Deserialize)]
struct EndpointParams {
    service: String,
    base_url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct CancelParams {
    cancel_id: String,
}
