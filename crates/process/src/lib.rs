//! Runs one child process correctly: one deadline, one process group, bounded output.
//!
//! This crate owns everything between "this is the command" and "this is what it printed and how it
//! ended". It does not know what the command is for, does not interpret its answer and keeps no state
//! between two runs except the number of children that run at once.
//!
//! What holds for every run:
//!
//! - The child leads its own process group, and nothing of that group outlives the run, unless
//!   [`HeldPipe::Release`] asks for it.
//! - One deadline covers the start, standard input, both outputs and the exit. At the deadline the
//!   group is asked to terminate, and killed when the grace period is over. On Linux that includes descendants in groups of
//!   their own, as `timeout` makes one, unless their parents have ended.
//! - Both outputs are read to their end; the head and the tail are kept and the cut is reported.
//! - Dropping the future kills the group at once, and the child is reaped.
//! - On Unix, when this process ends in whatever way, also by `kill -9`, every group that is left is killed by a small
//!   guard process, which is started with the first child.
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
pub mod cut;
#[cfg(unix)]
mod fork_server;
mod limits;
mod line;
mod python_script;
mod resolve;
mod run;
mod slots;
mod sys;
mod warm;

pub use tokio_util::sync::CancellationToken;

pub use crate::capture::Captured;
pub use crate::command::{Command, Program, Shell};
#[cfg(unix)]
pub use crate::companion::{Companion, CompanionPipes};
#[cfg(unix)]
pub use crate::fork_server::{ForkCounts, ForkServer};
pub use crate::limits::{Capture, HeldPipe, Limits};
pub use crate::line::plain_words;
pub use crate::python_script::{NotForkable, PythonScript};
pub use crate::resolve::{ResolveError, ResolvedProgram, is_executable};
pub use crate::run::{Answered, Early, End, Finished, SpawnError, Until};
pub use crate::slots::Slots;
pub use crate::warm::{LONGEST_WAIT, MOST_WAITING, Prewarmed, WarmCounts};

/// Ends the guard process, which kills what is left of the children of this process, and reaps it.
///
/// A program calls this last. Without it the guard ends by itself when the program is gone, and the first process of the
/// system reaps it; the first process of a container often does not. A child that is started later has a new guard.
pub fn end_guard() {
    #[cfg(unix)]
    sys::end_guard();
}
