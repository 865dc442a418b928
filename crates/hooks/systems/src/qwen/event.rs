//! The events of Qwen Code that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new("SessionStart", EventKind::SessionStart, EventRole::Observer),
    HostEvent::new(
        "UserPromptSubmit",
        EventKind::UserPromptSubmit,
        EventRole::PromptGate,
    ),
    HostEvent::new("PreToolUse", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("PostToolUse", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new(
        "PostToolUseFailure",
        EventKind::PostToolUse,
        EventRole::ToolResult,
    ),
    HostEvent::new("Stop", EventKind::Stop, EventRole::Stop),
    HostEvent::new(
        "SubagentStart",
        EventKind::SubagentStart,
        EventRole::Observer,
    ),
    HostEvent::new("SubagentStop", EventKind::SubagentStop, EventRole::Observer),
    HostEvent::new("PreCompact", EventKind::PreCompact, EventRole::Observer),
    HostEvent::new("Notification", EventKind::Notification, EventRole::Observer),
    HostEvent::new("SessionEnd", EventKind::SessionEnd, EventRole::Observer),
];
