//! How to run goose without a person.

use crate::host::headless::{HeadlessRun, ModelTool};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["run", "--with-builtin", "developer", "-t", "{prompt}"],
    variables: &[
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "gpt-4o"),
        ("OPENAI_HOST", "{url}"),
        ("OPENAI_API_KEY", "unused"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("GOOSE_TELEMETRY_ENABLED", "false"),
        ("GOOSE_MODE", "auto"),
    ],
    files: &[],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "shell",
        arguments: r#"{"command": "{command}"}"#,
    },
    write: ModelTool {
        name: "write",
        arguments: r#"{"path": "{path}", "content": "{content}"}"#,
    },
};
