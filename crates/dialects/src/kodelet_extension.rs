//! The contract of kodelet's extensions: processes that subscribe to events and answer each with one JSON object.
//!
//! An event is sent as `{"id", "event", "context", "payload"}`.
//!
//! | event | key of the answer | effect |
//! |---|---|---|
//! | `user.message`, `tool.call` | `block`, an object | stops it, with its `reason` if there is one; other keys do not count |
//! | `user.message` | `message`, text | takes the place of the message; an empty one too |
//! | `tool.call` | `input`, an object | the tool runs with it and with nothing else |
//! | `tool.result` | `output`, a tool result | takes the place of the result, also for the model |
//! | `tool.update` | `output` | failure: what a tool has said so far is only watched here |
//! | `agent.init` | `systemPrompt` | `replace` takes the place of the prompt; `prepend` stands before it, `append` behind it, each with a line end between |
//! | `agent.init` | `tools` | `disable` and `enable` name tools, blanks around and repetitions left out |
//! | `agent.end` | `followUpMessages` | messages of the user that keep the agent going; blank ones are dropped |
//! | any | `null`, also as a value | as if it were left out |
//! | any | a key of another event, or an unknown one | none; a failure under `strict_output` |
//! | any | a known key in other case, a key twice, a value of another type | failure |

mod captured;
mod read;
mod write;

use std::sync::Arc;

use tenterhook::event::TurnEnd;
use tenterhook::{
    Dialect, EventClass, EventInfo, EventKind, EventRef, OnError, Origin, Policy, ReadError, Reply,
    ToolNames, WriteError,
};
use tenterhook_protocol::{AnyEffect, JsonObject};

pub(crate) use captured::FORM;

/// An event that extensions may subscribe to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtensionEvent {
    /// What kodelet calls it.
    pub name: &'static str,
    /// What it is called here.
    pub kind: EventKind,
    /// The keys of an answer.
    keys: &'static [&'static str],
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
    // Of the two events of a message this one may both stop and change it.
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

/// The dialect.
#[derive(Debug)]
pub struct KodeletExtension;

impl KodeletExtension {
    /// Makes the dialect.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a dialect is of use only as one among others"
    )]
    pub fn new() -> Arc<dyn Dialect> {
        Arc::new(Self)
    }

    /// Returns the event that kodelet knows by this name.
    pub fn event(name: &str) -> Option<&'static ExtensionEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }

    /// Says to an extension where a call comes from. What is not known is left out.
    pub fn context(origin: &Origin) -> JsonObject {
        write::context(origin)
    }
}

fn row(kind: EventKind) -> Option<&'static ExtensionEvent> {
    EVENTS.iter().find(|event| event.kind == kind)
}

impl Dialect for KodeletExtension {
    fn name(&self) -> &'static str {
        "kodelet-extension"
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        write::write(event)
    }

    /// A turn whose answer is blank is none of kodelet's.
    fn has_event(&self, event: &EventRef) -> bool {
        event
            .downcast::<TurnEnd>()
            .is_none_or(|turn| !turn.response.trim().is_empty())
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(info, None, reply, strict)
    }

    /// Text before or behind the system prompt needs the prompt.
    fn read_answer(
        &self,
        event: &EventRef,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        read::read(event.info(), Some(event), reply, strict)
    }

    fn tools(&self) -> Option<&dyn ToolNames> {
        crate::tools::of_dialect("kodelet")
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        match (configured, info.class) {
            (Some(on_error), _) => Policy::new(on_error, "configured"),
            (None, EventClass::Gate) => Policy::new(
                OnError::Block,
                "a gate that gives no answer lets nothing through",
            ),
            (None, EventClass::Observer) => Policy::new(OnError::Warn, "the event stops nothing"),
        }
    }
}
