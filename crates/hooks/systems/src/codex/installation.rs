//! How Tenterhook is added to Codex's hooks.
//!
//! Codex trusts a hook by a hash of its entry, so an entry must never change.

use serde_json::{Value, json};
use tenterhook_engine::EventKind;

use super::approval::APPROVAL;
use crate::host::HostEvent;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OffSwitch, OffValue, PlaceForm,
};

/// The time that a hook has, in seconds. The program that Codex starts answers earlier.
const TIMEOUT: u32 = 60;
/// The longest time that Codex accepts for hooks of a session's end.
const TIMEOUT_AT_END: u32 = 3;

const FORM: PlaceForm = PlaceForm::Json {
    keys: &["hooks"],
    entry,
};

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".codex/hooks.json",
        variable: Some(("CODEX_HOME", "hooks.json")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".codex/hooks.json",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Never(
        "Codex runs the tool if the program of a hook is missing, killed or late",
    ),
    after: "Codex runs the hooks of a project only if you also trust the project.",
    approval: Some(&APPROVAL),
    folders: &[".codex"],
    also_reads: &[],
    off_switches: &[
        off_switch(&["features", "hooks"]),
        off_switch(&["features", "codex_hooks"]),
    ],
};

/// Codex knows the feature by two names. It reads the file of a project that the person trusts.
const fn off_switch(keys: &'static [&'static str]) -> OffSwitch {
    OffSwitch {
        keys,
        value: OffValue::Bool(false),
        also_in: &[".codex/config.toml"],
    }
}

fn entry(event: &HostEvent, command: &str) -> Value {
    let timeout = if event.kind == EventKind::SessionEnd {
        TIMEOUT_AT_END
    } else {
        TIMEOUT
    };
    json!({ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] })
}
