//! Shell commands that the user runs. They are not the model's, so no permission rule and no tool gate applies.
//!
//! ```text
//! user_bash (handled; supply the result; replace the command) → the command → message_end (replace it) → the session
//! ```

use std::time::Duration;

use serde_json::json;
use tenterhook_process::{Capture, Command, End, HeldPipe, Limits, Program, Shell};
use tenterhook_protocol::event::{BashResult, UserBash};
use tenterhook_protocol::{Message, message_extra};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent_session::AgentSession;
use tenterhook_tools::excerpt;

/// The time limit of a command. It is long, because the user can end the command earlier.
const MAX_DURATION: Duration = Duration::from_hours(1);

/// How long the output is still read after the exit, if a background process keeps it open.
const DRAIN: Duration = Duration::from_millis(200);

/// How much of the output is kept.
const CAPTURE: Capture = Capture {
    head: 32 * 1024,
    tail: 16 * 1024,
};

/// A shell command that the user runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommand {
    /// The command line.
    pub line: String,
    /// Whether the command and its output are hidden from the model.
    pub is_excluded: bool,
}

impl UserCommand {
    /// Reads a line `!command`, or `!!command` for a command that the model does not see. Returns `None` for any
    /// other line.
    pub fn read(line: &str) -> Option<Self> {
        let rest = line.strip_prefix('!')?;
        let (line, is_excluded) = match rest.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        Some(Self {
            line: line.trim().to_owned(),
            is_excluded,
        })
    }
}

/// The result of a user's command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommandRun {
    /// The command line, after changes by hooks.
    pub line: String,
    /// The result, or `None` if a hook handled the command.
    pub result: Option<BashResult>,
}

/// Why a command did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UserCommandError {
    /// The command is empty.
    #[error("the command is empty")]
    Empty,
    /// The command was cancelled before it started.
    #[error("it was cancelled")]
    Cancelled,
    /// The command cannot be started.
    #[error("it cannot be started")]
    Start(#[from] tenterhook_process::SpawnError),
}

impl AgentSession {
    /// Runs a shell command of the user, and adds it to the conversation unless the user excludes it.
    pub(crate) async fn run_for_user(
        &mut self,
        command: UserCommand,
        cancel: &CancellationToken,
    ) -> Result<UserCommandRun, UserCommandError> {
        let UserCommand { line, is_excluded } = command;
        if line.is_empty() {
            return Err(UserCommandError::Empty);
        }
        let hooks = self.hooks.for_run(cancel);
        let build = || {
            UserBash::new(line.clone(), self.state.config.cwd.clone())
                .with_exclude_from_context(is_excluded)
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(UserCommandError::Cancelled);
        }
        if outcome.is_handled() {
            return Ok(UserCommandRun { line, result: None });
        }
        let supplied = outcome.supplied();
        let line = outcome
            .into_rewritten()
            .map_or(line, |rewritten| rewritten.command);
        let result = match supplied {
            Some(result) => result,
            None => self.run_line(&line, cancel).await?,
        };
        let message = if is_excluded {
            None
        } else {
            let message = Message::user(describe_for_model(&line, &result))
                .with_extra(message_extra::KIND, message_extra::USER_BASH)
                .with_extra(message_extra::COMMAND, line.clone())
                .with_extra(message_extra::OUTPUT, excerpt(result.output.clone()))
                .with_extra(message_extra::EXIT_CODE, result.exit_code)
                .with_extra(message_extra::CANCELLED, result.cancelled)
                .with_extra(message_extra::TRUNCATED, result.truncated);
            Some(hooks.finish_message(message).await)
        };
        self.keep_run(&line, &result, message);
        self.save().await;
        Ok(UserCommandRun {
            line,
            result: Some(result),
        })
    }

