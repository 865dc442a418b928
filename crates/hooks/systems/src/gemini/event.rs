//! The events of Gemini CLI that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new("SessionStart", EventKind::SessionStart, EventRole::Observer),
    HostEvent::new(
        "BeforeAgent",
        EventKind::UserPromptSubmit,
        EventRole::PromptGate,
    ),
    HostEvent::new("BeforeTool", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("AfterTool", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new("AfterAgent", EventKind::Stop, EventRole::Stop),
    HostEvent::new("Notification", EventKind::Notification, EventRole::Observer),
    HostEvent::new("SessionEnd", EventKind::SessionEnd, EventRole::Observer),
];
