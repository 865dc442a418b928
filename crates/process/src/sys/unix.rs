//! A child on Unix: its own process group, `posix_spawn`, and pipes on the reactor of tokio.
//!
//! The order at the end of a child matters. Its exit is noticed without reaping it, then its group is
//! killed, and only then it is reaped: until then nobody else can have its id as process or group.

use std::fs::read_dir;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{self, Command, Stdio};
use std::task::{Context, Poll, ready};
use std::thread::yield_now;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::fs::{Access, access};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::{
    Pid, Resource, Signal, WaitId, WaitIdOptions, WaitIdStatus, getrlimit, kill_process,
    kill_process_group, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Sleep, sleep};

use super::exit::{self, ExitWatch, widen};
use super::forked::Remote;
use super::guard::Entry;
use super::{Output, Refusal, reaper};
use crate::End;
use crate::command::Launch;
use crate::slots::Slot;

/// The default shell.
pub(crate) const SH: &str = "/bin/sh";

/// Looks at a child that has closed its outputs before its exit is waited for: it is about to exit,
/// and a descriptor to wait with costs more than this.
const EXIT_LOOKS: u32 = 20;

/// A started child with its pipes. Dropping it kills its group and has it reaped.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    stdin: Option<Input>,
    stdout: Option<AsyncFd<OwnedFd>>,
    stderr: Option<AsyncFd<OwnedFd>>,
    watch: Option<ExitWatch>,
    /// Who reaps the child, if it is not this process.
    remote: Option<Remote>,
    exit: Option<End>,
    is_reaped: bool,
    /// Descendants that left the group, with their start times. They are looked for when the group is asked to end.
    strays: Vec<(Pid, u64)>,
    /// What the guard kills if this process is gone. Cleared before the child is reaped.
    entry: Option<Entry>,
    // The last field: the slot is free when the descriptors are closed.
    slot: Option<Slot>,
}

/// The parent's end of standard input. It joins the reactor when the pipe is full for the first time.
#[derive(Debug)]
enum Input {
    Plain(OwnedFd),
    Registered(AsyncFd<OwnedFd>),
}

impl Child {
    /// Starts a child that holds `slot` until it is reaped, and takes from `payload` what it has written
    /// already. A payload of nothing needs no pipe.
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
            remote: None,
            exit: None,
            is_reaped: false,
            strays: Vec::new(),
            entry: Some(entry),
            slot: slot.take(),
        };
        // From here on an error drops the child, which kills it. The error loses its number, so that it
        // is not taken for a refusal to start: nothing is started twice.
        let registered = child.guard().and_then(|()| child.register(&mut spawned));
        registered.map_err(io::Error::other)?;
        Ok(child)
    }

    /// Takes over a child that another process has forked: its group, and this process's ends of its pipes.
    pub(crate) fn forked(
        remote: Remote,
        stdin: Option<OwnedFd>,
        [stdout, stderr]: [AsyncFd<OwnedFd>; 2],
        entry: Entry,
        slot: Slot,
    ) -> Self {
        Self {
            pid: remote.pid(),
            stdin: stdin.map(Input::Plain),
            stdout: Some(stdout),
            stderr: Some(stderr),
            watch: None,
            remote: Some(remote),
            exit: None,
            is_reaped: false,
            strays: Vec::new(),
            entry: Some(entry),
            slot: Some(slot),
        }
    }

    /// Has the guard kill the group if this process is gone.
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

    /// Appends to the spare capacity of `buffer`. A count of zero is the end of the output.
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
                    // A short read has emptied the pipe, and the next byte wakes the reactor again.
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
        if let (Some(remote), None) = (&mut self.remote, self.exit) {
            self.exit = Some(ready!(remote.poll(cx))?);
        }
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

    /// Asks the group to terminate. A stopped process is continued, or it could not comply.
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

    /// Looks for descendants that left the group, which have to be found while their parents live.
    fn look_for_strays(&mut self) {
        if self.exit.is_none() {
            let found = exit::strays(self.pid);
            self.strays.extend(found);
        }
    }

    fn signal_strays(&self, signal: Signal) {
        for (pid, start) in &self.strays {
            // They are reaped by others, so the id may belong to somebody else by now.
            if exit::start_time(*pid) == Some(*start) {
                let _ignored = kill_process(*pid, signal);
            }
        }
    }

    /// Kills what is left of the group, unless that is kept, reaps the child and returns how it ended.
    pub(crate) fn reap(&mut self, keeps_group: bool) -> io::Result<End> {
        let is_exited = self.look_for_exit()?;
        if !keeps_group {
            self.kill();
            self.entry = None;
        }
        if is_exited && self.remote.is_none() {
            waitid(
                WaitId::Pid(self.pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
            )?;
        }
        self.is_reaped = is_exited;
        if let Some(entry) = self.entry.take() {
            reaper::watch_group(self.pid, entry);
        }
        // A child that does not even die is left to the reaper.
        let killed = End::Signaled(Signal::KILL.as_raw());
        Ok(self.exit.unwrap_or(killed))
    }

    /// Says whether the child has exited.
    pub(crate) fn has_exited(&mut self) -> io::Result<bool> {
        self.look_for_exit()
    }

    fn has_closed_outputs(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    fn look_for_exit(&mut self) -> io::Result<bool> {
        if let (Some(remote), None) = (&mut self.remote, self.exit) {
            self.exit = remote.look()?;
        } else if self.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.exit = waitid(WaitId::Pid(self.pid), options)?.map(|status| end_of(&status));
        }
        Ok(self.exit.is_some())
    }

    fn signal(&self, signal: Signal) {
        if self.remote.as_ref().is_some_and(Remote::is_id_free) {
            return;
        }
        // The child was not reaped, so the group exists, and a signal to a dead one is harmless.
        let _ignored = kill_process_group(self.pid, signal);
    }
}

