//! Waits for descriptors, never longer than the deadline of the call.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long a wait may take before the call counts as slow.
const SLOW: Duration = Duration::from_millis(20);

/// How long a call may take, and what to do as soon as it is slow.
pub(crate) struct Patience<'a> {
    deadline: Instant,
    when_slow: Option<Box<dyn FnOnce() + 'a>>,
}

impl<'a> Patience<'a> {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self {
            deadline,
            when_slow: None,
        }
    }

    /// Calls `action` once, as soon as the call has to wait for more than a moment.
    pub(crate) fn when_slow(self, action: impl FnOnce() + 'a) -> Self {
        Self {
            when_slow: Some(Box::new(action)),
            ..self
        }
    }

    /// Returns the time that is left.
    pub(crate) fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
        }
        Ok(left)
    }

    /// Waits until `descriptor` can be read.
    pub(crate) fn readable(&mut self, descriptor: impl AsFd) -> io::Result<()> {
        self.wait(descriptor, PollFlags::IN)
    }

    /// Waits until `descriptor` can be written.
    pub(crate) fn writable(&mut self, descriptor: impl AsFd) -> io::Result<()> {
        self.wait(descriptor, PollFlags::OUT)
    }

    fn wait(&mut self, descriptor: impl AsFd, flags: PollFlags) -> io::Result<()> {
        loop {
            let left = self.left()?;
            let slice = if self.when_slow.is_some() {
                left.min(SLOW)
            } else {
                left
            };
            let slice = Timespec::try_from(slice).map_err(io::Error::other)?;
            let mut polled = [PollFd::new(&descriptor, flags)];
            match poll(&mut polled, Some(&slice)) {
                Ok(0) => self.is_slow(),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sleeps for a moment, but not beyond the deadline.
    pub(crate) fn pause(&mut self, moment: Duration) -> io::Result<()> {
        let moment = self.left()?.min(moment);
        self.is_slow();
        std::thread::sleep(moment);
        Ok(())
    }

    fn is_slow(&mut self) {
        if let Some(action) = self.when_slow.take() {
            action();
        }
    }
}
