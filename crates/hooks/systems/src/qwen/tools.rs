//! Qwen Code's built-in tools.
//!
//! References name the place where the arguments were seen in version 0.24.4.

use crate::tool_names::{ToolTable, Unit, renamed, same, single};

/// The names and arguments of Qwen Code's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "qwen",
    &[
        single(
            "run_shell_command",
            "shell",
            &[
                renamed("command", "cmd"),
                renamed("directory", "cwd"),
                same("timeout").unit(Unit::Milliseconds),
            ],
        )
        .at("events of Qwen Code: run_shell_command"),
        single(
            "monitor",
            "shell",
            &[renamed("command", "cmd"), renamed("directory", "cwd")],
        )
        .at("events of Qwen Code: monitor"),
        single(
            "read_file",
            "read_file",
            &[
                renamed("file_path", "path"),
                same("offset").unit(Unit::LinesFromZero),
                same("limit"),
            ],
        )
        .at("events of Qwen Code: read_file"),
        single(
            "write_file",
            "write_file",
            &[renamed("file_path", "path"), same("content")],
        )
        .at("events of Qwen Code: write_file"),
        single(
            "edit",
            "edit_file",
            &[
                renamed("file_path", "path"),
                renamed("old_string", "old_text"),
                renamed("new_string", "new_text"),
                same("replace_all"),
            ],
        )
        .at("events of Qwen Code: edit"),
        single(
            "notebook_edit",
            "edit_file",
            &[
                renamed("notebook_path", "path"),
                renamed("new_source", "new_text"),
            ],
        )
        .at("declarations of Qwen Code: notebook_edit"),
        single(
            "grep_search",
            "search",
            &[same("pattern"), same("path"), same("glob")],
        )
        .at("events of Qwen Code: grep_search"),
        single("glob", "find_files", &[same("pattern"), same("path")])
            .at("declarations of Qwen Code: glob"),
        single(
            "agent",
            "task",
            &[same("prompt"), renamed("subagent_type", "agent")],
        )
        .at("declarations of Qwen Code: agent"),
        single("web_fetch", "web_fetch", &[same("url")]).at("declarations of Qwen Code: web_fetch"),
    ],
)
.with_others(&[
    "cron_create",
    "cron_delete",
    "cron_list",
    "enter_worktree",
    "exit_worktree",
    "get_goal",
    "list_agents",
    "loop_wakeup",
    "read_mcp_resource",
    "record_artifact",
    "report_findings",
    "send_message",
    "skill",
    "task_stop",
    "tool_call",
    "tool_search",
    "update_goal",
    "zoom_image",
]);
