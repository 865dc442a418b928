//! Ends the group of a child when this process is gone, also when it was killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use super::reaper;
use super::unix::{Child, SH};

/// Waits for the end of its input, whatever else it is asked to do, and kills its group.
const PROGRAM: &str = "trap '' HUP INT QUIT TERM; read -r _; kill -9 0";

/// A process in the group of a child that kills the group when this process is gone. It ends with the group.
#[derive(Debug)]
pub(crate) struct Guard {
    pid: Pid,
    /// Closed by the system when this process ends, however it ends. Nobody else has it.
    _held: io::PipeWriter,
}

impl Guard {
    /// Starts the guard of a child that leads its group and was not reaped.
    pub(crate) fn of(child: &Child) -> io::Result<Self> {
        let group = i32::try_from(child.pid()).map_err(io::Error::other)?;
        let (reader, held) = io::pipe()?;
        let guard = Command::new(SH)
            .args(["-c", PROGRAM])
            .env_clear()
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(group)
            .spawn()?;
        Ok(Self {
            pid: Pid::from_child(&guard),
            _held: held,
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // It was killed with the group, or kills what is left of that when the pipe is closed now.
        reaper::adopt(self.pid, None);
    }
}
