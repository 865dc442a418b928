//! A child on Unix: its own process group, `posix_spawn`, and pipes on tokio's reactor.
//!
//! The order at the end of a child matters. Its exit is noticed without reaping it, then its group is
//! killed, and only then the child is reaped. Until it is reaped, no other process or group can have
//! its id.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};
use std::task::{Context, Poll, ready};
use std::thread::yield_now;

use rustix::buffer::spare_capacity;
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::guard::Entry;
use super::kernel::{self, ExitWatch};
use super::pipes::{input, output};
use super::reactor::register;
use super::reaper;
use crate::finished::End;
use crate::launch::Launch;
use crate::slots::Slot;
use crate::sys::output::Output;

/// How often to check for the exit of a child that has closed its outputs, before waiting for it. Such
/// a child is about to exit, and these checks cost less than a descriptor to wait with.
const EXIT_LOOKS: u32 = 20;

/// A started child with its pipes. Dropping it kills its group and has it reaped.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    stdin: Option<Input>,
    stdout: Option<AsyncFd<OwnedFd>>,
    stderr: Option<AsyncFd<OwnedFd>>,
    watch: Option<ExitWatch>,
    exit: Option<End>,
    is_reaped: bool,
    /// Descendants that have left the group, with their start times. They are found when the group
    /// is asked to end.
    strays: Vec<(Pid, u64)>,
    /// The child's line in the table of the guard. It is cleared before the child is reaped.
    entry: Option<Entry>,
    // The last field, so that the slot becomes free only after the descriptors are closed.
    slot: Option<Slot>,
}

/// The parent's end of standard input. It is registered with the reactor when the pipe is full for
/// the first time.
#[derive(Debug)]
enum Input {
    Plain(OwnedFd),
    Registered(AsyncFd<OwnedFd>),
}

impl Child {
    /// Starts a child, which takes `slot` until it is reaped. Removes from `payload` what was already
    /// written. An empty payload needs no pipe.
    pub(crate) fn spawn(
        launch: &Launch,
        payload: &mut &[u8],
        slot: &mut Option<Slot>,
    ) -> io::Result<Self> {
        let mut rest = *payload;
        let (stdin, input) = input(&mut rest)?;
        let entry = Entry::reserve()?;
        let mut spawned = prepared(launch, stdin).spawn()?;
        *payload = rest;
        let mut child = Self {
            pid: Pid::from_child(&spawned),
            stdin: input.map(Input::Plain),
            stdout: None,
            stderr: None,
            watch: None,
            exit: None,
            is_reaped: false,
            strays: Vec::new(),
            entry: Some(entry),
            slot: slot.take(),
        };
        // From here on, an error drops the child, which kills it. Such an error must not be taken for a
        // refusal to start, or the command would be started twice. So it loses its number.
        let registered = child.guard().and_then(|()| child.register(&mut spawned));
        registered.map_err(io::Error::other)?;
        Ok(child)
    }

    /// Registers the child with the guard, which kills the group if this process ends.
    fn guard(&self) -> io::Result<()> {
        self.entry
            .as_ref()
            .map_or(Ok(()), |entry| entry.fill(self.pid))
    }

