//! A ready engine with the hooks of folders, for programs that have no other hooks.

use std::path::Path;
use std::time::Duration;

use tenterhook_engine::{
    Dispatcher, Engine, Event, EventKind, EventName, HookSpec, Origin, Outcome, Scope,
};
use tenterhook_systems::tools;

use crate::folder::{EXECUTABLE_TIMEOUT, FolderHooks, FolderSearch};
use tenterhook_hookfile::LoadError;

/// A hook with its name, file and event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagedHook<'a> {
    /// The name of the file, after the name of its plugin if it has one.
    pub name: &'a str,
    /// The file, unless the hook is not from a file.
    pub path: Option<&'a Path>,
    /// The event.
    pub event: &'a EventName,
}

/// The hooks that were found, ready to run. Without hooks, nothing stops or changes an event.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tenterhook_discovery::{Conversation, FolderSearch, HookManager, Layers, Trigger};
///
/// let layers = Layers { start: Some("/work/project".into()), ..Layers::default() };
/// let manager = HookManager::discover(FolderSearch::of_layers(&layers)).await?;
/// let trigger = Trigger::new(&manager, Conversation { id: "c1".into(), ..Conversation::default() });
/// match trigger.before_tool_call("bash", r#"{"command": "ls"}"#, "call_1").await {
///     Ok(input) => println!("runs with {input}"),
///     Err(blocked) => println!("does not run: {}", blocked.reason),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HookManager {
    engine: Engine,
    specs: Vec<HookSpec>,
    found: FolderHooks,
}

impl HookManager {
    /// Finds hooks and registers them.
    ///
    /// # Errors
    /// Returns every source that should be in force but cannot be loaded, unless the search is
    /// [lenient](FolderSearch::lenient).
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn discover(discovery: FolderSearch) -> Result<Self, LoadError> {
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

    /// Adds hooks that run after the existing ones, such as the hooks of a recipe.
    pub fn add(&mut self, specs: impl IntoIterator<Item = HookSpec>) {
        self.specs.extend(specs);
        self.register();
    }

    /// Returns whether an event has hooks.
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

    /// Returns the first hook with a name, on any event.
    pub fn hook_by_name(&self, name: &str) -> Option<ManagedHook<'_>> {
        self.all_hooks().find(|hook| hook.name == name)
    }

    /// Returns everything else that the search found: other files, untrusted hooks and warnings.
    pub fn found(&self) -> &FolderHooks {
        &self.found
    }

    /// Sets how long one run of a hook may take. Zero means the default of 30 seconds. Dispatches in
    /// progress keep their timeout.
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

    /// Returns a dispatcher for the events of one session. It also reaches hooks that are added later.
    pub fn dispatcher(&self, origin: Origin) -> Dispatcher {
        self.engine.dispatcher(origin)
    }

    fn register(&self) {
        self.engine.scope(Scope::Global).replace(self.specs.clone());
    }
}
