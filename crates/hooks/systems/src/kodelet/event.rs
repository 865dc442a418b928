//! kodelet's events: their names, and the keys of the answers to them.

use tenterhook_engine::EventKind;

/// An event of kodelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KodeletEvent {
    /// kodelet's name for the event.
    pub name: &'static str,
    /// The event of the catalogue.
    pub kind: EventKind,
    /// The keys that an answer may have.
    pub(crate) keys: &'static [&'static str],
}

/// The events of kodelet.
pub const EVENTS: &[KodeletEvent] = &[
    KodeletEvent {
        name: "user_message_send",
        kind: EventKind::UserPromptSubmit,
        keys: &["blocked", "reason"],
    },
    KodeletEvent {
        name: "before_tool_call",
        kind: EventKind::PreToolUse,
        keys: &["blocked", "reason", "input"],
    },
    KodeletEvent {
        name: "after_tool_call",
        kind: EventKind::PostToolUse,
        keys: &["output"],
    },
    KodeletEvent {
        name: "agent_stop",
        kind: EventKind::Stop,
        keys: &["follow_up_messages"],
    },
    KodeletEvent {
        name: "turn_end",
        kind: EventKind::TurnEnd,
        keys: &[],
    },
];

/// Returns kodelet's event for an event of the catalogue.
pub(super) fn row(kind: EventKind) -> Option<&'static KodeletEvent> {
    EVENTS.iter().find(|event| event.kind == kind)
}
