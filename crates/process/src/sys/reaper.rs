//! Reaps children whose run was dropped.
//!
//! They were killed already, so almost always the first look finds them dead. One thread exists while
//! there are children to wait for, and none otherwise.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, waitpid};

use crate::slots::Slot;

const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

static STATE: Mutex<State> = Mutex::new(State {
    killed: Vec::new(),
    has_thread: false,
});

struct State {
    killed: Vec<Killed>,
    has_thread: bool,
}

/// A killed child that was not reaped, with the slot that it occupies until then.
struct Killed {
    pid: Pid,
    _slot: Option<Slot>,
}

/// Takes over a child that was killed.
pub(super) fn adopt(pid: Pid, slot: Option<Slot>) {
    if is_reaped(pid) {
        return;
    }
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.killed.push(Killed { pid, _slot: slot });
    if !state.has_thread {
        let thread = thread::Builder::new().name("reaper".to_owned());
        // Without a thread the child stays in the list until the next one is adopted.
        state.has_thread = thread.spawn(reap_all).is_ok();
    }
}

fn reap_all() {
    let mut pause = FIRST_PAUSE;
    loop {
        thread::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
        state.killed.retain(|killed| !is_reaped(killed.pid));
        if state.killed.is_empty() {
            state.has_thread = false;
            return;
        }
    }
}

/// Reaps a child that is dead. One that somebody else reaped counts as well.
fn is_reaped(pid: Pid) -> bool {
    !matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}
