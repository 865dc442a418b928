//! Answers signals that would end the shim. A host that runs a tool if its guard is killed must get the
//! denial first.

use std::io;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// The signals by which hosts and users end programs.
const SIGNALS: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// The signals that are kept until [`watch`](Self::watch) is called.
#[derive(Clone, Copy)]
pub(crate) struct BlockedSignals(SigSet);

impl BlockedSignals {
    /// Blocks the signals in this thread and in the threads that it starts.
    pub(crate) fn block() -> io::Result<Self> {
        let set = SIGNALS.into_iter().collect::<SigSet>();
        set.thread_block()?;
        Ok(Self(set))
    }

    /// Calls `action` in a thread of its own when a signal arrives.
    pub(crate) fn watch(self, action: impl FnOnce() + Send + 'static) {
        let wait = move || {
            if self.0.wait().is_ok() {
                action();
            }
        };
        // Without a thread, the signals stay blocked, and the call answers at its deadline.
        thread::Builder::new().stack_size(64 << 10).spawn(wait).ok();
    }
}
