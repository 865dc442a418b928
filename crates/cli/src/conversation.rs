//! The conversation of `tenterhook run`: reads prompts and commands, and shows runs and a report.
//!
//! `session.rs` reads the lines, and `line.rs` decides what a line is. `prompt.rs` runs prompts. `slash_command.rs`
//! has the table of commands, and `builtin_commands.rs` runs them. `running_commands.rs` runs commands of extensions
//! while the agent works. `rpc/` serves a program instead of a person.

mod builtin_commands;
mod completions;
pub(crate) mod format;
mod line;
mod model;
mod program;
mod prompt;
mod record;
mod reload;
mod rpc;
mod running_commands;
mod session;
mod session_requests;
mod session_switch;
mod slash_command;
mod state;

pub(crate) use self::program::Program;
pub(crate) use self::state::Conversation;
