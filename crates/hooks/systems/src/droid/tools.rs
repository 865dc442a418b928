//! Factory droid's built-in tools.
//!
//! References name the place where the arguments were seen in version 0.215.0.

use crate::tool_names::{Packing, ToolTable, renamed, same, single};

/// The names and arguments of Factory droid's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "droid",
    &[
        single(
            "Execute",
            "shell",
            &[renamed("command", "cmd"), same("timeout")],
        )
        .at("events of Factory droid: Execute"),
        single(
            "Read",
            "read_file",
            &[renamed("file_path", "path"), same("offset"), same("limit")],
        )
        .at("events of Factory droid: Read"),
        single(
            "Create",
            "write_file",
            &[renamed("file_path", "path"), same("content")],
        )
        .at("events of Factory droid: Create"),
        single(
            "Edit",
            "edit_file",
            &[
                renamed("file_path", "path"),
                renamed("old_str", "old_text"),
                renamed("new_str", "new_text"),
                renamed("change_all", "replace_all"),
            ],
        )
        .at("events of Factory droid: Edit"),
        single("MultiEdit", "edit_file", &[renamed("file_path", "path")])
            .packed(Packing::Edits("changes", "old_str", "new_str"))
            .at("events of Factory droid: MultiEdit"),
        single("ApplyPatch", "delete_file", &[])
            .packed(Packing::Envelope("input"))
            .at("events of Factory droid: ApplyPatch"),
        single("LS", "list_directory", &[renamed("directory_path", "path")])
            .at("events of Factory droid: LS"),
        single(
            "Grep",
            "search",
            &[
                same("pattern"),
                same("path"),
                renamed("glob_pattern", "glob"),
            ],
        )
        .at("events of Factory droid: Grep"),
        single("Glob", "find_files", &[renamed("folder", "path")])
            .packed(Packing::EachOrOne("patterns", "pattern"))
            .at("events of Factory droid: Glob"),
        single(
            "Task",
            "task",
            &[same("prompt"), renamed("subagent_type", "agent")],
        )
        .at("declarations of Factory droid: Task"),
    ],
)
.with_others(&["Loop", "Skill", "TaskOutput", "TaskStop", "ToolSearch"]);
