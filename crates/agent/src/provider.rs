//! Where answers come from: a model behind one streaming interface.
//!
//! A provider turns messages into a stream of [`ModelEvent`]s and keeps no conversation. It does not
//! retry and does not know of hooks; both are the run's. What it sends and gets it tells the [`Exchange`] of a request. Two kinds exist: [`Scripted`] reads a file of
//! turns and needs neither key nor network, [`Remote`] speaks to a model service.

mod exchange;
mod facts;
mod judge;
mod providers;
mod relay;
mod remote;
mod scripted;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tenterhook_handlers::model::ReplySchema;
use tenterhook_protocol::{Messages, ToolCall, Usage};
use thiserror::Error;

use crate::model::ThinkingLevel;

pub use self::exchange::Exchange;
pub(crate) use self::exchange::Step;
pub use self::facts::{Facts, Price};
pub use self::judge::Judges;
pub use self::providers::{KeyError, Providers, ProvidersError, is_base_url};
pub use self::remote::{ConnectError, Endpoint, Remote, Service};
pub use self::scripted::{ScriptError, Scripted};

/// Names a model: the provider and the provider's own name of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelId {
    /// The provider, such as `openai`.
    pub provider: String,
    /// The model, such as `gpt-4o`.
    pub name: String,
}

impl ModelId {
    /// Makes an id of its two parts.
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

/// The user's choice of a model, as it is written on the command line.
///
/// | text | meaning |
/// |---|---|
/// | `scripted:FILE` | a file of turns, see [`Scripted`] |
/// | `openai:gpt-4o` | OpenAI, or any service that speaks its protocol at the base URL |
/// | `anthropic:MODEL` | Anthropic |
/// | `gemini:MODEL` | Gemini |
/// | `ollama:MODEL` | Ollama |
///
/// A slash may stand in the place of the colon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelChoice {
    /// A file of turns.
    Scripted(PathBuf),
    /// A model of a service.
    Remote {
        /// The service.
        service: Service,
        /// The service's name of the model.
        model: String,
    },
}

/// The text names no model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{found}` names no model: expected `scripted:FILE` or one of {services} followed by `:MODEL`{}",
    or_names(names)
)]
pub struct InvalidModel {
    /// What was given.
    pub found: String,
    /// The services that exist.
    pub services: String,
    /// The names that the user has for models.
    pub names: Vec<String>,
}

fn or_names(names: &[String]) -> String {
    let names = names.iter().map(|name| format!(", or `{name}`"));
    names.collect()
}

impl FromStr for ModelChoice {
    type Err = InvalidModel;

    fn from_str(text: &str) -> Result<Self, InvalidModel> {
        let invalid = || InvalidModel {
            found: text.to_owned(),
            services: Service::ALL
                .map(|service| format!("`{service}`"))
                .join(", "),
            names: Vec::new(),
        };
        let (provider, name) = text.split_once([':', '/']).ok_or_else(invalid)?;
        if name.is_empty() {
            return Err(invalid());
        }
        if provider == scripted::PROVIDER {
            return Ok(Self::Scripted(PathBuf::from(name)));
        }
        let service = Service::ALL
            .into_iter()
            .find(|service| service.as_str() == provider);
        let service = service.ok_or_else(invalid)?;
        Ok(Self::Remote {
            service,
            model: name.to_owned(),
        })
    }
}

impl ModelChoice {
    /// Opens the model. For a service, what `endpoint` leaves open is the service's own default.
    ///
    /// # Errors
    ///
    /// Fails if the script cannot be read or the client cannot be made. No request is sent.
    pub fn open(&self, endpoint: Endpoint) -> Result<Arc<dyn Provider>, OpenError> {
        match self {
            Self::Scripted(path) => Ok(Arc::new(Scripted::load(path)?)),
            Self::Remote { service, model } => {
                Ok(Arc::new(Remote::connect(*service, model, endpoint)?))
            }
        }
    }
}

