//! Copilot CLI's built-in tools.
//!
//! References name the place where the arguments were seen in version 1.0.102.

use crate::tool_names::{ArgumentRow, Packing, ToolRow, ToolTable, renamed, same, single};

use crate::command_hook::TEXT;

/// The names and arguments of Copilot CLI's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "copilot",
    &[
        single("bash", "shell", &[renamed("command", "cmd")]).at("events of Copilot CLI: bash"),
        single("powershell", "shell", &[renamed("command", "cmd")])
            .at("hooks reference of Copilot CLI: powershell"),
        single("write_bash", "shell", &[renamed("input", "cmd")])
            .only_with("input")
            .at("hooks reference of Copilot CLI: write_bash"),
        single("write_powershell", "shell", &[renamed("input", "cmd")])
            .only_with("input")
            .at("hooks reference of Copilot CLI: write_powershell"),
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
        // The patch is a text instead of an object with arguments. It is read as the argument `input`.
        single("apply_patch", "delete_file", &[])
            .packed(Packing::Envelope(TEXT))
            .at("events of Copilot CLI: apply_patch"),
        editor("view", "read_file", &[same("path")]),
        editor(
            "create",
            "write_file",
            &[same("path"), renamed("file_text", "content")],
        ),
        editor(
            "str_replace",
            "edit_file",
            &[
                same("path"),
                renamed("old_str", "old_text"),
                renamed("new_str", "new_text"),
            ],
        ),
        editor(
            "insert",
            "edit_file",
            &[same("path"), renamed("new_str", "new_text")],
        ),
        single("grep", "search", &[same("pattern"), same("glob")])
            .packed(Packing::EachOrOne("paths", "path"))
            .at("events of Copilot CLI: grep"),
        single("rg", "search", &[same("pattern"), same("glob")])
            .packed(Packing::EachOrOne("paths", "path"))
            .at("events of Copilot CLI: rg"),
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
)
.with_others(&[
    "fetch_copilot_cli_documentation",
    "list_agents",
    "list_bash",
    "list_powershell",
    "read_agent",
    "read_bash",
    "read_powershell",
    "report_intent",
    "session_store_sql",
    "skill",
    "sql",
    "stop_bash",
    "stop_powershell",
    "write_agent",
]);

/// Returns the row of one command of the editor.
const fn editor(
    command: &'static str,
    tool: &'static str,
    arguments: &'static [ArgumentRow],
) -> ToolRow {
    single("str_replace_editor", tool, arguments)
        .when("command", command)
        .at("tools of Copilot CLI: str_replace_editor")
}
