//! How Tenterhook is added to Claude Code's settings.

use serde_json::{Value, json};

use crate::host::HostEvent;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OffSwitch, OffValue, PlaceForm,
};

/// The time that a hook has, in seconds. The program that Claude Code starts answers earlier.
const TIMEOUT: u32 = 60;

const FORM: PlaceForm = PlaceForm::Json {
    keys: &["hooks"],
    entry,
};

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".claude/settings.json",
        variable: Some(("CLAUDE_CONFIG_DIR", "settings.json")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".claude/settings.json",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::ByKey("onFailure"),
    after: "",
    approval: None,
    folders: &[".claude"],
    also_reads: &[],
    off_switches: &[OffSwitch {
        keys: &["disableAllHooks"],
        value: OffValue::Bool(true),
        also_in: &[".claude/settings.local.json"],
    }],
};

fn entry(event: &HostEvent, command: &str) -> Value {
    let mut hook = json!({ "type": "command", "command": command, "timeout": TIMEOUT });
    if let (true, Some(hook)) = (event.role.is_gate(), hook.as_object_mut()) {
        hook.insert("onFailure".to_owned(), "block".into());
    }
    json!({ "hooks": [hook] })
}
