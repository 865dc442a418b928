//! Notices the exit of a child by looking for it.
//!
//! Most children close their outputs when they exit, so this is asked only for the moment after that,
//! and for children whose pipes are held by others.

use std::fs::{File, OpenOptions, remove_file};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll};

use rustix::process::Pid;

use super::unix::Ticks;

/// Wakes the run when the child may have exited.
#[derive(Debug)]
pub(super) struct ExitWatch(Ticks);

impl ExitWatch {
    pub(super) fn new(_: Pid) -> Self {
        Self::without_descriptor()
    }

    pub(super) fn without_descriptor() -> Self {
        Self(Ticks::new())
    }

    /// Waits for the next moment at which the child may have exited.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll(cx).map(Ok)
    }
}

/// The capacity of a pipe cannot be set here.
pub(super) fn widen(_: impl AsFd, _: usize) {}

/// There are no descriptors of processes here.
pub(super) fn open(_: Pid) -> Option<OwnedFd> {
    None
}

/// Never asked, because there is no descriptor.
pub(super) fn has_ended(_: &OwnedFd) -> bool {
    true
}

/// Start times of processes are not to be had here without `unsafe`.
pub(super) fn start_time(_: Pid) -> Option<u64> {
    None
}

/// Descendants of a process are not to be had here without `unsafe`.
pub(super) fn strays(_: Pid) -> Vec<(Pid, u64)> {
    Vec::new()
}

/// Creates a file without a name for the table of children.
pub(super) fn table() -> io::Result<File> {
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
