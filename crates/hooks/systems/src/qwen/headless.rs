//! How to run Qwen Code without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["--yolo", "--auth-type", "openai", "-p", "{prompt}"],
    variables: &[
        ("OPENAI_API_KEY", "unused"),
        ("OPENAI_BASE_URL", "{url}/v1"),
        ("OPENAI_MODEL", "proof"),
        ("QWEN_TELEMETRY_ENABLED", "false"),
    ],
    files: &[(
        ".qwen/settings.json",
        r#"{
  "general": { "enableAutoUpdate": false },
  "privacy": { "usageStatisticsEnabled": false },
  "mcpServers": { {mcp} }
}
"#,
    )],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "run_shell_command",
        arguments: r#"{"command": "{command}", "is_background": false}"#,
    },
    write: ModelTool {
        name: "write_file",
        arguments: r#"{"file_path": "{path}", "content": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#""proof": { "command": "{server}", "trust": true }"#,
        tool: ModelTool {
            name: "mcp__proof__runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "agent",
            arguments: r#"{"description": "Run it", "prompt": "{prompt}", "subagent_type": "general-purpose"}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
