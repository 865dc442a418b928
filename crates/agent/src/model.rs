//! Which model answers, and how much it thinks: what there is to choose from, and what is chosen.
//!
//! A choice counts from the next turn on. It is an entry of the session, so that a session which goes on goes on with
//! it, and an event, unless nothing changed.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tenterhook_protocol::Usage;
use tenterhook_protocol::event::{
    ModelSelect, ModelSelectSource, NotificationLevel, SessionEntry, ThinkingLevelSelect,
};
use thiserror::Error;

use crate::hooks::Hooks;
use crate::life::{Life, Setup};
use crate::provider::{OpenError, Provider};
use crate::session::{MODEL_CHANGE, THINKING_LEVEL_CHANGE};

/// How much a model should think before it answers. What a service does not know becomes what is nearest to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ThinkingLevel {
    /// Not at all, where the service lets that be said.
    Off,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as possible.
    XHigh,
}

impl ThinkingLevel {
    /// Every level, least first.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
    ];

    /// Returns the level's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no thinking level.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no thinking level: expected one of off, minimal, low, medium, high, xhigh")]
pub struct InvalidThinkingLevel(pub String);

impl FromStr for ThinkingLevel {
    type Err = InvalidThinkingLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == text);
        found.ok_or_else(|| InvalidThinkingLevel(text.to_owned()))
    }
}

/// Why another model cannot be chosen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SelectError {
    /// There is no model of that name.
    #[error("there is no model `{name}`, expected {expected}")]
    Unknown {
        /// What was given.
        name: String,
        /// What can be given.
        expected: String,
    },
    /// The model cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no other model to go to.
    #[error("there is no other model: `{0}` is the only one that is listed")]
    Only(String),
    /// The model was not opened to its end.
    #[error("the model `{0}` was not opened to its end")]
    Interrupted(String),
}

/// Turns a name into a model; it may read files.
type Opener = dyn Fn(&str) -> Result<Arc<dyn Provider>, SelectError> + Send + Sync;

/// The models that an agent can choose from. Each is opened when it is first chosen, and stays open.
#[derive(Clone, Default)]
pub struct Models {
    /// What there is to go through, in order.
    names: Vec<String>,
    /// Opens models that are not open yet; `None` knows no others.
    open: Option<Arc<Opener>>,
    opened: Arc<Mutex<BTreeMap<String, Arc<dyn Provider>>>>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// Makes models of names. Those of `names` are what is gone through one by one; `open` may know others. It is
    /// called where it may wait for the disk.
    pub fn new(
        names: impl IntoIterator<Item = String>,
        open: impl Fn(&str) -> Result<Arc<dyn Provider>, SelectError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            names: names.into_iter().collect(),
            open: Some(Arc::new(open)),
            opened: Arc::default(),
        }
    }

    /// Makes models of these, and no others.
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
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a model that is open already.
    pub(crate) fn add(&mut self, name: &str, provider: &Arc<dyn Provider>) {
        if !self.names.iter().any(|known| known == name) {
            self.names.insert(0, name.to_owned());
        }
        self.opened().insert(name.to_owned(), Arc::clone(provider));
    }

    /// Returns the names of the models that are listed.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn after(&self, name: &str) -> Result<String, SelectError> {
        let place = self.names.iter().position(|known| known == name);
        let next = place.map_or(0, |place| (place + 1) % self.names.len());
        let next = self.names.get(next).filter(|next| *next != name);
        next.cloned()
            .ok_or_else(|| SelectError::Only(name.to_owned()))
    }

    async fn find(&self, name: &str) -> Result<Arc<dyn Provider>, SelectError> {
        if let Some(provider) = self.opened().get(name) {
            return Ok(Arc::clone(provider));
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
        // Who was faster has opened it.
        let mut known = self.opened();
        Ok(Arc::clone(known.entry(name.to_owned()).or_insert(opened)))
    }
}

/// The model that answers, and how much it thinks.
#[derive(Debug, Clone)]
pub(crate) struct Selected {
    /// The name that it was chosen by.
    pub(crate) name: String,
    pub(crate) provider: Arc<dyn Provider>,
    /// `None` leaves it to the service.
    pub(crate) thinking: Option<ThinkingLevel>,
}

impl Selected {
    /// Returns `provider/model`.
    pub(crate) fn id(&self) -> String {
        self.provider.id().to_string()
    }

    /// Returns what a call of the model costs, where that is known.
    pub(crate) fn cost(&self, usage: Option<&Usage>) -> Option<f64> {
        self.provider.price()?.cost(usage?)
    }

    fn model_change(&self) -> Value {
        json!({ "model": self.id(), "name": self.name })
    }
}

/// What was chosen, as an entry of the session tells it.
pub(crate) type Change = (&'static str, Value);

impl Setup {
    /// Returns what is chosen now.
    pub(crate) fn selected(&self) -> Selected {
        self.selection().clone()
    }

    fn selection(&self) -> MutexGuard<'_, Selected> {
        self.selected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the model to choose: the one of that name, or the next one.
    async fn find_model(&self, name: Option<&str>) -> Result<Selected, SelectError> {
        let now = self.selected();
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.models.after(&now.name)?,
        };
        let provider = self.models.find(&name).await?;
        Ok(Selected {
            name,
            provider,
            ..now
        })
    }

    /// Chooses a model. Returns the id of the one before, unless it is the same.
    fn choose_model(&self, chosen: &Selected) -> Option<String> {
        let mut now = self.selection();
        let previous = now.id();
        now.name.clone_from(&chosen.name);
        now.provider = Arc::clone(&chosen.provider);
        (previous != chosen.id()).then_some(previous)
    }

    /// Chooses a thinking level. Returns the one before.
    fn choose_thinking(&self, level: ThinkingLevel) -> Option<ThinkingLevel> {
        self.selection().thinking.replace(level)
    }
}

