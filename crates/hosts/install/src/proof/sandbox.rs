//! An empty home folder in which an agent is run.
//!
//! The agent gets a few harmless variables of the user, such as `LANG` and `PATH`, and nothing else. So it finds neither
//! the user's configuration nor credentials.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tenterhook_process::{Command, Program};

/// The variables that an agent inherits.
const INHERITED: [&str; 6] = ["LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "USER"];
/// Variables with folders of the sandbox. All of them exist.
const FOLDERS: [(&str, &str); 8] = [
    ("HOME", "home"),
    ("TENTERHOOK_DATA_DIR", "home/.local/share/tenterhook"),
    ("XDG_CONFIG_HOME", "home/.config"),
    ("XDG_DATA_HOME", "home/.local/share"),
    ("XDG_STATE_HOME", "home/.local/state"),
    ("XDG_CACHE_HOME", "home/.cache"),
    ("XDG_RUNTIME_DIR", "run"),
    ("TMPDIR", "tmp"),
];

/// A temporary folder with an empty home and an empty work folder. Dropping it deletes it, after the processes that the
/// agent left behind have been killed.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// Creates a sandbox.
    ///
    /// # Errors
    /// Fails if a folder cannot be created.
    pub fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tenterhook-").tempdir()?;
        for below in FOLDERS
            .iter()
            .map(|(_, below)| *below)
            .chain(["work", "log"])
        {
            fs::create_dir_all(folder.path().join(below))?;
        }
        // Sockets are only created in a folder that no one else can enter.
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder.path().join("run"), private)?;
        Ok(Self { folder })
    }

    /// Returns the home folder.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the folder in which the agent works.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Returns the folder in which the canary hooks leave traces.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Returns Tenterhook's data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("home/.local/share/tenterhook")
    }

    /// Returns the shim that hosts start.
    pub fn shim(&self) -> PathBuf {
        self.data().join("bin/tenterhook-shim")
    }

    /// Returns the folder with the files of the daemon.
    pub fn daemon(&self) -> PathBuf {
        self.folder.path().join("run/tenterhook")
    }

    /// Returns the user's configuration folder of Tenterhook.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("home/.config/tenterhook")
    }

    /// Returns the environment of every program in the sandbox. `bin` is searched for programs before `PATH`.
    pub fn environment(&self, bin: &[PathBuf]) -> Vec<(OsString, OsString)> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let folders = FOLDERS
            .iter()
            .map(|(name, below)| (OsString::from(name), self.folder.path().join(below).into()));
        let old = std::env::var_os("PATH").unwrap_or_default();
        let all = bin.iter().cloned().chain(std::env::split_paths(&old));
        let path = std::env::join_paths(all).unwrap_or(old);
        inherited
            .chain(folders)
            .chain([("PATH".into(), path), ("NO_COLOR".into(), "1".into())])
            .collect()
    }

    /// Returns a command that runs in the work folder with exactly these variables.
    pub(crate) fn command(
        &self,
        argv: Vec<OsString>,
        environment: &[(OsString, OsString)],
    ) -> Command {
        let removed: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).collect();
        let command = Command::new(Program::Exec { argv })
            .working_dir(self.work())
            .without_env(&removed);
        environment
            .iter()
            .fold(command, |command, (name, value)| command.env(name, value))
    }

    /// Writes a file of the home folder.
    pub(crate) fn write_home(&self, path: &str, text: &str) -> io::Result<()> {
        let file = self.home().join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text)
    }

    /// Kills the processes that were started in this sandbox and left their process group, such as the daemon of an
    /// agent. On systems without `/proc`, it does nothing.
    pub fn end_processes(&self) {
        let home = self.home();
        for process in processes_with_home(&home) {
            // It may have ended by itself.
            let _ended = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.end_processes();
    }
}

/// Returns the processes whose variable `HOME` was this folder when they started.
fn processes_with_home(home: &Path) -> Vec<rustix::process::Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let wanted = format!("HOME={}", home.display());
    entries
        .flatten()
        .filter_map(|entry| {
            let id: i32 = entry.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let is_ours = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes());
            is_ours
                .then(|| rustix::process::Pid::from_raw(id))
                .flatten()
        })
        .collect()
}
