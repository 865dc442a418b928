//! Answers model hooks with the providers of this crate.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt as _;
use tenterhook_protocol::Message;
use tenterhook_runners::model::{ModelClient, ModelError, ModelQuestion};
use tokio::sync::Mutex;

use crate::choice::OpenError;
use crate::provider::{ModelEvent, ModelRequest, Provider, Purpose};
use crate::providers::Providers;

/// Reads an environment variable.
pub(crate) type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Calls the models that hooks name. Each is opened on first use and stays open.
///
/// These calls do not belong to a session: no event fires for them, and their tokens are not counted.
pub struct ModelClients {
    opener: Arc<Opener>,
    session: OnceLock<Arc<dyn Provider>>,
    providers: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

/// Opens models by name.
struct Opener {
    named: Arc<Providers>,
    variables: Box<Variables>,
    /// A provider, and the base URL to use instead of its own.
    base_url: OnceLock<(String, String)>,
}

impl Opener {
    fn open(&self, model: &str) -> Result<Arc<dyn Provider>, OpenError> {
        let provider = self.named.provider_of(model);
        let other = self.base_url.get();
        let other = other.filter(|(known, _)| Some(known.as_str()) == provider);
        let base_url = other.map(|(_, url)| url.as_str());
        self.named.open(model, base_url, &*self.variables)
    }
}

impl fmt::Debug for ModelClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClients")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl ModelClients {
    /// Creates clients that know the names in `named` and read keys and URLs through `variables`. It opens no model.
    pub fn new(
        named: Arc<Providers>,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            opener: Arc::new(Opener {
                named,
                variables: Box::new(variables),
                base_url: OnceLock::new(),
            }),
            session: OnceLock::new(),
            providers: Mutex::default(),
        }
    }

    /// Lets the session's model answer hooks, if it [does that](Provider::answers_hooks). Only the first call has an
    /// effect.
    pub fn attach(&self, session: &Arc<dyn Provider>) {
        if session.answers_hooks() {
            self.session.get_or_init(|| Arc::clone(session));
        }
    }

    /// Sets another base URL for a provider. Only the first call has an effect.
    pub fn reach(&self, provider: &str, base_url: &str) {
        let other = || (provider.to_owned(), base_url.to_owned());
        self.opener.base_url.get_or_init(other);
    }

    /// Opens a model by name, in the same way as for hooks. This may read files.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown, if its key cannot be read, or if the model cannot be used.
    pub fn open(&self, model: &str) -> Result<Arc<dyn Provider>, OpenError> {
        self.opener.open(model)
    }

    /// Returns the names for services and models, and the function that reads environment variables.
    pub(crate) fn known(&self) -> (&Providers, &Variables) {
        (&self.opener.named, &*self.opener.variables)
    }

    /// Returns the provider that is reached at another base URL, and that URL.
    pub(crate) fn other_base_url(&self) -> Option<&(String, String)> {
        self.opener.base_url.get()
    }

    async fn provider(&self, model: &str) -> Result<Arc<dyn Provider>, ModelError> {
        if let Some(session) = self.session.get() {
            return Ok(Arc::clone(session));
        }
        // The lock is held while a model is opened, so that two hooks cannot open the same script twice.
        let mut providers = self.providers.lock().await;
        if let Some(provider) = providers.get(model) {
            return Ok(Arc::clone(provider));
        }
        let (opener, wanted) = (Arc::clone(&self.opener), model.to_owned());
        // Opening reads scripts, keys and certificates from the disk.
        let done = tokio::task::spawn_blocking(move || opener.open(&wanted)).await;
        let provider = done
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
                    let message =
                        format!("it called the tool `{}`, but it has no tools", call.name);
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

impl ModelClient for ModelClients {
    fn ask(&self, question: ModelQuestion) -> BoxFuture<'_, Result<String, ModelError>> {
        Box::pin(self.answer(question))
    }

    fn problem(&self, model: &str) -> Option<String> {
        let checked = self.opener.named.check(model);
        checked.err().map(|error| error.to_string())
    }
}
