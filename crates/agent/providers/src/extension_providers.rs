//! The providers of models that scripts register.
//!
//! The key of such a provider comes from its script, and is requested when a model is first called. The keys of the
//! user's own providers never go to an address that a script chose: not by default, and not if the script itself passes
//! one of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use reqwest::Url;
use serde::Deserialize as _;
use tenterhook_runners::worker::{Lease, ScriptCredentials, ScriptModel, ScriptProvider, Worker};
use tokio::sync::OnceCell;

use crate::choice::{InvalidModel, OpenError};
use crate::error::{ProviderError, ProviderErrorKind};
use crate::facts::{Facts, Price};
use crate::model_clients::ModelClients;
use crate::models_file::is_base_url;
use crate::provider::{ModelEvent, ModelId, ModelRequest, Provider};
use crate::remote::Remote;
use crate::script::PROVIDER;
use crate::script_stream::script_stream;
use crate::service::{Endpoint, Service};

/// How long a script may take to find the key of its provider. It may have to run a command.
const MAX_CREDENTIALS: Duration = Duration::from_secs(30);

/// The minimum number of characters of a key that is searched for within other values.
const MIN_KEY: usize = 8;

/// The providers of models that scripts register.
#[derive(Debug)]
pub struct ExtensionProviders {
    clients: Arc<ModelClients>,
    providers: BTreeMap<String, Arc<Registered>>,
}

/// A provider that a script registered.
pub(crate) struct Registered {
    provider: ScriptProvider,
    pub(crate) worker: Worker,
    pub(crate) lease: Lease,
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registered")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// An address that a script chose for one call.
#[derive(Debug, Default)]
pub struct ScriptEndpoint {
    /// The name of the service whose protocol is spoken there.
    pub service: String,
    /// The base URL.
    pub base_url: String,
    /// The key and the headers.
    pub credentials: ScriptCredentials,
}

impl ExtensionProviders {
    /// Creates the list from the providers of each script, and what keeps the script loaded. Of several providers with
    /// the same name, the first is used. `clients` knows the user's own providers.
    pub fn new(
        clients: Arc<ModelClients>,
        scripts: impl IntoIterator<Item = (Vec<ScriptProvider>, Worker, Lease)>,
    ) -> Self {
        let mut providers = BTreeMap::new();
        for (registered, worker, lease) in scripts {
            for provider in registered {
                let name = provider.name.clone();
                let (worker, lease) = (worker.clone(), lease.clone());
                let registered = || {
                    Arc::new(Registered {
                        provider,
                        worker,
                        lease,
                    })
                };
                providers.entry(name).or_insert_with(registered);
            }
        }
        Self { clients, providers }
    }

    /// Describes how scripts change the calls of the user's own providers.
    pub fn changes(&self) -> impl Iterator<Item = String> {
        let (known, _) = self.clients.known();
        let providers = self
            .providers
            .values()
            .map(|registered| &registered.provider);
        let changed = providers.filter(|provider| known.service_of(&provider.name).is_some());
        changed.map(|ScriptProvider { name, base_url, .. }| match base_url {
            Some(url) => {
                format!("an extension sends the model calls of the provider `{name}` to `{url}`")
            }
            None => {
                format!("an extension adds headers to the model calls of the provider `{name}`")
            }
        })
    }

    /// Checks whether a string names a model of a script or of the user, without opening it.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown.
    pub fn check(&self, name: &str) -> Result<(), InvalidModel> {
        match self.find(name)? {
            Some(_) => Ok(()),
            None => self.clients.known().0.check(name),
        }
    }

    /// Opens a model by name. A model of a script takes precedence over a model of the user with the same name. This
    /// may read files.
    ///
    /// # Errors
    ///
    /// Fails if the name is unknown, if its key cannot be read, or if the model cannot be used.
    pub fn open(&self, name: &str) -> Result<Arc<dyn Provider>, OpenError> {
        match self.find(name)? {
            Some(provider) => Ok(provider),
            None => self.clients.open(name),
        }
    }

    /// Returns the names of the models that scripts list, each as `provider/model`.
    pub fn model_names(&self) -> impl Iterator<Item = String> {
        self.providers.values().flat_map(|registered| {
            let provider = &registered.provider;
            let models = provider.models.iter();
            models.map(|model| format!("{}/{}", provider.name, model.id))
        })
    }

