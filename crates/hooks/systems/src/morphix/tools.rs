//! morphix' built-in tools. References are paths in `Morphilab/morphix` at `17db48e`.

use crate::tool_names::{ArgumentRow, Packing, ToolTable, renamed, same, single};

const PATH: ArgumentRow = same("path").or(&["file_path"]);

const DIFF_PATH: ArgumentRow = renamed("file_path", "path").or(&["path"]);
const DIFF: Packing = Packing::Diff("diff_content", &["content"]);

/// The names and arguments of morphix' tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "morphix",
    &[
        single("bash_manager", "shell", &[renamed("command", "cmd")])
            .at("tools/specs.py: bash_manager; tools/bash_manager.py"),
        single("file_manager", "read_file", &[PATH])
            .when("action", "read")
            .at("tools/specs.py: file_manager; tools/file_manager.py"),
        single("file_manager", "write_file", &[PATH, same("content")])
            .when("action", "write")
            .at("tools/specs.py: file_manager; tools/file_manager.py"),
        single("file_manager", "delete_file", &[PATH])
            .when("action", "delete")
            .at("tools/specs.py: file_manager; tools/file_manager.py"),
        single("file_manager", "delete_file", &[PATH])
            .when("action", "remove")
            .at("tools/file_manager.py"),
        single("file_manager", "write_file", &[PATH, same("content")])
            .without("action", Some("content"))
            .at("tools/file_manager.py"),
        single("file_manager", "read_file", &[PATH])
            .without("action", None)
            .at("tools/file_manager.py"),
        single("diff_editor", "edit_file", &[DIFF_PATH])
            .when("action", "apply")
            .packed(DIFF)
            .at("tools/specs.py: diff_editor; tools/diff_editor.py"),
        single("diff_editor", "edit_file", &[DIFF_PATH])
            .without("action", None)
            .packed(DIFF)
            .at("tools/diff_editor.py"),
        // Appended text replaces nothing, so the edit has no `old_text`.
        single(
            "file_manager",
            "edit_file",
            &[PATH, renamed("content", "new_text")],
        )
        .when("action", "append")
        .at("tools/specs.py: file_manager; tools/file_manager.py"),
        single(
            "code_search",
            "search",
            &[same("pattern"), same("path"), renamed("include", "glob")],
        )
        .at("tools/specs.py: code_search; tools/code_search.py"),
        single("web_fetch", "web_fetch", &[same("url")]).at("tools/specs.py: web_fetch"),
        single("web_search", "web_search", &[same("query")]).at("tools/specs.py: web_search"),
    ],
);
