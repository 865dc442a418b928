//! The contract of kodelet's hooks: executables that are asked with `hook` what they are for, and run with `run`.
//!
//! | exit status | stdout | effect |
//! |---|---|---|
//! | 0 | nothing, or only white space | none |
//! | 0 | `null` or `{}` | none |
//! | 0 | one JSON object | what its keys say |
//! | 0 | anything else: text, an array, an object with something around it, a key twice | failure |
//! | any other | any | failure |
//!
//! | event | key | effect |
//! |---|---|---|
//! | `user_message_send`, `before_tool_call` | `blocked: true`, `reason` | stops it; other keys do not count |
//! | `before_tool_call` | `input`, an object | the tool runs with it |
//! | `after_tool_call` | `output`, a tool result | takes the place of the result, also for the model |
//! | `agent_stop` | `follow_up_messages` | messages of the user that keep the agent going; blank ones are dropped |
//! | any | `null` as a value | as if the key were left out |
//! | any | a key of another event, or an unknown one | none; a failure under `strict_output` |
//! | any | a known key in other case: `BLOCKED` | failure |

pub(crate) mod captured;
pub(crate) mod output;
mod read;
mod tools;
pub(crate) mod write;

use std::sync::Arc;

use tenterhook::event::TurnEnd;
use tenterhook::{
    Dialect, EventClass, EventInfo, EventKind, EventRef, OnError, Policy, ReadError, Reply,
    ToolNames, WriteError,
};
use tenterhook_protocol::AnyEffect;

pub(crate) use captured::FORM;
pub(crate) use tools::TOOLS;

/// An event of kodelet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KodeletEvent {
    /// What kodelet calls it.
    pub name: &'static str,
    /// What it is called here.
    pub kind: EventKind,
    /// The keys of an answer.
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

/// The dialect.
#[derive(Debug)]
pub struct Kodelet;

impl Kodelet {
    /// Makes the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a dialect is of use only as one among others"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }

    /// Returns the event that kodelet knows by this name.
    pub fn event(name: &str) -> Option<&'static KodeletEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }
}

fn row(kind: EventKind) -> Option<&'static KodeletEvent> {
    EVENTS.iter().find(|event| event.kind == kind)
}

impl Dialect for Kodelet {
    fn name(&self) -> &'static str {
        "kodelet"
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(event)
    }

    /// A turn whose answer has no text is none of kodelet's.
    fn has_event(&self, event: &EventRef) -> bool {
        event
            .downcast::<TurnEnd>()
            .is_none_or(|turn| !turn.response.is_empty())
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(info, reply, strict)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        crate::tools::of_dialect("kodelet")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => {
                Policy::new(OnError::Block, "kodelet's gates are security controls")
            }
            (None, EventClass::Observer) => Policy::new(OnError::Warn, "the event stops nothing"),
        }
    }
}
