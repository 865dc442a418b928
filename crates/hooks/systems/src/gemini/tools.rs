//! Gemini CLI's built-in tools.
//!
//! References name the place where the arguments were seen in version 0.61.0.

use crate::tool_names::{Packing, ToolTable, Unit, renamed, same, single};

/// The names and arguments of Gemini CLI's tools. `web_fetch` is not here: its URLs are inside a text.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "gemini",
    &[
        single(
            "run_shell_command",
            "shell",
            &[renamed("command", "cmd"), renamed("dir_path", "cwd")],
        )
        .at("events of Gemini CLI: run_shell_command"),
        single(
            "read_file",
            "read_file",
            &[
                renamed("file_path", "path"),
                renamed("start_line", "offset"),
                renamed("end_line", "limit").unit(Unit::LastLine("start_line")),
            ],
        )
        .at("events of Gemini CLI: read_file"),
        single("read_many_files", "read_file", &[])
            .packed(Packing::Each("include", "path"))
            .at("packages/core/src/tools/read-many-files.ts"),
        single(
            "write_file",
            "write_file",
            &[renamed("file_path", "path"), same("content")],
        )
        .at("events of Gemini CLI: write_file"),
        single(
            "replace",
            "edit_file",
            &[
                renamed("file_path", "path"),
                renamed("old_string", "old_text"),
                renamed("new_string", "new_text"),
                renamed("allow_multiple", "replace_all"),
            ],
        )
        .at("events of Gemini CLI: replace"),
        single(
            "list_directory",
            "list_directory",
            &[renamed("dir_path", "path")],
        )
        .at("events of Gemini CLI: list_directory"),
        single("grep_search", "search", SEARCH).at("events of Gemini CLI: grep_search"),
        single("search_file_content", "search", SEARCH).at("earlier name of grep_search"),
        single(
            "glob",
            "find_files",
            &[same("pattern"), renamed("dir_path", "path")],
        )
        .at("events of Gemini CLI: glob"),
        single("google_web_search", "web_search", &[same("query")])
            .at("tools that Gemini CLI offers to the model: google_web_search"),
        single(
            "invoke_agent",
            "task",
            &[same("prompt"), renamed("agent_name", "agent")],
        )
        .at("events of Gemini CLI: invoke_agent"),
    ],
)
.with_others(&[
    "activate_skill",
    "ask_user",
    "enter_plan_mode",
    "exit_plan_mode",
    "list_background_processes",
    "read_background_output",
    "save_memory",
    "update_topic",
    "web_fetch",
    "write_todos",
]);

const SEARCH: &[crate::tool_names::ArgumentRow] = &[
    same("pattern"),
    renamed("dir_path", "path"),
    renamed("include_pattern", "glob"),
];
