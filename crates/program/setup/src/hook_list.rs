//! The list of hooks as JSON, for `tenterhook list --json` and for the inspector.

use serde_json::{Value, json};
use tenterhook_engine::{Engine, Layer, RegisteredHook};
use tenterhook_trust::{DivergedHook, ProjectHook};

use crate::approval;
use crate::hooks::{self, Hooks};

/// Returns the hooks in force, and what is known about sources that are not.
pub fn listed(hooks: &Hooks, is_strict: bool) -> Value {
    HookListing::new(hooks).of(&hooks::engine(&hooks.loaded, is_strict, None))
}

/// What is known about the sources of hooks, for lists of the hooks of an engine.
#[derive(Debug, Clone)]
pub struct HookListing {
    diverged: Vec<DivergedHook>,
    /// The keys about sources whose hooks are not in force.
    sources: Value,
}

impl HookListing {
    /// Notes what was found out when the hooks were loaded.
    pub fn new(hooks: &Hooks) -> Self {
        Self {
            diverged: hooks.loaded.diverged.clone(),
            sources: sources(hooks),
        }
    }

    /// Creates the list of a program that loads no hooks from files.
    pub fn without_sources() -> Self {
        Self {
            diverged: Vec::new(),
            sources: json!({}),
        }
    }

    /// Returns the hooks that are in force in an engine now.
    pub fn of(&self, engine: &Engine) -> Value {
        let registered = engine.hooks();
        let in_force = registered.iter();
        let in_force: Vec<Value> = in_force
            .map(|hook| with_trust(hook, &self.diverged))
            .collect();
        let mut listed = json!({ "hooks": in_force });
        if let (Some(listed), Value::Object(sources)) = (listed.as_object_mut(), &self.sources) {
            listed.extend(sources.clone());
        }
        listed
    }
}

/// Describes the sources whose hooks are not in force.
fn sources(hooks: &Hooks) -> Value {
    let withheld = hooks.loaded.project_hooks.iter();
    let withheld: Vec<Value> = withheld
        .filter(|project_hook| project_hook.is_withheld())
        .map(withheld_json)
        .collect();
    json!({
        "withheld": withheld,
        "diverged": hooks.loaded.diverged,
        "broken": hooks.broken,
        "untrusted": hooks.untrusted,
        "disabled": hooks.disabled_paths(),
        "extensions": hooks.extras.additions(),
    })
}

/// Returns a hook as JSON, with the reason why it is trusted.
fn with_trust(hook: &RegisteredHook, diverged: &[DivergedHook]) -> Value {
    let mut value = serde_json::to_value(hook).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("trust".to_owned(), trust(hook, diverged).into());
    }
    value
}

fn withheld_json(project_hook: &ProjectHook) -> Value {
    json!({
        "name": project_hook.item.name,
        "source": project_hook.item.source.display().to_string(),
        "events": project_hook.events,
        "trust": project_hook.state,
    })
}

/// Returns why a hook is trusted: its layer, or the user's approval.
pub fn trust(hook: &RegisteredHook, diverged: &[DivergedHook]) -> &'static str {
    if let Some(state) = approval::state_of(hook, diverged) {
        return state;
    }
    match hook.source.layer {
        Layer::Project if hook.kind == "withheld" => "untrusted",
        Layer::Project => "approved",
        Layer::System | Layer::User | Layer::Explicit | Layer::Code => hook.source.layer.as_str(),
    }
}
