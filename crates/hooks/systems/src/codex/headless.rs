//! How to run Codex without a person.

use crate::host::headless::{HeadlessRun, McpRun, ModelTool, SubagentCalls, SubagentRun};

// With a model that its catalogue does not list, the host offers no `apply_patch`.
pub(super) static HEADLESS: HeadlessRun = HeadlessRun {
    arguments: &[
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "{prompt}",
    ],
    variables: &[("TENTERHOOK_PROOF_KEY", "unused")],
    files: &[(
        ".codex/config.toml",
        r#"model = "gpt-5.5"
model_provider = "proof"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.proof]
name = "proof"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "TENTERHOOK_PROOF_KEY"

[features]
multi_agent_v2 = true

{mcp}"#,
    )],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "exec_command",
        arguments: r#"{"cmd": "{command}"}"#,
    },
    write: ModelTool {
        name: "apply_patch",
        arguments: r#""*** Begin Patch\n*** Add File: {path}\n+{content}\n*** End Patch\n""#,
    },
    mcp: Some(McpRun {
        entry: r#"[mcp_servers.proof]
command = "{server}"
"#,
        tool: ModelTool {
            name: "mcp__proof/runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: Some(SubagentRun {
        tool: ModelTool {
            name: "collaboration/spawn_agent",
            arguments: r#"{"task_name": "sub", "message": "{prompt}", "fork_turns": "none"}"#,
        },
        calls: SubagentCalls::Named,
    }),
};
