//! How to run Cline without a person.

use crate::host::headless::{HeadlessRun, ModelTool};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["--json", "{prompt}"],
    variables: &[("CLINE_TELEMETRY_DISABLED", "1"), ("POSTHOG_DISABLED", "1")],
    files: &[],
    preparations: &[&[
        "auth",
        "-p",
        "openai-compatible",
        "-k",
        "unused",
        "-m",
        "proof",
        "-b",
        "{url}/v1",
    ]],
    plugin_package: None,
    shell: ModelTool {
        name: "run_commands",
        arguments: r#"{"commands": ["{command}"]}"#,
    },
    write: ModelTool {
        name: "editor",
        arguments: r#"{"path": "{path}", "new_text": "{content}"}"#,
    },
};
