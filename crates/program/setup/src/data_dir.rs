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
fn data_dir_below(home: &Path) -> PathBuf {
    let base = if cfg!(windows) {
        "AppData/Local"
    } else if cfg!(target_os = "macos") {
        "Library/Application Support"
    } else {
        ".local/share"
    };
    home.join(base).join(NAME)
}

/// Returns the places of the file with the hash of the user's passphrase: in the home folder of the account, and where
/// `HOME` leads. A program that changes `HOME` does not change the first.
#[cfg(unix)]
pub fn passphrase_places() -> Vec<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
    let account = user.ok().flatten().map(|user| user.dir);
    let mut homes: Vec<PathBuf> = account.into_iter().chain(std::env::home_dir()).collect();
    homes.dedup();
    homes
        .iter()
        .map(|home| data_dir_below(home).join("passphrase.json"))
        .collect()
}
