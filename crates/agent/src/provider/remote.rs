//! Models behind a network service, through the client library `genai`.
//!
//! This module translates messages, answers and errors; the services' protocols are the library's. One
//! call is one request: nothing is retried here.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatResponseFormat, ChatStreamEvent, ContentPart,
    JsonSpec, MessageContent, ReasoningEffort, StreamEnd, Tool, ToolResponse,
};
use genai::resolver::AuthData;
use genai::{Client, ModelIden, ServiceTarget};
use reqwest::Url;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use serde_json::Value;
use tenterhook_handlers::model::ReplySchema;
use tenterhook_protocol::{EventId, JsonObject, Message, Role, ToolCall, Usage};
use thiserror::Error;

use crate::model::ThinkingLevel;
use crate::tool::shortened;

use super::relay::{Relay, Route};
use super::{
    Exchange, Facts, ModelError, ModelErrorKind, ModelEvent, ModelId, ModelRequest, Price,
    Provider, ToolSpec, is_overflow,
};

/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a service may take to begin an answer, unless the endpoint says otherwise.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);

/// How long a service may be silent in the middle of an answer.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// How many characters of an error are shown.
const SHOWN: usize = 600;

/// How often a service may send a request to another place of its own.
const MOST_REDIRECTS: usize = 5;

/// A model service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// OpenAI, and every service that speaks its chat protocol.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Gemini.
    Gemini,
    /// Ollama.
    Ollama,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    /// Returns the name in model ids and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the environment variable of the key, if the service has keys.
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("OPENAI_API_KEY"),
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::Gemini => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }

    /// Returns the environment variable of the base URL.
    pub const fn url_variable(self) -> &'static str {
        match self {
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    const fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }

    const fn adapter(self) -> AdapterKind {
        match self {
            Self::OpenAi => AdapterKind::OpenAI,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    /// Returns the URL that paths are appended to. The services' own programs write it with or without
    /// the version and the scheme, and both are understood.
    fn complete_url(self, given: &str) -> Result<Url, ConnectError> {
        let given = given.trim_end_matches('/');
        let mut url = if given.contains("://") {
            given.to_owned()
        } else {
            format!("http://{given}")
        };
        match self {
            Self::Anthropic if !url.ends_with("/v1") => url.push_str("/v1"),
            Self::Gemini if !url.contains("/v1") => url.push_str("/v1beta"),
            Self::Ollama => url.truncate(url.strip_suffix("/v1").map_or(url.len(), str::len)),
            Self::OpenAi | Self::Anthropic | Self::Gemini => {}
        }
        url.push('/');
        Url::parse(&url).map_err(|_| ConnectError::BaseUrl {
            found: given.to_owned(),
        })
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a service is reached, and with which key.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Endpoint {
    /// The base URL. Unset, it is the service's own.
    pub base_url: Option<String>,
    /// The key. A service at a base URL of the user's may need none.
    pub api_key: Option<String>,
    /// How long the service may take to begin an answer. Unset, it is two minutes.
    pub header_timeout: Option<Duration>,
}

impl Endpoint {
    /// Reads the endpoint of `service` from environment variables, such as `OPENAI_BASE_URL` and
    /// `OPENAI_API_KEY`. Empty variables count as unset.
    pub fn from_variables(service: Service, variable: impl Fn(&str) -> Option<String>) -> Self {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        Self {
            base_url: variable(service.url_variable()),
            api_key: service.key_variable().and_then(variable),
            header_timeout: None,
        }
    }
}

/// Shows no key.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.base_url)
            .field("has_key", &self.api_key.is_some())
            .field("header_timeout", &self.header_timeout)
            .finish()
    }
}

/// A service that cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// There is no key.
    #[error("there is no key for `{service}`: `{variable}` is not set")]
    NoKey {
        /// The service.
        service: Service,
        /// The variable that holds the key.
        variable: &'static str,
    },
    /// The base URL is none.
    #[error("`{found}` is no base URL")]
    BaseUrl {
        /// What was given.
        found: String,
    },
    /// The client cannot be made.
    #[error("cannot make the HTTP client")]
    Client(#[source] reqwest::Error),
}

/// A model of a service.
pub struct Remote {
    id: ModelId,
    http: reqwest::Client,
    client: Client,
    /// Reaches a relay; made when somebody first wants to see what is sent.
    relayed: OnceLock<Client>,
    url: Url,
    /// The key, if there is one: it may stand in what the service says of a request that it refuses.
    key: Option<Arc<str>>,
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
    /// Makes a client for a model of `service`. No request is sent.
    ///
    /// # Errors
    ///
    /// Fails if the service needs a key that is not there, or the base URL is none.
    pub fn connect(
        service: Service,
        model: &str,
        endpoint: Endpoint,
    ) -> Result<Self, ConnectError> {
        let secret = endpoint.api_key.as_deref().map(Arc::from);
        let key = match (endpoint.api_key, service.key_variable()) {
            (Some(key), _) => key,
            (None, Some(variable)) if endpoint.base_url.is_none() => {
                return Err(ConnectError::NoKey { service, variable });
            }
            (None, _) => "none".to_owned(),
        };
        let facts = match &endpoint.base_url {
            // Who else answers under that name has prices and limits of its own.
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
            key: secret,
            facts,
            header_timeout: endpoint.header_timeout.unwrap_or(HEADER_TIMEOUT),
            calls: KnownCalls::default(),
        })
    }
}

