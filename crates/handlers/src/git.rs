//! Running git so that it asks nobody, changes nothing by the way, and starts no program that a repository names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenterhook::error_chain;
use tenterhook_process::{
    CancellationToken, Capture, Command, End, Finished, Limits, Program, SpawnError,
};
use thiserror::Error;

/// Settings that a repository cannot override: nothing of it is started.
const SETTINGS: [&str; 7] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.sshCommand=false",
    "credential.helper=",
    "diff.external=",
    "log.showSignature=false",
];

/// Variables under which git behaves the same everywhere.
const VARIABLES: [(&str, &str); 6] = [
    // A partial clone fetches what it lacks by programs that it names.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Variables of whoever started this program that lead git to another repository, or make it do more than it is asked.
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

/// The most that git may print, in bytes. More is a failure: half a list of files is no list.
const LARGEST: usize = 64 << 20;

/// How git is run in one place.
#[derive(Debug, Clone)]
pub struct Git {
    env: Vec<(OsString, OsString)>,
    timeout: Duration,
    cancel: CancellationToken,
}

/// A run of git that gave nothing usable.
#[derive(Debug, Error)]
pub enum GitError {
    /// There is no git here.
    #[error("there is no `git` on the path")]
    Missing,
    /// It could not be run, or did not end.
    #[error("`git {command}` did not run: {problem}")]
    NotRun {
        /// The subcommand.
        command: String,
        /// Why.
        problem: String,
    },
    /// It exited with an error.
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
    /// Runs git with these variables; each run ends in time or is ended.
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

    /// Adds a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Runs git and returns what it printed.
    ///
    /// # Errors
    /// When git is missing, cannot be run, takes too long or fails.
    pub async fn run(&self, dir: &Path, arguments: &[&str]) -> Result<Vec<u8>, GitError> {
        self.feed(dir, arguments, b"").await
    }

    /// Runs git with something on standard input and returns what it printed.
    ///
    /// # Errors
    /// When git is missing, cannot be run, takes too long or fails.
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
                Err(not_run("it printed more than 64 MiB".to_owned()))
            }
            End::Exited(0) => Ok(finished.stdout.bytes),
            End::Exited(status) => Err(GitError::Failed {
                command: name(),
                status,
                message: finished.stderr.text().trim().to_owned(),
            }),
            End::Signaled(signal) => Err(not_run(format!("killed by signal {signal}"))),
            End::TimedOut { .. } => Err(not_run("it took too long".to_owned())),
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
                head: LARGEST,
                tail: 0,
            },
            ..Limits::default()
        };
        command.run(input, &limits, &self.cancel).await
    }
}

/// Returns the directory at or above `dir` that has a `.git`: the top of a work tree.
pub fn work_tree(dir: &Path) -> Option<PathBuf> {
    let top = dir.ancestors().find(|above| above.join(".git").exists())?;
    Some(top.to_owned())
}
