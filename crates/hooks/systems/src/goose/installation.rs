//! How Tenterhook is added to goose: as a plugin with hooks.

use serde_json::{Value, json};
use tenterhook_engine::JsonObject;

use super::event::EVENTS;
use crate::host::HostEvent;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OwnFile, PlaceForm, command_line,
};

/// The time that a hook has, in seconds. The program that goose starts answers earlier.
const TIMEOUT: u32 = 60;

const PLACE: HookPlace = HookPlace {
    path: ".agents/plugins/tenterhook",
    variable: None,
    form: PlaceForm::Own { files },
};

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(PLACE),
    project: Some(PLACE),
    fails_closed: FailsClosed::ByKey("on_failure"),
    after: "Use goose 1.48 or later. In earlier versions, hooks cannot block, or a failed hook does not.",
    approval: None,
    folders: &[".config/goose"],
    also_reads: &[],
    off_switches: &[],
};

fn files(shim: &str) -> Vec<OwnFile> {
    let entries = EVENTS.iter().map(|event| {
        let entry = entry(event, &command_line(shim, "goose", event.name));
        (event.name.to_owned(), Value::Array(vec![entry]))
    });
    let hooks = json!({ "hooks": entries.collect::<JsonObject>() });
    let plugin = json!({ "name": "tenterhook", "version": "1.0.0" });
    vec![
        file("plugin.json", &plugin),
        file("hooks/hooks.json", &hooks),
    ]
}

fn entry(event: &HostEvent, command: &str) -> Value {
    let mut hook = json!({ "type": "command", "command": command, "timeout": TIMEOUT });
    if let (true, Some(hook)) = (event.role.is_gate(), hook.as_object_mut()) {
        hook.insert("on_failure".to_owned(), "block".into());
    }
    json!({ "hooks": [hook] })
}

fn file(path: &str, content: &Value) -> OwnFile {
    OwnFile {
        path: path.to_owned(),
        text: format!("{content:#}\n"),
        is_executable: false,
    }
}