/// Makes the HTTP client. A service on this machine is never asked through a proxy.
pub(super) fn http_client(url: &Url) -> Result<reqwest::Client, ConnectError> {
    // The HTTP client asks the process for its TLS provider; one that the host chose stays.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(within_the_service())
        .tcp_nodelay(true);
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let builder = if is_local {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build().map_err(ConnectError::Client)
}

/// Follows a service to no other address: the HTTP client takes keys in headers of the services' own anywhere.
fn within_the_service() -> Policy {
    Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        let is_own = from == Some(attempt.url().origin());
        if is_own && attempt.previous().len() <= MOST_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

impl Provider for Remote {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn context_window(&self) -> Option<u64> {
        self.facts.context_window
    }

    fn price(&self) -> Option<Price> {
        self.facts.price
    }

    fn stream(
        &self,
        mut request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let adapter = self.target.model.adapter_kind;
        let route = request.exchange.take().map(|exchange| self.route(exchange));
        let client = match &route {
            Some(_) => self.relayed_client(),
            None => Ok(self.client.clone()),
        };
        let mut options = Self::options();
        if let Some(schema) = &request.schema {
            options = options.with_response_format(reply_format(adapter, schema));
        }
        if let Some(level) = request.thinking {
            options = options.with_reasoning_effort(effort(level));
        }
        if route.is_none() {
            options = options.with_stream_header_timeout(self.header_timeout);
        }
        let chat = chat_request(request, &self.calls);
        let mut target = self.target.clone();
        let key = self.key.clone();
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
                    presentable(cause.unwrap_or(error), key.as_deref())
                })
            }))
        };
        stream::once(opened).try_flatten().boxed()
    }
}

impl Remote {
    /// Calls the provider by another name than the service's.
    #[must_use]
    pub fn named(mut self, provider: &str) -> Self {
        provider.clone_into(&mut self.id.provider);
        self
    }

    /// Says what is known of the model better than this crate does.
    #[must_use]
    pub fn with_facts(mut self, facts: Facts) -> Self {
        self.facts = facts.or(self.facts);
        self
    }

    fn options() -> ChatOptions {
        ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true)
            .with_stream_read_timeout(READ_TIMEOUT)
    }

    fn route(&self, exchange: Exchange) -> Route {
        Route {
            http: self.http.clone(),
            service: self.url.clone(),
            exchange,
            header_timeout: self.header_timeout,
            tell: |error| transport_error(error),
        }
    }

    /// Returns the client that reaches a relay. It is on this machine and speaks no TLS: neither proxies nor
    /// certificates are looked for. Where the service leads elsewhere it does not go: the relay's own client decides that.
    fn relayed_client(&self) -> Result<Client, ModelError> {
        if let Some(client) = self.relayed.get() {
            return Ok(client.clone());
        }
        let refused = |error: &dyn fmt::Display| {
            let message =
                format!("cannot make the HTTP client that shows hooks the request: {error}");
            ModelError::new(ModelErrorKind::Refused, message)
        };
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]);
        let http = http
            .redirect(Policy::none())
            .build()
            .map_err(|error| refused(&error))?;
        let client = Client::builder().with_reqwest(http).build();
        let client = client.map_err(|error| refused(&error))?;
        Ok(self.relayed.get_or_init(|| client).clone())
    }
}

/// The tool calls of the conversation by id, each with what the service wants back with it. That means
/// nothing to anyone else, so it stays out of the session.
#[derive(Clone, Default)]
struct KnownCalls(Arc<Mutex<BTreeMap<String, Option<Vec<String>>>>>);

