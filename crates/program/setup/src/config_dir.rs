//! The folders in which Tenterhook looks for hooks: the machine's, the user's and the project's.

use std::path::{Path, PathBuf};

use tenterhook_discovery::{FolderName, FolderSearch, Layers};
use tenterhook_systems::SYSTEMS;
use tenterhook_systems::hook_folder::FolderLocation;

use crate::error::CliError;
use crate::exit::Exit;
use crate::hook_options::PlaceOptions;

/// The environment variable that names the user's folder.
const VARIABLE: &str = "TENTERHOOK_CONFIG_DIR";

/// Returns where to look for the hooks of an agent that works in `start`.
pub fn layers(config_dir: Option<&Path>, start: Option<&Path>) -> Result<Layers, CliError> {
    Ok(Layers {
        system: system(),
        user: user(config_dir)?,
        home: std::env::home_dir(),
        start: start.map(Path::to_owned),
    })
}

/// Selects the sets of hooks that options or environment variables name, for every hook system that has several sets.
pub fn select(mut search: FolderSearch, place: &PlaceOptions) -> Result<FolderSearch, CliError> {
    let folders = SYSTEMS.iter().flat_map(|system| system.folders);
    let locations = folders.flat_map(|folder| folder.locations);
    for selection in locations.filter_map(FolderLocation::selection) {
        let named = place.selected(selection.option);
        search = search.select(selection, chosen(named, selection.variable)?);
    }
    Ok(search)
}

/// Returns the workspace that an option or variable names. It becomes part of the origin of events.
pub fn workspace(place: &PlaceOptions) -> Result<Option<FolderName>, CliError> {
    chosen(place.workspace.as_ref(), "TENTERHOOK_WORKSPACE")
}

fn chosen(named: Option<&FolderName>, by: &str) -> Result<Option<FolderName>, CliError> {
    if named.is_some() {
        return Ok(named.cloned());
    }
    let Some(value) = variable(by) else {
        return Ok(None);
    };
    let name = value.to_string_lossy().parse();
    name.map(Some).map_err(|error| {
        CliError::of(Exit::Usage, &error).hint(format!("set `{by}` to a valid name"))
    })
}

/// Returns the folder that is managed for all users. No environment variable changes it, so that users cannot leave
/// its hooks out.
fn system() -> Option<PathBuf> {
    if cfg!(windows) {
        variable("ProgramData").map(|dir| dir.join("tenterhook"))
    } else {
        Some(PathBuf::from("/etc/tenterhook"))
    }
}

/// Returns the user's configuration folder.
///
/// A folder that an option or variable names must exist, because hooks that are not found guard nothing. The default
/// folder may be missing.
pub fn user(config_dir: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let named = match config_dir {
        Some(dir) => Some((dir.to_owned(), "`--config-dir`".to_owned())),
        None => variable(VARIABLE).map(|dir| (dir, format!("`{VARIABLE}`"))),
    };
    if let Some((dir, by)) = named {
        if !dir.is_dir() {
            let message = format!("{by} names `{}`, which is not a folder", dir.display());
            return Err(CliError::new(Exit::Usage, message)
                .hint("name the folder that contains `hooks.d`, or leave the setting out"));
        }
        return Ok(Some(dir));
    }
    let home = |below: &str| Some(std::env::home_dir()?.join(below));
    let base = if cfg!(windows) {
        variable("APPDATA").or_else(|| home("AppData/Roaming"))
    } else {
        let named = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        named.or_else(|| home(".config"))
    };
    Ok(base.map(|base| base.join("tenterhook")))
}

fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}
