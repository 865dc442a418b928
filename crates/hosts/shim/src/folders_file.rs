//! The file by which an installed shim finds the user's folders.
//!
//! Some agents set variables from files of a project. A project could then lead the shim to folders without
//! hooks, so an installed shim and the daemon that it starts ignore their environment here.

/// The file next to the installed shim with the user's folders, one `NAME=value` per line.
pub const FOLDERS_FILE: &str = "tenterhook-shim.env";

/// The variables that decide where the user's hooks and approvals are.
pub const FOLDER_VARIABLES: &[&str] = &[
    "HOME",
    "TENTERHOOK_CONFIG_DIR",
    "TENTERHOOK_DATA_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];
