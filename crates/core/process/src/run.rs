//! One run from the slot to the reaped child.
//!
//! A run is a single future without tasks. Each poll reads and writes the three pipes as far as
//! possible, then checks the exit, the cancellation and the clock. Differences between systems are
//! handled in `sys`.

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use crate::capture::Recorder;
use crate::command::Command;
use crate::finished::{End, Finished};
use crate::launch::Launch;
use crate::limits::{Capture, HeldPipe, Limits};
use crate::resolve::{ResolveError, missing_interpreter};
use crate::slots::Slot;
use crate::sys::{Child, Output, Refusal, refusal};
use crate::warm::Prewarmed;

/// How long a killed group may take to disappear before the run ends without it.
const SETTLE: Duration = Duration::from_millis(200);

/// How often the start of a file that is open for writing is retried. With doubled pauses, this
/// takes half a second.
const BUSY_TRIES: u32 = 9;

/// The first pause between two tries to start a child.
const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two tries to start a child.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// How long a shortage may last while there is no other run that could end it.
const LONE_SHORTAGE: Duration = Duration::from_secs(5);

/// How many reads of one stream one poll makes. The limit ensures that a flood of output cannot
/// delay the deadline.
const READS_PER_POLL: u32 = 16;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program or the working directory was not found, or cannot be used.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The system refused to start the program.
    #[error("could not start `{program}`")]
    Spawn {
        /// The executable.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Descriptors, processes or memory were exhausted until the deadline, or for several seconds
    /// while there was no other run that could free some.
    #[error("not enough descriptors, processes or memory to start `{program}`")]
    Exhausted {
        /// The executable.
        program: PathBuf,
        /// The error of the system at the last try.
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
    /// The child was started, but reading, writing or waiting for it failed. The rest of its group
    /// was killed.
    #[error("lost contact with `{program}`")]
    Lost {
        /// The executable.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

/// Receives the lines that a child prints on standard output, as they become complete.
pub type OnOutput<'a> = &'a (dyn Fn(&[u8]) + Send + Sync);

impl Command {
    /// Runs the command: writes `stdin` to it, reads its output, and waits for it to end.
    ///
    /// The run waits for a slot first, and the deadline begins when it has the slot. A child that does
    /// not read its input is not an error. A cancellation stops the group in the same way as the
    /// deadline. Dropping the future kills the group at once.
    ///
    /// # Errors
    ///
    /// Fails if no child could be started, or if the child was lost. A failure of the child itself,
    /// such as its exit status, is part of [`Finished`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn run(
        &self,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        run(self, None, stdin, limits, cancel).await
    }

    /// Runs the command like [`Command::run`], and passes the lines of standard output to
    /// `on_output` as they become complete. Output beyond the head of [`Limits::stdout`] is not
    /// passed.
    ///
    /// # Errors
    ///
    /// Fails like [`Command::run`].
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn run_with_output(
        &self,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
        on_output: OnOutput<'_>,
    ) -> Result<Finished, SpawnError> {
        run_with_output(self, stdin, limits, cancel, on_output).await
    }
}

impl Prewarmed {
    /// Runs the command like [`Command::run`], but with the waiting instance if there is one.
    /// Starts the next instance after the run.
    ///
    /// # Errors
    /// Fails like [`Command::run`].
    pub async fn run(
        &self,
        command: &Command,
        stdin: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        let finished = run(command, Some(self), stdin, limits, cancel).await;
        self.arm(command);
        finished
    }
}

async fn run(
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

async fn run_with_output(
    command: &Command,
    stdin: &[u8],
    limits: &Limits,
    cancel: &CancellationToken,
    on_output: OnOutput<'_>,
) -> Result<Finished, SpawnError> {
    let mut stdin = stdin;
    let (child, program, began) = start(command, None, &mut stdin, limits, cancel).await?;
    let mut session = Session::new(child, stdin, limits);
    session.on_output = Some(on_output);
    let driven = session.drive(began, limits, cancel).await;
    driven.map_err(|source| SpawnError::Lost { program, source })
}

/// Waits for a slot, then takes the waiting instance or starts a child.
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

/// Runs a child to its end. `began` is when it was started.
pub(crate) async fn drive(
    child: Child,
    stdin: &[u8],
    began: Instant,
    limits: &Limits,
    cancel: &CancellationToken,
) -> io::Result<Finished> {
    let session = Session::new(child, stdin, limits);
    session.drive(began, limits, cancel).await
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
                    pause = (pause * 2).min(MAX_PAUSE);
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

    /// Fails if the run was cancelled, or if there is no time left to start a child.
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

/// Returns what is missing. The program is not looked up again, because a file of the same name
/// elsewhere would be another program.
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
    on_output: Option<OnOutput<'a>>,
    /// How many bytes of the output were reported. Only whole lines are reported.
    reported: usize,
}

/// The phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The child is running.
    Running,
    /// The child has exited, but other processes hold its pipes.
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

impl Cause {
    const fn end(self, killed: bool) -> End {
        match self {
            Self::Deadline => End::TimedOut { killed },
            Self::Cancel => End::Cancelled { killed },
        }
    }
}

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// The child exited, and its pipes are closed.
    Done,
    /// The child exited, but another process holds a pipe.
    Exited,
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
            on_output: None,
            reported: 0,
        }
    }

    async fn drive(
        mut self,
        began: Instant,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> io::Result<Finished> {
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
                // `poll` does not return these in the other phases.
                (_, Woken::Exited | Woken::Cancelled) => continue,
            };
            timer.as_mut().reset(now.into());
        };
        let keeps_group = matches!(limits.held_pipe, HeldPipe::Release(_)) && cause.is_none();
        let exit = self.child.reap(keeps_group)?;
        let killed = matches!(phase, Phase::Killed(_));
        Ok(Finished {
            end: cause.map_or(exit, |cause| cause.end(killed)),
            pid: self.pid,
            is_pipe_held: self.stdout.is_open || self.stderr.is_open,
            stdout: self.stdout.recorder.finish(),
            stderr: self.stderr.recorder.finish(),
            duration: began.elapsed(),
        })
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
        if is_stoppable {
            self.report_output();
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

    /// Reports the whole lines that arrived since the last report.
    fn report_output(&mut self) {
        let Some(on_output) = self.on_output else {
            return;
        };
        let printed = self.stdout.recorder.head();
        let unreported = printed.get(self.reported..).unwrap_or_default();
        let Some(last) = unreported.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let lines = unreported.get(..=last).unwrap_or_default();
        self.reported += lines.len();
        on_output(lines);
    }

    /// Writes as much input as the child accepts.
    fn feed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.stdin.is_empty() {
            match self.child.poll_write(cx, self.stdin) {
                Poll::Pending => return Ok(()),
                // The child has closed its input, which is not an error.
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

/// One output of the child, while it is being read.
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

    /// Reads the available output.
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

/// Returns how long to wait for a group to end that was asked to terminate or was killed.
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

/// Adds a duration, but at most a year, because the range of timers is limited.
fn after(start: Instant, time: Duration) -> Instant {
    const LONG: Duration = Duration::from_hours(365 * 24);
    start + time.min(LONG)
}
