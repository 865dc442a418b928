//! Codex's built-in tools.
//!
//! References name the place where the arguments were seen in version 0.169.0.

use crate::tool_names::{Packing, ToolTable, renamed, single};

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
        // With `features.multi_agent_v2`, hooks see the name of the tool after the name of its group.
        single(
            "collaborationspawn_agent",
            "task",
            &[renamed("message", "prompt")],
        )
        .matched_as(&["Agent"])
        .at("events of Codex: collaborationspawn_agent"),
    ],
)
.with_others(&[
    "collaborationfollowup_task",
    "collaborationinterrupt_agent",
    "collaborationlist_agents",
    "collaborationsend_message",
    "collaborationwait_agent",
    "create_goal",
    "followup_task",
    "get_goal",
    "interrupt_agent",
    "list_agents",
    "request_user_input",
    "send_message",
    "tool_search",
    "update_goal",
    "update_plan",
    "view_image",
    "wait_agent",
    "write_stdin",
]);
