//! One run from the slot to the reaped child.
//!
//! The run is one future without tasks: each poll moves the three pipes as far as they go, then looks
//! at the exit, the cancellation and the clock. What the system does differently lies in `sys`.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::capture::Recorder;
use crate::command::Launch;
use crate::resolve::missing_interpreter;
use crate::slots::Slot;
use crate::sys::{Child, Output, Refusal, refusal};
use crate::warm::Prewarmed;
use crate::{Capture, Captured, Command, HeldPipe, Limits, ResolveError};

/// How long a killed group may take to disappear before the run ends without it.
const SETTLE: Duration = Duration::from_millis(200);

/// How often a file that is open for writing is tried again. With doubled pauses that is half a second.
const BUSY_TRIES: u32 = 9;

/// The first pause between two tries to start a child.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two tries to start a child.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How long a shortage may last while no other run goes on that could end it.
const LONE_SHORTAGE: Duration = Duration::from_secs(5);

/// Reads of one stream in one poll, so that a flood cannot keep the clock from being looked at.
const READS_PER_POLL: u32 = 16;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The child exited by itself with this status.
    Exited(i32),
    /// A signal that was not ours ended the child.
    Signaled(i32),
    /// The deadline passed.
    TimedOut {
        /// Whether the group outlived the request to terminate and was killed.
        killed: bool,
    },
    /// The run was cancelled.
    Cancelled {
        /// Whether the group outlived the request to terminate and was killed.
        killed: bool,
    },
}

/// A run that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What the child printed on standard output.
    pub stdout: Captured,
    /// What the child printed on standard error.
    pub stderr: Captured,
    /// The time from the start to the end, without the wait for a slot.
    pub duration: Duration,
    /// The process id of the child, which was also the id of its group.
    pub pid: u32,
    /// Whether some process still held an output pipe when the run ended.
    pub is_pipe_held: bool,
}

