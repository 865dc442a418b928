//! What the shim prints if it cannot get an answer from the daemon: the denial of each host.
//!
//! The table repeats what the hosts' folders in `tenterhook-systems` say, because the shim must be
//! small and must not need the daemon to deny. A test of `tenterhook-daemon` compares both.

mod form;
mod hosts;
mod unknown;

pub use self::form::{GateFailure, HostFailures, REASON};
pub use self::hosts::HOST_FAILURES;
pub use self::unknown::{unknown, unread};

use crate::frame::Printed;

impl HostFailures {
    /// Returns the failures of a host.
    pub fn of(host: &str) -> Option<&'static Self> {
        HOST_FAILURES.iter().find(|known| known.host == host)
    }

    /// Returns what the shim prints if it fails on an event of the host.
    pub fn printed(&self, event: &str, reason: &str) -> Printed {
        if self.knows(event) {
            self.denial(event, reason).unwrap_or_default()
        } else {
            unknown(event, reason)
        }
    }
}
