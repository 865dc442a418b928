//! How Tenterhook is added to Factory droid's settings.

use serde_json::{Value, json};

use crate::host::HostEvent;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OffSwitch, OffValue, PlaceForm,
};

/// The time that a hook has, in seconds. The program that Factory droid starts answers earlier.
const TIMEOUT: u32 = 60;

const FORM: PlaceForm = PlaceForm::Json {
    keys: &["hooks"],
    entry,
};

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".factory/settings.json",
        variable: None,
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".factory/settings.json",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Never(
        "Factory droid runs the tool if the program of a hook is missing, killed or late",
    ),
    after: "",
    approval: None,
    folders: &[".factory"],
    also_reads: &[],
    off_switches: &[OffSwitch {
        keys: &["hooksDisabled"],
        value: OffValue::Bool(true),
        also_in: &[".factory/settings.local.json"],
    }],
};

fn entry(_event: &HostEvent, command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command, "timeout": TIMEOUT }] })
}
