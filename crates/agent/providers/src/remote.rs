//! Models of network services, called through the client library `genai`.
//!
//! This module translates messages, answers and errors; the library implements the services' protocols. One call is
//! one request: nothing is retried here.

mod answer;
mod failure;
mod known_calls;
mod request;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use genai::adapter::AdapterKind;
use genai::chat::ChatOptions;
use genai::resolver::AuthData;
use genai::{Client, ModelIden, ServiceTarget};
use reqwest::Url;
use reqwest::redirect::Policy;
use tenterhook_runners::http::tls_config_without_roots;

use self::answer::Reader;
pub(crate) use self::failure::event_error;
use self::failure::{model_error, presentable, transport_error};
use self::known_calls::KnownCalls;
use self::request::{chat_request, effort, reply_format};
use crate::error::{ProviderError, ProviderErrorKind};
use crate::exchange::ProviderExchange;
use crate::facts::{Facts, Price};
use crate::http_client::http_client;
use crate::provider::{ModelEvent, ModelId, ModelRequest, Provider};
use crate::relay::{Relay, Route};
use crate::service::{ConnectError, Endpoint, Service};

/// How long a service may take to start an answer, unless the endpoint sets another limit.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);

/// The minimum number of characters of a header's value that is removed from error messages.
const MIN_SECRET: usize = 8;

/// How long a service may pause within an answer.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// A model of a service.
#[derive(Clone)]
pub struct Remote {
    id: ModelId,
    http: reqwest::Client,
    client: Client,
    /// The client that reaches a relay. It is created when a call is first observed.
    relayed: OnceLock<Client>,
    url: Url,
    /// The address that the user chose, as written.
    chosen_url: Option<String>,
    /// The key, if there is one, and the values of additional headers. They are removed from error messages, because a
    /// service may quote them.
    secrets: Arc<[String]>,
    headers: BTreeMap<String, String>,
    facts: Facts,
    target: ServiceTarget,
    header_timeout: Duration,
    calls: KnownCalls,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("id", &self.id)
            .field("base_url", &self.target.endpoint.base_url())
            .finish_non_exhaustive()
    }
}

impl Remote {
    /// Creates a client for a model of `service`. No request is sent.
    ///
    /// # Errors
    ///
    /// Fails if the service needs a key and has none, or the base URL is invalid.
    pub fn connect(
        service: Service,
        model: &str,
        endpoint: Endpoint,
    ) -> Result<Self, ConnectError> {
        let values = endpoint.headers.values();
        let long = values.filter(|value| value.len() >= MIN_SECRET);
        let secrets = endpoint.api_key.iter().chain(long).cloned().collect();
        let key = match (endpoint.api_key, service.key_variable()) {
            (Some(key), _) => key,
            (None, Some(variable)) if endpoint.base_url.is_none() => {
                return Err(ConnectError::NoKey { service, variable });
            }
            (None, _) => "none".to_owned(),
        };
        let facts = match &endpoint.base_url {
            // A service at another URL may have different prices and limits for the same name.
            Some(_) => Facts::default(),
            None => Facts::known(service, model),
        };
        let url = service.complete_url(
            endpoint
                .base_url
                .as_deref()
                .unwrap_or(service.default_url()),
        )?;
        let http = http_client(&url)?;
        Ok(Self {
            id: ModelId::new(service.as_str(), model),
            client: Client::builder()
                .with_reqwest(http.clone())
                .build()
                .map_err(|_| ConnectError::BaseUrl {
                    found: url.to_string(),
                })?,
            http,
            relayed: OnceLock::new(),
            target: ServiceTarget {
                endpoint: genai::resolver::Endpoint::from_owned(url.as_str()),
                auth: AuthData::from_single(key),
                model: ModelIden::new(service.adapter(), model.to_owned()),
            },
            url,
            chosen_url: endpoint.base_url,
            secrets,
            headers: endpoint.headers,
            facts,
            header_timeout: endpoint.header_timeout.unwrap_or(HEADER_TIMEOUT),
            calls: KnownCalls::default(),
        })
    }
}

impl Provider for Remote {
    fn chosen_url(&self) -> Option<&str> {
        self.chosen_url.as_deref()
    }

    fn id(&self) -> &ModelId {
        &self.id
    }

    fn context_window(&self) -> Option<u64> {
        self.facts.context_window
    }

    fn price(&self) -> Option<Price> {
        self.facts.price
    }

    fn with_key(&self, key: &str) -> Option<Arc<dyn Provider>> {
        let mut remote = self.clone();
        remote.target.auth = AuthData::from_single(key.to_owned());
        remote.secrets = self
            .secrets
            .iter()
            .cloned()
            .chain([key.to_owned()])
            .collect();
        Some(Arc::new(remote))
    }

