//! Claude Code's built-in tools.
//!
//! References name the place where the arguments were seen in version 2.1.330.

use crate::tool_names::{ArgumentRow, Packing, ToolTable, Unit, renamed, same, single};

/// The arguments of the tools that run a command line.
const SHELL: &[ArgumentRow] = &[
    renamed("command", "cmd"),
    same("timeout").unit(Unit::Milliseconds),
];

/// The names and arguments of Claude Code's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "claude-code",
    &[
        single("Bash", "shell", SHELL).at("events of Claude Code: Bash"),
        single("PowerShell", "shell", SHELL).at("hooks reference of Claude Code: PowerShell"),
        single(
            "Monitor",
            "shell",
            &[
                renamed("command", "cmd"),
                renamed("timeout_ms", "timeout").unit(Unit::Milliseconds),
            ],
        )
        // Without a command, it reads a web socket.
        .only_with("command")
        .at("events of Claude Code: Monitor"),
        single(
            "Read",
            "read_file",
            &[renamed("file_path", "path"), same("offset"), same("limit")],
        )
        .at("events of Claude Code: Read"),
        single(
            "Write",
            "write_file",
            &[renamed("file_path", "path"), same("content")],
        )
        .at("events of Claude Code: Write"),
        single(
            "Edit",
            "edit_file",
            &[
                renamed("file_path", "path"),
                renamed("old_string", "old_text"),
                renamed("new_string", "new_text"),
                same("replace_all"),
            ],
        )
        .at("events of Claude Code: Edit"),
        single("MultiEdit", "edit_file", &[renamed("file_path", "path")])
            .packed(Packing::Edits("edits", "old_string", "new_string"))
            .at("earlier versions: MultiEdit"),
        single(
            "NotebookEdit",
            "edit_file",
            &[
                renamed("notebook_path", "path"),
                renamed("new_source", "new_text"),
            ],
        )
        .at("types of the Agent SDK: NotebookEditInput"),
        single("LS", "list_directory", &[same("path")]).at("earlier versions: LS"),
        single(
            "Grep",
            "search",
            &[same("pattern"), same("path"), same("glob")],
        )
        .at("types of the Agent SDK: GrepInput"),
        single("Glob", "find_files", &[same("pattern"), same("path")])
            .at("types of the Agent SDK: GlobInput"),
        single("WebFetch", "web_fetch", &[same("url")]).at("events of Claude Code: WebFetch"),
        single("WebSearch", "web_search", &[same("query")])
            .at("types of the Agent SDK: WebSearchInput"),
        single(
            "Agent",
            "task",
            &[same("prompt"), renamed("subagent_type", "agent")],
        )
        .at("events of Claude Code: Agent"),
        single(
            "Task",
            "task",
            &[same("prompt"), renamed("subagent_type", "agent")],
        )
        .at("earlier name of Agent"),
    ],
)
.with_others(&[
    "AskUserQuestion",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "DeferredToolPlaceholder",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "KillShell",
    "ListAgents",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "Workflow",
]);
