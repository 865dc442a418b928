//! How to run Copilot CLI without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["-p", "{prompt}", "--allow-all-tools", "--allow-all-paths"],
    variables: &[
        ("COPILOT_PROVIDER_BASE_URL", "{url}/v1"),
        ("COPILOT_PROVIDER_TYPE", "openai"),
        ("COPILOT_PROVIDER_API_KEY", "unused"),
        ("COPILOT_MODEL", "gpt-5"),
        ("COPILOT_OFFLINE", "true"),
    ],
    files: &[(".copilot/mcp-config.json", r#"{ "mcpServers": { {mcp} } }"#)],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "bash",
        arguments: r#"{"command": "{command}", "description": "Runs a command"}"#,
    },
    write: ModelTool {
        name: "create",
        arguments: r#"{"path": "{path}", "file_text": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#""proof": { "type": "local", "command": "{server}", "args": [], "tools": ["*"] }"#,
        tool: ModelTool {
            name: "proof-runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "task",
            arguments: r#"{"description": "Run it", "prompt": "{prompt}", "agent_type": "general-purpose", "name": "sub", "mode": "sync"}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
