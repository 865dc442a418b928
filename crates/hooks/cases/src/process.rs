//! Runs a case in its own process.

use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tenterhook_process::{
    CancellationToken, Capture, Command, End, Finished, HeldPipe, Limits, Program, SpawnError,
};

use crate::call::{CaseCall, TestedHooks};
use crate::cases_file::HookCase;
use crate::result::CaseResult;
use crate::selection::SelectedCases;

/// How long a process may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// How much a process may print.
const OUTPUT: Capture = Capture {
    head: 32 << 20,
    tail: 0,
};

/// What the process of a case prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseReply {
    /// The event went through its hooks.
    Result(Box<CaseResult>),
    /// The hooks cannot be loaded. The text describes the problems for a person.
    Broken(String),
}

/// How a case ended.
#[derive(Debug)]
pub struct CaseRun {
    /// The result, or the reason why the case has no result.
    pub end: CaseEnd,
    /// What hooks printed to standard error.
    pub printed: String,
    /// How long the case took.
    pub duration: Duration,
}

/// The result of a case, or the reason why it has no result.
#[derive(Debug)]
pub enum CaseEnd {
    /// The event went through its hooks.
    Result(Box<CaseResult>),
    /// The hooks cannot be loaded. The text describes the problems for a person.
    Broken(String),
    /// The process of the case did not report a result.
    Failed(String),
}

/// Why a case was not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseRunError {
    /// The process cannot be started.
    #[error("cannot start a process for a test case")]
    Spawn(#[from] SpawnError),
    /// The call cannot be written.
    #[error("cannot write the test case")]
    Write(#[from] serde_json::Error),
    /// The paths of the hooks cannot be made absolute.
    #[error("cannot find the working directory")]
    WorkingDir(#[from] io::Error),
    /// The run was cancelled.
    #[error("interrupted")]
    Cancelled,
}

/// Runs cases in parallel, `jobs` at a time. The default is the number of processors. The stream keeps the order of
/// the cases, and returns each with the index of its file.
///
/// Each case runs in its own process of `program`, which reads a [`CaseCall`] from standard input and prints
/// a [`CaseReply`]. The stream needs a tokio runtime with I/O and time.
pub fn run_all<'a>(
    selected: &'a [SelectedCases],
    program: &'a [&'a Path],
    jobs: Option<NonZeroUsize>,
    cancel: &'a CancellationToken,
) -> impl Stream<Item = Result<(usize, &'a HookCase, CaseRun), CaseRunError>> + Unpin {
    let cases = selected.iter().enumerate().flat_map(|(file, selected)| {
        selected
            .cases
            .iter()
            .map(move |case| (file, selected, case))
    });
    let runs = cases.map(move |(file, selected, case)| async move {
        let ran = selected.run(case, program, cancel).await?;
        Ok((file, case, ran))
    });
    let jobs = jobs.or_else(|| available_parallelism().ok());
    let runs = stream::iter(runs).buffered(jobs.map_or(1, NonZeroUsize::get));
    Box::pin(runs)
}

impl SelectedCases {
    /// Runs one case in its own process.
    async fn run(
        &self,
        case: &HookCase,
        program: &[&Path],
        cancel: &CancellationToken,
    ) -> Result<CaseRun, CaseRunError> {
        let call = CaseCall {
            hooks: self.absolute_hooks()?,
            event: case.event.clone(),
            cwd: self.cwd.clone(),
        };
        let call = serde_json::to_vec(&call)?;
        let command = Command::new(Program::exec(program)).working_dir(self.cwd.clone());
        let command = case
            .env
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        let limits = Limits {
            timeout: case.timeout,
            grace: GRACE,
            stdout: OUTPUT,
            held_pipe: HeldPipe::Drain(Duration::from_millis(200)),
            ..Limits::default()
        };
        let began = Instant::now();
        let finished = command.run(&call, &limits, cancel).await?;
        Ok(CaseRun {
            end: end_of(&finished, case.timeout)?,
            printed: finished.stderr.text().trim_end().to_owned(),
            duration: began.elapsed(),
        })
    }

    /// Returns the hooks with absolute paths, because the process of the case works in another
    /// directory.
    fn absolute_hooks(&self) -> io::Result<TestedHooks> {
        Ok(match &self.hooks {
            TestedHooks::Project => TestedHooks::Project,
            TestedHooks::Files(files) => {
                let files = files.iter().map(std::path::absolute);
                TestedHooks::Files(files.collect::<io::Result<_>>()?)
            }
        })
    }
}

/// Returns how a case ended, from the end of its process.
fn end_of(finished: &Finished, timeout: Duration) -> Result<CaseEnd, CaseRunError> {
    Ok(match finished.end {
        End::Exited(0) => match serde_json::from_slice(finished.stdout.head()) {
            Ok(CaseReply::Result(result)) => CaseEnd::Result(result),
            Ok(CaseReply::Broken(problems)) => CaseEnd::Broken(problems),
            Err(error) => CaseEnd::Failed(format!("the result of the case is unreadable: {error}")),
        },
        End::Exited(status) => CaseEnd::Failed(format!(
            "the process of the case ended with status {status}"
        )),
        End::Signaled(signal) => CaseEnd::Failed(format!(
            "the process of the case was killed by signal {signal}"
        )),
        End::TimedOut { .. } => {
            let seconds = timeout.as_secs_f64();
            CaseEnd::Failed(format!(
                "the case did not end within {seconds} s (`timeout`)"
            ))
        }
        End::Cancelled { .. } => return Err(CaseRunError::Cancelled),
    })
}
