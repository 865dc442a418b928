//! goose's built-in tools.
//!
//! References name the place where the arguments were seen in version 1.52.0.

use crate::tool_names::{ToolTable, renamed, same, single};

/// The names and arguments of goose's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "goose",
    &[
        single(
            "shell",
            "shell",
            &[
                renamed("command", "cmd"),
                renamed("timeout_secs", "timeout"),
            ],
        )
        .at("events of goose: shell"),
        single("write", "write_file", &[same("path"), same("content")])
            .at("events of goose: write"),
        single(
            "edit",
            "edit_file",
            &[
                same("path"),
                renamed("before", "old_text"),
                renamed("after", "new_text"),
            ],
        )
        .at("events of goose: edit"),
        single("tree", "list_directory", &[same("path")]).at("events of goose: tree"),
        single(
            "delegate",
            "task",
            &[
                renamed("instructions", "prompt"),
                renamed("source", "agent"),
            ],
        )
        .at("events of goose: delegate"),
    ],
)
.with_others(&[
    "analyze",
    "apps__create_app",
    "apps__delete_app",
    "apps__iterate_app",
    "apps__list_apps",
    "extensionmanager__list_resources",
    "extensionmanager__manage_extensions",
    "extensionmanager__read_resource",
    "extensionmanager__search_available_extensions",
    "load",
    "load_skill",
    "read_image",
]);
