//! Reaps children whose run was dropped, and notices when a group that was released is empty.
//!
//! Dropped children were killed before, so the first check almost always finds them dead. A thread
//! exists only while there is something to wait for.

use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, test_kill_process_group, waitpid};

use super::guard::Entry;
use crate::slots::Slot;

const FIRST_PAUSE: Duration = Duration::from_micros(200);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// The pause between two checks of the groups. For at most this long, the table of the guard has an
/// id that is free again.
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

/// A killed child that was not reaped yet, with the slot that it occupies until then.
struct Killed {
    pid: Pid,
    _slot: Option<Slot>,
}

/// A group that continues after its leader was reaped, with its line in the table of the guard.
struct Group {
    id: Pid,
    _entry: Entry,
}

/// Reaps a killed child, now or later.
pub(super) fn adopt(pid: Pid, slot: Option<Slot>) {
    if is_reaped(pid) {
        return;
    }
    let mut state = state();
    state.killed.push(Killed { pid, _slot: slot });
    see_to(state);
}

/// Keeps a group in the table of the guard until it is empty. Its leader has been reaped.
pub(super) fn watch_group(id: Pid, entry: Entry) {
    if is_empty(id) {
        return;
    }
    let mut state = state();
    state.groups.push(Group { id, _entry: entry });
    see_to(state);
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock()
}

/// Ensures that the thread runs and checks soon.
fn see_to(mut state: MutexGuard<'static, State>) {
    if !state.has_thread {
        let thread = thread::Builder::new().name("reaper".to_owned());
        // If the thread cannot be started, the next child or group tries again.
        state.has_thread = thread.spawn(look_after_all).is_ok();
    }
    ADDED.notify_one();
}

fn look_after_all() {
    let mut state = state();
    let mut pause = FIRST_PAUSE;
    loop {
        let waited = ADDED.wait_for(&mut state, pause);
        state.killed.retain(|killed| !is_reaped(killed.pid));
        state.groups.retain(|group| !is_empty(group.id));
        pause = match (state.killed.is_empty(), state.groups.is_empty()) {
            (true, true) => break,
            (true, false) => GROUP_PAUSE,
            (false, _) if waited.timed_out() => (pause * 2).min(MAX_PAUSE),
            (false, _) => FIRST_PAUSE,
        };
    }
    state.has_thread = false;
}

/// Reaps a child if it is dead, and returns whether it is reaped. It may also have been reaped elsewhere.
fn is_reaped(pid: Pid) -> bool {
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

/// Returns whether a group has no members.
fn is_empty(id: Pid) -> bool {
    matches!(test_kill_process_group(id), Err(Errno::SRCH))
}
