//! Commands that the user runs: not the model's, so no rule and no gate of tools judges them.
//!
//! ```text
//! user_bash (handled; supply the result; replace the command) → the command → message_end (replace it) → the session
//! ```

use std::time::Duration;

use serde_json::json;
use tenterhook_process::{Capture, Command, End, HeldPipe, Limits, Program, Shell};
use tenterhook_protocol::Message;
use tenterhook_protocol::event::{BashResult, UserBash};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::life::Life;
use crate::tool::excerpt;

/// How long a command may take. It is the user's own, and the user may end it earlier.
const LONGEST: Duration = Duration::from_hours(1);

/// How long the output is read on after the exit while a background process still holds it.
const DRAIN: Duration = Duration::from_millis(200);

/// How much of the output is kept.
const CAPTURE: Capture = Capture {
    head: 32 * 1024,
    tail: 16 * 1024,
};

/// A command that the user runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommand {
    /// The command line.
    pub line: String,
    /// Neither the command nor its output go to the model.
    pub is_excluded: bool,
}

impl UserCommand {
    /// Reads a line `!command`, or `!!command` for one that the model is not told of. `None` is any other line.
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

/// A command that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCommandRun {
    /// The command line, as hooks made it.
    pub line: String,
    /// What came of it; nothing where a hook dealt with the command.
    pub result: Option<BashResult>,
}

/// A command that was not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UserCommandError {
    /// There is no command.
    #[error("the command is empty")]
    Empty,
    /// It was cancelled before it began.
    #[error("it was cancelled")]
    Canceled,
    /// It cannot be started.
    #[error("it cannot be started")]
    Start(#[from] tenterhook_process::SpawnError),
}

impl Life {
    /// Runs a command of the user, and puts it into the conversation unless the user does not want it there.
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
        let build = || UserBash {
            command: line.clone(),
            exclude_from_context: is_excluded,
            cwd: self.setup.cwd.clone(),
        };
        let outcome = hooks.fire(build).await;
        if cancel.is_cancelled() {
            return Err(UserCommandError::Canceled);
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
            let message = Message::user(told(&line, &result));
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
            timeout: LONGEST,
            stdout: CAPTURE,
            stderr: CAPTURE,
            held_pipe: HeldPipe::Release(DRAIN),
            ..Limits::default()
        };
        // Both outputs in the order in which they are written, as a terminal shows them.
        let program = Program::Shell {
            shell: Shell::Sh,
            line: format!("exec 2>&1\n{line}"),
        };
        let command = Command::new(program).working_dir(self.setup.cwd.clone());
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

    /// Stores a run. Without a message the model does not see it, and its output is kept beside the conversation.
    fn keep_run(&mut self, line: &str, result: &BashResult, message: Option<Message>) {
        let output = message.is_none().then(|| excerpt(result.output.clone()));
        let data = json!({
            "command": line,
            "exit_code": result.exit_code,
            "cancelled": result.cancelled,
            "truncated": result.truncated,
            "output": output,
        });
        self.session.push_run(message, data);
    }
}

/// Returns what the model is told of a command of the user.
fn told(line: &str, result: &BashResult) -> String {
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

/// Returns a fence that a text does not end: longer than every row of backticks in it.
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
            assert_eq!(told("ls", &result), expected);
        }
    }
}
