//! Notices the exit of a child by checking for it repeatedly.
//!
//! Most children close their outputs when they exit. So these checks are needed only for the moment
//! after that, and for children whose pipes other processes hold.

use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll};

use rustix::process::Pid;

use crate::sys::unix::poll_timer::PollTimer;

/// Wakes the run when the child may have exited.
#[derive(Debug)]
pub(in crate::sys::unix) struct ExitWatch(PollTimer);

impl ExitWatch {
    pub(in crate::sys::unix) fn new(_: Pid) -> Self {
        Self::without_descriptor()
    }

    pub(in crate::sys::unix) fn without_descriptor() -> Self {
        Self(PollTimer::new())
    }

    /// Waits for the next moment at which the child may have exited.
    pub(in crate::sys::unix) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll(cx).map(Ok)
    }
}

/// Does nothing: the capacity of a pipe cannot be set on these systems.
pub(in crate::sys::unix) fn widen(_: impl AsFd, _: usize) {}

/// Returns `None`: reading start times would need `unsafe` on these systems.
pub(in crate::sys::unix) fn start_time(_: Pid) -> Option<u64> {
    None
}

/// Returns nothing: finding descendants would need `unsafe` on these systems.
pub(in crate::sys::unix) fn strays(_: Pid) -> Vec<(Pid, u64)> {
    Vec::new()
}

/// Creates an unnamed file for the table of children.
pub(in crate::sys::unix) fn create_table() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let path = std::env::temp_dir().join(format!("tenterhook-children-{}", std::process::id()));
    // Left by a process that had this id and was killed before it removed the file.
    let _ignored = remove_file(&path);
    let table = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    remove_file(&path)?;
    Ok(table)
}
