//! The events of goose that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new("SessionStart", EventKind::SessionStart, EventRole::Observer),
    HostEvent::new(
        "UserPromptSubmit",
        EventKind::UserPromptSubmit,
        EventRole::Observer,
    ),
    HostEvent::new("PreToolUse", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("PostToolUse", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new(
        "PostToolUseFailure",
        EventKind::PostToolUse,
        EventRole::ToolResult,
    ),
    HostEvent::new("Stop", EventKind::Stop, EventRole::Stop),
    HostEvent::new("SessionEnd", EventKind::SessionEnd, EventRole::Observer),
];