/// Returns the command that starts a child.
fn prepared(launch: &Launch, stdin: Stdio) -> Command {
    // Never `pre_exec`, a user or a group here: each makes std fork, which copies the page tables
    // of the whole parent.
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
    // Even an empty change would rebuild the environment.
    if !launch.env.is_empty() {
        command.envs(launch.env.iter().map(|(key, value)| (key, value)));
    }
    for key in launch.removed.iter().filter(|key| !launch.sets(key)) {
        command.env_remove(key);
    }
    command
}

/// A child that was started and has got no input yet. Its pipes belong to no reactor, so that it may wait longer than
/// the runtime lives that it was started in. Dropping it kills its group and has it reaped.
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
            remote: None,
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

    /// Says whether the child has ended before it got its input.
    pub(crate) fn has_exited(&mut self) -> io::Result<bool> {
        self.child.look_for_exit()
    }

    /// Returns the child apart from its pipes: standard input, output and error.
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

    /// Makes a run of it, which holds the slot.
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
            if self.remote.is_none() {
                reaper::adopt(self.pid, self.slot.take());
            }
        }
    }
}

/// How much is in the pipe before the child is started. More would only delay the start.
const PREWRITTEN: usize = 64 << 10;

/// Makes the standard input of a child that is about to start, and the parent's end of it unless the
/// whole payload is in the pipe already: a child that finds its input does not sleep in its first read.
fn input(payload: &mut &[u8]) -> io::Result<(Stdio, Option<OwnedFd>)> {
    if payload.is_empty() {
        return Ok((Stdio::null(), None));
    }
    let (reader, rest) = filled(payload)?;
    Ok((reader.into(), rest))
}

/// Makes a pipe with as much of the payload in it as it takes, and the writing end unless that was all.
pub(super) fn filled(payload: &mut &[u8]) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    let (reader, writer) = io::pipe()?;
    let writer = OwnedFd::from(writer);
    widen(&writer, payload.len());
    ioctl_fionbio(&writer, true)?;
    // The reader is open, so the only obstacle is a full pipe. The rest is written while the child starts and reads.
    let first = payload.get(..PREWRITTEN).unwrap_or(payload);
    let written = write(&writer, first).unwrap_or_default();
    *payload = payload.get(written..).unwrap_or_default();
    let rest = (!payload.is_empty()).then_some(writer);
    Ok((reader.into(), rest))
}

/// Puts the parent's end of an output pipe on the reactor.
pub(super) fn output(pipe: impl Into<OwnedFd>) -> io::Result<AsyncFd<OwnedFd>> {
    let pipe = pipe.into();
    ioctl_fionbio(&pipe, true)?;
    register(pipe, Interest::READABLE)
}

/// Puts a descriptor on the reactor.
#[expect(
    deprecated,
    reason = "the sound form is unsafe for types that can swap their descriptor, which this one cannot"
)]
pub(super) fn register(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, interest)
}

fn end_of(status: &WaitIdStatus) -> End {
    let signal = status.terminating_signal().map(End::Signaled);
    // Status 0 is a hook's consent, so it is never assumed.
    signal.unwrap_or_else(|| End::Exited(status.exit_status().unwrap_or(-1)))
}

/// Says what the refusal to start a child means.
pub(crate) fn refusal(error: &io::Error) -> Refusal {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM) => Refusal::Exhausted,
        Some(Errno::TXTBSY) => Refusal::Busy,
        Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Refusal::Missing,
        Some(Errno::NOEXEC) => Refusal::NotAProgram,
        _ => Refusal::Other,
    }
}

/// Returns how many more descriptors this process may open, if there is a limit.
pub(crate) fn free_descriptors() -> Option<usize> {
    let limit = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    let open = read_dir("/dev/fd").map_or(0, Iterator::count);
    Some(limit.saturating_sub(open))
}

/// Tells whether this process may execute a file.
pub(crate) fn is_executable(file: &Path) -> bool {
    access(file, Access::EXEC_OK).is_ok()
}

/// Returns the names that an executable may be stored under: here only its own.
pub(crate) fn executable_names(file: &Path) -> [PathBuf; 1] {
    [file.to_path_buf()]
}

/// Moments to look for an exit, where nothing reports it. The pauses grow.
#[derive(Debug)]
pub(super) struct Ticks {
    pause: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Ticks {
    const FIRST_PAUSE: Duration = Duration::from_millis(1);
    const LONGEST_PAUSE: Duration = Duration::from_millis(20);

    pub(super) fn new() -> Self {
        Self {
            pause: Self::FIRST_PAUSE,
            timer: Box::pin(sleep(Self::FIRST_PAUSE)),
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.timer.as_mut().poll(cx));
        self.pause = (self.pause * 2).min(Self::LONGEST_PAUSE);
        self.timer.set(sleep(self.pause));
        Poll::Ready(())
    }
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

    #[test]
    fn only_a_shortage_and_a_busy_file_are_worth_another_try() {
        let table = [
            (Errno::MFILE, Refusal::Exhausted),
            (Errno::NFILE, Refusal::Exhausted),
            (Errno::AGAIN, Refusal::Exhausted),
            (Errno::NOMEM, Refusal::Exhausted),
            (Errno::TXTBSY, Refusal::Busy),
            (Errno::NOENT, Refusal::Missing),
            (Errno::NOEXEC, Refusal::NotAProgram),
            (Errno::TOOBIG, Refusal::Other),
        ];
        for (errno, expected) in table {
            let error = io::Error::from(errno);
            assert_eq!(refusal(&error), expected);
            // An error after the start has no number.
            assert_eq!(refusal(&io::Error::other(error)), Refusal::Other);
        }
    }
}