    /// Returns the model with this name, or `None` if its provider is not in the list.
    fn find(&self, name: &str) -> Result<Option<Arc<dyn Provider>>, InvalidModel> {
        let Some((provider, id)) = name.split_once([':', '/']) else {
            return Ok(None);
        };
        // A scripted model is never replaced, so that a test runs the model that it names.
        let registered = self.providers.get(provider);
        let Some(registered) = registered.filter(|_| provider != PROVIDER) else {
            return Ok(None);
        };
        let mut models = registered.provider.models.iter();
        let listed = models.find(|model| model.id == id);
        if id.is_empty() || (listed.is_none() && !registered.provider.models.is_empty()) {
            return Err(InvalidModel {
                found: name.to_owned(),
                services: Service::ALL
                    .map(|service| format!("`{service}`"))
                    .join(", "),
                names: self.model_names().collect(),
            });
        }
        Ok(Some(Arc::new(ExtensionModel {
            id: ModelId::new(provider, id),
            facts: self.facts_of((provider, id), listed),
            registered: Arc::clone(registered),
            listed: listed.cloned(),
            clients: Arc::clone(&self.clients),
            key: None,
            remote: Arc::default(),
        })))
    }

    fn facts_of(&self, (provider, id): (&str, &str), listed: Option<&ScriptModel>) -> Facts {
        let (known, _) = self.clients.known();
        let of_user = known.facts_of(provider, id);
        let Some(listed) = listed else {
            let service = known.service_of(provider);
            let own = service.map(|service| Facts::known(service, id));
            return of_user.or(own.unwrap_or_default());
        };
        of_user.or(Facts {
            context_window: listed.context_window,
            // A price that is not written as one is unknown.
            price: Price::deserialize(&listed.price).ok(),
        })
    }

    /// Opens a model at an address that a script chose.
    ///
    /// # Errors
    ///
    /// Fails if the address is invalid, or if the script would send the key of another provider to it.
    pub async fn open_at(
        &self,
        (provider, id): (&str, &str),
        endpoint: ScriptEndpoint,
    ) -> Result<Arc<dyn Provider>, ProviderError> {
        let service = service(&endpoint.service)?;
        let target = Address {
            provider: provider.to_owned(),
            id: id.to_owned(),
            service,
            base_url: endpoint.base_url,
        };
        let clients = Arc::clone(&self.clients);
        let connecting = move || connect(&clients, &target, endpoint.credentials);
        let remote = blocking(connecting).await?;
        Ok(Arc::new(remote))
    }
}

/// The address of a model, which a script chose.
struct Address {
    provider: String,
    id: String,
    service: Service,
    base_url: String,
}

/// Connects to an address that a script chose, with the script's key. May read key files.
fn connect(
    clients: &ModelClients,
    address: &Address,
    credentials: ScriptCredentials,
) -> Result<Remote, ProviderError> {
    let Address {
        provider,
        id,
        service,
        base_url,
    } = address;
    if !is_base_url(base_url) {
        return Err(refused(format!(
            "the `baseUrl` of the provider `{provider}` is not a web address; expected one such as `https://host/v1`"
        )));
    }
    let url = service.complete_url(base_url);
    let url = url.map_err(|error| refused(error.to_string()))?;
    check_keys(clients, provider, &url, &credentials)?;
    let endpoint = Endpoint {
        base_url: Some(base_url.clone()),
        api_key: credentials.api_key,
        headers: credentials.headers,
        header_timeout: None,
    };
    let remote = Remote::connect(*service, id, endpoint);
    let remote = remote.map_err(|error| refused(error.to_string()))?;
    Ok(remote.named(provider))
}

/// Refuses to send the key of one of the user's providers to another address.
fn check_keys(
    clients: &ModelClients,
    provider: &str,
    url: &Url,
    sent: &ScriptCredentials,
) -> Result<(), ProviderError> {
    let (known, variables) = clients.known();
    let headers = || sent.headers.iter().flat_map(|(name, value)| [name, value]);
    let values = || {
        let texts = sent.api_key.iter().chain(headers());
        texts.map(String::as_str).chain([url.as_str()])
    };
    let goes_along = |key: &str| {
        values().any(|value| value == key || (key.len() >= MIN_KEY && value.contains(key)))
    };
    let keys = known.keys(variables).map_err(|error| {
        refused(format!(
            "cannot check that no key of yours is sent to `{}`: {error}",
            url.origin().ascii_serialization()
        ))
    })?;
    for own in keys {
        let other = clients.other_base_url();
        let is_other =
            other.is_some_and(|(name, base)| *name == own.provider && has_origin(base, url));
        let is_own = own.url.is_some_and(|own| own.origin() == url.origin());
        if !is_own && !is_other && goes_along(&own.key) {
            return Err(refused(format!(
                "the extension of the provider `{provider}` would send the key of `{}` to `{}`; give the provider another \
                 key, or define it in `models.yaml`",
                own.provider,
                url.origin().ascii_serialization()
            )));
        }
    }
    Ok(())
}

fn has_origin(base: &str, url: &Url) -> bool {
    Url::parse(base).is_ok_and(|base| base.origin() == url.origin())
}

fn service(name: &str) -> Result<Service, ProviderError> {
    let services = || {
        Service::ALL
            .map(|service| format!("`{service}`"))
            .join(", ")
    };
    Service::named_by_script(name).ok_or_else(|| {
        refused(format!(
            "unknown service `{}`, expected one of {}",
            name.escape_debug(),
            services()
        ))
    })
}

fn refused(message: String) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Refused, message)
}

