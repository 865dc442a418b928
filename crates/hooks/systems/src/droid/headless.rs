//! How to run Factory droid without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &[
        "exec",
        "--skip-permissions-unsafe",
        "-m",
        "custom:Proof-0",
        "{prompt}",
    ],
    variables: &[
        ("FACTORY_API_KEY", "fk-unused"),
        ("FACTORY_AIRGAP_ENABLED", "true"),
        ("FACTORY_DISABLE_AUTO_UPDATE", "1"),
    ],
    files: &[
        (
            ".factory/settings.json",
            r#"{
  "customModels": [
    {
      "model": "proof",
      "displayName": "Proof",
      "baseUrl": "{url}/v1",
      "apiKey": "unused",
      "provider": "generic-chat-completion-api",
      "maxOutputTokens": 4096
    }
  ]
}
"#,
        ),
        (".factory/mcp.json", r#"{ "mcpServers": { {mcp} } }"#),
    ],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "Execute",
        // Subagents must name the risk.
        arguments: r#"{"command": "{command}", "riskLevelReason": "It is harmless.", "riskLevel": "low"}"#,
    },
    write: ModelTool {
        name: "Create",
        arguments: r#"{"file_path": "{path}", "content": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#""proof": { "type": "stdio", "command": "{server}", "args": [], "disabled": false }"#,
        tool: ModelTool {
            name: "proof___runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "Task",
            arguments: r#"{"description": "Run it", "prompt": "{prompt}", "subagent_type": "worker"}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
