//! The events that extensions may subscribe to, and the keys of the answers to them.

use tenterhook_engine::EventKind;

/// An event that extensions may subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionEvent {
    /// kodelet's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// The keys that an answer may have.
    pub(super) keys: &'static [&'static str],
}

const fn event(
    name: &'static str,
    kind: EventKind,
    keys: &'static [&'static str],
) -> ExtensionEvent {
    ExtensionEvent { name, kind, keys }
}

/// The events, in the order in which they happen.
pub const EVENTS: &[ExtensionEvent] = &[
    event("session.start", EventKind::SessionStart, &[]),
    event("resources.discover", EventKind::ResourcesDiscover, &[]),
    // The catalogue has two events for a user message. Only this one can both stop and change it.
    event("user.message", EventKind::UserInput, &["block", "message"]),
    event(
        "agent.init",
        EventKind::BeforeAgentStart,
        &["systemPrompt", "tools"],
    ),
    event("agent.start", EventKind::AgentStart, &[]),
    event("turn.start", EventKind::TurnStart, &[]),
    event("tool.call", EventKind::PreToolUse, &["block", "input"]),
    event("tool.update", EventKind::ToolExecutionUpdate, &["output"]),
    event("tool.result", EventKind::PostToolUse, &["output"]),
    event("turn.end", EventKind::TurnEnd, &[]),
    event("agent.end", EventKind::Stop, &["followUpMessages"]),
    event("session.end", EventKind::SessionEnd, &[]),
];

/// Returns the extensions' event for an event of the catalogue.
pub(super) fn row(kind: EventKind) -> Option<&'static ExtensionEvent> {
    EVENTS.iter().find(|event| event.kind == kind)
}
