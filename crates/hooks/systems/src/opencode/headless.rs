//! How to run opencode without a person.

use crate::host::headless::{
    HeadlessRun, McpRun, ModelTool, PluginPackage, SubagentCalls, SubagentRun,
};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["run", "{prompt}"],
    variables: &[
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ],
    files: &[(
        ".config/opencode/opencode.json",
        r#"{
  "autoupdate": false,
  "model": "proof/proof",
  "small_model": "proof/proof",
  "permission": "allow",
  "mcp": { {mcp} },
  "provider": {
    "proof": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "proof",
      "options": { "baseURL": "{url}/v1", "apiKey": "unused" },
      "models": { "proof": { "name": "proof" } }
    }
  }
}
"#,
    )],
    preparations: &[],
    plugin_package: Some(PluginPackage {
        name: "@opencode-ai/plugin",
        folders: &["{home}/.config/opencode", "{work}/.opencode"],
    }),
    shell: ModelTool {
        name: "bash",
        arguments: r#"{"command": "{command}", "description": "Runs a command"}"#,
    },
    write: ModelTool {
        name: "write",
        arguments: r#"{"filePath": "{path}", "content": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#""proof": { "type": "local", "command": ["{server}"], "enabled": true }"#,
        tool: ModelTool {
            name: "proof_runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "task",
            arguments: r#"{"description": "Run it", "prompt": "{prompt}", "subagent_type": "general"}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
