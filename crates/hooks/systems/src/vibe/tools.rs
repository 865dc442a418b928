//! Mistral Vibe's built-in tools, by the names that hooks see.
//!
//! References name the place where the arguments were seen in version 3.0.2.

use crate::tool_names::{ToolTable, Unit, renamed, same, single};

/// The names and arguments of Mistral Vibe's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "vibe",
    &[
        single(
            "file_system.bash",
            "shell",
            &[renamed("command", "cmd"), same("timeout")],
        )
        .at("events of Mistral Vibe: file_system.bash"),
        single(
            "process.start",
            "shell",
            &[renamed("command", "cmd"), same("cwd")],
        )
        .at("events of Mistral Vibe: process.start"),
        single("process.write", "shell", &[renamed("text", "cmd")])
            // Without a text, it sends keys or bytes.
            .only_with("text")
            .at("events of Mistral Vibe: process.write"),
        single(
            "file_system.read_file",
            "read_file",
            &[
                renamed("file_path", "path"),
                same("offset").unit(Unit::LinesFromZero),
                same("limit"),
            ],
        )
        .at("events of Mistral Vibe: file_system.read_file"),
        single(
            "file_system.write_file",
            "write_file",
            &[renamed("file_path", "path"), same("content")],
        )
        .at("events of Mistral Vibe: file_system.write_file"),
        single(
            "file_system.search_replace",
            "edit_file",
            &[
                renamed("file_path", "path"),
                renamed("old_string", "old_text"),
                renamed("new_string", "new_text"),
                same("replace_all"),
            ],
        )
        .at("events of Mistral Vibe: file_system.search_replace"),
    ],
)
.with_others(&[
    "process.list",
    "process.output",
    "process.stop",
    "run_typescript",
    "search_tool_functions",
    "skill",
    "todo",
    "unified_harness_scratchpad",
    "wait",
]);
