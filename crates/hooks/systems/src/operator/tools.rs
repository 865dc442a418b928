//! Operator's built-in tools.
//!
//! References are paths in `CursorTouch/Operator-Use`. `operator_use/tools` is the layout of May 2026,
//! and `operator_use/builtins/tools` is the later layout. Hooks see the later names. Calls may use the
//! names of both.

use crate::tool_names::{Packing, ToolTable, Unit, renamed, same, single};

/// The key of the list of edits, and the keys of the old and new text in its items.
const EDITS: Packing = Packing::Edits("edits", "old_content", "new_content");

/// The names and arguments of Operator's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "operator",
    &[
        single(
            "terminal",
            "shell",
            &[same("cmd"), same("cwd"), same("timeout")],
        )
        .at("operator_use/tools/terminal.py: Terminal"),
        single(
            "read",
            "read_file",
            &[
                same("path"),
                same("offset").unit(Unit::LinesFromZero),
                same("limit"),
            ],
        )
        .at("operator_use/builtins/tools/read.py"),
        single("write", "write_file", &[same("path"), same("content")])
            .at("operator_use/builtins/tools/write.py"),
        single("edit_file", "edit_file", &[same("path")])
            .packed(EDITS)
            .at("operator_use/tools/filesystem.py: EditFile"),
        single("ls", "list_directory", &[same("path")]).at("operator_use/builtins/tools/ls.py"),
        single(
            "grep",
            "search",
            &[same("pattern"), same("path"), same("glob")],
        )
        .at("operator_use/builtins/tools/grep.py"),
        single("glob", "find_files", &[same("pattern"), same("path")])
            .at("operator_use/builtins/tools/glob.py"),
        single("web_fetch", "web_fetch", &[same("url")]).at("operator_use/tools/web.py: WebFetch"),
        single("web_search", "web_search", &[same("query")])
            .at("operator_use/tools/web.py: WebSearch"),
        single(
            "subagent",
            "task",
            &[renamed("task", "prompt"), renamed("profile", "agent")],
        )
        .when("action", "create")
        .at("operator_use/builtins/tools/subagent.py"),
        single(
            "read_file",
            "read_file",
            &[
                same("path"),
                renamed("start_line", "offset"),
                renamed("end_line", "limit").unit(Unit::LastLine("start_line")),
            ],
        )
        .at("operator_use/tools/filesystem.py: ReadFile"),
        single("write_file", "write_file", &[same("path"), same("content")])
            .at("operator_use/tools/filesystem.py: WriteFile"),
        single("list_dir", "list_directory", &[same("path")])
            .at("operator_use/tools/filesystem.py: ListDir"),
        single("patch_file", "edit_file", &[same("path")])
            .packed(Packing::Diff("patch", &[]))
            .at("operator_use/tools/patch.py: PatchFile"),
        single("subagents", "task", &[renamed("task", "prompt")])
            .when("action", "create")
            .at("operator_use/tools/subagents.py: Subagents"),
    ],
);
