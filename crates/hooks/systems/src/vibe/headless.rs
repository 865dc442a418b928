//! How to run Mistral Vibe without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool};

pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &["-p", "{prompt}", "--auto-approve", "--trust"],
    variables: &[("TENTERHOOK_PROOF_KEY", "unused")],
    files: &[(
        ".vibe/config.toml",
        r#"active_model = "proof"
enable_telemetry = false
enable_update_checks = false
enable_auto_update = false

[[providers]]
name = "proof"
api_base = "{url}/v1"
api_key_env_var = "TENTERHOOK_PROOF_KEY"
api_style = "openai"
backend = "generic"

[[models]]
name = "proof"
provider = "proof"
alias = "proof"

{mcp}"#,
    )],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "bash",
        arguments: r#"{"command": "{command}"}"#,
    },
    write: ModelTool {
        name: "write_file",
        arguments: r#"{"path": "{path}", "content": "{content}"}"#,
    },
    mcp: Some(McpRun {
        entry: r#"[[mcp_servers]]
name = "proof"
transport = "stdio"
command = "{server}"
args = []
"#,
        tool: ModelTool {
            name: "run_typescript",
            arguments: r#"{"code": "async function main() { return await tools.mcp_proof.runner({command: '{command}'}); }"}"#,
        },
    }),
    subagent: None,
};
