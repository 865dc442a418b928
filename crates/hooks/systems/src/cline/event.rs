//! The events of Cline that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new("TaskStart", EventKind::SessionStart, EventRole::Observer),
    HostEvent::new("TaskResume", EventKind::SessionStart, EventRole::Observer),
    HostEvent::new(
        "UserPromptSubmit",
        EventKind::UserPromptSubmit,
        EventRole::Observer,
    ),
    HostEvent::new("PreToolUse", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("PostToolUse", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new("TaskComplete", EventKind::Stop, EventRole::Stop),
    HostEvent::new(
        "SessionShutdown",
        EventKind::SessionEnd,
        EventRole::Observer,
    ),
];
