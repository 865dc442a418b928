//! The result of a run.

use std::time::Duration;

use crate::capture::Captured;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The child exited by itself with this status.
    Exited(i32),
    /// A signal ended the child. The signal did not come from this crate.
    Signaled(i32),
    /// The deadline passed.
    TimedOut {
        /// Whether the group had to be killed, because it did not end within the grace period.
        killed: bool,
    },
    /// The run was cancelled.
    Cancelled {
        /// Whether the group had to be killed, because it did not end within the grace period.
        killed: bool,
    },
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What the child printed on standard output.
    pub stdout: Captured,
    /// What the child printed on standard error.
    pub stderr: Captured,
    /// The time from the start to the end, without the wait for a slot.
    pub duration: Duration,
    /// The process id of the child, which was also the id of its group.
    pub pid: u32,
    /// Whether some process still held an output pipe when the run ended.
    pub is_pipe_held: bool,
}
