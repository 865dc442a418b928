//! Commands of extensions. They can be started at any time, also while the agent works.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_agent::CancellationToken;
use tenterhook_agent::extension::{CommandEnd, CommandFailure, ForeignCommand};
use tenterhook_engine::SessionId;

use super::slash_command::{self, command_name};

/// The maximum number of commands that run while the agent works.
pub(super) const MAX_RUNNING: usize = 8;

/// The commands of extensions, with what they need to run in a session.
#[derive(Clone)]
pub(super) struct ExtensionCommands {
    commands: Vec<ForeignCommand>,
    session: SessionId,
    cwd: Arc<PathBuf>,
}

/// How a command ended, and the line that started it.
pub(super) struct CommandRun {
    pub(super) line: String,
    pub(super) end: Result<CommandEnd, CommandFailure>,
}

impl ExtensionCommands {
    pub(super) fn new(commands: &[ForeignCommand], session: SessionId, cwd: PathBuf) -> Self {
        Self {
            commands: commands.to_vec(),
            session,
            cwd: Arc::new(cwd),
        }
    }

    /// Returns the command that a line calls. The conversation's own commands come first.
    pub(super) fn find(&self, line: &str) -> Option<&ForeignCommand> {
        let name = command_name(line).filter(|name| slash_command::find(name).is_none())?;
        let mut commands = self.commands.iter();
        commands.find(|command| command.names.iter().any(|own| own == name))
    }

    /// Runs the command that a line calls, if there is one.
    pub(super) fn run(
        &self,
        line: &str,
        cancel: &CancellationToken,
    ) -> Option<BoxFuture<'static, CommandRun>> {
        let command = self.find(line)?.clone();
        let (session, cwd) = (self.session.clone(), Arc::clone(&self.cwd));
        let (line, cancel) = (line.to_owned(), cancel.clone());
        Some(Box::pin(async move {
            let end = command.run(&line, (&session, &cwd), &cancel).await;
            CommandRun { line, end }
        }))
    }
}
