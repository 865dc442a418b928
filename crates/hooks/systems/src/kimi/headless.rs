//! How to run Kimi Code without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["-p", "{prompt}"],
    variables: &[("KIMI_DISABLE_TELEMETRY", "1")],
    files: &[
        (
            ".kimi-code/config.toml",
            r#"default_model = "proof"
telemetry = false

[providers.proof]
type = "openai"
base_url = "{url}/v1"
api_key = "unused"

[models.proof]
provider = "proof"
model = "proof"
max_context_size = 100000
"#,
        ),
        (".kimi-code/mcp.json", r#"{ "mcpServers": { {mcp} } }"#),
    ],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "Bash",
        arguments: r#"{"command": "{command}"}"#,
    },
    write: ModelTool {
        name: "Write",
        arguments: r#"{"path": "{path}", "content": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#""proof": { "command": "{server}" }"#,
        tool: ModelTool {
            name: "mcp__proof__runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "Agent",
            arguments: r#"{"description": "Run it", "prompt": "{prompt}", "subagent_type": "coder"}"#,
        },
        calls: SubagentCalls::Unnamed,
    }),
};
