//! pi's built-in tools. References are paths in `badlogic/pi-mono`, below
//! `packages/coding-agent/src/core/tools`.

use crate::tool_names::{Packing, ToolTable, renamed, same, single};

/// The names and arguments of pi's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "pi",
    &[
        single(
            "bash",
            "shell",
            &[renamed("command", "cmd"), same("timeout")],
        )
        .at("bash.ts: bashSchema"),
        single(
            "powershell",
            "shell",
            &[renamed("command", "cmd"), same("timeout")],
        )
        .at("pi 0.87.1: dist/core/tools/powershell.js"),
        single(
            "read",
            "read_file",
            &[same("path"), same("offset"), same("limit")],
        )
        .at("read.ts: readSchema"),
        single("write", "write_file", &[same("path"), same("content")]).at("write.ts: writeSchema"),
        single("edit", "edit_file", &[same("path")])
            .packed(Packing::Edits("edits", "oldText", "newText"))
            .at("edit.ts: editSchema (flat until March 2026); pi 0.87.1: dist/core/tools/edit.js"),
        single("ls", "list_directory", &[same("path")]).at("ls.ts: lsSchema"),
        single(
            "grep",
            "search",
            &[same("pattern"), same("path"), same("glob")],
        )
        .at("grep.ts: grepSchema"),
        single("find", "find_files", &[same("pattern"), same("path")]).at("find.ts: findSchema"),
    ],
);
