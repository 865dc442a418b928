//! The events of opencode that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new(
        "session.created",
        EventKind::SessionStart,
        EventRole::Observer,
    ),
    HostEvent::new(
        "chat.message",
        EventKind::UserPromptSubmit,
        EventRole::PromptGate,
    ),
    HostEvent::new(
        "tool.execute.before",
        EventKind::PreToolUse,
        EventRole::ToolGate,
    ),
    HostEvent::new(
        "tool.execute.after",
        EventKind::PostToolUse,
        EventRole::ToolResult,
    ),
    HostEvent::new("session.idle", EventKind::Stop, EventRole::Stop),
];
