//! The hooks of folders with an engine around them, for a program that has no other hooks.

use std::path::Path;
use std::time::Duration;

use tenterhook::{
    Dispatcher, Engine, Event, EventKind, EventName, HookSpec, Origin, Outcome, Scope,
};
use tenterhook_dialects::tools;

use crate::folder::{Discovered, Discovery, EXECUTABLE_TIMEOUT};
use crate::problem::LoadError;

/// A hook as people know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedHook<'a> {
    /// The name: that of its file, behind that of its plugin.
    pub name: &'a str,
    /// The file, if it is one's.
    pub path: Option<&'a Path>,
    /// The event.
    pub event: &'a EventName,
}

/// The hooks that were found, ready to run. Without hooks it answers every event as if nobody had been asked.
///
/// ```
/// # async fn example() -> Result<(), tenterhook_config::LoadError> {
/// use tenterhook_config::{Discovery, HookManager, Layers};
/// use tenterhook::EventKind;
///
/// let layers = Layers { start: Some("/work/project".into()), ..Layers::default() };
/// let manager = HookManager::discover(Discovery::of_layers(&layers)).await?;
/// assert!(!manager.has_hooks(EventKind::PreToolUse));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HookManager {
    engine: Engine,
    specs: Vec<HookSpec>,
    found: Discovered,
}

impl HookManager {
    /// Finds hooks and takes them.
    ///
    /// # Errors
    /// With every source that is in force and cannot be loaded, unless the search is [lenient](Discovery::lenient).
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn discover(discovery: Discovery) -> Result<Self, LoadError> {
        let mut found = discovery.discover().await?;
        let specs = std::mem::take(&mut found.specs);
        let mut manager = Self {
            engine: Engine::builder().tools(tools::native()).build(),
            specs: Vec::new(),
            found,
        };
        manager.add(specs);
        Ok(manager)
    }

    /// Adds hooks behind those that are there, such as a recipe's.
    pub fn add(&mut self, specs: impl IntoIterator<Item = HookSpec>) {
        self.specs.extend(specs);
        self.register();
    }

    /// Says whether an event has hooks.
    pub fn has_hooks(&self, event: EventKind) -> bool {
        self.hooks(event).next().is_some()
    }

    /// Returns the hooks of an event, in the order in which they run.
    pub fn hooks(&self, event: EventKind) -> impl Iterator<Item = ManagedHook<'_>> {
        self.all_hooks()
            .filter(move |hook| *hook.event == EventName::Known(event))
    }

    /// Returns every hook.
    pub fn all_hooks(&self) -> impl Iterator<Item = ManagedHook<'_>> {
        self.specs.iter().filter_map(|spec| {
            Some(ManagedHook {
                name: spec.id.as_str(),
                path: spec.source.path.as_deref(),
                event: spec.event.as_ref()?,
            })
        })
    }

    /// Returns the hook of a name, whatever its event; of several the one that runs first.
    pub fn hook_by_name(&self, name: &str) -> Option<ManagedHook<'_>> {
        self.all_hooks().find(|hook| hook.name == name)
    }

    /// Returns everything else that the search found: files that are no hooks, what is not trusted, warnings.
    pub fn found(&self) -> &Discovered {
        &self.found
    }

    /// Sets how long one run of a hook may take. Zero is the default of 30 seconds. Dispatches that are under way keep
    /// what they have.
    pub fn set_timeout(&mut self, timeout: Duration) {
        let timeout = if timeout.is_zero() {
            EXECUTABLE_TIMEOUT
        } else {
            timeout
        };
        for spec in &mut self.specs {
            spec.timeout = timeout;
        }
        self.register();
    }

    /// Sends one event of a session through its hooks.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn execute<E: Event>(&self, origin: Origin, event: E) -> Outcome<E> {
        self.dispatcher(origin).dispatch(event).await
    }

    /// Returns what sends the events of one session through the hooks, also those that are added later.
    pub fn dispatcher(&self, origin: Origin) -> Dispatcher {
        self.engine.dispatcher(origin)
    }

    fn register(&self) {
        self.engine.scope(Scope::Global).replace(self.specs.clone());
    }
}
