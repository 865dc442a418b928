//! How Tenterhook is added to Mistral Vibe's hooks.

use serde_json::{Value, json};

use crate::host::installation::{FailsClosed, HookPlace, Installation, PlaceForm};
use crate::host::{EventRole, HostEvent};

/// The time that a hook has, in seconds. The program that Mistral Vibe starts answers earlier.
const TIMEOUT: u32 = 60;

const FORM: PlaceForm = PlaceForm::Toml {
    list: "hooks",
    entry,
};

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".vibe/hooks.toml",
        variable: Some(("VIBE_HOME", "hooks.toml")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".vibe/hooks.toml",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::ByKey("strict"),
    after: "Mistral Vibe runs the hooks of a project only if you trust its folder (`vibe --trust`).",
    approval: None,
    folders: &[".vibe"],
    also_reads: &[],
    off_switches: &[],
};

/// Returns the table of an event. With `strict`, a failed hook denies a call; other events refuse the key or
/// lose results.
fn entry(event: &HostEvent, command: &str) -> Value {
    let mut hook = json!({
        "name": format!("tenterhook-{}", event.name),
        "type": event.name,
        "command": command,
        "timeout": TIMEOUT,
    });
    if let (EventRole::ToolGate, Some(hook)) = (event.role, hook.as_object_mut()) {
        hook.insert("strict".to_owned(), true.into());
    }
    hook
}