impl KnownCalls {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<String>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id for a new call. Where a service gives no ids the library counts, and counts from
    /// the start in each answer; an id that is taken makes way for a fresh one.
    fn adopt(&self, id: String, signatures: Option<Vec<String>>) -> String {
        let mut known = self.lock();
        let is_usable = !id.is_empty() && !known.contains_key(&id);
        let id = if is_usable {
            id
        } else {
            format!("call_{}", EventId::generate())
        };
        known.insert(id.clone(), signatures);
        id
    }

    /// Learns of a call that another process made, and returns what belongs to it.
    fn signatures(&self, id: &str) -> Option<Vec<String>> {
        self.lock().entry(id.to_owned()).or_default().clone()
    }
}

/// Returns what the service is told of the answer's form. The library has no schemas for Ollama.
fn reply_format(adapter: AdapterKind, schema: &ReplySchema) -> ChatResponseFormat {
    if adapter == AdapterKind::Ollama {
        return ChatResponseFormat::JsonMode;
    }
    JsonSpec::new(schema.name.clone(), schema.schema.clone()).into()
}

fn effort(level: ThinkingLevel) -> ReasoningEffort {
    match level {
        ThinkingLevel::Off => ReasoningEffort::Zero,
        ThinkingLevel::Minimal => ReasoningEffort::Minimal,
        ThinkingLevel::Low => ReasoningEffort::Low,
        ThinkingLevel::Medium => ReasoningEffort::Medium,
        ThinkingLevel::High => ReasoningEffort::High,
        ThinkingLevel::XHigh => ReasoningEffort::XHigh,
    }
}

fn chat_request(request: ModelRequest, known: &KnownCalls) -> ChatRequest {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut results: Vec<ToolResponse> = Vec::new();
    for message in request.messages.into_vec() {
        if message.role != Role::Tool && !results.is_empty() {
            // A service wants all results of one answer in one message.
            messages.push(std::mem::take(&mut results).into());
        }
        for call in &message.tool_calls {
            names.insert(call.id.to_string(), call.name.clone());
        }
        match message.role {
            Role::System => messages.push(ChatMessage::system(message.content)),
            Role::Assistant => messages.push(assistant_message(message, known)),
            Role::Tool => results.push(tool_response(&message, &names)),
            Role::User | _ => messages.push(user_message(message)),
        }
    }
    if !results.is_empty() {
        messages.push(results.into());
    }
    let tools: Vec<Tool> = request.tools.into_iter().map(tool).collect();
    let chat = ChatRequest::new(messages);
    if tools.is_empty() {
        chat
    } else {
        chat.with_tools(tools)
    }
}

fn tool(spec: ToolSpec) -> Tool {
    Tool::new(spec.name)
        .with_description(spec.description)
        .with_schema(spec.schema)
}

fn user_message(message: Message) -> ChatMessage {
    let mut parts = vec![ContentPart::Text(message.content)];
    for image in message.images {
        parts.push(ContentPart::from_binary_base64(
            image.media_type,
            image.data,
            None,
        ));
    }
    ChatMessage::user(MessageContent::from_parts(parts))
}

fn assistant_message(message: Message, known: &KnownCalls) -> ChatMessage {
    let mut parts = Vec::new();
    if !message.content.is_empty() {
        parts.push(ContentPart::Text(message.content));
    }
    for call in message.tool_calls {
        parts.push(ContentPart::ToolCall(genai::chat::ToolCall {
            thought_signatures: known.signatures(call.id.as_str()),
            call_id: call.id.to_string(),
            fn_name: call.name,
            fn_arguments: call.arguments,
        }));
    }
    ChatMessage::assistant(MessageContent::from_parts(parts))
}

fn tool_response(message: &Message, names: &BTreeMap<String, String>) -> ToolResponse {
    let id = message
        .tool_call_id
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let response = ToolResponse::new(id.clone(), message.content.clone());
    match names.get(&id) {
        Some(name) => response.with_fn_name(name.clone()),
        None => response,
    }
}

/// Reads the answers of one service.
struct Reader {
    known: KnownCalls,
    /// The service says why an answer ended. The library ends an answer of it also where the stream
    /// just stopped, and only the missing reason tells.
    names_its_end: bool,
}

