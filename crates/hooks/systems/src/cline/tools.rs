//! Cline's built-in tools. Almost all of them take lists, so one call can have several operations.
//!
//! References name the place where the arguments were seen in version 3.0.65, or a path in `cline/cline`.

use crate::tool_names::{Packing, ToolTable, Unit, renamed, same, single};

/// The names and arguments of Cline's tools.
pub(crate) static TOOLS: ToolTable = ToolTable::new(
    "cline",
    &[
        single("run_commands", "shell", &[])
            .packed(Packing::Each("commands", "cmd"))
            .at("events of Cline: run_commands"),
        single(
            "read_files",
            "read_file",
            &[
                same("path"),
                renamed("start_line", "offset"),
                renamed("end_line", "limit").unit(Unit::LastLine("start_line")),
            ],
        )
        .packed(Packing::Objects("files"))
        .at("events of Cline: read_files"),
        single(
            "editor",
            "write_file",
            &[same("path"), renamed("new_text", "content")],
        )
        .without("old_text", None)
        .at("events of Cline: editor"),
        single(
            "editor",
            "edit_file",
            &[same("path"), same("old_text"), same("new_text")],
        )
        .at("events of Cline: editor"),
        single("search_codebase", "search", &[])
            .packed(Packing::Each("queries", "pattern"))
            .at("events of Cline: search_codebase"),
        single("fetch_web_content", "web_fetch", &[same("url")])
            .packed(Packing::Objects("requests"))
            .at("events of Cline: fetch_web_content"),
        single("apply_patch", "delete_file", &[])
            .packed(Packing::Envelope("input"))
            .at("sdk/packages/core/src/extensions/tools/schemas.ts"),
        single("spawn_agent", "task", &[renamed("task", "prompt")])
            .at("events of Cline: spawn_agent"),
    ],
)
.with_others(&[
    "ask_question",
    "team_attach_outcome_fragment",
    "team_await_runs",
    "team_broadcast",
    "team_cancel_run",
    "team_cleanup",
    "team_create_outcome",
    "team_finalize_outcome",
    "team_list_outcomes",
    "team_list_runs",
    "team_mission_log",
    "team_read_mailbox",
    "team_review_outcome_fragment",
    "team_run_task",
    "team_send_message",
    "team_shutdown_teammate",
    "team_spawn_teammate",
    "team_status",
    "team_task",
]);
