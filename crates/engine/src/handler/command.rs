//! Handlers that are child processes: one process for one event, spoken to in a dialect.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tenterhook_process::{
    Answered, CancellationToken, Capture, Command, Early, End, Finished, HeldPipe, Limits,
    Prewarmed, Program, Slots, SpawnError,
};
#[cfg(unix)]
use tenterhook_process::{ForkCounts, ForkServer, PythonScript};
use tokio_util::sync::DropGuard;

use super::{Answer, Call, Handler, HandlerError};
use crate::dialect::{Dialect, ReadError, Reply};

/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// What is kept of a hook's stdout. An answer that is longer is no answer.
const STDOUT: Capture = Capture {
    head: 512 << 10,
    tail: 512 << 10,
};
/// What is kept of a hook's stderr.
const STDERR: Capture = Capture {
    head: 16 << 10,
    tail: 48 << 10,
};

/// Bounds how many hooks of this process run at once.
static HOOK_SLOTS: LazyLock<Slots> = LazyLock::new(|| Slots::new(Slots::shared().count()));

/// When a command has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerEnd {
    /// When it exits; the status is part of the answer.
    #[default]
    Exit,
    /// When it has printed a line that is one JSON object. The exit is awaited aside: it changes nothing any more, and
    /// a bad one is in the journal. Without such a line it is as with [`AnswerEnd::Exit`].
    Line,
}

/// Runs a command for each event: the event on stdin, the answer on stdout and in the exit status.
#[derive(Debug)]
pub struct CommandHandler {
    kind: &'static str,
    command: Command,
    working_dir: Option<PathBuf>,
    dialect: Arc<dyn Dialect>,
    strict_output: bool,
    answer_end: AnswerEnd,
    prewarmed: Option<Prewarmed>,
    /// Ends what still runs after its answer when the handler goes.
    end: DropGuard,
    text: String,
    #[cfg(unix)]
    fork_server: Option<ForkServer>,
}

impl CommandHandler {
    /// Makes a handler of a command, shown to people as `text`.
    pub fn new(command: Command, text: impl Into<String>, dialect: Arc<dyn Dialect>) -> Self {
        Self {
            kind: "command",
            // The agent's own commands must not keep its hooks waiting, so hooks have slots of their own.
            command: command.slots(HOOK_SLOTS.clone()),
            working_dir: None,
            dialect,
            strict_output: false,
            answer_end: AnswerEnd::Exit,
            prewarmed: None,
            end: CancellationToken::new().drop_guard(),
            text: text.into(),
            #[cfg(unix)]
            fork_server: None,
        }
    }

    /// Makes a handler of an executable that is run with the one argument `run`.
    pub fn executable(path: &Path, text: impl Into<String>, dialect: Arc<dyn Dialect>) -> Self {
        let command = Command::new(Program::exec([path.as_os_str(), "run".as_ref()]));
        Self {
            kind: "executable",
            ..Self::new(command, text, dialect)
        }
    }

    /// Runs the command, which is this Python script, by forking an interpreter that has loaded it. Where that
    /// cannot be done, the command runs as it does without.
    #[cfg(unix)]
    #[must_use]
    pub fn fork_server(mut self, script: PythonScript) -> Self {
        self.fork_server = Some(ForkServer::new(script));
        self
    }

    /// Returns how many runs were forked and how many were not, if the command has a fork server.
    #[cfg(unix)]
    pub fn fork_counts(&self) -> Option<ForkCounts> {
        self.fork_server.as_ref().map(ForkServer::counts)
    }

    /// Starts the fork server before the first event and waits until it is ready, at most `within`. `dir` is the
    /// working directory of the events. Without a fork server there is nothing to wait for.
    ///
    /// # Errors
    ///
    /// Says why there is no server. Events are answered nevertheless.
    #[cfg(unix)]
    pub async fn warm(&self, dir: &Path, within: Duration) -> Result<(), String> {
        let Some(server) = &self.fork_server else {
            return Ok(());
        };
        let placed = self.directory(dir).map(|dir| self.command.placed(&dir));
        let command = placed.as_ref().unwrap_or(&self.command);
        server.warm(command, within).await
    }