impl Reader {
    fn events(&self, event: genai::Result<ChatStreamEvent>) -> Vec<Result<ModelEvent, ModelError>> {
        match event {
            Ok(ChatStreamEvent::Chunk(chunk)) => vec![Ok(ModelEvent::Text(chunk.content))],
            Ok(ChatStreamEvent::ReasoningChunk(chunk)) => {
                vec![Ok(ModelEvent::Reasoning(chunk.content))]
            }
            Ok(ChatStreamEvent::End(end))
                if self.names_its_end && end.captured_stop_reason.is_none() =>
            {
                Vec::new()
            }
            Ok(ChatStreamEvent::End(end)) => self.end_events(end),
            Ok(
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::ToolCallChunk(_)
                | ChatStreamEvent::Heartbeat,
            ) => Vec::new(),
            Err(error) => vec![Err(model_error(&error))],
        }
    }

    /// Tool calls are taken from the end, where the library has put their pieces together.
    fn end_events(&self, end: StreamEnd) -> Vec<Result<ModelEvent, ModelError>> {
        let usage = end.captured_usage.as_ref().map(usage);
        let mut events = Vec::new();
        for call in end.captured_into_tool_calls().unwrap_or_default() {
            events.push(Ok(ModelEvent::ToolCall(ToolCall {
                id: self
                    .known
                    .adopt(call.call_id, call.thought_signatures)
                    .into(),
                name: call.fn_name,
                arguments: object_or_raw(call.fn_arguments),
            })));
        }
        events.extend(usage.map(|usage| Ok(ModelEvent::Usage(usage))));
        events.push(Ok(ModelEvent::End));
        events
    }
}

