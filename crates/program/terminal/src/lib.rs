//! The terminal of the command line: what is printed, the lines that a person writes, and Ctrl-C.
//!
//! [`Terminal`] is the [`Frontend`](tenterhook_agent::Frontend) of an agent. [`output`] prints, in colour if the
//! terminal supports it, and escapes untrusted text. [`line_source`] reads answers from a person who edits a line, or
//! from the lines of stdin. [`session_tree`] shows the entries of a session. [`interrupt`] turns signals into
//! cancellation.
//!
//! The command line decides what to show. No other crate prints.

#![forbid(unsafe_code)]

pub mod editor;
pub mod fire_report;
mod frontend;
pub mod interrupt;
pub mod line_source;
pub mod output;
pub mod reference;
pub mod rpc;
#[cfg(unix)]
pub mod secret_line;
pub mod session_tree;
mod stdin_lines;
pub mod test_report;
pub mod timeline;
pub mod trust_report;

pub use self::frontend::{Terminal, Verbosity};
