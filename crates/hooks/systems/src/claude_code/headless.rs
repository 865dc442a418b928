//! How to run Claude Code without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

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
    files: &[(".claude.json", r#"{ "mcpServers": { {mcp} } }"#)],
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
    mcp: Some(McpRun {
        entry: r#""proof": { "type": "stdio", "command": "{server}" }"#,
        tool: ModelTool {
            name: "mcp__proof__runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "Agent",
            arguments: r#"{"description": "Run it", "prompt": "{prompt}", "subagent_type": "general-purpose", "run_in_background": false}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
