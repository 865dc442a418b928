//! The folder in which the program stores data that outlives a session.

use std::path::{Path, PathBuf};

/// The environment variable that names the folder.
const VARIABLE: &str = "TENTERHOOK_DATA_DIR";

/// The name of the folder in the platform's folder for data.
const NAME: &str = "tenterhook";

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
    let named = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        None
    } else {
        variable("XDG_DATA_HOME")
    };
    match named {
        Some(base) => Some(base.join(NAME)),
        None => Some(data_dir_below(&std::env::home_dir()?)),
    }
}

/// Returns the platform's usual data folder of the account with this home folder.
pub(crate) fn data_dir_below(home: &Path) -> PathBuf {
    let base = if cfg!(windows) {
        "AppData/Local"
    } else if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        ".local/share"
    };
    home.join(base).join(NAME)
}
