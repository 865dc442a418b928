//! Notices the exit of a child with a process descriptor, and reads information about processes
//! from `/proc`.

use std::fs::{File, read_dir, read_to_string};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::task::{Context, Poll};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::sys::unix::poll_timer::PollTimer;
use crate::sys::unix::reactor::register;

/// The default capacity of a pipe, and the maximum for processes without privileges.
const DEFAULT_PIPE: usize = 64 * 1024;
const MAX_PIPE: usize = 1024 * 1024;

/// Wakes the run when the child exits.
#[derive(Debug)]
pub(in crate::sys::unix) enum ExitWatch {
    Descriptor(AsyncFd<OwnedFd>),
    /// Used if there is no descriptor.
    Timer(PollTimer),
}

impl ExitWatch {
    pub(in crate::sys::unix) fn new(pid: Pid) -> Self {
        let watch = pidfd_open(pid, PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(|pidfd| register(pidfd, Interest::READABLE));
        watch.map_or_else(|_| Self::without_descriptor(), Self::Descriptor)
    }

    pub(in crate::sys::unix) fn without_descriptor() -> Self {
        Self::Timer(PollTimer::new())
    }

    /// Waits for the next moment at which the child may have exited.
    pub(in crate::sys::unix) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            // The descriptor stays readable, so its readiness is never cleared.
            Self::Descriptor(pidfd) => pidfd.poll_read_ready(cx).map_ok(drop),
            Self::Timer(timer) => timer.poll(cx).map(Ok),
        }
    }
}

/// Enlarges a pipe for a payload, as far as the system allows.
pub(in crate::sys::unix) fn widen(pipe: impl AsFd, payload: usize) {
    if payload > DEFAULT_PIPE {
        // If the system refuses, the only cost is more wake-ups.
        let _size = fcntl_setpipe_size(pipe, payload.min(MAX_PIPE));
    }
}

/// The numbers of fields in `/proc/PID/stat`. Field 0 is the state, which follows the name.
const GROUP: usize = 2;
const START_TIME: usize = 19;

/// How many descendants of one child are checked.
const MAX_DESCENDANTS: usize = 4096;

/// Returns a field of `/proc/PID/stat`, or `None` if there is no such process or no `/proc`.
fn field<T: FromStr>(pid: Pid, field: usize) -> Option<T> {
    // Large enough for all fields up to the start time. One read returns the whole file.
    let mut buffer = [0; 1024];
    let mut stat = File::open(format!("/proc/{pid}/stat")).ok()?;
    let count = stat.read(&mut buffer).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let fields = buffer.get(..count)?.rsplit(|byte| *byte == b')').next()?;
    let mut fields = str::from_utf8(fields).ok()?.split_ascii_whitespace();
    fields.nth(field)?.parse().ok()
}

/// Returns when a process started, in clock ticks since boot, or `None` if there is no such process
/// or no `/proc`.
pub(in crate::sys::unix) fn start_time(pid: Pid) -> Option<u64> {
    field(pid, START_TIME)
}

/// Returns the descendants of a group's leader that are not in its group, with their start times.
/// `timeout` and `setsid` start such processes. A process whose parent has ended has another
/// ancestor by now and is not found.
pub(in crate::sys::unix) fn strays(leader: Pid) -> Vec<(Pid, u64)> {
    let mut below = children(leader);
    let mut looked_at = 0;
    while let Some(&pid) = below.get(looked_at)
        && below.len() < MAX_DESCENDANTS
    {
        below.extend(children(pid));
        looked_at += 1;
    }
    let group = leader.as_raw_nonzero().get();
    below
        .into_iter()
        .filter(|pid| field(*pid, GROUP).is_some_and(|found: i32| found != group))
        .filter_map(|pid| Some((pid, start_time(pid)?)))
        .collect()
}

/// Returns the children of all threads of a process.
fn children(pid: Pid) -> Vec<Pid> {
    let threads = read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    threads
        .filter_map(|thread| read_to_string(thread.ok()?.path().join("children")).ok())
        .flat_map(|children| {
            let ids = children.split_ascii_whitespace();
            let pids: Vec<_> = ids
                .filter_map(|id| Pid::from_raw(id.parse().ok()?))
                .collect();
            pids
        })
        .collect()
}

/// Creates a file in memory for the table of children.
pub(in crate::sys::unix) fn create_table() -> io::Result<File> {
    Ok(memfd_create("tenterhook-children", MemfdFlags::CLOEXEC)?.into())
}
