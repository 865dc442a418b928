//! Where hooks are looked for: the system's folder, the user's, and the project's.

use std::path::{Path, PathBuf};

use tenterhook_config::{FolderName, Layers};

use crate::args::{ConfigArgs, PlaceArgs};
use crate::error::CliError;
use crate::exit::Exit;

/// The variable that names the user's folder.
const VARIABLE: &str = "TENTERHOOK_CONFIG_DIR";

/// Returns where hooks are looked for by an agent that works in `start`.
pub(crate) fn layers(args: &ConfigArgs, start: Option<&Path>) -> Result<Layers, CliError> {
    Ok(Layers {
        system: system(),
        user: user(args)?,
        home: std::env::home_dir(),
        start: start.map(Path::to_owned),
    })
}

/// Returns the workspace that was chosen.
pub(crate) fn workspace(args: &PlaceArgs) -> Result<Option<FolderName>, CliError> {
    chosen(args.workspace.as_ref(), "TENTERHOOK_WORKSPACE")
}

/// Returns the profile of Operator that was chosen.
pub(crate) fn operator_profile(args: &PlaceArgs) -> Result<Option<FolderName>, CliError> {
    chosen(args.operator_profile.as_ref(), "OPERATOR_PROFILE")
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
        CliError::of(Exit::Usage, &error).hint(format!("`{by}` says so; set it to a name"))
    })
}

/// Returns the folder that is managed for all users. No variable names another one: it is not theirs to leave out.
fn system() -> Option<PathBuf> {
    if cfg!(windows) {
        variable("ProgramData").map(|dir| dir.join("tenterhook"))
    } else {
        Some(PathBuf::from("/etc/tenterhook"))
    }
}

/// Returns the user's configuration folder.
///
/// A folder that somebody named has to be there: hooks that are not found guard nothing. The one that is looked at
/// by default need not be.
pub(crate) fn user(args: &ConfigArgs) -> Result<Option<PathBuf>, CliError> {
    let named = match &args.config_dir {
        Some(dir) => Some((dir.clone(), "`--config-dir`".to_owned())),
        None => variable(VARIABLE).map(|dir| (dir, format!("`{VARIABLE}`"))),
    };
    if let Some((dir, by)) = named {
        if !dir.is_dir() {
            let message = format!("{by} names `{}`, which is no folder", dir.display());
            return Err(CliError::new(Exit::Usage, message)
                .hint("name the folder that `hooks.d` is in, or leave it out"));
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
