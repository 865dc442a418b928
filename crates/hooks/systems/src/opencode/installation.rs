//! How Tenterhook is added to opencode: as a plugin.

use crate::host::in_process;
use crate::host::installation::{FailsClosed, HookPlace, Installation, OwnFile, PlaceForm};

const FORM: PlaceForm = PlaceForm::Own { files };

pub(super) static INSTALLATION: Installation = Installation {
    user: Some(HookPlace {
        path: ".config/opencode/plugins/tenterhook.js",
        variable: Some(("XDG_CONFIG_HOME", "opencode/plugins/tenterhook.js")),
        form: FORM,
    }),
    project: Some(HookPlace {
        path: ".opencode/plugins/tenterhook.js",
        variable: None,
        form: FORM,
    }),
    fails_closed: FailsClosed::Always,
    after: "Start opencode once while you are online. With a plugin, it first installs `@opencode-ai/plugin` with npm, \
            and waits for ever if it cannot.",
    approval: None,
    folders: &[".config/opencode"],
    also_reads: &[],
    off_switches: &[],
};

fn files(shim: &str) -> Vec<OwnFile> {
    vec![OwnFile {
        path: String::new(),
        text: in_process::plugin_text("opencode", shim, include_str!("plugin.js")),
        is_executable: false,
    }]
}
