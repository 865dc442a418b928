//! The tools of the reference agent with names or arguments that are not canonical.

use crate::tool_names::row::{ArgumentRow, ToolRow, renamed, same, single};

/// The arguments of the tools that delegate a task to another agent.
const TASK_ARGUMENTS: &[ArgumentRow] = &[renamed("task", "prompt"), same("agent")];

/// The names and arguments of the reference agent's tools.
pub const AGENT_TOOLS: &[ToolRow] = &[
    single("transfer_task", "task", TASK_ARGUMENTS).at("crates/agent/tools/src/transfer_task.rs"),
    single("run_background_agent", "task", TASK_ARGUMENTS)
        .at("crates/agent/tools/src/background_agent.rs"),
];

/// The tools of the reference agent that stand for no canonical tool.
pub const UNTRANSLATED_AGENT_TOOLS: &[&str] = &[
    "list_background_agents",
    "view_background_agent",
    "stop_background_agent",
];
