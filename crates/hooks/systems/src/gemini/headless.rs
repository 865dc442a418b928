//! How to run Gemini CLI without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &[
        "--yolo",
        "--skip-trust",
        "-m",
        "gemini-2.5-pro",
        "-p",
        "{prompt}",
    ],
    variables: &[
        ("GEMINI_API_KEY", "unused"),
        ("GOOGLE_GEMINI_BASE_URL", "{url}"),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
    ],
    files: &[(
        ".gemini/settings.json",
        r#"{
  "security": { "auth": { "selectedType": "gemini-api-key" } },
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
        arguments: r#"{"command": "{command}"}"#,
    },
    write: ModelTool {
        name: "write_file",
        arguments: r#"{"file_path": "{path}", "content": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#""proof": { "command": "{server}", "trust": true }"#,
        tool: ModelTool {
            name: "mcp_proof_runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "invoke_agent",
            arguments: r#"{"agent_name": "generalist", "prompt": "{prompt}"}"#,
        },
        calls: SubagentCalls::Unnamed,
    }),
};
