//! The option that names the folder of sessions.

use std::path::{Path, PathBuf};

use clap::Parser;
use tenterhook_agent::SessionStore;
use tenterhook_setup::error::CliError;
use tenterhook_setup::session_store::stored;

/// Where sessions are stored.
#[derive(Debug, Clone, Parser)]
pub(crate) struct SessionDirArgs {
    /// The folder that sessions are stored in. It takes precedence over a folder that a hook chooses.
    #[arg(long = "session-dir", global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

impl SessionDirArgs {
    /// Returns the store of the sessions of an agent that works in `cwd`.
    pub(crate) fn stored(&self, cwd: &Path) -> Result<SessionStore, CliError> {
        stored(cwd, self.dir.as_deref())
    }
}
