//! The events of Mistral Vibe that Tenterhook installs.

use tenterhook_engine::EventKind;

use crate::host::{EventRole, HostEvent};

/// The events, in the order in which they are installed.
pub(super) static EVENTS: &[HostEvent] = &[
    HostEvent::new("pre_tool", EventKind::PreToolUse, EventRole::ToolGate),
    HostEvent::new("post_tool", EventKind::PostToolUse, EventRole::ToolResult),
    HostEvent::new("post_agent", EventKind::Stop, EventRole::Stop),
];
