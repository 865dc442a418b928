//! Where sessions are stored, and what is said about a session that cannot be opened.

use std::path::{Path, PathBuf};

use tenterhook_agent::SessionStore;
use tenterhook_agent::sessions::{SessionError, UnfinishedLine};

use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::warning::warn;

/// Returns a folder by its absolute path.
pub fn absolute(folder: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(folder).map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })
}

/// Returns the store of the sessions of an agent that works in `cwd`. `dir` is the folder that was named for them.
pub fn stored(cwd: &Path, dir: Option<&Path>) -> Result<SessionStore, CliError> {
    let cwd = absolute(cwd)?;
    if let Some(dir) = dir {
        let folder = absolute(dir)?;
        return Ok(SessionStore::of_project(&folder, &cwd).in_folder(folder));
    }
    let data = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find a home folder for sessions")
            .hint("set `TENTERHOOK_DATA_DIR` to a folder")
    })?;
    Ok(SessionStore::of_project(&data, &cwd))
}

/// Returns the exit status for a session that cannot be used.
pub fn exit_of(error: &SessionError) -> Exit {
    match error {
        SessionError::Unknown { .. } | SessionError::Ambiguous { .. } => Exit::Usage,
        SessionError::File { .. }
        | SessionError::InUse { .. }
        | SessionError::Header { .. }
        | SessionError::Line { .. }
        | SessionError::TooLarge { .. }
        | _ => Exit::Failed,
    }
}

/// Describes a session that cannot be used.
pub fn refusal(error: &SessionError) -> CliError {
    let message = CliError::of(exit_of(error), error);
    match error {
        SessionError::Unknown { id, .. } if id.is_empty() => {
            CliError::new(Exit::Usage, "this folder has no stored session")
                .hint("start one without `--resume`, or name another folder with `--cwd DIR`")
        }
        SessionError::Unknown { .. } | SessionError::Ambiguous { .. } => message.hint(
            "`tenterhook sessions list` shows the stored sessions; a prompt goes before the option: `run PROMPT --resume`",
        ),
        SessionError::InUse { .. } => {
            message.hint("end the other process, or start a new session without `--resume`")
        }
        SessionError::Line { .. } => {
            message.hint("restore a copy of the file, or delete this line and all lines after it")
        }
        SessionError::File { .. }
        | SessionError::Header { .. }
        | SessionError::TooLarge { .. }
        | _ => message,
    }
}

/// Warns about the part of a session's file that was lost.
pub fn warn_of(unfinished_line: Option<&UnfinishedLine>) {
    if let Some(unfinished_line) = unfinished_line {
        let (line, bytes) = (unfinished_line.line, unfinished_line.bytes);
        let noun = if bytes == 1 { "byte" } else { "bytes" };
        warn(format_args!(
            "line {line} of the session's file is incomplete; its {bytes} {noun} are cut off"
        ));
    }
}
