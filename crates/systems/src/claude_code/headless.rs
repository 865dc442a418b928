//! How to run Claude Code without a person.

use crate::host::headless::{HeadlessRun, ModelTool};

// `IS_SANDBOX`: as root, the program refuses to run without questions outside of a sandbox.
pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["-p", "{prompt}", "--dangerously-skip-permissions"],
    variables: &[
        ("ANTHROPIC_BASE_URL", "{url}"),
        ("ANTHROPIC_API_KEY", "unused"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("IS_SANDBOX", "1"),
    ],
    files: &[],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "Bash",
        arguments: r#"{"command": "{command}", "description": "Runs a command"}"#,
    },
    write: ModelTool {
        name: "Write",
        arguments: r#"{"file_path": "{path}", "content": "{content}"}"#,
    },
};
