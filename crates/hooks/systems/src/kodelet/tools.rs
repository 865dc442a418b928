//! kodelet's built-in tools.
//!
//! References are paths in `jingkaihe/kodelet` at `v0.5.36-beta`, unless a row says otherwise.

use crate::tool_names::{Packing, ToolTable, renamed, same, single};

/// The names and arguments of kodelet's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "kodelet",
    &[
        single(
            "bash",
            "shell",
            &[renamed("command", "cmd"), same("timeout")],
        )
        .at("pkg/types/tools/input_types.go: BashInput"),
        single(
            "file_read",
            "read_file",
            &[
                renamed("file_path", "path"),
                same("offset"),
                renamed("line_limit", "limit"),
            ],
        )
        .at("pkg/types/tools/input_types.go: FileReadInput"),
        single(
            "file_write",
            "write_file",
            &[renamed("file_path", "path"), renamed("text", "content")],
        )
        .at("pkg/types/tools/input_types.go: FileWriteInput"),
        single(
            "file_edit",
            "edit_file",
            &[
                renamed("file_path", "path"),
                same("old_text"),
                same("new_text"),
                same("replace_all"),
            ],
        )
        .at("pkg/types/tools/input_types.go: FileEditInput"),
        single("apply_patch", "delete_file", &[])
            .packed(Packing::Envelope("input"))
            .at("pkg/types/tools/input_types.go: ApplyPatchInput"),
        single(
            "grep_tool",
            "search",
            &[same("pattern"), same("path"), renamed("include", "glob")],
        )
        .at("pkg/types/tools/input_types.go: CodeSearchInput"),
        single("glob_tool", "find_files", &[same("pattern"), same("path")])
            .at("pkg/types/tools/input_types.go: GlobInput"),
        single("web_fetch", "web_fetch", &[same("url")])
            .at("pkg/tools/web_fetch.go: WebFetchInput"),
        single(
            "subagent",
            "task",
            &[renamed("question", "prompt"), renamed("workflow", "agent")],
        )
        .at("pkg/types/tools/input_types.go: SubAgentInput, until v0.4.51-beta"),
    ],
);
