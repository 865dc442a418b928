//! What coding agents share whose hooks are commands with one JSON object on standard input.
//!
//! As hosts, these agents differ in the names of a few keys, which [`Keys`] lists, and in the form of
//! tool results, which each agent reads itself. Their answers have one object for the event,
//! `hookSpecificOutput`, next to keys that are valid for all events.
//!
//! For their own hooks, [`CommandHook`] is the dialect. A [`HookContract`] has what differs between them.

mod answer;
mod condition;
mod dialect;
mod effect;
mod event_writer;
mod reader;

pub(crate) use self::answer::{AnswerObject, joined, stop_reason};
pub use self::condition::{Condition, ConditionError, ConditionTool, PatternSubject};
pub(crate) use self::dialect::{CommandHook, HookContract, Printed};
pub(crate) use self::effect::{
    Answer, BlockedResult, add_context, block, blocked_by_status, documented, read_shared,
    replace_result,
};
pub(crate) use self::event_writer::{SOURCES, TRIGGERS, result_text, word, write};
pub(crate) use self::reader::{EventReader, Keys, TEXT, content_of, renamed};
