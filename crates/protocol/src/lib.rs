//! The contract between an agent, its hooks and the engine that runs them.
//!
//! This crate owns the event catalogue, the effects with which a hook answers, the outcome that a
//! dispatch folds them into, ids, the journal record format and the JSON Schema of all of it. It does
//! no I/O and has no async runtime.
//!
//! An event is a struct; [`Effect<E>`] and [`Outcome<E>`] are the answer and the combined answer of
//! event `E`. Their methods exist only where the event honours them, so an answer that makes no sense
//! for an event does not compile:
//!
//! ```
//! use tenterhook_protocol::{Effect, event::PreToolUse};
//! let effect: Effect<PreToolUse> = Effect::deny("`rm -rf` is not allowed here");
//! ```
//!
//! ```compile_fail
//! use tenterhook_protocol::{Effect, event::TurnStart};
//! let effect: Effect<TurnStart> = Effect::deny("a turn start cannot be denied");
//! ```

#![forbid(unsafe_code)]

pub mod capability;
mod catalogue;
mod decision;
mod effect;
mod envelope;
pub mod event;
mod event_kind;
mod id;
pub mod journal;
mod message;
mod outcome;
mod permission;
pub mod rewritable;
pub mod schema;
mod unique_json;
mod wire_enum;
mod withhold;

pub use catalogue::{
    AnyEvent, Event, EventClass, EventInfo, GateEvent, ListInfo, NotHonoured, RewriteError,
    RewriteInfo, RewriteMode, Run, Supplies, TypeCheck,
};
pub use decision::{Decision, StopKind};
pub use effect::{AnyEffect, Effect};
pub use envelope::{AgentRef, Envelope, InvokedBy, Origin};
pub use event_kind::{EventKind, EventName, ParseEventNameError, events, parse_event};
pub use id::{
    AgentId, CustomName, EntryId, EventId, HookId, InvalidName, SessionId, TaskId, ToolUseId,
};
pub use message::{ContentBlock, Image, Message, Messages, Role, ToolCall, ToolResult, Usage};
pub use outcome::{AnyOutcome, Failure, Outcome};
pub use permission::{Permission, Verdict};
pub use unique_json::{UniqueObject, UniqueValue};

/// A JSON object: tool arguments, payloads, metadata. Key order is kept.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