/// Some services write no arguments as an empty text or null.
fn object_or_raw(arguments: Value) -> Value {
    match &arguments {
        Value::Null => Value::Object(JsonObject::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(JsonObject::new()),
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => arguments,
    }
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    Usage {
        input_tokens: count(usage.prompt_tokens).unwrap_or_default(),
        output_tokens: count(usage.completion_tokens).unwrap_or_default(),
        cached_input_tokens: count(prompt.and_then(|details| details.cached_tokens))
            .unwrap_or_default(),
        cached_write_tokens: count(prompt.and_then(|details| details.cache_creation_tokens))
            .unwrap_or_default(),
        reasoning_tokens: count(completion.and_then(|details| details.reasoning_tokens)),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's other errors are all about the request or its own set-up"
)]
fn model_error(error: &genai::Error) -> ModelError {
    match error {
        genai::Error::HttpError {
            status,
            body,
            headers,
            ..
        } => status_error(status.as_u16(), body, headers),
        genai::Error::WebStream { error: inner, .. } => {
            match inner.downcast_ref::<genai::Error>() {
                Some(inner) => model_error(inner),
                None => transport_error(inner.as_ref()),
            }
        }
        genai::Error::StreamParse { serde_error, .. } => ModelError::new(
            ModelErrorKind::Broken,
            format!("the answer broke off or is unreadable: {serde_error}"),
        ),
        genai::Error::ChatResponse { body, .. } => event_error(body),
        other => ModelError::new(ModelErrorKind::Refused, other.to_string()),
    }
}

fn status_error(status: u16, body: &str, headers: &HeaderMap) -> ModelError {
    let text = serde_json::from_str(body)
        .ok()
        .and_then(|body: Value| message_of(&body));
    let text = text.unwrap_or_else(|| body.to_owned());
    let kind = match status {
        _ if is_overflow(body) => ModelErrorKind::ContextOverflow,
        408 | 425 | 429 | 500..=599 => ModelErrorKind::Unavailable,
        _ => ModelErrorKind::Refused,
    };
    let message = if text.is_empty() {
        format!("the model service answered with status {status}")
    } else {
        format!("the model service answered with status {status}: {text}")
    };
    ModelError {
        retry_after: retry_after(headers),
        ..ModelError::new(kind, message)
    }
}

/// Reads an error that the service sent in the middle of a stream.
fn event_error(body: &Value) -> ModelError {
    let whole = body.to_string();
    let text = message_of(body).unwrap_or_else(|| whole.clone());
    let is_busy = [
        "overloaded",
        "rate_limit",
        "server_error",
        "api_error",
        "unavailable",
    ];
    let kind = if is_overflow(&whole) {
        ModelErrorKind::ContextOverflow
    } else if is_busy.iter().any(|word| whole.contains(word)) {
        ModelErrorKind::Unavailable
    } else {
        ModelErrorKind::Refused
    };
    ModelError::new(kind, text)
}

/// Takes the key out of an error, since services say which key they refuse, and then cuts it short: half a key would be
/// shown otherwise.
fn presentable(error: ModelError, key: Option<&str>) -> ModelError {
    let message = match key.filter(|key| !key.is_empty()) {
        Some(key) => error.message.replace(key, "[the key]"),
        None => error.message,
    };
    ModelError {
        message: shortened(&message, SHOWN),
        ..error
    }
}

fn transport_error(error: &(dyn std::error::Error + 'static)) -> ModelError {
    let is_connect = error
        .downcast_ref::<reqwest::Error>()
        .is_some_and(reqwest::Error::is_connect);
    let kind = if is_connect {
        ModelErrorKind::Unavailable
    } else {
        ModelErrorKind::Broken
    };
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    ModelError::new(kind, message)
}

/// Finds the sentence in an error body: services put it at `error.message`, `message` or `error`.
fn message_of(body: &Value) -> Option<String> {
    let found = ["/error/message", "/message", "/error", "/0/error/message"]
        .iter()
        .find_map(|path| body.pointer(path)?.as_str());
    found.map(str::to_owned)
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number =
        |name: &str| -> Option<u64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let millis = number("retry-after-ms").map(Duration::from_millis);
    millis.or_else(|| number("retry-after").map(Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_completed() {
        for (service, given, expected) in [
            (
                Service::OpenAi,
                "http://127.0.0.1:9/v1",
                "http://127.0.0.1:9/v1/",
            ),
            (
                Service::OpenAi,
                "http://127.0.0.1:9/",
                "http://127.0.0.1:9/",
            ),
            (
                Service::Anthropic,
                "https://api.anthropic.com",
                "https://api.anthropic.com/v1/",
            ),
            (
                Service::Anthropic,
                "https://x.test/v1/",
                "https://x.test/v1/",
            ),
            (Service::Gemini, "https://x.test", "https://x.test/v1beta/"),
            (
                Service::Ollama,
                "127.0.0.1:11434",
                "http://127.0.0.1:11434/",
            ),
            (
                Service::Ollama,
                "http://localhost:11434/v1",
                "http://localhost:11434/",
            ),
        ] {
            assert_eq!(service.complete_url(given).unwrap().as_str(), expected);
        }
        let error = Service::OpenAi.complete_url("not a url").unwrap_err();
        assert_eq!(error.to_string(), "`not a url` is no base URL");
    }

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
                base_url: None,
                api_key: Some("canary".to_owned()),
                header_timeout: None,
            }
        );
        assert!(!format!("{endpoint:?}").contains("canary"));
        let remote = Remote::connect(Service::OpenAi, "m", endpoint).unwrap();
        assert!(!format!("{remote:?}").contains("canary"));
    }

    #[test]
    fn results_of_one_answer_go_into_one_message() {
        let call = |id: &str| ToolCall {
            id: id.into(),
            name: "shell".to_owned(),
            arguments: Value::Null,
        };
        let tool_calls = vec![call("a"), call("b")];
        let messages = vec![
            Message::user("do"),
            Message {
                tool_calls,
                ..Message::assistant("")
            },
            Message::tool("a".into(), "one", false),
            Message::tool("b".into(), "two", false),
            Message::user("more"),
        ];
        let chat = chat_request(
            ModelRequest {
                messages: messages.into(),
                ..ModelRequest::default()
            },
            &KnownCalls::default(),
        );
        assert_eq!(chat.messages.len(), 4);
        let results = chat.messages[2].content.tool_responses();
        let names: Vec<_> = results
            .iter()
            .map(|result| (&*result.call_id, result.fn_name.as_deref()))
            .collect();
        assert_eq!(names, [("a", Some("shell")), ("b", Some("shell"))]);
    }

    #[test]
    fn statuses_have_kinds_and_waits() {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", "7".parse().unwrap());
        let busy = status_error(429, r#"{"error":{"message":"slow down"}}"#, &headers);
        assert_eq!(busy.kind, ModelErrorKind::Unavailable);
        assert_eq!(busy.retry_after, Some(Duration::from_secs(7)));
        assert_eq!(
            busy.message,
            "the model service answered with status 429: slow down"
        );
        let long = status_error(
            400,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            &HeaderMap::new(),
        );
        assert_eq!(long.kind, ModelErrorKind::ContextOverflow);
        assert_eq!(
            status_error(401, "no", &HeaderMap::new()).kind,
            ModelErrorKind::Refused
        );
        assert_eq!(
            status_error(529, "", &HeaderMap::new()).kind,
            ModelErrorKind::Unavailable
        );
    }
}
