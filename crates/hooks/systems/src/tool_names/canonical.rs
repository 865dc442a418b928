//! The canonical tools, to which the tools of every system are translated.

/// A canonical tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanonicalTool {
    /// The tool's name.
    pub name: &'static str,
    /// The names of the arguments. Optional ones end with `?`.
    pub arguments: &'static [&'static str],
}

/// The canonical tools.
pub const CANONICAL_TOOLS: &[CanonicalTool] = &[
    tool("shell", &["cmd", "cwd?", "timeout?"]),
    tool("read_file", &["path", "offset?", "limit?"]),
    tool("write_file", &["path", "content"]),
    tool(
        "edit_file",
        &["path", "old_text", "new_text", "replace_all?"],
    ),
    tool("delete_file", &["path"]),
    tool("list_directory", &["path?"]),
    tool("search", &["pattern", "path?", "glob?"]),
    tool("find_files", &["pattern", "path?"]),
    tool("web_fetch", &["url"]),
    tool("web_search", &["query"]),
    tool("task", &["prompt", "agent?"]),
];

const fn tool(name: &'static str, arguments: &'static [&'static str]) -> CanonicalTool {
    CanonicalTool { name, arguments }
}
