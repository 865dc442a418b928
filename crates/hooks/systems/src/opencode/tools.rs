//! opencode's built-in tools.
//!
//! References name the place where the arguments were seen in version 1.18.33.

use crate::tool_names::{Packing, ToolTable, Unit, renamed, same, single};

/// The names and arguments of opencode's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "opencode",
    &[
        single(
            "bash",
            "shell",
            &[
                renamed("command", "cmd"),
                renamed("workdir", "cwd"),
                same("timeout").unit(Unit::Milliseconds),
            ],
        )
        .at("events of opencode: bash"),
        single(
            "read",
            "read_file",
            &[renamed("filePath", "path"), same("offset"), same("limit")],
        )
        .at("events of opencode: read"),
        single(
            "write",
            "write_file",
            &[renamed("filePath", "path"), same("content")],
        )
        .at("events of opencode: write"),
        single(
            "edit",
            "edit_file",
            &[
                renamed("filePath", "path"),
                renamed("oldString", "old_text"),
                renamed("newString", "new_text"),
                renamed("replaceAll", "replace_all"),
            ],
        )
        .at("events of opencode: edit"),
        single(
            "grep",
            "search",
            &[same("pattern"), same("path"), renamed("include", "glob")],
        )
        .at("events of opencode: grep"),
        single("glob", "find_files", &[same("pattern"), same("path")])
            .at("events of opencode: glob"),
        single("webfetch", "web_fetch", &[same("url")]).at("events of opencode: webfetch"),
        single("websearch", "web_search", &[same("query")])
            .at("packages/opencode/src/tool/websearch.ts"),
        single(
            "task",
            "task",
            &[same("prompt"), renamed("subagent_type", "agent")],
        )
        .at("events of opencode: task"),
        single("apply_patch", "delete_file", &[])
            .packed(Packing::Envelope("patchText"))
            .at("packages/opencode/src/tool/apply_patch.ts"),
    ],
)
.with_others(&["skill", "todowrite"]);
