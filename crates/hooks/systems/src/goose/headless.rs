//! How to run goose without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

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
    files: &[(".config/goose/config.yaml", "{mcp}")],
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
    mcp: Some(McpRun {
        entry: r#"extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
    timeout: 30
    bundled: true
  proof:
    enabled: true
    type: stdio
    name: proof
    description: proof
    cmd: "{server}"
    args: []
    timeout: 30
"#,
        tool: ModelTool {
            name: "proof__runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "delegate",
            arguments: r#"{"instructions": "{prompt}"}"#,
        },
        calls: SubagentCalls::Unseen,
    }),
};
