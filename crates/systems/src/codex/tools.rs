//! Codex's built-in tools.
//!
//! References name the place where the arguments were seen in version 0.169.0.

use tenterhook_tool_names::{Packing, ToolTable, renamed, single};

/// The names and arguments of Codex's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "codex",
    &[
        single("Bash", "shell", &[renamed("command", "cmd")]).at("events of Codex: Bash"),
        single("apply_patch", "delete_file", &[])
            .packed(Packing::Envelope("command"))
            .matched_as(&["Edit", "Write"])
            .at("events of Codex: apply_patch"),
        single("spawn_agent", "task", &[renamed("message", "prompt")])
            .matched_as(&["Agent"])
            .at("codex-rs/core/src/tools/handlers/multi_agents_spec.rs in openai/codex"),
    ],
)
.with_others(&[
    "create_goal",
    "get_goal",
    "request_user_input",
    "tool_search",
    "update_goal",
    "update_plan",
    "view_image",
    "write_stdin",
]);
