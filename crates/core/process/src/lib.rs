//! Runs one child process correctly: one deadline, one process group, bounded output.
//!
//! This crate takes a command, runs it, and returns what the child printed and how it ended. It does
//! not know what the command is for and does not interpret its answer.
//!
//! Every run has these guarantees:
//!
//! - The child leads its own process group. Nothing of that group outlives the run, unless
//!   [`HeldPipe::Release`] asks for it.
//! - One deadline covers the start, standard input, both outputs and the exit. At the deadline the
//!   group is asked to terminate. It is killed after the grace period. On Linux, this includes
//!   descendants in other groups, such as those that `timeout` makes, unless their parents have
//!   ended.
//! - Both outputs are read to their end. Long output is cut: its head and its tail are kept, and the
//!   cut is reported.
//! - Dropping the future kills the group at once, and the child is reaped.
//! - On Unix, a small guard process kills all remaining groups when this process ends for any
//!   reason, even `kill -9`. The guard starts with the first child.
//! - A shell is started only for a line that needs one.
//!
//! # Examples
//!
//! ```
//! # #[cfg(unix)]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tenterhook_process::SpawnError> {
//! use tenterhook_process::{CancellationToken, Command, End, Limits, Program};
//!
//! let command = Command::new(Program::shell("tr a-z A-Z"));
//! let finished = command
//!     .run(b"hello", &Limits::default(), &CancellationToken::new())
//!     .await?;
//! assert_eq!(finished.end, End::Exited(0));
//! assert_eq!(finished.stdout.text(), "HELLO");
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```

#![forbid(unsafe_code)]

mod capture;
mod command;
#[cfg(unix)]
mod companion;
mod finished;
pub mod git;
mod launch;
mod limits;
mod resolve;
mod run;
mod shell;
mod slots;
mod sys;
mod warm;

pub use tokio_util::sync::CancellationToken;

pub use crate::capture::Captured;
pub use crate::command::{Command, Program, hide_variables};
#[cfg(unix)]
pub use crate::companion::{Companion, CompanionPipes};
pub use crate::finished::{End, Finished};
pub use crate::limits::{Capture, HeldPipe, Limits};
pub use crate::resolve::{ResolveError, ResolvedProgram, is_executable};
pub use crate::run::{OnOutput, SpawnError};
pub use crate::shell::Shell;
pub use crate::slots::Slots;
pub use crate::warm::{MAX_WAIT, MAX_WAITING, Prewarmed, WarmCounts};

/// Lets the guard process also kill all other processes of this process's session when this process ends.
///
/// Call this before the first child is started, in a program that leads a session of its own and whose session
/// contains only its children. Without the call, a child that was started an instant before this process is killed
/// can survive. Has an effect on Linux only.
pub fn guard_session() {
    #[cfg(unix)]
    sys::include_session();
}

/// Ends and reaps the guard process. The guard first kills the remaining children of this process.
///
/// Call this at the very end of a program. Without the call, the guard ends by itself after the
/// program, and must be reaped by the system's first process. The first process of a container often
/// does not do that. If a child is started after this call, a new guard is started with it.
pub fn end_guard() {
    #[cfg(unix)]
    sys::end_guard();
}
