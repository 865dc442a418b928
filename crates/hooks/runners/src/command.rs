//! Handlers that are child processes. Each event gets a process of its own, which speaks a dialect.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tenterhook_engine::{
    Answer, AsyncHandler, Call, Dialect, HandlerError, RawExchange, Reply, error_chain,
};
use tenterhook_process::{
    CancellationToken, Capture, Command, End, Finished, HeldPipe, Limits, Prewarmed, Program,
    Slots, SpawnError,
};

/// How long a child may take to end after Tenterhook has asked it to.
const GRACE: Duration = Duration::from_secs(2);
/// How much of a hook's stdout is kept. A JSON answer that is longer is a failure.
const STDOUT: Capture = Capture {
    head: 512 << 10,
    tail: 512 << 10,
};
/// How much of a hook's stderr is kept.
const STDERR: Capture = Capture {
    head: 16 << 10,
    tail: 48 << 10,
};

/// Limits how many hooks of this process run at once.
static HOOK_SLOTS: LazyLock<Slots> = LazyLock::new(|| Slots::new(Slots::shared().count()));

/// Runs a command for each event. The command reads the event on stdin and answers on stdout and
/// with its exit status.
#[derive(Debug)]
pub struct CommandHandler {
    kind: &'static str,
    command: Command,
    working_dir: Option<PathBuf>,
    dialect: Arc<dyn Dialect>,
    strict_output: bool,
    prewarmed: Option<Prewarmed>,
    text: String,
}

impl CommandHandler {
    /// Makes a handler that runs a command. Messages show the command as `text`.
    pub fn new(command: Command, text: impl Into<String>, dialect: Arc<dyn Dialect>) -> Self {
        Self {
            kind: "command",
            // Hooks have their own slots, so that the agent's own commands never keep a hook waiting.
            command: command.slots(HOOK_SLOTS.clone()),
            working_dir: None,
            dialect,
            strict_output: false,
            prewarmed: None,
            text: text.into(),
        }
    }

    /// Makes a handler that runs an executable with the single argument `run`.
    pub fn executable(path: &Path, text: impl Into<String>, dialect: Arc<dyn Dialect>) -> Self {
        let command = Command::new(Program::exec([path.as_os_str(), "run".as_ref()]));
        Self {
            kind: "executable",
            ..Self::new(command, text, dialect)
        }
    }

    /// Makes the command, and the programs that it starts, look for programs in these folders.
    #[must_use]
    pub fn search_path(mut self, search: &OsStr) -> Self {
        self.command = self.command.env("PATH", search);
        self
    }

    /// Runs the command in `dir`. A relative `dir` is below the event's working directory.
    #[must_use]
    pub fn working_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.working_dir = dir;
        self
    }

    /// Starts the next instance of the command ahead of time. The first instance starts with the
    /// first event, because the directory is not known earlier.
    #[must_use]
    pub fn prewarm(mut self, prewarm: bool) -> Self {
        self.prewarmed = prewarm.then(Prewarmed::new);
        self
    }

    /// Returns the instance that was started ahead of time, or `None` if [`prewarm`](Self::prewarm) is off.
    pub fn prewarmed(&self) -> Option<&Prewarmed> {
        self.prewarmed.as_ref()
    }

    /// Makes answers a failure that a lenient reader would ignore.
    #[must_use]
    pub fn strict_output(mut self, strict: bool) -> Self {
        self.strict_output = strict;
        self
    }

    /// Returns the directory to run in, or `None` for the directory of this process.
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
        let mut placed = directory.map(|dir| self.command.placed(&dir));
        for (name, value) in self.dialect.variables(&call.event) {
            let command = placed.take().unwrap_or_else(|| self.command.clone());
            placed = Some(command.env(name, value));
        }
        let limits = Limits {
            timeout: call.timeout,
            grace: GRACE,
            stdout: STDOUT,
            stderr: STDERR,
            held_pipe: HeldPipe::Wait,
        };
        let command = placed.as_ref().unwrap_or(&self.command);
        let finished = self.finish(command, &input, &limits, &call.cancel).await;
        let finished = finished.map_err(|error| not_run(&error, call.timeout))?;
        call.exchange.fill(|| raw_exchange(input.len(), &finished));
        self.read(call, &finished)
    }

    async fn finish(
        &self,
        command: &Command,
        input: &[u8],
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        match &self.prewarmed {
            Some(warm) => warm.run(command, input, limits, cancel).await,
            None => command.run(input, limits, cancel).await,
        }
    }

    fn read(&self, call: &Call, finished: &Finished) -> Answer {
        let status = status(finished.end, call.timeout)?;
        // Plain text shows where it was cut. A JSON object that was cut is a failure.
        let marked = finished.stdout.is_cut().then(|| finished.stdout.text());
        let reply = Reply::Exited {
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

/// Returns what a command received and returned, for observers.
fn raw_exchange(input_bytes: usize, finished: &Finished) -> RawExchange {
    let (stdout, stderr) = (&finished.stdout, &finished.stderr);
    let exit = match finished.end {
        End::Exited(status) => format!("exit status {status}"),
        End::Signaled(signal) => format!("signal {signal}"),
        End::TimedOut { .. } => "timed out".to_owned(),
        End::Cancelled { .. } => "cancelled".to_owned(),
    };
    RawExchange::new(input_bytes, stdout.text().as_bytes()).of_process(
        exit,
        stderr.text().as_bytes(),
        stdout.is_cut() || stderr.is_cut(),
    )
}

/// Returns the exit status of a run, or the failure if the command did not exit by itself.
fn status(end: End, timeout: Duration) -> Result<i32, HandlerError> {
    match end {
        End::Exited(status) => Ok(status),
        End::Signaled(signal) => Err(HandlerError::Signal { signal }),
        End::TimedOut { .. } => Err(HandlerError::TimedOut { after: timeout }),
        End::Cancelled { .. } => Err(HandlerError::Cancelled),
    }
}

/// Returns why a command could not be run.
fn not_run(error: &SpawnError, timeout: Duration) -> HandlerError {
    if matches!(error, SpawnError::TimedOut { .. }) {
        HandlerError::TimedOut { after: timeout }
    } else if matches!(error, SpawnError::Cancelled) {
        HandlerError::Cancelled
    } else {
        HandlerError::Start {
            problem: error_chain(error),
        }
    }
}

impl AsyncHandler for CommandHandler {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn describe(&self) -> String {
        self.text.clone()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(self.run(call))
    }

    fn enforces_deadline(&self) -> bool {
        true
    }

    fn runs_on_own_task(&self) -> bool {
        true
    }

    fn problem(&self) -> Option<String> {
        let error = self.command.resolve().err()?;
        Some(error_chain(&error))
    }
}
