//! Kimi Code's built-in tools.
//!
//! References name the place where the arguments were seen in version 2.1.0.

use crate::tool_names::{ToolTable, renamed, same, single};

/// The names and arguments of Kimi Code's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "kimi",
    &[
        single(
            "Bash",
            "shell",
            &[renamed("command", "cmd"), same("cwd"), same("timeout")],
        )
        .at("events of Kimi Code: Bash"),
        single(
            "Read",
            "read_file",
            &[
                same("path"),
                renamed("line_offset", "offset"),
                renamed("n_lines", "limit"),
            ],
        )
        .at("events of Kimi Code: Read"),
        single("Write", "write_file", &[same("path"), same("content")])
            .at("events of Kimi Code: Write"),
        single(
            "Edit",
            "edit_file",
            &[
                same("path"),
                renamed("old_string", "old_text"),
                renamed("new_string", "new_text"),
                same("replace_all"),
            ],
        )
        .at("events of Kimi Code: Edit"),
        single(
            "Grep",
            "search",
            &[same("pattern"), same("path"), same("glob")],
        )
        .at("events of Kimi Code: Grep"),
        single("Glob", "find_files", &[same("pattern"), same("path")])
            .at("events of Kimi Code: Glob"),
        single("FetchURL", "web_fetch", &[same("url")]).at("events of Kimi Code: FetchURL"),
        single("WebSearch", "web_search", &[same("query")])
            .at("schema in the bundle of Kimi Code: WebSearch"),
        single(
            "Agent",
            "task",
            &[same("prompt"), renamed("subagent_type", "agent")],
        )
        .at("events of Kimi Code: Agent"),
    ],
)
.with_others(&[
    "AgentSwarm",
    "AskUserQuestion",
    "CreateGoal",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterPlanMode",
    "ExitPlanMode",
    "GetGoal",
    "SetGoalBudget",
    "Skill",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TodoList",
    "UpdateGoal",
    "WaitFor",
]);
