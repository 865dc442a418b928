//! The working directory of this program.

use std::path::PathBuf;

use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;

/// Returns the working directory of this program.
pub(crate) fn current_dir() -> Result<PathBuf, CliError> {
    std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot determine the working directory").cause(&error)
    })
}
