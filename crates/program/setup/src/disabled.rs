//! Reads the list of disabled sources for every command. `command/disable.rs` changes it.

use tenterhook_discovery::{DisabledError, DisabledSources};

use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;

/// Returns the sources that the user has disabled.
pub fn load_disabled() -> Result<DisabledSources, CliError> {
    let Some(dir) = data_dir() else {
        return Ok(DisabledSources::default());
    };
    DisabledSources::open(&dir).map_err(|error| unusable(&error))
}

/// Creates the error for a list of disabled sources that cannot be used.
pub fn unusable(error: &DisabledError) -> CliError {
    CliError::of(Exit::Config, error).hint(format!(
        "repair or delete `{}`; deleting it enables every source again",
        error.path.display()
    ))
}