    /// Runs the command in `dir`, a relative one below the event's working directory.
    #[must_use]
    pub fn working_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.working_dir = dir;
        self
    }

    /// Starts the next instance of the command ahead of time. The first one is started by the first event, which is
    /// when the directory is known.
    #[must_use]
    pub fn prewarm(mut self, prewarm: bool) -> Self {
        self.prewarmed = prewarm.then(Prewarmed::new);
        self
    }

    /// Sets when the command has answered.
    #[must_use]
    pub fn answer_end(mut self, end: AnswerEnd) -> Self {
        self.answer_end = end;
        self
    }

    /// Returns the instance that was started ahead of time, if the command has one.
    pub fn prewarmed(&self) -> Option<&Prewarmed> {
        self.prewarmed.as_ref()
    }

    /// Refuses answers that a lenient reader would pass over.
    #[must_use]
    pub fn strict_output(mut self, strict: bool) -> Self {
        self.strict_output = strict;
        self
    }

    /// Returns the directory to run in; `None` is that of this process.
    fn directory(&self, event_dir: &Path) -> Option<PathBuf> {
        match &self.working_dir {
            Some(dir) => Some(event_dir.join(dir)),
            None if event_dir.as_os_str().is_empty() => None,
            None => Some(event_dir.to_owned()),
        }
    }

    async fn run(&self, call: &Call) -> Answer {
        if !self.dialect.has_event(&call.event) {
            return Ok(None);
        }
        let input = call
            .event
            .encoded(&*self.dialect)
            .map_err(HandlerError::Write)?;
        let directory = self.directory(&call.event.envelope().origin.cwd);
        let placed = directory.map(|dir| self.command.placed(&dir));
        let limits = Limits {
            timeout: call.timeout,
            grace: GRACE,
            stdout: STDOUT,
            stderr: STDERR,
            held_pipe: HeldPipe::Wait,
        };
        let command = placed.as_ref().unwrap_or(&self.command);
        let not_run = |error| not_run(&error, call.timeout);
        if self.answer_end == AnswerEnd::Line {
            let early = self.run_early(command, &input, &limits, &call.cancel);
            return match early.await.map_err(not_run)? {
                Early::Finished(finished) => self.read(call, &finished),
                Early::Answered(answered) => self.read_line(call, *answered),
            };
        }
        let finished = self.finish(command, &input, &limits, &call.cancel);
        self.read(call, &finished.await.map_err(not_run)?)
    }

    async fn run_early(
        &self,
        command: &Command,
        input: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Early, SpawnError> {
        let until = |printed: &[u8]| answer_line(printed).is_some();
        match &self.prewarmed {
            Some(warm) => warm.run_early(command, input, limits, cancel, &until).await,
            None => command.run_early(input, limits, cancel, &until).await,
        }
    }

    /// Reads the line that is the answer, and leaves the rest of the run to a task of its own.
    fn read_line(&self, call: &Call, answered: Answered) -> Answer {
        let stdout = answer_line(&answered.stdout)
            .ok_or_else(|| ReadError::invalid("no line of it is a JSON object"))?;
        let reply = Reply {
            status: 0,
            stdout,
            stderr: b"",
            stdout_omitted: 0,
        };
        let effect = call
            .event
            .read_answer(&*self.dialect, &reply, self.strict_output);
        let (call, end, kind) = (call.clone(), self.end.token().clone(), self.kind);
        tokio::spawn(async move {
            let began = Instant::now();
            let Some(ended) = end.run_until_cancelled(answered.finish()).await else {
                return;
            };
            let failure = match ended {
                Ok(finished) => bad_end(&finished, call.timeout),
                Err(error) => Some(not_run(&error, call.timeout)),
            };
            if let (Some(failure), Some(late)) = (failure, &call.late) {
                late.failed(&call, kind, &failure, began.elapsed());
            }
        });
        let effect = effect?;
        Ok((!effect.is_empty()).then(|| Box::new(effect)))
    }

    async fn finish(
        &self,
        command: &Command,
        input: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        #[cfg(unix)]
        if let Some(server) = &self.fork_server {
            return server.run(command, input, limits, cancel).await;
        }
        match &self.prewarmed {
            Some(warm) => warm.run(command, input, limits, cancel).await,
            None => command.run(input, limits, cancel).await,
        }
    }

    fn read(&self, call: &Call, finished: &Finished) -> Answer {
        let status = status(finished.end, call.timeout)?;
        // What was cut is shown where it was, for answers that are plain text; a cut object is no answer at all.
        let marked = finished.stdout.is_cut().then(|| finished.stdout.text());
        let reply = Reply {
            status,
            stdout: marked
                .as_deref()
                .map_or(&finished.stdout.bytes, str::as_bytes),
            stderr: &finished.stderr.bytes,
            stdout_omitted: finished.stdout.omitted,
        };
        let effect = call
            .event
            .read_answer(&*self.dialect, &reply, self.strict_output)?;
        Ok((!effect.is_empty()).then(|| Box::new(effect)))
    }
}