/// Why no child ran.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// There is nothing to execute.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The system refused to start the program.
    #[error("could not start `{program}`")]
    Spawn {
        /// The executable.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Descriptors, processes or memory were short until the deadline, or for several seconds in which no other run went on
    /// that could have given some back.
    #[error("no resources to start `{program}`")]
    Exhausted {
        /// The executable.
        program: PathBuf,
        /// What the system said at the last try.
        source: io::Error,
    },
    /// The deadline passed before the child was started.
    #[error("the deadline passed before `{program}` was started")]
    TimedOut {
        /// The executable.
        program: PathBuf,
    },
    /// The run was cancelled before the child was started.
    #[error("cancelled before the command was started")]
    Cancelled,
    /// The system lost a child that was started. What is left of it was killed.
    #[error("lost contact with `{program}`")]
    Lost {
        /// The executable.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Says whether whole lines that a child has printed hold its answer. Each line is shown once.
pub type Until<'a> = &'a (dyn Fn(&[u8]) -> bool + Send + Sync);

/// What a run came to that may answer before it ends.
#[derive(Debug)]
pub enum Early {
    /// It ended without an answer.
    Finished(Finished),
    /// It has answered, and goes on.
    Answered(Box<Answered>),
}

/// A run that has answered. Dropping it kills the group of the child.
#[derive(Debug)]
pub struct Answered {
    /// What the child printed until then.
    pub stdout: Vec<u8>,
    program: PathBuf,
    session: Session<'static>,
    began: Instant,
    limits: Limits,
    cancel: CancellationToken,
}

impl Answered {
    /// Waits for the end of the run, within the limits that it began with. The child gets no more input.
    ///
    /// # Errors
    /// When the system lost the child.
    pub async fn finish(self) -> Result<Finished, SpawnError> {
        let driven = self.session.drive(self.began, &self.limits, &self.cancel);
        match driven.await {
            Ok(Driven::Finished(finished)) => Ok(finished),
            // Nothing is looked for any more.
            Ok(Driven::Answered(_)) => Err(SpawnError::Cancelled),
            Err(source) => Err(SpawnError::Lost {
                program: self.program,
                source,
            }),
        }
    }
}

pub(crate) async fn run(
    command: &Command,
    prewarmed: Option<&Prewarmed>,
    stdin: &[u8],
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Finished, SpawnError> {
    let mut stdin = stdin;
    let (child, program, began) = start(command, prewarmed, &mut stdin, limits, cancel).await?;
    drive(child, stdin, began, limits, cancel)
        .await
        .map_err(|source| SpawnError::Lost { program, source })
}

pub(crate) async fn run_early(
    command: &Command,
    prewarmed: Option<&Prewarmed>,
    stdin: &[u8],
    limits: &Limits,
    cancel: &CancellationToken,
    until: Until<'_>,
) -> Result<Early, SpawnError> {
    let mut stdin = stdin;
    let (child, program, began) = start(command, prewarmed, &mut stdin, limits, cancel).await?;
    let mut session = Session::new(child, stdin, limits);
    session.until = Some(until);
    match session.drive(began, limits, cancel).await {
        Ok(Driven::Finished(finished)) => Ok(Early::Finished(finished)),
        Ok(Driven::Answered(session)) => Ok(Early::Answered(Box::new(Answered {
            stdout: session.stdout.recorder.head().to_vec(),
            program,
            session: session.without_input(),
            began,
            limits: *limits,
            cancel: cancel.clone(),
        }))),
        Err(source) => Err(SpawnError::Lost { program, source }),
    }
}

/// Waits for a slot and takes the instance that waits, or starts one.
async fn start(
    command: &Command,
    prewarmed: Option<&Prewarmed>,
    stdin: &mut &[u8],
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<(Child, PathBuf, Instant), SpawnError> {
    let slots = command.slots_or_shared();
    let slot = cancel
        .run_until_cancelled(slots.take())
        .await
        .ok_or(SpawnError::Cancelled)?;
    let mut slot = Some(slot);
    let start = Start {
        command,
        began: Instant::now(),
        timeout: limits.timeout,
        cancel,
    };
    if let Some((child, program)) = prewarmed.and_then(|warm| warm.take(command, &mut slot)) {
        return Ok((child, program, start.began));
    }
    let (child, program) = start.child(stdin, slot).await?;
    Ok((child, program, start.began))
}

/// Takes a child that was started at `began` to its end.
pub(crate) async fn drive(
    child: Child,
    stdin: &[u8],
    began: Instant,
    limits: &Limits,
    cancel: &CancellationToken,
) -> io::Result<Finished> {
    let session = Session::new(child, stdin, limits);
    match session.drive(began, limits, cancel).await? {
        Driven::Finished(finished) => Ok(finished),
        Driven::Answered(_) => Err(io::Error::other("an answer that nobody looked for")),
    }
}

/// The part of a run before there is a child.
struct Start<'a> {
    command: &'a Command,
    began: Instant,
    timeout: Duration,
    cancel: &'a CancellationToken,
}

impl Start<'_> {
    async fn child(
        &self,
        stdin: &mut &[u8],
        mut slot: Option<Slot>,
    ) -> Result<(Child, PathBuf), SpawnError> {
        let mut launch = self.command.launch()?;
        let mut pause = FIRST_PAUSE;
        let mut busy_tries = 0;
        let mut shortage = None;
        let mut lone_since = None;
        loop {
            self.check(&launch, &mut shortage)?;
            let source = match Child::spawn(&launch, stdin, &mut slot) {
                Ok(child) => return Ok((child, launch.executable.clone())),
                Err(source) => source,
            };
            match refusal(&source) {
                Refusal::Exhausted => {
                    let slots = self.command.slots_or_shared();
                    if slots.is_one_taken() {
                        let since = lone_since.get_or_insert_with(Instant::now);
                        if since.elapsed() > LONE_SHORTAGE {
                            let program = launch.executable.clone();
                            return Err(SpawnError::Exhausted { program, source });
                        }
                    } else {
                        lone_since = None;
                    }
                    shortage = Some(source);
                    let freed = slots.freed(pause.min(self.left()));
                    self.cancel.run_until_cancelled(freed).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Refusal::Busy if busy_tries < BUSY_TRIES => {
                    busy_tries += 1;
                    let pausing = sleep(pause.min(self.left()));
                    self.cancel.run_until_cancelled(pausing).await;
                    pause *= 2;
                }
                Refusal::NotAProgram if launch.shell.is_none() => {
                    launch = Cow::Owned(launch.into_owned().through_sh());
                }
                Refusal::Missing | Refusal::NotAProgram | Refusal::Busy | Refusal::Other => {
                    return Err(refused(&launch, source));
                }
            }
        }
    }

    /// Fails if there is no time left to start a child in.
    fn check(&self, launch: &Launch, shortage: &mut Option<io::Error>) -> Result<(), SpawnError> {
        if self.cancel.is_cancelled() {
            return Err(SpawnError::Cancelled);
        }
        if !self.left().is_zero() {
            return Ok(());
        }
        let program = launch.executable.clone();
        Err(match shortage.take() {
            Some(source) => SpawnError::Exhausted { program, source },
            None => SpawnError::TimedOut { program },
        })
    }

    fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.began.elapsed())
    }
}

fn refused(launch: &Launch, source: io::Error) -> SpawnError {
    let is_missing = refusal(&source) == Refusal::Missing;
    if let Some(error) = is_missing.then(|| missing(launch)).flatten() {
        return SpawnError::Resolve(error);
    }
    SpawnError::Spawn {
        program: launch.executable.clone(),
        source,
    }
}

/// Returns what is missing. Nothing is searched for anew: what was found when the command was made is what runs,
/// and a file of the same name elsewhere is another program.
fn missing(launch: &Launch) -> Option<ResolveError> {
    if let Some(path) = launch.dir.clone().filter(|dir| !dir.is_dir()) {
        return Some(ResolveError::NoWorkingDir { path });
    }
    let path = launch.executable.clone();
    if path.exists() {
        missing_interpreter(&path)
    } else {
        Some(ResolveError::NotFound { path })
    }
}

/// The part of a run while there is a child.
struct Session<'a> {
    pid: u32,
    child: Child,
    stdin: &'a [u8],
    stdout: Stream,
    stderr: Stream,
    watches_exit: bool,
    until: Option<Until<'a>>,
    /// How much of the output was looked at for an answer, in whole lines.
    seen: usize,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// What came of a session.
enum Driven<'a> {
    Finished(Finished),
    Answered(Box<Session<'a>>),
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The child does its work.
    Running,
    /// The child exited; its pipes are held by others.
    Draining,
    /// The group was asked to terminate.
    Terminating(Cause),
    /// The group was killed.
    Killed(Cause),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Deadline,
    Cancel,
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// The child exited and nobody holds its pipes.
    Done,
    /// The child exited, but somebody holds a pipe.
    Exited,
    /// What the child printed is its answer.
    Answered,
    Cancelled,
    Elapsed,
}

impl<'a> Session<'a> {
    fn new(child: Child, stdin: &'a [u8], limits: &Limits) -> Self {
        Self {
            pid: child.pid(),
            child,
            stdin,
            stdout: Stream::new(Output::Stdout, limits.stdout),
            stderr: Stream::new(Output::Stderr, limits.stderr),
            watches_exit: limits.held_pipe != HeldPipe::Wait,
            until: None,
            seen: 0,
        }
    }

    /// Returns the session without what it borrows: it gets no more input, and no answer is looked for.
    fn without_input(self) -> Session<'static> {
        Session {
            pid: self.pid,
            child: self.child,
            stdin: &[],
            stdout: self.stdout,
            stderr: self.stderr,
            watches_exit: self.watches_exit,
            until: None,
            seen: 0,
        }
    }

    async fn drive(
        mut self,
        began: Instant,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> io::Result<Driven<'a>> {
        let deadline = after(began, limits.timeout);
        let mut timer = pin!(sleep_until(deadline.into()));
        let mut cancelled = pin!(cancel.cancelled());
        let mut phase = Phase::Running;
        let cause = loop {
            let woken = poll_fn(|cx| self.poll(phase, timer.as_mut(), cancelled.as_mut(), cx));
            let now = match (phase, woken.await?) {
                (Phase::Running | Phase::Draining, Woken::Done)
                | (Phase::Draining, Woken::Elapsed) => break None,
                (Phase::Terminating(cause) | Phase::Killed(cause), Woken::Done)
                | (Phase::Killed(cause), Woken::Elapsed) => break Some(cause),
                (Phase::Running, Woken::Exited) => {
                    phase = Phase::Draining;
                    after(Instant::now(), drain(limits.held_pipe)).min(deadline)
                }
                (Phase::Running, Woken::Elapsed) => {
                    phase = self.terminate(Cause::Deadline, limits.grace);
                    patience(phase, limits.grace)
                }
                (Phase::Running | Phase::Draining, Woken::Cancelled) => {
                    phase = self.terminate(Cause::Cancel, limits.grace);
                    patience(phase, limits.grace)
                }
                (Phase::Terminating(cause), Woken::Elapsed) => {
                    phase = self.kill(cause);
                    patience(phase, limits.grace)
                }
                (Phase::Running | Phase::Draining, Woken::Answered) => {
                    return Ok(Driven::Answered(Box::new(self)));
                }
                // None of these is waited for in these phases.
                (_, Woken::Exited | Woken::Cancelled | Woken::Answered) => continue,
            };
            timer.as_mut().reset(now.into());
        };
        let keeps_group = matches!(limits.held_pipe, HeldPipe::Release(_)) && cause.is_none();
        let exit = self.child.reap(keeps_group)?;
        let killed = matches!(phase, Phase::Killed(_));
        Ok(Driven::Finished(Finished {
            end: match cause {
                Some(Cause::Deadline) => End::TimedOut { killed },
                Some(Cause::Cancel) => End::Cancelled { killed },
                None => exit,
            },
            pid: self.pid,
            is_pipe_held: self.stdout.is_open || self.stderr.is_open,
            stdout: self.stdout.recorder.finish(),
            stderr: self.stderr.recorder.finish(),
            duration: began.elapsed(),
        }))
    }

    fn poll(
        &mut self,
        phase: Phase,
        timer: Pin<&mut Sleep>,
        cancelled: Pin<&mut WaitForCancellationFuture<'_>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Woken>> {
        self.feed(cx)?;
        self.stdout.fill(&mut self.child, cx)?;
        self.stderr.fill(&mut self.child, cx)?;
        let is_stoppable = matches!(phase, Phase::Running | Phase::Draining);
        if is_stoppable && self.has_answered() {
            return Poll::Ready(Ok(Woken::Answered));
        }
        let is_held = self.stdout.is_open || self.stderr.is_open;
        let is_exit_wanted = match phase {
            Phase::Running => !is_held || self.watches_exit,
            Phase::Draining | Phase::Terminating(_) | Phase::Killed(_) => !is_held,
        };
        if is_exit_wanted && self.child.poll_exit(cx)?.is_ready() {
            let woken = if is_held { Woken::Exited } else { Woken::Done };
            return Poll::Ready(Ok(woken));
        }
        if is_stoppable && cancelled.poll(cx).is_ready() {
            return Poll::Ready(Ok(Woken::Cancelled));
        }
        timer.poll(cx).map(|()| Ok(Woken::Elapsed))
    }

    /// Looks for an answer in what came since the last look.
    fn has_answered(&mut self) -> bool {
        let Some(until) = self.until else {
            return false;
        };
        let printed = self.stdout.recorder.head();
        let unseen = printed.get(self.seen..).unwrap_or_default();
        let Some(last) = unseen.iter().rposition(|byte| *byte == b'\n') else {
            return false;
        };
        let lines = unseen.get(..=last).unwrap_or_default();
        self.seen += lines.len();
        until(lines)
    }

    /// Writes what the child accepts.
    fn feed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.stdin.is_empty() {
            match self.child.poll_write(cx, self.stdin) {
                Poll::Pending => return Ok(()),
                // The child has closed its input: what it did not read, it did not want.
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Poll::Ready(Ok(0)) => break,
                Poll::Ready(written) => {
                    self.stdin = self.stdin.get(written?..).unwrap_or_default();
                }
            }
        }
        self.stdin = &[];
        self.child.close_stdin();
        Ok(())
    }

    fn terminate(&mut self, cause: Cause, grace: Duration) -> Phase {
        if grace.is_zero() || !self.child.terminate() {
            return self.kill(cause);
        }
        Phase::Terminating(cause)
    }

    fn kill(&mut self, cause: Cause) -> Phase {
        self.child.kill();
        Phase::Killed(cause)
    }
}

