//! Copilot CLI's built-in tools.
//!
//! References name the place where the arguments were seen in version 1.0.102.

use tenterhook_tool_names::{Packing, ToolTable, renamed, same, single};

/// The names and arguments of Copilot CLI's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "copilot",
    &[
        single("bash", "shell", &[renamed("command", "cmd")]).at("events of Copilot CLI: bash"),
        single("powershell", "shell", &[renamed("command", "cmd")])
            .at("hooks reference of Copilot CLI: powershell"),
        single("view", "read_file", &[same("path")]).at("events of Copilot CLI: view"),
        single(
            "create",
            "write_file",
            &[same("path"), renamed("file_text", "content")],
        )
        .at("events of Copilot CLI: create"),
        single(
            "edit",
            "edit_file",
            &[
                same("path"),
                renamed("old_str", "old_text"),
                renamed("new_str", "new_text"),
            ],
        )
        .at("events of Copilot CLI: edit"),
        single("grep", "search", &[same("pattern"), same("glob")])
            .packed(Packing::EachOrOne("paths", "path"))
            .at("events of Copilot CLI: grep"),
        single("glob", "find_files", &[same("pattern")])
            .packed(Packing::EachOrOne("paths", "path"))
            .at("events of Copilot CLI: glob"),
        single(
            "task",
            "task",
            &[same("prompt"), renamed("agent_type", "agent")],
        )
        .at("events of Copilot CLI: task"),
        // The names in events whose keys are written in PascalCase, where they differ in more than letter case.
        single("Read", "read_file", &[same("path")]).at("hooks reference of Copilot CLI: Read"),
        single(
            "Write",
            "write_file",
            &[same("path"), renamed("file_text", "content")],
        )
        .at("hooks reference of Copilot CLI: Write"),
        single(
            "Agent",
            "task",
            &[same("prompt"), renamed("agent_type", "agent")],
        )
        .at("hooks reference of Copilot CLI: Agent"),
    ],
);
