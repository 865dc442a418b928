//! The events of pi that Tenterhook's extension sends.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new(
        "session_start",
        EventKind::SessionStart,
        EventRole::Observer,
    ),
    HostEvent::new("input", EventKind::UserPromptSubmit, EventRole::PromptGate),
    HostEvent::new("tool_call", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("tool_result", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new("agent_end", EventKind::Stop, EventRole::Stop),
    HostEvent::new(
        "session_shutdown",
        EventKind::SessionEnd,
        EventRole::Observer,
    ),
];