/// A model that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text names no model.
    #[error(transparent)]
    Name(#[from] InvalidModel),
    /// The key cannot be had.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The script is not usable.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The service is not usable.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// A model.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Names the model.
    fn id(&self) -> &ModelId;

    /// Returns the model's context window in tokens, where the provider knows it. The default is that
    /// it does not.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Returns what the model costs, where the provider knows it. The default is that it does not.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Says whether the provider answers model hooks in the place of the models that they name, so that a session
    /// of a script needs no network. The default is that it does not.
    fn answers_hooks(&self) -> bool {
        false
    }

    /// Starts one model call. Dropping the stream ends the call.
    ///
    /// A complete answer ends with [`ModelEvent::End`]; a stream that stops without it broke. After an
    /// error the stream is not read further.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>>;
}

/// One model call.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The conversation, system messages included, in order.
    pub messages: Messages,
    /// The tools on offer.
    pub tools: Vec<ToolSpec>,
    /// What the answer is for.
    pub purpose: Purpose,
    /// The subagent that asks; `None` is the main agent.
    pub subagent: Option<String>,
    /// The form that the text of the answer should have. A service that knows no such forms is not told.
    pub schema: Option<ReplySchema>,
    /// How much the model should think; `None` leaves it to the service.
    pub thinking: Option<ThinkingLevel>,
    /// Who hears of the exchange with the service. `None` is nobody: then nothing is built for it.
    pub exchange: Option<Exchange>,
}

/// What the answer of a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of the conversation.
    #[default]
    Turn,
    /// The summary of a conversation.
    Summary,
    /// A model hook.
    Judge,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name to call it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

/// A part of an answer, in the order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// A whole tool call.
    ToolCall(ToolCall),
    /// The tokens of the call.
    Usage(Usage),
    /// The answer is complete.
    End,
}

/// What kind of failure ended a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The service is busy or out of order; another try may succeed.
    Unavailable,
    /// The answer stopped before its end; another try may succeed.
    Broken,
    /// The conversation does not fit into the model's context.
    ContextOverflow,
    /// The service refused the request as such: wrong key, unknown model, bad parameters.
    Refused,
}

/// A model call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ModelErrorKind,
    /// What went wrong.
    pub message: String,
    /// How long the service asks to wait before another try.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    /// Makes an error without a wait.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Says whether another try may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ModelErrorKind::Unavailable | ModelErrorKind::Broken
        )
    }
}

/// Words with which services say that a conversation is too long. There is no common code for it.
const OVERFLOW_WORDS: [&str; 8] = [
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "input token count",
    "exceed context limit",
];

/// Says whether an error text means that the conversation does not fit.
fn is_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OVERFLOW_WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_names_a_script_or_a_service() {
        let remote = |service, model: &str| ModelChoice::Remote {
            service,
            model: model.to_owned(),
        };
        for (text, expected) in [
            (
                "scripted:demo.yaml",
                ModelChoice::Scripted("demo.yaml".into()),
            ),
            (
                "scripted:/tmp/a:b.yaml",
                ModelChoice::Scripted("/tmp/a:b.yaml".into()),
            ),
            ("openai:gpt-4o", remote(Service::OpenAi, "gpt-4o")),
            ("openai/gpt-4o", remote(Service::OpenAi, "gpt-4o")),
            ("anthropic/claude", remote(Service::Anthropic, "claude")),
            ("gemini:flash", remote(Service::Gemini, "flash")),
            ("ollama:qwen3:8b", remote(Service::Ollama, "qwen3:8b")),
            ("openai:org/model", remote(Service::OpenAi, "org/model")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_wrong_choice_names_what_is_allowed() {
        for text in ["gpt-4o", "acme:gpt", "openai:", ""] {
            let error = text.parse::<ModelChoice>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
            assert!(
                error.contains("`scripted:FILE`") && error.contains("`anthropic`"),
                "{error}"
            );
        }
    }

    #[test]
    fn an_overflow_is_known_by_the_words_of_the_services() {
        assert!(is_overflow(
            "This model's maximum context length is 128000 tokens"
        ));
        assert!(is_overflow(r#"{"code":"context_length_exceeded"}"#));
        assert!(is_overflow(
            "prompt is too long: 210000 tokens > 200000 maximum"
        ));
        assert!(!is_overflow("rate limit reached"));
    }
}