/// One output of the child while it is read.
struct Stream {
    output: Output,
    recorder: Recorder,
    is_open: bool,
}

impl Stream {
    fn new(output: Output, limit: Capture) -> Self {
        Self {
            output,
            recorder: Recorder::new(limit),
            is_open: true,
        }
    }

    /// Reads what is there.
    fn fill(&mut self, child: &mut Child, cx: &mut Context<'_>) -> io::Result<()> {
        for _ in 0..READS_PER_POLL {
            if !self.is_open {
                return Ok(());
            }
            match child.poll_read(self.output, cx, self.recorder.buffer()) {
                Poll::Pending => return Ok(()),
                Poll::Ready(count) => self.is_open = count? > 0,
            }
        }
        if self.is_open {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }
}

/// Returns when a stopped group is expected to be gone.
fn patience(phase: Phase, grace: Duration) -> Instant {
    let is_killed = matches!(phase, Phase::Killed(_));
    after(Instant::now(), if is_killed { SETTLE } else { grace })
}

fn drain(held_pipe: HeldPipe) -> Duration {
    match held_pipe {
        HeldPipe::Drain(time) | HeldPipe::Release(time) => time,
        HeldPipe::Wait => Duration::MAX,
    }
}

/// Adds, and takes an absurdly long time for a long one: a timer has an end of its range.
fn after(start: Instant, time: Duration) -> Instant {
    const LONG: Duration = Duration::from_hours(365 * 24);
    start + time.min(LONG)
}
