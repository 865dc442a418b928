//! The list of hooks as JSON, for `tenterhook list --json` and for the inspector.

use serde_json::{Value, json};
use tenterhook_engine::{Layer, RegisteredHook};
use tenterhook_trust::{DivergedHook, ProjectHook};

use crate::approval;
use crate::hooks::{self, Hooks};

/// Returns the hooks in force, and what is known about sources that are not.
pub fn listed(hooks: &Hooks, is_strict: bool) -> Value {
    let diverged = &hooks.loaded.diverged;
    let registered = hooks::engine(&hooks.loaded, is_strict, None).hooks();
    let in_force = registered.iter().map(|hook| with_trust(hook, diverged));
    let in_force: Vec<Value> = in_force.collect();
    let withheld = hooks.loaded.project_hooks.iter();
    let withheld: Vec<Value> = withheld
        .filter(|project_hook| project_hook.is_withheld())
        .map(withheld_json)
        .collect();
    json!({
        "hooks": in_force,
        "withheld": withheld,
        "diverged": diverged,
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
