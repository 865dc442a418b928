//! The contract of kodelet's extensions: processes that subscribe to events and answer each event with
//! one JSON object.
//!
//! Each event is an object with the keys `id`, `event`, `context` and `payload`.
//!
//! | event | key of the answer | effect |
//! |---|---|---|
//! | `user.message`, `tool.call` | `block`, an object with an optional `reason` | stops the operation; other keys are ignored |
//! | `user.message` | `message`, a string | replaces the message, even if it is empty |
//! | `tool.call` | `input`, an object | replaces all arguments of the tool |
//! | `tool.result` | `output`, a tool result | replaces the result, also for the model |
//! | `tool.update` | `output` | failure: partial results can only be watched |
//! | `agent.init` | `systemPrompt.replace` | replaces the system prompt |
//! | `agent.init` | `systemPrompt.prepend`, `systemPrompt.append` | added before or after the prompt, with a line break between |
//! | `agent.init` | `tools.disable`, `tools.enable` | disables or enables tools by name; spaces around names and duplicates are ignored |
//! | `agent.end` | `followUpMessages` | user messages that keep the agent running; messages without text are dropped |
//! | any | `null` as the answer or as a value | counts as absent |
//! | any | a key of another event, or an unknown key | none; a failure with `strict_output` |
//! | any | a known key in different case, a duplicate key, a value of the wrong type | failure |

mod captured;
mod dialect;
mod event;
mod read;
pub(super) mod ui;
mod write;

pub(super) use self::captured::FORM;
pub use self::dialect::KodeletExtension;
pub use self::event::{EVENTS, ExtensionEvent};

use serde_json::Value;

/// Answers requests that Tenterhook does not support: the terminal has no surfaces to draw on. Returns `None` for any
/// other method.
pub(super) fn refuse(method: &str) -> Option<Value> {
    ui::unsupported(method)
}
