//! The folders and variables that decide where configuration is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tenterhook_shim::folders_file::FOLDER_VARIABLES;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;
use tenterhook_systems::host::installation::command_line;

/// The name of the program that agents start.
pub const SHIM: &str = tenterhook_shim::NAME;
/// The name of the program that the shim starts.
pub(crate) const PROGRAM: &str = "tenterhook";

/// The folders and variables that decide where configuration is.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The home folder of the user.
    pub home: PathBuf,
    /// Tenterhook's data folder.
    pub data: PathBuf,
    /// The running program. The shim may be next to it.
    pub program: PathBuf,
    /// The folders in which programs are found.
    pub search_path: Vec<PathBuf>,
    /// Environment variables that name folders of configuration.
    pub variables: BTreeMap<String, PathBuf>,
}

impl Machine {
    /// Returns the machine of this process. `None` means that the user has no home folder.
    pub fn of_process(data: &Path) -> Option<Self> {
        let search_path = std::env::var_os("PATH");
        let search_path = search_path.map(|path| std::env::split_paths(&path).collect());
        let names = HOSTS.iter().flat_map(|host| {
            let installation = host.installation;
            let place = installation.user.and_then(|place| place.variable);
            let approval = installation.approval.and_then(|approval| approval.variable);
            place.into_iter().chain(approval)
        });
        let names = names.chain(FOLDER_VARIABLES.iter().map(|name| (*name, "")));
        let variables = names.filter_map(|(name, _)| {
            let folder = PathBuf::from(std::env::var_os(name)?);
            folder.is_absolute().then(|| (name.to_owned(), folder))
        });
        Some(Self {
            home: std::env::home_dir().filter(|home| home.is_absolute())?,
            data: data.to_owned(),
            program: std::env::current_exe().ok()?,
            search_path: search_path.unwrap_or_default(),
            variables: variables.collect(),
        })
    }

    /// Returns the folder with the programs that agents run.
    pub(crate) fn bin(&self) -> PathBuf {
        self.data.join("bin")
    }

    /// Returns the shim that agents start.
    pub fn shim(&self) -> PathBuf {
        self.bin().join(SHIM)
    }

    /// Returns the program that the shim starts.
    pub fn installed_program(&self) -> PathBuf {
        self.bin().join(PROGRAM)
    }

    /// Returns the command line that an agent runs for an event.
    pub fn line(&self, host: &HostAgent, event: &str) -> String {
        command_line(&self.shim().display().to_string(), host.name, event)
    }

    /// Returns the beginning of an agent's command lines: everything before the event.
    pub(crate) fn line_prefix(&self, host: &HostAgent) -> String {
        command_line(&self.shim().display().to_string(), host.name, "")
    }

    /// Returns a path below the home folder, or below the folder that an environment variable names.
    pub(crate) fn path(&self, path: &str, variable: Option<(&str, &str)>) -> PathBuf {
        let named = variable.and_then(|(name, below)| {
            let folder = self.variables.get(name)?;
            Some(folder.join(below))
        });
        named.unwrap_or_else(|| self.home.join(path))
    }

    /// Returns the first program with one of these names.
    pub fn find_program(&self, names: &[&str]) -> Option<PathBuf> {
        let candidates = names.iter().flat_map(|name| {
            let folders = self.search_path.iter();
            folders.map(move |folder| folder.join(name))
        });
        candidates.into_iter().find(|path| is_program(path))
    }
}

impl Machine {
    /// Returns the text of the file by which the shim finds the folders of the user, whatever its environment says.
    pub(crate) fn folders_file(&self) -> String {
        let fixed = [("HOME", &self.home), ("TENTERHOOK_DATA_DIR", &self.data)];
        let named = FOLDER_VARIABLES.iter().filter_map(|name| {
            let mut fixed = fixed.iter();
            let own = fixed
                .find(|(known, _)| known == name)
                .map(|(_, path)| *path);
            let path = own.or_else(|| self.variables.get(*name))?;
            Some(format!("{name}={}\n", path.display()))
        });
        named.collect()
    }
}

/// Returns whether a path is a file that may be executed.
#[cfg(unix)]
pub(crate) fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Returns whether a path is a file that may be executed.
#[cfg(not(unix))]
pub(crate) fn is_program(path: &Path) -> bool {
    path.is_file()
}