    fn register(&mut self, spawned: &mut process::Child) -> io::Result<()> {
        self.stdout = spawned.stdout.take().map(output).transpose()?;
        self.stderr = spawned.stderr.take().map(output).transpose()?;
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Writes to standard input.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.stdin.take() {
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Some(Input::Plain(pipe)) => match write(&pipe, bytes) {
                    Err(Errno::AGAIN) => {
                        let pipe = register(pipe, Interest::WRITABLE)?;
                        self.stdin = Some(Input::Registered(pipe));
                    }
                    written => {
                        self.stdin = Some(Input::Plain(pipe));
                        return Poll::Ready(written.map_err(io::Error::from));
                    }
                },
                Some(Input::Registered(pipe)) => {
                    let pipe = match self.stdin.insert(Input::Registered(pipe)) {
                        Input::Registered(pipe) => pipe,
                        Input::Plain(_) => continue,
                    };
                    let mut guard = ready!(pipe.poll_write_ready(cx))?;
                    match write(guard.get_inner(), bytes) {
                        Err(Errno::AGAIN) => guard.clear_ready(),
                        Err(Errno::INTR) => {}
                        written => return Poll::Ready(written.map_err(io::Error::from)),
                    }
                }
            }
        }
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Reads into the spare capacity of `buffer`. A count of zero means the end of the output.
    pub(crate) fn poll_read(
        &mut self,
        output: Output,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
    ) -> Poll<io::Result<usize>> {
        let slot = match output {
            Output::Stdout => &mut self.stdout,
            Output::Stderr => &mut self.stderr,
        };
        let Some(pipe) = slot else {
            return Poll::Ready(Ok(0));
        };
        loop {
            let mut guard = ready!(pipe.poll_read_ready(cx))?;
            let is_ended = guard.ready().is_read_closed();
            let room = buffer.capacity() - buffer.len();
            match read(guard.get_inner(), spare_capacity(buffer)) {
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
                Ok(0) => {
                    *slot = None;
                    return Poll::Ready(Ok(0));
                }
                Ok(count) => {
                    // A short read has emptied the pipe. The next byte wakes the reactor again.
                    if count < room && !is_ended {
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
            }
        }
    }

    /// Waits until the child has exited, without reaping it.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.watch.is_none() && self.has_closed_outputs() {
            for _ in 0..EXIT_LOOKS {
                if self.look_for_exit()? {
                    return Poll::Ready(Ok(()));
                }
                yield_now();
            }
        }
        loop {
            if self.look_for_exit()? {
                return Poll::Ready(Ok(()));
            }
            let watch = self.watch.get_or_insert_with(|| ExitWatch::new(self.pid));
            ready!(watch.poll(cx))?;
        }
    }

    /// Asks the group to terminate. Also continues stopped processes, which could not react otherwise.
    pub(crate) fn terminate(&mut self) -> bool {
        self.look_for_strays();
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal(signal);
            self.signal_strays(signal);
        }
        true
    }

    /// Kills the group.
    pub(crate) fn kill(&mut self) {
        self.look_for_strays();
        self.signal(Signal::KILL);
        self.signal_strays(Signal::KILL);
    }

    /// Looks for descendants that have left the group. They can be found only while their parents live.
    fn look_for_strays(&mut self) {
        if self.exit.is_none() {
            let found = kernel::strays(self.pid);
            self.strays.extend(found);
        }
    }

    fn signal_strays(&self, signal: Signal) {
        for (pid, start) in &self.strays {
            // Strays are reaped by other processes, so the id may have been reused.
            if kernel::start_time(*pid) == Some(*start) {
                let _ignored = kill_process(*pid, signal);
            }
        }
    }

    /// Kills the rest of the group unless `keeps_group` is set, reaps the child, and returns how it ended.
    pub(crate) fn reap(&mut self, keeps_group: bool) -> io::Result<End> {
        let is_exited = self.look_for_exit()?;
        if !keeps_group {
            self.kill();
            self.entry = None;
        }
        if is_exited {
            waitid(
                WaitId::Pid(self.pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
            )?;
        }
        self.is_reaped = is_exited;
        if let Some(entry) = self.entry.take() {
            reaper::watch_group(self.pid, entry);
        }
        // A child that is not dead yet is left to the reaper.
        let killed = End::Signaled(Signal::KILL.as_raw());
        Ok(self.exit.unwrap_or(killed))
    }

    /// Returns whether the child has exited.
    pub(crate) fn has_exited(&mut self) -> io::Result<bool> {
        self.look_for_exit()
    }

    fn has_closed_outputs(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    fn look_for_exit(&mut self) -> io::Result<bool> {
        if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.exit = waitid(WaitId::Pid(self.pid), options)?.map(|status| end_of(&status));
        }
        Ok(self.exit.is_some())
    }

    fn signal(&self, signal: Signal) {
        // The child was not reaped, so the group still has this id. A signal to dead processes is harmless.
        let _ignored = kill_process_group(self.pid, signal);
    }
}

