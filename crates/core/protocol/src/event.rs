//! The events, one struct each, in the same groups as the catalogue page.
//!
//! Each struct holds only the payload. The [`Envelope`](crate::Envelope) holds what all events
//! share. `new` takes the required fields, and a `with_…` method sets each optional one. Fields are
//! public, and later versions may add more:
//!
//! ```
//! use tenterhook_protocol::event::PreToolUse;
//!
//! let event = PreToolUse::new("shell")
//!     .with_tool_use_id("call_1")
//!     .with_tool_input([("cmd", "ls")]);
//! assert_eq!(event.tool_name, "shell");
//! ```
//!
//! The table in each event's documentation is its row of the catalogue. Hooks may add a
//! [notice](crate::Effect::notice) to every event.

mod agent;
mod compaction;
mod custom;
mod gateway;
mod input;
mod model;
mod open;
mod session;
mod subagent;
mod tool;
mod turn;

pub use agent::*;
pub use compaction::*;
pub use custom::Custom;
pub use gateway::*;
pub use input::*;
pub use model::*;
pub use open::*;
pub use session::*;
pub use subagent::*;
pub use tool::*;
pub use turn::*;
