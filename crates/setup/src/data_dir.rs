//! The folder in which the program stores data that outlives a session.

use std::path::PathBuf;

/// The environment variable that names the folder.
const VARIABLE: &str = "TENTERHOOK_DATA_DIR";

/// Returns the data folder: the value of `TENTERHOOK_DATA_DIR`, else the platform's usual folder. `None` means that
/// the user has no home directory.
pub fn data_dir() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    if let Some(named) = variable(VARIABLE) {
        return Some(named);
    }
    let home = |below: &str| Some(std::env::home_dir()?.join(below));
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA").or_else(|| home("AppData/Local"))
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support")
    } else {
        variable("XDG_DATA_HOME").or_else(|| home(".local/share"))
    };
    Some(base?.join("tenterhook"))
}
