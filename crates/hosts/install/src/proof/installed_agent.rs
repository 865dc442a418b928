//! Finds the programs of hosts on this machine.

use std::path::{Path, PathBuf};

use tenterhook_process::is_executable;
use tenterhook_systems::HOSTS;
use tenterhook_systems::host::HostAgent;

/// A host whose program is on this machine.
#[derive(Debug, Clone)]
pub struct InstalledAgent {
    /// The host.
    pub host: &'static HostAgent,
    /// The program.
    pub program: PathBuf,
    /// A folder of programs that the host needs, such as its version of Node.js. It is searched before `PATH`.
    pub bin: Option<PathBuf>,
    /// A folder with npm packages, each in a folder of its own.
    pub packages: Option<PathBuf>,
}

/// Where to look for the programs of hosts.
#[derive(Debug, Clone, Default)]
pub struct AgentSearch {
    /// A folder as `.ci/host-agents` creates it: programs in `bin`, and packages next to it. It is searched first.
    pub folder: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
}

impl AgentSearch {
    /// Returns the search in `PATH`, and before it in `folder`.
    pub fn new(folder: Option<PathBuf>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            folder,
            path: std::env::split_paths(&path).collect(),
        }
    }

    /// Returns the host's program, if there is one.
    pub fn find(&self, host: &'static HostAgent) -> Option<InstalledAgent> {
        let own = self.folder.as_ref().map(|folder| folder.join("bin"));
        if let Some(bin) = &own
            && let Some(program) = program_in(bin, host)
        {
            return Some(InstalledAgent {
                host,
                program,
                bin: own.clone(),
                packages: self.folder.clone(),
            });
        }
        let program = self.path.iter().find_map(|bin| program_in(bin, host))?;
        Some(InstalledAgent {
            host,
            program,
            bin: None,
            packages: None,
        })
    }

    /// Returns all hosts whose program is on this machine and that can run without a person.
    pub fn find_all(&self) -> Vec<InstalledAgent> {
        let can_run = HOSTS.iter().filter(|host| host.headless.is_some());
        can_run.filter_map(|host| self.find(host)).collect()
    }
}

fn program_in(bin: &Path, host: &HostAgent) -> Option<PathBuf> {
    let candidates = host.programs.iter().map(|name| bin.join(name));
    candidates.into_iter().find(|path| is_executable(path))
}
