//! How Tenterhook is added to pi: as an extension.

use crate::host::in_process;
use crate::host::installation::{FailsClosed, HookPlace, Installation, OwnFile, PlaceForm};

const FORM: PlaceForm = PlaceForm::Own { files };

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".pi/agent/extensions/tenterhook.js",
        variable: Some(("PI_CODING_AGENT_DIR", "extensions/tenterhook.js")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".pi/extensions/tenterhook.js",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Always,
    after: "pi loads the extensions of a project only if you trust its folder (`pi --approve`).",
    approval: None,
    folders: &[".pi"],
    also_reads: &[],
    off_switches: &[],
};

fn files(shim: &str) -> Vec<OwnFile> {
    vec![OwnFile {
        path: String::new(),
        text: in_process::plugin_text("pi", shim, include_str!("extension.js")),
        is_executable: false,
    }]
}
