//! The contract between an agent, its hooks and the engine that runs them.
//!
//! This crate defines the event catalogue, the effects that hooks answer with, the outcome that
//! combines the effects of one dispatch, ids, the journal's record format, and the JSON Schema of
//! all of these. It does no I/O and has no async runtime.
//!
//! Each event is a struct. [`Effect<E>`] is what one hook answers to event `E`, and [`Outcome<E>`]
//! combines the answers of all hooks. Their methods exist only for events that honour them, so an
//! answer that makes no sense for an event does not compile:
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
//!
//! The feature `schema`, off by default, adds the JSON Schema of the contract: the module `schema`, and
//! an implementation of `JsonSchema` for every type that is serialised.

#![forbid(unsafe_code)]

mod any_effect;
mod any_outcome;
pub mod capability;
mod catalogue;
mod content;
mod decision;
mod effect;
mod envelope;
mod error_chain;
pub mod escape;
pub mod event;
mod event_kind;
mod event_macro;
mod event_name;
pub mod example;
pub mod excerpt;
mod field;
mod field_info;
pub mod honours;
mod id;
pub mod journal;
mod message;
pub mod message_extra;
mod outcome;
mod permission;
pub mod rewritable;
#[cfg(feature = "schema")]
pub mod schema;
mod unique_json;
mod wire_enum;
mod withhold;

pub use any_effect::AnyEffect;
pub use any_outcome::{AnyOutcome, Failure};
pub use catalogue::{
    AnyEvent, Event, EventClass, EventInfo, GateEvent, ListInfo, NotHonoured, RewriteError,
    RewriteInfo, RewriteMode, Run, Supplies, TypeCheck,
};
pub use content::{ContentBlock, Image, InvalidBlock, OpaqueBlock};
pub use decision::{Decision, StopKind};
pub use effect::Effect;
pub use envelope::{AgentRef, Envelope, InvokedBy, Origin};
pub use error_chain::error_chain;
pub use event_kind::EventKind;
pub use event_name::{EventName, ParseEventNameError, events, parse_event};
pub use field::IntoField;
pub use field_info::{FieldInfo, FieldType};
pub use id::{
    AgentId, CustomName, EntryId, EventId, HookId, InvalidName, SessionId, TaskId, ToolUseId,
};
pub use message::{Message, Messages, Role, ToolCall, ToolResult, ToolSpec, Usage};
pub use outcome::Outcome;
pub use permission::{Permission, Verdict};
pub use unique_json::{UniqueObject, UniqueValue};

/// A JSON object: tool arguments, payloads, metadata. Keys are sorted, or keep their order if the
/// feature `preserve_order` of `serde_json` is enabled.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
