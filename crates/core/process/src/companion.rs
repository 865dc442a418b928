//! A long-lived child that exchanges messages with this process.
//!
//! A companion has no deadline. Dropping the [`Companion`] kills its process group, and so does the
//! end of this process. Its pipes are separate values, so that one task can read while another one
//! writes.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::timeout;

use crate::sys::{Child, Waiting};
use crate::{Command, End, SpawnError};

/// A long-lived child. Dropping it kills its process group and reaps the child.
#[derive(Debug)]
pub struct Companion {
    child: Child,
}

/// The pipes of a [`Companion`]. Closing its input asks it to end.
#[derive(Debug)]
pub struct CompanionPipes {
    /// Its standard input.
    pub stdin: Sender,
    /// Its standard output.
    pub stdout: Receiver,
    /// Its standard error.
    pub stderr: Receiver,
}

impl Companion {
    /// Starts a command as a companion. It does not take one of the slots that limit runs.
    ///
    /// # Errors
    /// Fails if the child cannot be started.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O enabled.
    pub fn start(command: &Command) -> Result<(Self, CompanionPipes), SpawnError> {
        let launch = command.launch()?;
        let refused = |source: io::Error| SpawnError::Spawn {
            program: launch.executable.clone(),
            source,
        };
        let waiting = Waiting::start(&launch).map_err(refused)?;
        let (child, [stdin, stdout, stderr]) = waiting.parts().map_err(refused)?;
        let pipes = CompanionPipes {
            stdin: Sender::from_owned_fd(stdin).map_err(refused)?,
            stdout: Receiver::from_owned_fd(stdout).map_err(refused)?,
            stderr: Receiver::from_owned_fd(stderr).map_err(refused)?,
        };
        Ok((Self { child }, pipes))
    }

    /// Returns the id of the process, which is also the id of its group.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Waits at most `grace` for the child to end by itself, kills the rest of its group, and
    /// returns how the child ended.
    pub async fn end(mut self, grace: Duration) -> End {
        // After a timeout the child is killed below.
        let _waited = timeout(grace, poll_fn(|cx| self.child.poll_exit(cx))).await;
        if self.child.has_exited().is_ok_and(|exited| !exited) {
            self.child.kill();
            let _killed = timeout(grace, poll_fn(|cx| self.child.poll_exit(cx))).await;
        }
        self.child.reap(false).unwrap_or(End::Signaled(9))
    }
}
