//! Writes a backup of the gateway, and restores one.

use std::path::{Path, PathBuf};

use crate::ancestry::require_user;
use serde_json::json;
use tenterhook_channel::store::{Store, StoreError};
use tenterhook_gateway::backup::write_backup;
use tenterhook_gateway::restore::{RestoreError, SessionsTarget, restore_backup};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::session_store;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

use crate::command::gateway::args::BackupArgs;
use crate::command::gateway::client::{call_if_running, state_folder};

pub(super) async fn backup(args: BackupArgs, interrupts: &Interrupts) -> Result<(), CliError> {
    let file = session_store::absolute(&args.file)?;
    if file.exists() {
        let shown = escape_line(&args.file.display().to_string());
        return Err(CliError::new(
            Exit::Failed,
            format!("`{shown}` exists; a backup never replaces a file"),
        )
        .hint("name another file"));
    }
    // The gateway that runs knows where its sessions are, and only it can read its store.
    let params = json!({ "file": file });
    let written = match call_if_running("backup", params, interrupts).await? {
        Some(summary) => summary,
        None => json!(backup_stopped(&args, &file).await?),
    };
    if args.json {
        output::json(&written);
        return Ok(());
    }
    let number = |name| written.get(name).and_then(serde_json::Value::as_u64);
    let counted = |name, word: &str| {
        let number = number(name).unwrap_or_default();
        count(usize::try_from(number).unwrap_or(usize::MAX), word)
    };
    output::line(format_args!(
        "Wrote `{}` with {} and {}: {}.",
        escape_line(&args.file.display().to_string()),
        counted("sessions", "session"),
        counted("media", "file"),
        counted("bytes", "byte"),
    ));
    Ok(())
}

/// Writes a backup of a gateway that is stopped.
async fn backup_stopped(
    args: &BackupArgs,
    file: &Path,
) -> Result<tenterhook_gateway::backup::BackupSummary, CliError> {
    let state = state_folder()?;
    let sessions = sessions_folder(args)?;
    let folder = state.clone();
    let opened = tokio::task::spawn_blocking(move || Store::open(&folder)).await;
    let store = opened.map_err(|error| CliError::of(Exit::Failed, &error))?;
    let store = store.map_err(|error| {
        if error == StoreError::Locked {
            CliError::of(Exit::Locked, &error).hint("another command uses the state; try again")
        } else {
            CliError::of(Exit::Failed, &error)
        }
    })?;
    let written = write_backup(&store, &state, Some(sessions), file).await;
    written.map_err(|error| CliError::of(Exit::Failed, &error))
}

/// Returns the folder in which agents that start here store their sessions.
fn sessions_folder(args: &BackupArgs) -> Result<PathBuf, CliError> {
    let cwd = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let stored = args.sessions.stored(&cwd)?;
    Ok(stored.folder().to_owned())
}

pub(super) async fn restore(args: BackupArgs) -> Result<(), CliError> {
    require_user("restore the state of the gateway")?;
    let state = state_folder()?;
    let target = SessionsTarget {
        folder: sessions_folder(&args)?,
        is_named: args.sessions.dir.is_some() || args.cwd.is_some(),
    };
    let file = args.file.clone();
    let restored = tokio::task::spawn_blocking(move || restore_backup(&state, &target, &file));
    let restored = restored
        .await
        .map_err(|error| CliError::of(Exit::Failed, &error))?;
    let restored = restored.map_err(|error| refused(&error))?;
    if args.json {
        output::json(&json!(restored));
        return Ok(());
    }
    output::line(format_args!(
        "Restored the state of {:.0} with {}.",
        restored.at,
        count(restored.sessions, "session")
    ));
    if let Some(replaced) = &restored.replaced {
        output::line(format_args!(
            "What it replaced is in `{}`.",
            escape_line(&replaced.display().to_string())
        ));
    }
    output::note(
        "tokens and admissions that were revoked since then count again: see `gateway token list`",
    );
    Ok(())
}

fn refused(error: &RestoreError) -> CliError {
    let (exit, hint) = match error {
        RestoreError::Running { .. } => (
            Exit::Locked,
            "stop the gateway with `tenterhook gateway stop`, and try again",
        ),
        RestoreError::NotABackup { .. } => (
            Exit::Failed,
            "name a file that `tenterhook gateway backup FILE` wrote",
        ),
        RestoreError::Damaged { .. } => (
            Exit::Failed,
            "nothing was changed; use another backup or another copy of this one",
        ),
        RestoreError::Newer { .. } => (
            Exit::Failed,
            "nothing was changed; install that version of tenterhook",
        ),
        RestoreError::OtherSessions { .. } => (
            Exit::Failed,
            "add `--cwd DIR` with the directory that the gateway will be started in, or `--session-dir DIR`",
        ),
        RestoreError::SessionInUse { .. } => (Exit::Failed, "end the other process, and try again"),
        RestoreError::Store(_) | RestoreError::File { .. } | _ => {
            return CliError::of(Exit::Failed, error);
        }
    };
    CliError::of(exit, error).hint(hint)
}