/// Returns the first complete line that is one JSON object.
fn answer_line(printed: &[u8]) -> Option<&[u8]> {
    let (complete, _) = printed.split_at(printed.iter().rposition(|byte| *byte == b'\n')?);
    let mut lines = complete
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii);
    lines.find(|line| {
        line.starts_with(b"{")
            && serde_json::from_slice::<&serde_json::value::RawValue>(line).is_ok()
    })
}

/// Returns the exit status of a run that ended by itself.
fn status(end: End, timeout: Duration) -> Result<i32, HandlerError> {
    match end {
        End::Exited(status) => Ok(status),
        End::Signaled(signal) => Err(HandlerError::Signal { signal }),
        End::TimedOut { .. } => Err(HandlerError::TimedOut { after: timeout }),
        End::Cancelled { .. } => Err(HandlerError::Cancelled),
    }
}

/// Returns what is wrong with the end of a run that had answered.
fn bad_end(finished: &Finished, timeout: Duration) -> Option<HandlerError> {
    let status = match status(finished.end, timeout) {
        Ok(0) => return None,
        Ok(status) => status,
        Err(error) => return Some(error),
    };
    let stderr = finished.stderr.text();
    let stderr = Some(stderr.trim()).filter(|text| !text.is_empty());
    Some(HandlerError::Read(ReadError::Status {
        status,
        stderr: stderr.map(str::to_owned),
    }))
}

/// Returns why a command gave no reply at all.
fn not_run(error: &SpawnError, timeout: Duration) -> HandlerError {
    if matches!(error, SpawnError::TimedOut { .. }) {
        HandlerError::TimedOut { after: timeout }
    } else if matches!(error, SpawnError::Cancelled) {
        HandlerError::Cancelled
    } else {
        HandlerError::Start {
            problem: super::error_chain(error),
        }
    }
}

impl Handler for CommandHandler {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn describe(&self) -> String {
        self.text.clone()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(self.run(call))
    }

    fn is_bounded(&self) -> bool {
        true
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<String> {
        if let Err(error) = self.command.resolve() {
            return Some(super::error_chain(&error));
        }
        #[cfg(unix)]
        if let Some(ForkCounts {
            forked,
            cold,
            problem: Some(problem),
            ..
        }) = self.fork_counts()
        {
            let all = forked + cold;
            return Some(format!(
                "{cold} of {all} events ran without the fork server: {problem}"
            ));
        }
        None
    }
}
