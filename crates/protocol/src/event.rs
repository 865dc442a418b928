//! The events, one struct each, grouped as the catalogue page groups them.
//!
//! Every struct is the payload only; what all events share is the [`Envelope`](crate::Envelope).
//! Fields are public and every struct has a default, so a host writes
//! `PreToolUse { tool_name, tool_input, ..Default::default() }`.

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
