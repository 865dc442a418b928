//! The environment of a daemon that a shim starts.
//!
//! A daemon serves all projects and hosts of a user. So it does not get the environment of the project
//! and host that happen to start it: a variable such as `NODE_OPTIONS`, or a folder of the project in
//! `PATH`, could change the hooks of all other projects. It gets the few variables in [`KEPT`], and the
//! user's own variables from the file [`FILE`] in the configuration folder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::folders_file::{FOLDER_VARIABLES, FOLDERS_FILE};

/// The file in the user's configuration folder with more variables: one `NAME=value` per line.
pub const FILE: &str = "daemon.env";

/// The variables that a daemon gets from the shim that starts it. A name that ends with `_` stands for
/// all names that start with it.
pub const KEPT: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_",
    "LOGNAME",
    "SHELL",
    "TENTERHOOK_CONFIG_DIR",
    "TENTERHOOK_DATA_DIR",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_",
];

/// The maximum size of the file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The folders of the user: what they are without Tenterhook's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserFolders {
    /// The home folder.
    pub home: PathBuf,
    /// The configuration folder of Tenterhook.
    pub config: PathBuf,
    /// The data folder of Tenterhook.
    pub data: PathBuf,
    /// The folder with Tenterhook's journals.
    pub state: PathBuf,
}

impl UserFolders {
    /// Returns the folders that the file next to an installed shim names, or else the environment of this
    /// process. `None` if there is no home folder.
    pub fn of_process() -> Option<Self> {
        if let Some(installed) = installed_folders() {
            let named = |name: &str| {
                let mut all = installed.iter();
                all.find_map(|(known, value)| (known == name).then(|| value.clone()))
            };
            let home = PathBuf::from(named("HOME")?);
            return Some(Self::of(named, home));
        }
        Some(Self::of(
            |name| std::env::var_os(name),
            std::env::home_dir()?,
        ))
    }

    fn of(variable: impl Fn(&str) -> Option<OsString>, home: PathBuf) -> Self {
        let absolute = |name: &str| {
            let path = PathBuf::from(variable(name)?);
            path.is_absolute().then_some(path)
        };
        let below = |name: &str, usual: &str| {
            absolute(name)
                .unwrap_or_else(|| home.join(usual))
                .join("tenterhook")
        };
        let data = if cfg!(target_os = "macos") {
            home.join("Library/Application Support/tenterhook")
        } else {
            below("XDG_DATA_HOME", ".local/share")
        };
        let named = variable("TENTERHOOK_CONFIG_DIR").filter(|value| !value.is_empty());
        Self {
            config: named.map_or_else(|| below("XDG_CONFIG_HOME", ".config"), PathBuf::from),
            data: absolute("TENTERHOOK_DATA_DIR").unwrap_or(data),
            state: below("XDG_STATE_HOME", ".local/state"),
            home,
        }
    }
}

/// Returns the folders that `tenterhook install` wrote next to this program. A file that cannot be read names
/// none, and then the shim denies.
fn installed_folders() -> Option<Vec<(OsString, OsString)>> {
    let program = PathBuf::from(std::env::args_os().next()?);
    let file = program
        .is_absolute()
        .then(|| program.with_file_name(FOLDERS_FILE))?;
    std::fs::symlink_metadata(&file)
        .is_ok()
        .then(|| read_file(&file))
}

/// Returns the environment of a daemon that a shim starts in `directory`.
pub(crate) fn of_daemon(directory: &Path) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = std::env::vars_os()
        .filter(|(name, _)| is_kept(name))
        .collect();
    if let Some(installed) = installed_folders() {
        variables.retain(|(name, _)| !FOLDER_VARIABLES.iter().any(|folder| name == *folder));
        variables.extend(installed);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    variables.push(("PATH".into(), safe_path(&path, directory)));
    if let Some(folders) = UserFolders::of_process() {
        // A file that cannot be read is reported by the daemon, when a hook misses the variable.
        variables.extend(read_file(&folders.config.join(FILE)));
    }
    variables
}

fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    KEPT.iter().any(|kept| {
        if kept.ends_with('_') {
            name.starts_with(kept)
        } else {
            name == *kept
        }
    })
}

/// Returns a search path without folders that a project decides about: relative ones and those inside
/// `directory`.
fn safe_path(path: &OsStr, directory: &Path) -> OsString {
    std::env::join_paths(safe_folders(path, directory)).unwrap_or_default()
}

/// Returns the folders of a search path that are absolute and not inside the project of `directory`.
pub(crate) fn safe_folders(path: &OsStr, directory: &Path) -> Vec<PathBuf> {
    // An agent that works in a folder of a repository reads the variables of the whole repository.
    // A home folder may be a repository too, but it belongs to the user.
    let home = std::env::home_dir().unwrap_or_default();
    let mut above = directory.ancestors();
    let project = above
        .find(|folder| folder.join(".git").exists())
        .filter(|folder| !home.starts_with(folder))
        .unwrap_or(directory);
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && !folder.starts_with(project))
        .collect()
}

/// Reads the user's variables. Ignores empty lines, comments (`#`) and lines without a name.
fn read_file(path: &Path) -> Vec<(OsString, OsString)> {
    let is_small = std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= MAX_FILE);
    let text = is_small
        .then(|| std::fs::read_to_string(path).ok())
        .flatten();
    let lines = text.iter().flat_map(|text| text.lines());
    let lines = lines.map(str::trim).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let pairs = pairs.map(|(name, value)| (name.trim(), value.trim()));
    pairs
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_project_and_relative_folders_leave_the_search_path() {
        let path = OsStr::new("/work/app/.venv/bin:/usr/bin::bin:/bin:/work/app");
        assert_eq!(safe_path(path, Path::new("/work/app")), "/usr/bin:/bin");
    }

    #[test]
    fn a_repository_cannot_put_its_programs_into_the_search_path_of_an_agent_in_a_folder_below() {
        let project = tempfile::tempdir().unwrap();
        let at = |name: &str| project.path().join(name);
        std::fs::create_dir_all(at("src/deep")).unwrap();
        std::fs::create_dir(at(".git")).unwrap();
        let path = std::env::join_paths([at("bin"), "/usr/bin".into()]).unwrap();
        assert_eq!(safe_path(&path, &at("src/deep")), "/usr/bin");
    }

    #[test]
    fn variables_of_interpreters_are_not_kept() {
        for name in [
            "NODE_OPTIONS",
            "LD_PRELOAD",
            "PYTHONPATH",
            "PATH",
            "TENTERHOOK_SHIM_TIMEOUT",
        ] {
            assert!(!is_kept(OsStr::new(name)), "{name}");
        }
        for name in ["HOME", "LC_ALL", "XDG_CONFIG_HOME"] {
            assert!(is_kept(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn the_users_own_variables_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        std::fs::write(&file, "# keys\n\nACME_KEY = a=b\nnonsense\n=x\n").unwrap();
        assert_eq!(read_file(&file), [("ACME_KEY".into(), "a=b".into())]);
        assert_eq!(read_file(folder.path()), []);
    }

    #[test]
    fn a_variable_that_names_the_usual_folder_changes_nothing() {
        let home = PathBuf::from("/home/ada");
        let usual = UserFolders::of(|_| None, home.clone());
        let named = |name: &str| {
            let value = match name {
                "XDG_CONFIG_HOME" => "/home/ada/.config",
                "XDG_DATA_HOME" => "relative",
                _ => return None,
            };
            Some(value.into())
        };
        assert_eq!(UserFolders::of(named, home), usual);
    }
}