    async fn run_line(
        &self,
        line: &str,
        cancel: &CancellationToken,
    ) -> Result<BashResult, UserCommandError> {
        let limits = Limits {
            timeout: MAX_DURATION,
            stdout: CAPTURE,
            stderr: CAPTURE,
            held_pipe: HeldPipe::Release(DRAIN),
            ..Limits::default()
        };
        // Merge stderr into stdout, so that the output is in the order in which it is written, as in a terminal.
        let program = Program::Shell {
            shell: Shell::Sh,
            line: format!("exec 2>&1\n{line}"),
        };
        let command = Command::new(program).working_dir(self.state.config.cwd.clone());
        let finished = command.run(b"", &limits, cancel).await?;
        let exit_code = match finished.end {
            End::Exited(status) => Some(status),
            End::Signaled(_) | End::TimedOut { .. } | End::Cancelled { .. } => None,
        };
        Ok(BashResult {
            output: finished.stdout.text().into_owned(),
            exit_code,
            cancelled: matches!(finished.end, End::TimedOut { .. } | End::Cancelled { .. }),
            truncated: finished.stdout.is_cut(),
        })
    }

    /// Stores a run. Without a message, the model does not see it, and its output is stored outside the conversation.
    fn keep_run(&mut self, line: &str, result: &BashResult, message: Option<Message>) {
        let output = message.is_none().then(|| excerpt(result.output.clone()));
        let data = json!({
            "command": line,
            "exit_code": result.exit_code,
            "cancelled": result.cancelled,
            "truncated": result.truncated,
            "output": output,
        });
        self.session.push_command(message, data);
    }
}

/// Describes a command of the user to the model.
fn describe_for_model(line: &str, result: &BashResult) -> String {
    let output = excerpt(result.output.clone());
    let output = output.trim_end();
    let fence = fence_for(&format!("{line}\n{output}"));
    let printed = if output.is_empty() {
        "It printed nothing.".to_owned()
    } else {
        format!("It printed:\n{fence}\n{output}\n{fence}")
    };
    let ending = match result.exit_code {
        _ if result.cancelled => "\nIt was cancelled.".to_owned(),
        Some(0) | None => String::new(),
        Some(status) => format!("\nIts exit status was {status}."),
    };
    format!("I ran this command myself:\n{fence}sh\n{line}\n{fence}\n{printed}{ending}")
}

/// Returns a Markdown fence that is longer than every run of backticks in the text, so that the text cannot end it.
fn fence_for(text: &str) -> String {
    let rows = text.split(|c| c != '`').map(str::len);
    "`".repeat(rows.max().unwrap_or_default().max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_behind_one_or_two_marks_is_a_command() {
        let command = |line: &str, is_excluded| {
            Some(UserCommand {
                line: line.to_owned(),
                is_excluded,
            })
        };
        for (line, expected) in [
            ("!ls -l", command("ls -l", false)),
            ("! ls ", command("ls", false)),
            ("!!ls", command("ls", true)),
            ("!", command("", false)),
            ("!!", command("", true)),
            ("ls !", None),
            ("", None),
        ] {
            assert_eq!(UserCommand::read(line), expected, "{line}");
        }
    }

    #[test]
    fn the_model_is_told_what_was_run_and_what_came_of_it() {
        let result = |output: &str, exit_code, cancelled| BashResult {
            output: output.to_owned(),
            exit_code,
            cancelled,
            truncated: false,
        };
        for (result, expected) in [
            (
                result("a\n", Some(0), false),
                "I ran this command myself:\n```sh\nls\n```\nIt printed:\n```\na\n```",
            ),
            (
                result("", Some(3), false),
                "I ran this command myself:\n```sh\nls\n```\nIt printed nothing.\nIts exit status was 3.",
            ),
            (
                result("```\n", None, true),
                "I ran this command myself:\n````sh\nls\n````\nIt printed:\n````\n```\n````\nIt was cancelled.",
            ),
        ] {
            assert_eq!(describe_for_model("ls", &result), expected);
        }
    }
}
