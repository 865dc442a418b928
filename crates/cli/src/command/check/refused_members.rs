//! Members of pi's interfaces that extensions use, although they have no effect here.

use std::fs;
use std::path::{Path, PathBuf};

use tenterhook_agent::CancellationToken;
use tenterhook_discovery::FoundFile;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::error::CliError;
use tenterhook_systems::pi;

/// Returns a line for each refused member that an extension in force uses. Modules that it imports are not read.
pub(crate) async fn of(
    files: &[FoundFile],
    token: &CancellationToken,
) -> Result<Vec<String>, CliError> {
    let extensions = files
        .iter()
        .filter(|file| file.kind.system == pi::FOLDER.system && file.state.is_in_force());
    let paths: Vec<PathBuf> = extensions.map(|file| file.path.clone()).collect();
    let read = move || Ok::<_, CliError>(paths.iter().flat_map(|path| in_file(path)).collect());
    run_blocking(token, read).await
}

/// A file that can no longer be read was reported when it was loaded.
fn in_file(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let used = pi::members::refused_in(&text).into_iter();
    used.map(|member| format!("`{}`: {member}", path.display()))
        .collect()
}
