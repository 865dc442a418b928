//! How Tenterhook is added to Copilot CLI: as a file of its own in the folder of hooks.

use serde_json::{Value, json};
use tenterhook_engine::JsonObject;

use super::event::EVENTS;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OffSwitch, OffValue, OwnFile, PlaceForm, command_line,
};

/// The time that a hook has, in seconds. The program that Copilot CLI starts answers earlier.
const TIMEOUT: u32 = 60;

const FORM: PlaceForm = PlaceForm::Own { files };

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".copilot/hooks/tenterhook.json",
        variable: Some(("COPILOT_HOME", "hooks/tenterhook.json")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".github/hooks/tenterhook.json",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Never(
        "Copilot CLI denies if the program of a hook is missing or killed, but runs the tool if the \
         program is late",
    ),
    after: "Copilot CLI runs the hooks of a project only if you trust its folder.",
    approval: None,
    folders: &[".copilot"],
    also_reads: &[".claude/settings.json"],
    off_switches: &[OffSwitch {
        keys: &["disableAllHooks"],
        value: OffValue::Bool(true),
        also_in: &[
            ".copilot/settings.json",
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
        ],
    }],
};

fn files(shim: &str) -> Vec<OwnFile> {
    let entry = |event: &str| {
        let line = command_line(shim, "copilot", event);
        json!([{ "type": "command", "bash": line, "timeoutSec": TIMEOUT }])
    };
    let hooks = EVENTS
        .iter()
        .map(|event| (event.name.to_owned(), entry(event.name)));
    let hooks: JsonObject = hooks.collect();
    let file: Value = json!({ "version": 1, "hooks": hooks });
    vec![OwnFile {
        path: String::new(),
        text: format!("{file:#}\n"),
        is_executable: false,
    }]
}