/// Returns the command that starts a child.
fn prepared(launch: &Launch, stdin: Stdio) -> Command {
    // Never set `pre_exec`, a user id or a group id here: each makes std fork, which copies the page
    // tables of the whole parent.
    let mut command = Command::new(&launch.path);
    command
        .args(&launch.arguments)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if let Some(name) = &launch.name {
        command.arg0(name);
    }
    if let Some(dir) = &launch.dir {
        command.current_dir(dir);
    }
    // Even an empty change would make std rebuild the environment.
    if !launch.env.is_empty() {
        command.envs(launch.env.iter().map(|(key, value)| (key, value)));
    }
    for key in launch.removed.iter().filter(|key| !launch.sets(key)) {
        command.env_remove(key);
    }
    command
}

/// A child that was started and has received no input yet. Its pipes are not registered with a reactor,
/// so that it may outlive the runtime in which it was started. Dropping it kills its group and has
/// it reaped.
#[derive(Debug)]
pub(crate) struct Waiting {
    child: Child,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Waiting {
    /// Starts a child whose input is open and empty.
    pub(crate) fn start(launch: &Launch) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let writer = OwnedFd::from(writer);
        ioctl_fionbio(&writer, true)?;
        let entry = Entry::reserve()?;
        let mut spawned = prepared(launch, reader.into()).spawn()?;
        let child = Child {
            pid: Pid::from_child(&spawned),
            stdin: Some(Input::Plain(writer)),
            stdout: None,
            stderr: None,
            watch: None,
            exit: None,
            is_reaped: false,
            strays: Vec::new(),
            entry: Some(entry),
            slot: None,
        };
        child.guard()?;
        let missing = || io::Error::other("a pipe is missing");
        Ok(Self {
            stdout: spawned.stdout.take().ok_or_else(missing)?.into(),
            stderr: spawned.stderr.take().ok_or_else(missing)?.into(),
            child,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Returns whether the child has ended before it got its input.
    pub(crate) fn has_exited(&mut self) -> io::Result<bool> {
        self.child.look_for_exit()
    }

    /// Splits this into the child and its pipes: standard input, output and error.
    pub(crate) fn parts(self) -> io::Result<(Child, [OwnedFd; 3])> {
        let Self {
            mut child,
            stdout,
            stderr,
        } = self;
        match child.stdin.take() {
            Some(Input::Plain(stdin)) => Ok((child, [stdin, stdout, stderr])),
            Some(Input::Registered(_)) | None => Err(io::Error::other("a pipe is missing")),
        }
    }

    /// Turns this into the child of a run, which takes the slot.
    pub(crate) fn wake(self, slot: &mut Option<Slot>) -> io::Result<Child> {
        let Self {
            mut child,
            stdout,
            stderr,
        } = self;
        child.stdout = Some(output(stdout)?);
        child.stderr = Some(output(stderr)?);
        child.slot = slot.take();
        Ok(child)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill();
            drop(self.entry.take());
            reaper::adopt(self.pid, self.slot.take());
        }
    }
}

fn end_of(status: &WaitIdStatus) -> End {
    let signal = status.terminating_signal().map(End::Signaled);
    // Status 0 can mean that a hook allows a call, so it is never assumed.
    signal.unwrap_or_else(|| End::Exited(status.exit_status().unwrap_or(-1)))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::Program;

    #[tokio::test]
    async fn an_exit_is_noticed_without_a_descriptor_for_it() {
        let program = Program::exec(["sh", "-c", "sleep 0.1; exit 7"]);
        let launch = crate::Command::new(program).prepare().unwrap();
        let mut child = Child::spawn(&launch, &mut &b""[..], &mut None).unwrap();
        child.watch = Some(ExitWatch::without_descriptor());
        poll_fn(|cx| child.poll_exit(cx)).await.unwrap();
        assert_eq!(child.reap(false).unwrap(), End::Exited(7));
    }
}
