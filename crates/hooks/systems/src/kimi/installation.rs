//! How Tenterhook is added to Kimi Code's configuration.

use serde_json::{Value, json};

use crate::host::HostEvent;
use crate::host::installation::{FailsClosed, HookPlace, Installation, PlaceForm};

/// The time that a hook has, in seconds. The program that Kimi Code starts answers earlier.
const TIMEOUT: u32 = 60;

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".kimi-code/config.toml",
        variable: None,
        form: PlaceForm::Toml {
            list: "hooks",
            entry,
        },
    }),
    // Kimi Code reads no configuration of a project.
    project: None,
    fails_closed: FailsClosed::Never(
        "Kimi Code runs the tool if the program of a hook is missing, killed or late",
    ),
    after: "",
    approval: None,
    folders: &[".kimi-code"],
    also_reads: &[],
    off_switches: &[],
};

fn entry(event: &HostEvent, command: &str) -> Value {
    json!({ "event": event.name, "command": command, "timeout": TIMEOUT })
}
