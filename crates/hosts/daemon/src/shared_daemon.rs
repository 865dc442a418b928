//! What all connections of the daemon share.

use std::path::PathBuf;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::host_event::HostEvents;
use crate::running_program::RunningProgram;

/// How much memory all requests may take together, in units of 64 KiB.
const MAX_UNITS: usize = 4_096;

/// What the daemon knows about itself.
#[derive(Debug)]
pub(crate) struct AboutDaemon {
    pub(crate) socket: PathBuf,
    pub(crate) started: Instant,
}

impl AboutDaemon {
    pub(crate) fn now(socket: PathBuf) -> Self {
        Self {
            socket,
            started: Instant::now(),
        }
    }
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct SharedDaemon {
    pub(crate) events: HostEvents,
    pub(crate) program: Option<RunningProgram>,
    /// Ends the daemon after the events that are being handled.
    pub(crate) stop: CancellationToken,
    /// Limits the memory of all requests.
    pub(crate) memory: Semaphore,
    pub(crate) about: AboutDaemon,
}

impl SharedDaemon {
    pub(crate) fn new(
        events: HostEvents,
        program: Option<RunningProgram>,
        stop: CancellationToken,
        about: AboutDaemon,
    ) -> Self {
        Self {
            events,
            program,
            stop,
            memory: Semaphore::new(MAX_UNITS),
            about,
        }
    }

    /// Returns whether this daemon accepts no more events. Finds out that the program was replaced.
    pub(crate) fn is_ending(&self) -> bool {
        if self
            .program
            .as_ref()
            .is_some_and(RunningProgram::is_replaced)
        {
            self.stop.cancel();
        }
        self.stop.is_cancelled()
    }
}