/// Changes what is chosen, and lets the session and hooks know.
pub(crate) struct Chooser<'a, N: FnMut(Change)> {
    pub(crate) setup: &'a Setup,
    pub(crate) hooks: &'a Hooks,
    /// Stores the choice.
    pub(crate) note: N,
}

impl<N: FnMut(Change)> Chooser<'_, N> {
    /// Chooses a model by its name; `None` is the next one. Says whether it is another one.
    pub(crate) async fn model(
        &mut self,
        name: Option<&str>,
        source: ModelSelectSource,
    ) -> Result<bool, SelectError> {
        let chosen = self.setup.find_model(name).await?;
        let Some(previous) = self.setup.choose_model(&chosen) else {
            return Ok(false);
        };
        if source != ModelSelectSource::Restore {
            (self.note)((MODEL_CHANGE, chosen.model_change()));
        }
        let build = || ModelSelect {
            model: chosen.id(),
            previous_model: Some(previous),
            source,
        };
        self.hooks.tell(build).await;
        Ok(true)
    }

    /// Chooses a thinking level. Says whether it is another one.
    pub(crate) async fn thinking(&mut self, level: ThinkingLevel, is_new: bool) -> bool {
        let previous = self.setup.choose_thinking(level);
        if previous == Some(level) {
            return false;
        }
        if is_new {
            (self.note)((THINKING_LEVEL_CHANGE, json!({ "level": level.as_str() })));
        }
        let build = || ThinkingLevelSelect {
            level: level.as_str().to_owned(),
            previous_level: previous.map(|level| level.as_str().to_owned()),
        };
        self.hooks.tell(build).await;
        true
    }
}

impl Life {
    pub(crate) async fn select_model(
        &mut self,
        name: Option<&str>,
        source: ModelSelectSource,
    ) -> Result<bool, SelectError> {
        let session = &mut self.session;
        let mut chooser = Chooser {
            setup: &self.setup,
            hooks: &self.hooks,
            note: |(kind, data)| session.note(kind, data),
        };
        chooser.model(name, source).await
    }

    pub(crate) async fn select_thinking(&mut self, level: ThinkingLevel, is_new: bool) -> bool {
        let session = &mut self.session;
        let mut chooser = Chooser {
            setup: &self.setup,
            hooks: &self.hooks,
            note: |(kind, data)| session.note(kind, data),
        };
        chooser.thinking(level, is_new).await
    }

    /// Goes on with the model and the level that the session was led with last.
    pub(crate) async fn restore_selection(&mut self) {
        let noted = Noted::of(self.session.entries());
        if let Some((name, id)) = noted.model
            && id != self.setup.selected().id()
        {
            let restored = self
                .select_model(Some(&name), ModelSelectSource::Restore)
                .await;
            if let Err(error) = restored {
                let now = self.setup.selected().id();
                let text = format!("the session goes on with `{now}`, not with `{id}`: {error}");
                self.hooks
                    .notify(NotificationLevel::Warning, "model_not_restored", &text)
                    .await;
            }
        }
        if let Some(level) = noted.thinking {
            self.select_thinking(level, false).await;
        }
    }

    /// Notes the choice where the branch says something else: it may have been made in another session, or for another
    /// branch.
    pub(crate) fn note_selection(&mut self) {
        let noted = Noted::of(self.session.entries());
        let selected = self.setup.selected();
        let built_with = &self.setup.built_with;
        let said = noted.model.map_or_else(|| built_with.id(), |(_, id)| id);
        if said != selected.id() {
            self.session.note(MODEL_CHANGE, selected.model_change());
        }
        let said = noted.thinking.or(built_with.thinking);
        if let Some(level) = selected.thinking
            && said != Some(level)
        {
            let data = json!({ "level": level.as_str() });
            self.session.note(THINKING_LEVEL_CHANGE, data);
        }
    }
}

/// What a branch says of the model that it was led with.
struct Noted {
    /// The name that it was chosen by, and its id.
    model: Option<(String, String)>,
    thinking: Option<ThinkingLevel>,
}

impl Noted {
    fn of(branch: &[SessionEntry]) -> Self {
        let newest = |kind: &str| {
            let entry = branch.iter().rev().find(|entry| entry.kind == kind)?;
            entry.data.as_ref()
        };
        let text = |data: &Value, key: &str| Some(data.get(key)?.as_str()?.to_owned());
        let model = newest(MODEL_CHANGE);
        let level = newest(THINKING_LEVEL_CHANGE).and_then(|data| text(data, "level"));
        Self {
            model: model.and_then(|data| Some((text(data, "name")?, text(data, "model")?))),
            thinking: level.and_then(|level| level.parse().ok()),
        }
    }
}

/// Returns the name of the model that a branch was led with last, where the user chose it.
pub(crate) fn noted_model(branch: &[SessionEntry]) -> Option<String> {
    Noted::of(branch).model.map(|(name, _)| name)
}
