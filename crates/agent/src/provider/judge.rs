//! Model hooks through the agent's own providers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use futures_util::stream::StreamExt as _;
use tenterhook_handlers::model::{ModelClient, ModelError, ModelQuestion};
use tenterhook_protocol::Message;
use tokio::sync::Mutex;

use super::{ModelEvent, ModelRequest, OpenError, Provider, Providers, Purpose};

/// Reads a variable of the environment.
type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Asks the models that hooks name. Each is opened when it is first asked, and stays open.
///
/// The calls are none of a session's: no event fires for them, and their tokens are not counted.
pub struct Judges {
    opener: Arc<Opener>,
    session: OnceLock<Arc<dyn Provider>>,
    providers: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

/// Opens models by their names.
struct Opener {
    named: Arc<Providers>,
    variables: Box<Variables>,
    /// A provider that is reached at another URL than its own.
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

impl fmt::Debug for Judges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judges")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl Judges {
    /// Makes a client that knows the names of `named`, and reads keys and URLs through `variables`. Nothing is opened.
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

    /// Lets the model of the session answer, if it is one that [answers hooks](Provider::answers_hooks). Only the
    /// first call counts.
    pub fn attach(&self, session: &Arc<dyn Provider>) {
        if session.answers_hooks() {
            self.session.get_or_init(|| Arc::clone(session));
        }
    }

    /// Reaches a provider at another URL than its own. Only the first call counts.
    pub fn reach(&self, provider: &str, base_url: &str) {
        let other = || (provider.to_owned(), base_url.to_owned());
        self.opener.base_url.get_or_init(other);
    }

    /// Opens a model by its name, as those of hooks are opened. It may wait for the disk.
    ///
    /// # Errors
    ///
    /// Fails if the name is none, if its key cannot be had, and if the model cannot be used.
    pub fn open(&self, model: &str) -> Result<Arc<dyn Provider>, OpenError> {
        self.opener.open(model)
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
        let (opener, wanted) = (Arc::clone(&self.opener), model.to_owned());
        // A script is read from the disk, and so are keys and the certificates of a service.
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
        let checked = self.opener.named.check(model);
        checked.err().map(|error| error.to_string())
    }
}
