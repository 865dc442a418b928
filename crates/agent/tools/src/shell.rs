//! `shell`: runs a command line.

use std::error::Error;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tenterhook_process::{
    Capture, Command, End, Finished, HeldPipe, Limits, Program, Shell, SpawnError,
};
use tenterhook_protocol::ToolResult;

use crate::excerpt::excerpt;
use crate::failure::ToolFailure;
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;

const NAME: &str = "shell";

/// The environment variable that is set for the agent's commands, so that programs know an agent runs them.
pub const AGENT_VARIABLE: &str = "TENTERHOOK_AGENT";

/// The time limit of a command unless the model requests another.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);

/// The longest time limit that a model may request, in seconds.
const MAX_TIMEOUT: u64 = 3600;

/// How long output is read after the command exits while a background process keeps it open.
const DRAIN: Duration = Duration::from_millis(200);

/// How much of each output stream is kept.
const CAPTURE: Capture = Capture {
    head: 32 * 1024,
    tail: 16 * 1024,
};

/// Runs a command line in the session's directory. Background processes that it starts keep running, but end with this
/// program.
///
/// The command inherits the environment of this program, without the variables that [`hiding`](Self::hiding) names.
#[derive(Debug, Clone, Default)]
pub struct ShellTool {
    hidden: Vec<String>,
}

