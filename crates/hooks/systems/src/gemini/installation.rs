//! How Tenterhook is added to Gemini CLI's settings.

use serde_json::{Value, json};

use crate::host::HostEvent;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OffSwitch, OffValue, PlaceForm,
};

/// The time that a hook has, in milliseconds. The program that Gemini CLI starts answers earlier.
const TIMEOUT: u32 = 60_000;

/// The name of every entry, by which a person can disable it.
const NAME: &str = "tenterhook";

const FORM: PlaceForm = PlaceForm::Json {
    keys: &["hooks"],
    entry,
};

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".gemini/settings.json",
        variable: Some(("GEMINI_CLI_HOME", ".gemini/settings.json")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".gemini/settings.json",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Never(
        "Gemini CLI denies the call if the shim is missing, but runs the tool if the shim is killed",
    ),
    after: "Gemini CLI runs the hooks of a project only if you trust its folder.",
    approval: None,
    folders: &[".gemini"],
    also_reads: &[],
    off_switches: &[
        OffSwitch {
            keys: &["hooksConfig", "enabled"],
            value: OffValue::Bool(false),
            also_in: &[],
        },
        OffSwitch {
            keys: &["hooksConfig", "disabled"],
            value: OffValue::ListWith(NAME),
            also_in: &[],
        },
    ],
};

fn entry(_event: &HostEvent, command: &str) -> Value {
    json!({
        "hooks": [{
            "name": NAME,
            "type": "command",
            "command": command,
            "timeout": TIMEOUT,
        }],
    })
}
