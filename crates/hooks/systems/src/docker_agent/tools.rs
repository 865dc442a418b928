//! docker-agent's built-in tools. References are paths in `docker/docker-agent`, below `pkg/tools/builtin`.

use crate::tool_names::{ArgumentRow, Packing, ToolTable, Unit, renamed, same, single};

/// The arguments of the tools that give a task to another agent.
const TASK_ARGUMENTS: &[ArgumentRow] = &[renamed("task", "prompt"), same("agent")];

const CMD: ArgumentRow = same("cmd").or(&["command"]);

/// The names and arguments of docker-agent's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "docker-agent",
    &[
        single("shell", "shell", &[CMD, same("cwd"), same("timeout")]).at("shell.go: RunShellArgs"),
        single("run_background_job", "shell", &[CMD, same("cwd")])
            .at("shell.go: RunShellBackgroundArgs"),
        single(
            "read_file",
            "read_file",
            &[same("path"), renamed("line", "offset"), same("limit")],
        )
        .at("filesystem.go: ReadFileArgs"),
        single("read_multiple_files", "read_file", &[same("path")])
            .packed(Packing::Each("paths", "path"))
            .at("filesystem.go: ReadMultipleFilesArgs"),
        single("write_file", "write_file", &[same("path"), same("content")])
            .at("filesystem.go: WriteFileArgs"),
        single("edit_file", "edit_file", &[same("path")])
            .packed(Packing::Edits("edits", "oldText", "newText"))
            .at("filesystem.go: EditFileArgs, Edit"),
        single("list_directory", "list_directory", &[same("path")])
            .at("filesystem.go: ListDirectoryArgs"),
        single("directory_tree", "list_directory", &[same("path")])
            .at("filesystem.go: DirectoryTreeArgs"),
        single(
            "search_files_content",
            "search",
            &[
                renamed("query", "pattern").unit(Unit::LiteralUnless("is_regex")),
                same("path"),
            ],
        )
        .at("filesystem.go: SearchFilesContentArgs"),
        single("fetch", "web_fetch", &[])
            .packed(Packing::Each("urls", "url"))
            .at("fetch.go: FetchToolArgs"),
        single("transfer_task", "task", TASK_ARGUMENTS).at("transfertask.go: TransferTaskArgs"),
        single("run_background_agent", "task", TASK_ARGUMENTS)
            .at("agent/agent.go: RunBackgroundAgentArgs"),
    ],
);
