//! How to run Cline without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["--json", "{prompt}"],
    variables: &[("CLINE_TELEMETRY_DISABLED", "1"), ("POSTHOG_DISABLED", "1")],
    files: &[(
        ".cline/data/settings/cline_mcp_settings.json",
        r#"{ "mcpServers": { {mcp} } }"#,
    )],
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
    mcp: Some(McpRun {
        entry: r#""proof": { "command": "{server}" }"#,
        tool: ModelTool {
            name: "proof__runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "spawn_agent",
            arguments: r#"{"systemPrompt": "You run commands.", "task": "{prompt}"}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