/// Runs work that may read files.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ProviderError> + Send + 'static,
) -> Result<T, ProviderError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(refused(error.to_string())))
}

/// A model of a provider that a script registered.
#[derive(Clone)]
struct ExtensionModel {
    id: ModelId,
    facts: Facts,
    registered: Arc<Registered>,
    /// The model in the script's list; `None` if the script only changes how an existing provider is reached.
    listed: Option<ScriptModel>,
    clients: Arc<ModelClients>,
    /// The key of a single call, which replaces the provider's.
    key: Option<Arc<str>>,
    /// The client, from the first call on.
    remote: Arc<OnceCell<Remote>>,
}

impl fmt::Debug for ExtensionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionModel")
            .field("id", &self.id)
            .field("registered", &self.registered)
            .finish_non_exhaustive()
    }
}

impl ExtensionModel {
    /// Returns the base URL that the script chose.
    fn base_url(&self) -> Option<&String> {
        let listed = self.listed.as_ref();
        let of_model = listed.and_then(|model| model.base_url.as_ref());
        of_model.or(self.registered.provider.base_url.as_ref())
    }

    /// Returns whether the script itself calls the model.
    fn is_called_by_script(&self) -> bool {
        let listed = self.listed.as_ref();
        listed.is_some_and(|model| model.service.is_none())
    }

    async fn remote(&self) -> Result<&Remote, ProviderError> {
        self.remote.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<Remote, ProviderError> {
        let registered = &self.registered;
        let of_script = (
            registered.lease.number(),
            &*self.id.provider,
            &*self.id.name,
        );
        let asked = registered.worker.credentials(of_script, MAX_CREDENTIALS);
        let mut credentials = asked.await.map_err(|error| refused(error.to_string()))?;
        if let Some(key) = &self.key {
            credentials.api_key = Some(key.to_string());
        }
        let model = self.clone();
        blocking(move || model.connect_with(credentials)).await
    }

    fn connect_with(&self, credentials: ScriptCredentials) -> Result<Remote, ProviderError> {
        let (known, _) = self.clients.known();
        let provider = &*self.id.provider;
        let listed = self
            .listed
            .as_ref()
            .and_then(|model| model.service.as_deref());
        let service = match (listed, known.service_of(provider)) {
            (Some(name), _) => service(name)?,
            (None, Some(service)) => service,
            (None, None) => {
                return Err(refused(format!(
                    "the provider `{provider}` of an extension has no models, and no other provider has this name"
                )));
            }
        };
        let remote = match self.base_url() {
            Some(base_url) => {
                let address = Address {
                    provider: provider.to_owned(),
                    id: self.id.name.clone(),
                    service,
                    base_url: base_url.clone(),
                };
                connect(&self.clients, &address, credentials)
            }
            None => self.connect_to_own(credentials),
        };
        Ok(remote?.with_facts(self.facts))
    }

    /// Connects to the user's own address, to which the user's key may be sent.
    fn connect_to_own(&self, credentials: ScriptCredentials) -> Result<Remote, ProviderError> {
        let (known, variables) = self.clients.known();
        let provider = &*self.id.provider;
        // A server with several hosts could pass the request, with the user's key, on to another one.
        let mut names = credentials.headers.keys();
        if names.any(|name| name.eq_ignore_ascii_case("host")) {
            return Err(refused(format!(
                "an extension adds the header `Host` to the calls of the provider `{provider}`, which is not allowed"
            )));
        }
        let other = self.clients.other_base_url();
        let other = other.filter(|(name, _)| name == provider);
        let name = self.id.to_string();
        let target = known.resolve(&name, other.map(|(_, url)| url.as_str()), variables);
        let target = target.map_err(|error| refused(error.to_string()))?;
        let mut target = target.ok_or_else(|| refused(format!("`{name}` is not a service")))?;
        target.endpoint.api_key = credentials.api_key.or(target.endpoint.api_key);
        target.endpoint.headers = credentials.headers;
        let remote = Remote::connect(target.service, target.model, target.endpoint);
        let remote = remote.map_err(|error| refused(error.to_string()))?;
        Ok(remote.named(provider))
    }
}

impl Provider for ExtensionModel {
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
        Some(Arc::new(Self {
            key: Some(key.into()),
            remote: Arc::default(),
            ..self.clone()
        }))
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        if self.is_called_by_script() {
            let (worker, lease) = (
                self.registered.worker.clone(),
                self.registered.lease.clone(),
            );
            return script_stream(worker, lease, &self.id, self.key.clone(), request);
        }
        let model = self.clone();
        let opened = async move { Ok(model.remote().await?.stream(request)) };
        stream::once(opened).try_flatten().boxed()
    }
}