    fn stream(
        &self,
        mut request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let adapter = self.target.model.adapter_kind;
        let route = request.exchange.take().map(|exchange| self.route(exchange));
        let client = match &route {
            Some(_) => self.relayed_client(),
            None => Ok(self.client.clone()),
        };
        let mut options = self.options_of(&request);
        if route.is_none() {
            options = options.with_stream_header_timeout(self.header_timeout);
        }
        let chat = chat_request(request, &self.calls);
        let mut target = self.target.clone();
        let secrets = Arc::clone(&self.secrets);
        let reader = Reader {
            known: self.calls.clone(),
            names_its_end: adapter == AdapterKind::Gemini,
        };
        let opened = async move {
            let relay = match route {
                Some(route) => Some(Relay::open(route).await?),
                None => None,
            };
            if let Some(relay) = &relay {
                target.endpoint = genai::resolver::Endpoint::from_owned(relay.base_url.as_str());
            }
            let response = client?.exec_chat_stream(target, chat, Some(&options)).await;
            let events = response.map_err(|error| model_error(&error))?.stream;
            let events = events.flat_map(move |event| stream::iter(reader.events(event)));
            Ok(events.map(move |event| {
                event.map_err(|error| {
                    let cause = relay.as_ref().and_then(Relay::take_failure);
                    presentable(cause.unwrap_or(error), &secrets)
                })
            }))
        };
        stream::once(opened).try_flatten().boxed()
    }
}

impl Remote {
    /// Sets a provider name that differs from the service's.
    #[must_use]
    pub fn named(mut self, provider: &str) -> Self {
        provider.clone_into(&mut self.id.provider);
        self
    }

    /// Adds facts about the model, which take precedence over this crate's own.
    #[must_use]
    pub fn with_facts(mut self, facts: Facts) -> Self {
        self.facts = facts.or(self.facts);
        self
    }

    fn options_of(&self, request: &ModelRequest) -> ChatOptions {
        let mut options = Self::options();
        if let Some(schema) = &request.schema {
            let adapter = self.target.model.adapter_kind;
            options = options.with_response_format(reply_format(adapter, schema));
        }
        if let Some(tokens) = request.max_output_tokens {
            options = options.with_max_tokens(tokens);
        }
        if !self.headers.is_empty() {
            let headers: Vec<_> = self.headers.clone().into_iter().collect();
            options = options.with_extra_headers(headers);
        }
        if let Some(level) = request.thinking {
            options = options.with_reasoning_effort(effort(level));
        }
        options
    }

    fn options() -> ChatOptions {
        ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true)
            .with_stream_read_timeout(READ_TIMEOUT)
    }

    fn route(&self, exchange: ProviderExchange) -> Route {
        Route {
            http: self.http.clone(),
            service: self.url.clone(),
            exchange,
            header_timeout: self.header_timeout,
            tell: |error| transport_error(error),
        }
    }

    /// Returns the client that reaches a relay. The relay is on this machine and uses no TLS, so the client looks for
    /// neither proxies nor certificates. It follows no redirects, because the relay's own client decides about them.
    fn relayed_client(&self) -> Result<Client, ProviderError> {
        if let Some(client) = self.relayed.get() {
            return Ok(client.clone());
        }
        let refused = |error: &dyn fmt::Display| {
            let message = format!("cannot create the HTTP client for observed requests: {error}");
            ProviderError::new(ProviderErrorKind::Refused, message)
        };
        let tls = tls_config_without_roots().map_err(|error| refused(&error))?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(tls)
            .redirect(Policy::none())
            .build()
            .map_err(|error| refused(&error))?;
        let client = Client::builder().with_reqwest(http).build();
        let client = client.map_err(|error| refused(&error))?;
        Ok(self.relayed.get_or_init(|| client).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_asked_for_only_at_the_services_own_address() {
        let error = Remote::connect(Service::OpenAi, "m", Endpoint::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no key for `openai`: `OPENAI_API_KEY` is not set"
        );
        let base_url = Some("http://127.0.0.1:1/v1".to_owned());
        assert!(
            Remote::connect(
                Service::OpenAi,
                "m",
                Endpoint {
                    base_url,
                    ..Endpoint::default()
                }
            )
            .is_ok()
        );
        assert!(Remote::connect(Service::Ollama, "m", Endpoint::default()).is_ok());
    }

    #[test]
    fn an_endpoint_is_read_from_variables_and_hides_its_key() {
        let variable = |name: &str| match name {
            "OPENAI_API_KEY" => Some("canary".to_owned()),
            "OPENAI_BASE_URL" => Some(String::new()),
            _ => None,
        };
        let endpoint = Endpoint::from_variables(Service::OpenAi, variable);
        assert_eq!(
            endpoint,
            Endpoint {
                api_key: Some("canary".to_owned()),
                ..Endpoint::default()
            }
        );
        assert!(!format!("{endpoint:?}").contains("canary"));
        let remote = Remote::connect(Service::OpenAi, "m", endpoint).unwrap();
        assert!(!format!("{remote:?}").contains("canary"));
    }
}
