//! A child on Windows, with a job object instead of a process group.
//!
//! Windows has no request to terminate that every program understands, so the job is always killed.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Sleep, sleep};

use crate::finished::End;
use crate::launch::Launch;
use crate::slots::Slot;
use crate::sys::output::Output;

/// The size of one read.
const READ: usize = 16 * 1024;

/// A started child with its pipes. Dropping it kills its job.
#[derive(Debug)]
pub(crate) struct Child {
    job: Box<dyn ChildWrapper>,
    pid: u32,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    scratch: Box<[u8]>,
    tick: Option<Pin<Box<Sleep>>>,
    exit: Option<End>,
    is_reaped: bool,
    _slot: Option<Slot>,
}

impl Child {
    /// Starts a child, which takes `slot` until its end. An empty payload needs no pipe. Any other
    /// payload is written later.
    pub(crate) fn spawn(
        launch: &Launch,
        payload: &mut &[u8],
        slot: &mut Option<Slot>,
    ) -> io::Result<Self> {
        let mut command = CommandWrap::with_new(&launch.path, |command| {
            command
                .args(&launch.arguments)
                .stdin(if payload.is_empty() {
                    Stdio::null()
                } else {
                    Stdio::piped()
                })
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .envs(launch.env.iter().map(|(key, value)| (key, value)));
            for key in launch.removed.iter().filter(|key| !launch.sets(key)) {
                command.env_remove(key);
            }
            if let Some(dir) = &launch.dir {
                command.current_dir(dir);
            }
        });
        let mut child = command.wrap(JobObject).spawn()?;
        Ok(Self {
            pid: child.id().unwrap_or_default(),
            stdin: child.stdin().take(),
            stdout: child.stdout().take(),
            stderr: child.stderr().take(),
            job: child,
            scratch: vec![0; READ].into_boxed_slice(),
            tick: None,
            exit: None,
            is_reaped: false,
            _slot: slot.take(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes to standard input.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stdin {
            Some(pipe) => Pin::new(pipe).poll_write(cx, bytes).map_err(as_broken_pipe),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Appends to `buffer`. A count of zero means the end of the output.
    pub(crate) fn poll_read(
        &mut self,
        output: Output,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let room = (buffer.capacity() - buffer.len()).min(self.scratch.len());
        let mut scratch = ReadBuf::new(self.scratch.get_mut(..room).unwrap_or_default());
        let read = match (output, &mut self.stdout, &mut self.stderr) {
            (Output::Stdout, Some(pipe), _) => Pin::new(pipe).poll_read(cx, &mut scratch),
            (Output::Stderr, _, Some(pipe)) => Pin::new(pipe).poll_read(cx, &mut scratch),
            _ => return Poll::Ready(Ok(0)),
        };
        ready!(read)?;
        buffer.extend_from_slice(scratch.filled());
        Poll::Ready(Ok(scratch.filled().len()))
    }

    /// Waits until the child has exited.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        const PAUSE: Duration = Duration::from_millis(2);
        loop {
            if self.look_for_exit()? {
                return Poll::Ready(Ok(()));
            }
            let tick = self.tick.get_or_insert_with(|| Box::pin(sleep(PAUSE)));
            ready!(tick.as_mut().poll(cx));
            self.tick = None;
        }
    }

    /// Kills the job, because there is no way to ask it to terminate.
    pub(crate) fn terminate(&mut self) -> bool {
        self.kill();
        false
    }

    /// Kills the job.
    pub(crate) fn kill(&mut self) {
        // The job may be empty already.
        let _ignored = self.job.start_kill();
    }

    /// Kills the rest of the job unless `keeps_group` is set, and returns how the child ended.
    pub(crate) fn reap(&mut self, keeps_group: bool) -> io::Result<End> {
        self.look_for_exit()?;
        if !keeps_group {
            self.kill();
        }
        self.is_reaped = true;
        Ok(self.exit.unwrap_or(End::Exited(1)))
    }

    fn look_for_exit(&mut self) -> io::Result<bool> {
        if self.exit.is_none() {
            // The wrapper itself would wait for the whole job.
            let status = self.job.inner_mut().try_wait()?;
            self.exit = status.map(|status| End::Exited(status.code().unwrap_or(1)));
        }
        Ok(self.exit.is_some())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill();
        }
    }
}

/// Converts the second error that Windows has for a pipe closed by the other side.
fn as_broken_pipe(error: io::Error) -> io::Error {
    const ERROR_NO_DATA: i32 = 232;
    match error.raw_os_error() {
        Some(ERROR_NO_DATA) => io::ErrorKind::BrokenPipe.into(),
        _ => error,
    }
}

/// A child that was started ahead of time. This does not exist on Windows: commands are started
/// when they are needed.
#[derive(Debug)]
pub(crate) enum Waiting {}

impl Waiting {
    pub(crate) fn start(_launch: &Launch) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn pid(&self) -> u32 {
        match *self {}
    }

    pub(crate) fn has_exited(&mut self) -> io::Result<bool> {
        match *self {}
    }

    pub(crate) fn wake(self, _slot: &mut Option<Slot>) -> io::Result<Child> {
        match self {}
    }
}
