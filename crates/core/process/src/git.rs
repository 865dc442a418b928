//! Runs git without prompts, without side effects, and without starting programs that a repository configures.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook_protocol::error_chain;
use thiserror::Error;

use crate::{CancellationToken, Capture, Command, End, Finished, Limits, Program, SpawnError};

/// Settings that a repository cannot override. They keep git from starting the programs that a repository names.
const SETTINGS: [&str; 7] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.external=",
    "log.showSignature=false",
];

/// Variables that make git behave the same in every environment.
const VARIABLES: [(&str, &str); 6] = [
    // A partial clone fetches missing objects with programs that its configuration names.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Inherited variables that would point git at another repository, or make it do more than requested.
const FOREIGN: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
    "GIT_TRACE2_PERF",
    "GIT_WORK_TREE",
    "LANGUAGE",
];

/// The maximum output of git, in bytes. More output is a failure, because half a list of files is misleading.
const MAX_OUTPUT: usize = 64 << 20;

/// The settings with which git runs.
#[derive(Debug, Clone)]
pub struct Git {
    env: Vec<(OsString, OsString)>,
    timeout: Duration,
    cancel: CancellationToken,
}

/// The reasons why a run of git has no usable output.
#[derive(Debug, Error)]
pub enum GitError {
    /// Git is not installed.
    #[error("`git` was not found on the `PATH`")]
    Missing,
    /// Git could not be started, was stopped, or printed too much.
    #[error("cannot complete `git {command}`: {problem}")]
    NotRun {
        /// The subcommand.
        command: String,
        /// What went wrong.
        problem: String,
    },
    /// Git exited with an error.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// Its exit status.
        status: i32,
        /// What it printed to standard error.
        message: String,
    },
}

impl Git {
    /// Creates a runner that gives git these variables and ends each run after `timeout`.
    #[must_use]
    pub fn new(
        env: impl IntoIterator<Item = (OsString, OsString)>,
        timeout: Duration,
        cancel: CancellationToken,
    ) -> Self {
        let fixed = VARIABLES
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Self {
            env: env.into_iter().chain(fixed).collect(),
            timeout,
            cancel,
        }
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Runs git and returns its standard output.
    ///
    /// # Errors
    /// Fails if git is missing, cannot be started, exceeds the timeout or fails.
    pub async fn run(&self, dir: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        self.feed(dir, arguments, b"").await
    }

    /// Runs git with `input` on its standard input and returns its standard output.
    ///
    /// # Errors
    /// Fails if git is missing, cannot be started, exceeds the timeout or fails.
    pub async fn feed(
        &self,
        dir: &Path,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        let name = || arguments.first().copied().unwrap_or_default().to_owned();
        let not_run = |problem: String| GitError::NotRun {
            command: name(),
            problem,
        };
        let finished = self.start(dir, arguments, input).await.map_err(|error| {
            if matches!(error, SpawnError::Resolve(_)) {
                GitError::Missing
            } else {
                not_run(error_chain(&error))
            }
        })?;
        match finished.end {
            End::Exited(0) if finished.stdout.is_cut() => {
                Err(not_run("its output exceeds 64 MiB".to_owned()))
            }
            End::Exited(0) => Ok(finished.stdout.bytes),
            End::Exited(status) => Err(GitError::Failed {
                command: name(),
                status,
                message: finished.stderr.text().trim().to_owned(),
            }),
            End::Signaled(signal) => Err(not_run(format!("killed by signal {signal}"))),
            End::TimedOut { .. } => Err(not_run("timed out".to_owned())),
            End::Cancelled { .. } => Err(not_run("cancelled".to_owned())),
        }
    }

    async fn start(
        &self,
        dir: &Path,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Finished, SpawnError> {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let argv = ["git", "--no-pager"]
            .into_iter()
            .chain(settings)
            .chain(arguments.iter().copied());
        let command = Command::new(Program::exec(argv))
            .without_env(FOREIGN)
            .working_dir(PathBuf::from(dir));
        let command = self
            .env
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value));
        let limits = Limits {
            timeout: self.timeout,
            stdout: Capture {
                head: MAX_OUTPUT,
                tail: 0,
            },
            ..Limits::default()
        };
        command.run(input, &limits, &self.cancel).await
    }
}

/// Returns the top of the work tree: the nearest directory at or above `dir` that contains `.git`.
pub fn work_tree(dir: &Path) -> Option<PathBuf> {
    let top = dir.ancestors().find(|above| above.join(".git").exists())?;
    Some(top.to_owned())
}
