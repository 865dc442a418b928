//! The events of Copilot CLI that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new("sessionStart", EventKind::SessionStart, EventRole::Observer),
    HostEvent::new(
        "userPromptSubmitted",
        EventKind::UserPromptSubmit,
        EventRole::PromptGate,
    ),
    HostEvent::new("preToolUse", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("postToolUse", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new(
        "postToolUseFailure",
        EventKind::PostToolUse,
        EventRole::ToolResult,
    ),
    HostEvent::new("agentStop", EventKind::Stop, EventRole::Stop),
    HostEvent::new("preCompact", EventKind::PreCompact, EventRole::Observer),
    HostEvent::new("notification", EventKind::Notification, EventRole::Observer),
    HostEvent::new("sessionEnd", EventKind::SessionEnd, EventRole::Observer),
];
