//! The models that an agent can select, and the selected model.
//!
//! [`selection`](crate::selection) announces and records a selection.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tenterhook_protocol::Usage;
use thiserror::Error;

use crate::sessions::model_change;
#[cfg(unix)]
use tenterhook_providers::ExtensionProviders;
use tenterhook_providers::{OpenError, Provider, ThinkingLevel};

/// Why another model cannot be selected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No model has this name.
    #[error("unknown model `{name}`, expected {expected}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// The names that are known.
        expected: String,
    },
    /// The model cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no other model in the list.
    #[error("there is no other model: `{0}` is the only one in the list")]
    Only(String),
    /// Opening the model was interrupted.
    #[error("opening the model `{0}` was interrupted")]
    Interrupted(String),
}

/// Opens a model by its name. It may read files.
type Opener = dyn Fn(&str) -> Result<Arc<dyn Provider>, SelectError> + Send + Sync;

/// The models that an agent can select. Each is opened when it is first selected, and stays open.
#[derive(Clone, Default)]
pub struct Models {
    /// The names in the list, in order.
    names: Vec<String>,
    /// Opens models that are not open yet. If it is `None`, only the open models can be selected.
    open: Option<Arc<Opener>>,
    opened: Arc<Mutex<BTreeMap<String, Arc<dyn Provider>>>>,
    /// The models that scripts provide.
    #[cfg(unix)]
    extensions: Option<Arc<ExtensionProviders>>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// Creates models from a list of names. `open` opens a model by its name, and may accept other names too. It runs
    /// on a thread on which it may block.
    pub fn new(
        names: impl IntoIterator<Item = String>,
        open: impl Fn(&str) -> Result<Arc<dyn Provider>, SelectError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            names: names.into_iter().collect(),
            open: Some(Arc::new(open)),
            ..Self::default()
        }
    }

    /// Adds the names of the models that scripts provide, and lets scripts choose the address of a model.
    #[cfg(unix)]
    #[must_use]
    pub fn with_extensions(mut self, extensions: Arc<ExtensionProviders>) -> Self {
        self.names.extend(extensions.model_names());
        self.extensions = Some(extensions);
        self
    }

    /// Returns the models that scripts provide.
    #[cfg(unix)]
    pub(crate) fn extensions(&self) -> Option<&ExtensionProviders> {
        self.extensions.as_deref()
    }

    /// Creates models from these open models, and no others.
    pub fn fixed(models: impl IntoIterator<Item = (String, Arc<dyn Provider>)>) -> Self {
        let models: Vec<_> = models.into_iter().collect();
        let known = Self {
            names: models.iter().map(|(name, _)| name.clone()).collect(),
            ..Self::default()
        };
        known.opened().extend(models);
        known
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn Provider>>> {
        self.opened.lock()
    }

    /// Adds an open model.
    pub(crate) fn add(&mut self, name: &str, provider: &Arc<dyn Provider>) {
        if !self.names.iter().any(|known| known == name) {
            self.names.insert(0, name.to_owned());
        }
        self.opened().insert(name.to_owned(), Arc::clone(provider));
    }

    /// Returns the names of the models in the list.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the names of the models in the list, each with its model if that is open.
    #[cfg(unix)]
    pub(crate) fn list(&self) -> Vec<(&str, Option<Arc<dyn Provider>>)> {
        let opened = self.opened();
        let names = self.names.iter();
        names
            .map(|name| (name.as_str(), opened.get(name).cloned()))
            .collect()
    }

    /// Returns the name of the model after `name` in the list.
    pub(crate) fn after(&self, name: &str) -> Result<String, SelectError> {
        let place = self.names.iter().position(|known| known == name);
        let next = place.map_or(0, |place| (place + 1) % self.names.len());
        let next = self.names.get(next).filter(|next| *next != name);
        next.cloned()
            .ok_or_else(|| SelectError::Only(name.to_owned()))
    }

    /// Returns the model with this name or id, and opens it if it is not open.
    pub(crate) async fn find(&self, name: &str) -> Result<Arc<dyn Provider>, SelectError> {
        {
            let opened = self.opened();
            let has_id = |provider: &&Arc<dyn Provider>| provider.id().to_string() == name;
            let found = opened.get(name);
            if let Some(provider) = found.or_else(|| opened.values().find(has_id)) {
                return Ok(Arc::clone(provider));
            }
        }
        let Some(open) = self.open.clone() else {
            let expected = self.names.iter().map(|name| format!("`{name}`"));
            return Err(SelectError::Unknown {
                name: name.to_owned(),
                expected: expected.collect::<Vec<_>>().join(" or "),
            });
        };
        let wanted = name.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&wanted)).await;
        let opened = opened.map_err(|_| SelectError::Interrupted(name.to_owned()))??;
        // Another call may have opened the model meanwhile. Then its result is used.
        let mut known = self.opened();
        Ok(Arc::clone(known.entry(name.to_owned()).or_insert(opened)))
    }
}

/// The selected model, and how much it thinks.
#[derive(Debug, Clone)]
pub(crate) struct SelectedModel {
    /// The name under which it was selected.
    pub(crate) name: String,
    pub(crate) provider: Arc<dyn Provider>,
    /// `None` means that the model service decides.
    pub(crate) thinking: Option<ThinkingLevel>,
}

impl SelectedModel {
    /// Returns `provider/model`.
    pub(crate) fn id(&self) -> String {
        self.provider.id().to_string()
    }

    /// Returns the cost of a call in US dollars, if it is known.
    pub(crate) fn cost(&self, usage: Option<&Usage>) -> Option<f64> {
        self.provider.price()?.cost(usage?)
    }

    /// Returns the data of an entry that records this choice.
    pub(crate) fn model_change(&self) -> Value {
        model_change(&self.id(), &self.name)
    }
}
