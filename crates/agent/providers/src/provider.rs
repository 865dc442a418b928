//! The interface of a model: its requests, and the events of its answers.

use std::fmt;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use tenterhook_protocol::{Messages, ToolCall, ToolSpec, Usage};
use tenterhook_runners::model::ReplySchema;

use crate::error::ProviderError;
use crate::exchange::ProviderExchange;
use crate::facts::Price;
use crate::thinking::ThinkingLevel;

/// The id of a model: the provider, and the provider's name for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelId {
    /// The provider, such as `openai`.
    pub provider: String,
    /// The model, such as `gpt-4o`.
    pub name: String,
}

impl ModelId {
    /// Creates an id from its two parts.
    pub fn new(provider: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

/// A model.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Returns the model's id.
    fn id(&self) -> &ModelId;

    /// Returns the model's context window in tokens; `None`, the default, if the provider does not know it.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Returns the model's prices; `None`, the default, if the provider does not know them.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Returns the address of the service, if the user chose another one than the usual; `None` is the default.
    fn chosen_url(&self) -> Option<&str> {
        None
    }

    /// Returns whether the provider answers model hooks instead of the models that they name, so that a scripted
    /// session needs no network. The default is `false`.
    fn answers_hooks(&self) -> bool {
        false
    }

    /// Returns the same model with another key; `None`, the default, if the provider uses no keys.
    fn with_key(&self, _key: &str) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Starts one model call. Dropping the stream cancels the call.
    ///
    /// A complete answer ends with [`ModelEvent::End`]; a stream that ends without it was interrupted. After an error,
    /// the stream is not read further.
    fn stream(
        &self,
        request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>>;
}

/// One model call.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The conversation in order, including system messages.
    pub messages: Messages,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// The purpose of the answer.
    pub purpose: Purpose,
    /// The subagent that makes the call; `None` for the main agent.
    pub subagent: Option<String>,
    /// The wanted form of the answer's text. It is ignored for services without this feature.
    pub schema: Option<ReplySchema>,
    /// How much the model should think; `None` leaves it to the service.
    pub thinking: Option<ThinkingLevel>,
    /// The maximum number of tokens of the answer; `None` leaves it to the service.
    pub max_output_tokens: Option<u32>,
    /// Observes the exchange with the service, if set. Without it, nothing is prepared for observers.
    pub exchange: Option<ProviderExchange>,
}

/// The purpose of a model's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of the conversation.
    #[default]
    Turn,
    /// A summary of a conversation.
    Summary,
    /// The reply to a model hook.
    Judge,
}

/// A part of an answer, in order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// A complete tool call.
    ToolCall(ToolCall),
    /// The tokens that the call used.
    Usage(Usage),
    /// The answer is complete.
    End,
}
