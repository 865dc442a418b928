//! Where the program keeps what has to outlive a session.

use std::path::PathBuf;

/// The variable that names the folder.
const VARIABLE: &str = "TENTERHOOK_DATA_DIR";

/// Returns the folder for data: what `TENTERHOOK_DATA_DIR` names, else the platform's place for it. `None` is a user
/// without a home.
pub(crate) fn data_dir() -> Option<PathBuf> {
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
