//! Notices that the terminal is gone, for example because its window was closed.
//!
//! Usually the system then sends SIGHUP. A program that ignores this signal, or does not belong to the terminal's
//! session, has to look.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::{MissedTickBehavior, interval};

/// How often the terminal is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Waits until a terminal is gone.
pub(super) async fn hung_up(terminal: BorrowedFd<'_>) {
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !is_gone(terminal) {
        ticks.tick().await;
    }
}

/// Reports whether a terminal is gone. If the system cannot tell, it is not.
fn is_gone(terminal: BorrowedFd<'_>) -> bool {
    // These flags are always reported.
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    let mut polled = [PollFd::new(&terminal, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok()
        && polled.iter().any(|it| it.revents().intersects(gone))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use portable_pty::{PtySize, native_pty_system};

    use super::*;

    #[tokio::test]
    async fn a_terminal_is_gone_when_its_other_end_is_closed() {
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let name = pair.master.tty_name().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        assert!(!is_gone(terminal.as_fd()));
        drop(pair);
        hung_up(terminal.as_fd()).await;
        assert!(is_gone(terminal.as_fd()));
    }
}
