//! How Tenterhook is added to Cline: an executable for each event.

use serde_json::json;

use super::event::EVENTS;
use crate::host::HostEvent;
use crate::host::installation::{
    FailsClosed, HookPlace, Installation, OwnFile, PlaceForm, command_line,
};

const FORM: PlaceForm = PlaceForm::Own { files };

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".cline/hooks",
        variable: Some(("CLINE_DIR", "hooks")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".clinerules/hooks",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Never(
        "the script that Cline starts denies the call if the shim fails, but Cline runs the tool if the script \
         itself is missing or killed",
    ),
    after: "",
    approval: None,
    folders: &[".cline"],
    also_reads: &[".clinerules/hooks", "Documents/Cline/Hooks"],
    off_switches: &[],
};

fn files(shim: &str) -> Vec<OwnFile> {
    let file = |event: &HostEvent| OwnFile {
        path: event.name.to_owned(),
        text: script(event, &command_line(shim, "cline", event.name)),
        is_executable: true,
    };
    EVENTS.iter().map(file).collect()
}

/// Returns a script that prints the shim's answer. If the answer is missing or not an object, a gate denies.
fn script(event: &HostEvent, command: &str) -> String {
    let failure = if event.role.is_gate() {
        let reason = "Tenterhook cannot ask the hooks, so nothing is let through";
        let denial = json!({ "cancel": true, "errorMessage": reason });
        format!("printf '%s\\n' '{denial}'")
    } else {
        ":".to_owned()
    };
    format!(
        r#"#!/bin/sh
# Tenterhook wrote this file. `tenterhook install` replaces it, and `tenterhook uninstall` removes it.
answer=$({command})
case $?:$answer in
0:) ;;
0:{{*}}) printf '%s\n' "$answer" ;;
*) {failure} ;;
esac
"#,
    )
}