impl ShellTool {
    /// Creates the tool, with variables that its commands do not inherit, for example because they contain secrets.
    pub fn hiding(variables: Vec<String>) -> Self {
        Self { hidden: variables }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellInput {
    /// The command line.
    cmd: String,
    /// The directory to run in; a relative one starts from the session's directory.
    cwd: Option<String>,
    /// The time limit in seconds, at most 3600. The default is 120.
    timeout: Option<u64>,
}

impl TypedTool for ShellTool {
    type Input = ShellInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        "Runs a command line with `sh` and returns its output and exit status.".to_owned()
    }

    fn category(&self) -> &'static str {
        "shell"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn check_input(&self, input: &ShellInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        let problem = match input.timeout {
            _ if input.cmd.trim().is_empty() => "`cmd` is empty",
            Some(0) => "`timeout` is 0 seconds, expected at least 1",
            Some(seconds) if seconds > MAX_TIMEOUT => "`timeout` is over 3600 seconds",
            _ => return Ok(()),
        };
        Err(problem.into())
    }

    async fn run(
        &self,
        input: ShellInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        context.restrictions.check_command(&input.cmd)?;
        let dir = context.path(input.cwd.as_deref().unwrap_or("."));
        let timeout = input.timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let limits = Limits {
            timeout,
            stdout: CAPTURE,
            stderr: CAPTURE,
            held_pipe: HeldPipe::Release(DRAIN),
            ..Limits::default()
        };
        let program = Program::Shell {
            shell: Shell::Sh,
            line: input.cmd,
        };
        let command = Command::new(program)
            .working_dir(dir)
            .without_env(&self.hidden)
            .env(AGENT_VARIABLE, "1");
        let finished = run(&command, &limits, &context).await;
        finished
            .map(|finished| result(&finished, timeout))
            .map_err(|error| {
                let cause = error.source().map(|cause| format!(": {cause}"));
                ToolFailure::new(format!("{error}{}", cause.unwrap_or_default()))
            })
    }
}

/// Runs a command, and reports the lines of its standard output as progress, up to the captured size.
async fn run(
    command: &Command,
    limits: &Limits,
    context: &ToolContext<'_>,
) -> Result<Finished, SpawnError> {
    if !context.progress.is_wanted() {
        return command.run(b"", limits, &context.cancel).await;
    }
    let printed = Mutex::new(String::new());
    let report = |lines: &[u8]| {
        let mut printed = printed.lock();
        printed.push_str(&String::from_utf8_lossy(lines));
        context.progress.report(ToolResult::text(printed.clone()));
    };
    command
        .run_with_output(b"", limits, &context.cancel, &report)
        .await
}

fn result(finished: &Finished, timeout: Duration) -> ToolResult {
    let mut sections = Vec::new();
    let stdout = finished.stdout.text();
    if !stdout.is_empty() {
        sections.push(stdout.into_owned());
    }
    let stderr = finished.stderr.text();
    if !stderr.is_empty() {
        sections.push(format!("[stderr]\n{stderr}"));
    }
    let ending = match finished.end {
        End::Exited(0) => None,
        End::Exited(status) => Some(format!("[exit status {status}]")),
        End::Signaled(signal) => Some(format!("[ended by signal {signal}]")),
        End::TimedOut { .. } => Some(format!("[timed out after {} s]", timeout.as_secs())),
        End::Cancelled { .. } => Some("[cancelled]".to_owned()),
    };
    let is_error = ending.is_some();
    sections.extend(ending);
    if sections.is_empty() {
        sections.push("[no output]".to_owned());
    }
    let status = match finished.end {
        End::Exited(status) => Some(status),
        End::Signaled(_) | End::TimedOut { .. } | End::Cancelled { .. } => None,
    };
    let details = json!({
        "exit_status": status,
        "duration_ms": u64::try_from(finished.duration.as_millis()).unwrap_or(u64::MAX),
    });
    ToolResult::text(excerpt(sections.join("\n")))
        .with_is_error(is_error)
        .with_details(details.as_object().cloned())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tempfile::tempdir;

    use super::*;
    use crate::testing::run;

    async fn shell(input: Value) -> (String, bool) {
        let dir = tempdir().unwrap();
        let result = run(&ShellTool::default(), dir.path(), input).await.unwrap();
        (result.joined_text(), result.is_error)
    }

    #[tokio::test]
    async fn output_and_status_are_shown() {
        assert_eq!(
            shell(json!({"cmd": "echo hello"})).await,
            ("hello\n".to_owned(), false)
        );
        assert_eq!(
            shell(json!({"cmd": "true"})).await,
            ("[no output]".to_owned(), false)
        );
        let failed = shell(json!({"cmd": "echo out; echo err >&2; exit 3"})).await;
        assert_eq!(
            failed,
            ("out\n\n[stderr]\nerr\n\n[exit status 3]".to_owned(), true)
        );
    }

    #[tokio::test]
    async fn a_time_limit_ends_the_command() {
        let (text, is_error) = shell(json!({"cmd": "echo begun; sleep 60", "timeout": 1})).await;
        assert_eq!(
            (text.as_str(), is_error),
            ("begun\n\n[timed out after 1 s]", true)
        );
    }

    #[tokio::test]
    async fn a_relative_directory_starts_from_that_of_the_session() {
        let dir = tempdir().unwrap();
        std::fs::create_dir(dir.path().join("inner")).unwrap();
        let result = run(
            &ShellTool::default(),
            dir.path(),
            json!({"cmd": "pwd -P", "cwd": "inner"}),
        )
        .await
        .unwrap();
        let expected = dir.path().canonicalize().unwrap().join("inner");
        assert_eq!(result.joined_text().trim(), expected.to_str().unwrap());
        let error = run(
            &ShellTool::default(),
            dir.path(),
            json!({"cmd": "pwd", "cwd": "none"}),
        )
        .await
        .unwrap_err();
        assert!(error.contains("none"), "{error}");
    }

    #[tokio::test]
    async fn impossible_times_and_empty_commands_are_refused() {
        let dir = tempdir().unwrap();
        for (input, problem) in [
            (json!({"cmd": " "}), "`cmd` is empty"),
            (json!({"cmd": "ls", "timeout": 0}), "at least 1"),
            (json!({"cmd": "ls", "timeout": 3601}), "over 3600"),
            (json!({"cmd": "ls", "timeout": "soon"}), "expected u64"),
        ] {
            let error = run(&ShellTool::default(), dir.path(), input)
                .await
                .unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
