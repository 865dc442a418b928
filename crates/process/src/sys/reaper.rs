//! Reaps children whose run was dropped, and notices when a group that was released to go on is empty.
//!
//! Dropped children were killed already, so almost always the first look finds them dead. One thread exists while there is
//! something to wait for, and none otherwise.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, test_kill_process_group, waitpid};

use super::guard::Entry;
use crate::slots::Slot;

const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The pause between two looks at groups. An id that is free again is in the table of the guard for so long.
const GROUP_PAUSE: Duration = Duration::from_millis(500);

static STATE: Mutex<State> = Mutex::new(State {
    killed: Vec::new(),
    groups: Vec::new(),
    has_thread: false,
});

static ADDED: Condvar = Condvar::new();

struct State {
    killed: Vec<Killed>,
    groups: Vec<Group>,
    has_thread: bool,
}

/// A killed child that was not reaped, with the slot that it occupies until then.
struct Killed {
    pid: Pid,
    _slot: Option<Slot>,
}

/// A group whose leader was reaped and that goes on, with its line in the table of the guard.
struct Group {
    id: Pid,
    _entry: Entry,
}

/// Takes over a child that was killed.
pub(super) fn adopt(pid: Pid, slot: Option<Slot>) {
    if is_reaped(pid) {
        return;
    }
    let mut state = state();
    state.killed.push(Killed { pid, _slot: slot });
    see_to(state);
}

/// Keeps a group in the table of the guard until it is empty. Its leader was reaped.
pub(super) fn watch_group(id: Pid, entry: Entry) {
    if is_empty(id) {
        return;
    }
    let mut state = state();
    state.groups.push(Group { id, _entry: entry });
    see_to(state);
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees to it that there is a thread and that it looks soon.
fn see_to(mut state: MutexGuard<'static, State>) {
    if !state.has_thread {
        let thread = thread::Builder::new().name("reaper".to_owned());
        // Without a thread everything stays in its list until the next is added.
        state.has_thread = thread.spawn(look_after_all).is_ok();
    }
    ADDED.notify_one();
}

fn look_after_all() {
    let mut state = state();
    let mut pause = FIRST_PAUSE;
    loop {
        let waited = ADDED.wait_timeout(state, pause);
        let (held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state = held;
        state.killed.retain(|killed| !is_reaped(killed.pid));
        state.groups.retain(|group| !is_empty(group.id));
        pause = match (state.killed.is_empty(), state.groups.is_empty()) {
            (true, true) => break,
            (true, false) => GROUP_PAUSE,
            (false, _) if timeout.timed_out() => (pause * 2).min(LONGEST_PAUSE),
            (false, _) => FIRST_PAUSE,
        };
    }
    state.has_thread = false;
}

/// Reaps a child that is dead. One that somebody else reaped counts as well.
fn is_reaped(pid: Pid) -> bool {
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

/// Says whether a group has no members.
fn is_empty(id: Pid) -> bool {
    matches!(test_kill_process_group(id), Err(Errno::SRCH))
}
