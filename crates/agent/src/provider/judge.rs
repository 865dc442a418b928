//! Model hooks through the agent's own providers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt as _;
use tenterhook_handlers::model::{ModelClient, ModelError, ModelQuestion};
use tenterhook_protocol::Message;
use tokio::sync::Mutex;

use super::{Endpoint, ModelChoice, ModelEvent, ModelRequest, Provider, Purpose, Service};

/// Tells where a service is reached.
type Endpoints = Box<dyn Fn(Service) -> Endpoint + Send + Sync>;

/// Asks the models that hooks name. Each is opened when it is first asked, and stays open.
///
/// The calls are none of a session's: no event fires for them, and their tokens are not counted.
pub struct Judges {
    endpoints: Endpoints,
    session: OnceLock<Arc<dyn Provider>>,
    base_url: OnceLock<(Service, String)>,
    providers: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

impl fmt::Debug for Judges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judges")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Judges {
    /// Makes a client that reaches services at `endpoints`. Nothing is opened.
    pub fn new(endpoints: impl Fn(Service) -> Endpoint + Send + Sync + 'static) -> Self {
        Self {
            endpoints: Box::new(endpoints),
            session: OnceLock::new(),
            base_url: OnceLock::new(),
            providers: Mutex::default(),
        }
    }

    /// Lets the model of the session answer, if it is one that [answers hooks](Provider::answers_hooks). Only the
    /// first call counts.
    pub fn attach(&self, session: &Arc<dyn Provider>) {
        if session.answers_hooks() {
            self.session.get_or_init(|| Arc::clone(session));
        }
    }

    /// Reaches a service at another URL than its endpoint says. Only the first call counts.
    pub fn reach(&self, service: Service, base_url: &str) {
        self.base_url.get_or_init(|| (service, base_url.to_owned()));
    }

    fn endpoint(&self, choice: &ModelChoice) -> Endpoint {
        let ModelChoice::Remote { service, .. } = choice else {
            return Endpoint::default();
        };
        let endpoint = (self.endpoints)(*service);
        let other = self.base_url.get().filter(|(known, _)| known == service);
        Endpoint {
            base_url: other.map(|(_, url)| url.clone()).or(endpoint.base_url),
            ..endpoint
        }
    }

    async fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, ModelError> {
        if let Some(session) = self.session.get() {
            return Ok(Arc::clone(session));
        }
        // Held while a model is opened: two hooks of one script must not open it twice.
        let mut providers = self.providers.lock().await;
        if let Some(provider) = providers.get(model) {
            return Ok(Arc::clone(provider));
        }
        let choice: ModelChoice = model
            .parse()
            .map_err(|error: super::InvalidModel| ModelError::new(error.to_string()))?;
        let endpoint = self.endpoint(&choice);
        // A script is read from the disk, and so are the certificates of a service.
        let opened = tokio::task::spawn_blocking(move || choice.open(endpoint)).await;
        let provider = opened
            .map_err(|error| ModelError::new(error.to_string()))?
            .map_err(|error| ModelError::new(error.to_string()))?;
        providers.insert(model.to_owned(), Arc::clone(&provider));
        Ok(provider)
    }

    async fn answer(&self, question: ModelQuestion) -> Result<String, ModelError> {
        let provider = self.provider(&question.model).await?;
        let mut stream = provider.stream(ModelRequest {
            messages: vec![
                Message::system(question.system),
                Message::user(question.prompt),
            ]
            .into(),
            purpose: Purpose::Judge,
            schema: question.schema,
            ..ModelRequest::default()
        });
        let mut reply = String::new();
        while let Some(event) = stream.next().await {
            match event.map_err(|error| ModelError::new(error.to_string()))? {
                ModelEvent::Text(text) => reply.push_str(&text),
                ModelEvent::Reasoning(_) | ModelEvent::Usage(_) => {}
                ModelEvent::ToolCall(call) => {
                    let message = format!("it called the tool `{}`, and has none", call.name);
                    return Err(ModelError::new(message));
                }
                ModelEvent::End => return Ok(reply),
            }
            if reply.len() > question.reply_limit {
                let limit = question.reply_limit;
                return Err(ModelError::new(format!(
                    "the reply is longer than {limit} bytes"
                )));
            }
        }
        Err(ModelError::new("the answer stopped before its end"))
    }
}

impl ModelClient for Judges {
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, ModelError>> {
        Box::pin(self.answer(question))
    }

    fn problem(&self, model: &str) -> Option<String> {
        let parsed: Result<ModelChoice, _> = model.parse();
        parsed.err().map(|error| error.to_string())
    }
}
