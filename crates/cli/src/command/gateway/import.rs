//! Prints the settings of another gateway as settings of this one.

use std::fs;
use std::path::Path;

use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_systems::SYSTEMS;
use tenterhook_terminal::output;

pub(super) fn import(file: &Path) -> Result<(), CliError> {
    let shown = file.display();
    let mut known = SYSTEMS.iter().filter_map(|system| system.gateway_settings);
    let settings = known
        .next()
        .ok_or_else(|| CliError::new(Exit::Config, "no hook system has settings of a gateway"))?;
    let text = fs::read_to_string(file).map_err(|error| {
        CliError::new(Exit::Config, format!("cannot read `{shown}`"))
            .cause(&error)
            .hint(format!(
                "name the settings of the other gateway, such as `{}`",
                settings.example
            ))
    })?;
    let imported = (settings.import)(&text).map_err(|problems| CliError {
        causes: problems,
        ..CliError::new(Exit::Config, format!("cannot import `{shown}`"))
    })?;
    imported.lines().for_each(output::line);
    Ok(())
}
