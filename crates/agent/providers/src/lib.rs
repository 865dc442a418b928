//! Models behind one streaming interface: model services, and a model that reads its answers from a file.
//!
//! A [`Provider`] turns a [`ModelRequest`] into a stream of [`ModelEvent`]s. There are two kinds. [`Remote`] calls
//! OpenAI, Anthropic, Gemini, Ollama and services that use one of their protocols. [`Scripted`] reads a file of turns
//! and needs neither a key nor a network. [`ModelChoice`] parses the name of a model, [`Providers`] resolves the names
//! in the user's file `models.yaml`, [`ModelClients`] answers model hooks, and `ExtensionProviders` has the models
//! that scripts provide.
//!
//! One call is one request. This crate does not retry calls, keep conversations or know hooks. If a request has a
//! [`ProviderExchange`], the provider shows it what is sent to the service and what comes back.
//!
//! # Examples
//!
//! ```
//! use futures_util::StreamExt as _;
//! use tenterhook_protocol::Message;
//! use tenterhook_providers::{ModelEvent, ModelRequest, Provider as _, Scripted};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::parse("demo", "turns: [{ text: hello }]")?;
//! let mut answer = model.stream(ModelRequest {
//!     messages: vec![Message::user("Say hello.")].into(),
//!     ..ModelRequest::default()
//! });
//! assert_eq!(answer.next().await.transpose()?, Some(ModelEvent::Text("hello".into())));
//! assert_eq!(answer.next().await.transpose()?, Some(ModelEvent::End));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod choice;
mod error;
mod exchange;
#[cfg(unix)]
mod extension_providers;
mod facts;
mod http_client;
mod key;
mod model_clients;
mod models_file;
mod provider;
mod providers;
mod relay;
mod remote;
mod script;
#[cfg(unix)]
mod script_stream;
mod scripted;
mod service;
mod thinking;
mod yaml_problem;

pub use crate::choice::{InvalidModel, ModelChoice, OpenError};
pub use crate::error::{ProviderError, ProviderErrorKind};
pub use crate::exchange::{ExchangeStep, ProviderExchange};
#[cfg(unix)]
pub use crate::extension_providers::{ExtensionProviders, ScriptEndpoint};
pub use crate::facts::{Facts, Price};
pub use crate::key::KeyError;
pub use crate::model_clients::ModelClients;
pub use crate::models_file::is_base_url;
pub use crate::provider::{ModelEvent, ModelId, ModelRequest, Provider, Purpose};
pub use crate::providers::{Providers, ProvidersError};
pub use crate::remote::Remote;
pub use crate::script::{ScriptError, ScriptedTurnError};
pub use crate::scripted::Scripted;
pub use crate::service::{ConnectError, Endpoint, Service};
pub use crate::thinking::{InvalidThinkingLevel, ThinkingLevel};
