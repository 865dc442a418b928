//! Schedules the checks for an exit, on systems that do not report it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// Wakes a task when it is time to check for an exit. The pauses between two checks grow.
#[derive(Debug)]
pub(super) struct PollTimer {
    pause: Duration,
    timer: Pin<Box<Sleep>>,
}

impl PollTimer {
    const FIRST_PAUSE: Duration = Duration::from_millis(1);
    const MAX_PAUSE: Duration = Duration::from_millis(20);

    pub(super) fn new() -> Self {
        Self {
            pause: Self::FIRST_PAUSE,
            timer: Box::pin(sleep(Self::FIRST_PAUSE)),
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.as_mut().poll(cx));
        self.pause = (self.pause * 2).min(Self::MAX_PAUSE);
        self.timer.set(sleep(self.pause));
        Poll::Ready(())
    }
}
