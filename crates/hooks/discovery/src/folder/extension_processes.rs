//! The processes of extensions. The process that registers hooks also serves the later calls.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tenterhook_files::hex_digest;
use tenterhook_hookfile::SourceProblem;
use tenterhook_process::{Command, Program};
use tenterhook_runners::worker::{Extension, ExtensionProtocol, Host};
use tenterhook_systems::hook_folder::ExtensionPrograms;
use tokio::time::timeout;

use super::candidate::Candidate;
use super::load_problem::too_slow;

/// The processes of extensions.
#[derive(Debug)]
pub(super) struct ExtensionProcesses {
    workspace: PathBuf,
    data_dir: Option<PathBuf>,
    host: Arc<dyn Host>,
    /// One process for each version of a file.
    processes: Mutex<HashMap<(PathBuf, String), Extension>>,
}

impl ExtensionProcesses {
    /// Prepares processes for an agent that works in `workspace`. They store their data below `data_dir`, and may
    /// send requests to the host.
    pub(super) fn new(workspace: &Path, data_dir: Option<&Path>, host: Arc<dyn Host>) -> Self {
        // An extension runs elsewhere, so a relative path would name another folder there.
        let workspace = std::path::absolute(workspace).or_else(|_| std::env::current_dir());
        let workspace = workspace.unwrap_or_default();
        Self {
            workspace,
            data_dir: data_dir.map(Path::to_owned),
            host,
            processes: Mutex::default(),
        }
    }

    /// Drops the processes that are no longer used.
    pub(super) fn drop_unused(&self) {
        let mut processes = self.processes.lock();
        processes.retain(|_, extension| extension.is_shared());
    }

    pub(super) fn of(&self, programs: &ExtensionPrograms, candidate: &Candidate) -> Extension {
        let mut processes = self.processes.lock();
        let key = (candidate.run.clone(), candidate.version());
        processes
            .entry(key)
            .or_insert_with(|| self.make(programs, candidate))
            .clone()
    }

    fn make(&self, programs: &ExtensionPrograms, candidate: &Candidate) -> Extension {
        let id = &candidate.found.name;
        // It runs in its own folder, where a relative path would name another file.
        let run = std::path::absolute(&candidate.run).unwrap_or_else(|_| candidate.run.clone());
        let command = candidate.with_search_path(Command::new(Program::exec([&run])));
        let command = match run.parent() {
            Some(dir) => command.working_dir(dir.to_owned()),
            None => command,
        };
        let data_dir = self.data_dir.as_ref().map(|dir| {
            let mut key = id.clone().into_bytes();
            if let Some(project) = candidate.project() {
                // A project's extension must not read the data of the user's extension with the same name.
                key.push(0);
                key.extend(project.dir.as_os_str().as_encoded_bytes());
            }
            let digest = hex_digest(&key);
            let name = id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
            let name = format!("{name}-{}", digest.get(..12).unwrap_or_default());
            dir.join("extensions").join(name)
        });
        let data_dir = data_dir.unwrap_or_default();
        let protocol = protocol(programs, candidate.found.kind.system);
        let dirs = (self.workspace.as_path(), data_dir.as_path());
        Extension::new(id, command, protocol, dirs, Arc::clone(&self.host))
    }

    /// Starts an extension and returns its registration as text.
    pub(super) async fn ask(
        &self,
        programs: &ExtensionPrograms,
        candidate: &Candidate,
        deadline: Duration,
    ) -> Result<String, SourceProblem> {
        let extension = self.of(programs, candidate);
        let registration = timeout(deadline, extension.registration())
            .await
            .map_err(|_| too_slow(deadline))?
            .map_err(|error| error.to_string())?;
        serde_json::to_string(&*registration).map_err(|error| error.to_string().into())
    }
}

/// Returns the description of a system's extension protocol.
fn protocol(programs: &ExtensionPrograms, system: &'static str) -> ExtensionProtocol {
    ExtensionProtocol {
        system,
        version: programs.protocol_version,
        system_version: programs.system_version,
        workspace_variable: programs.workspace_variable,
        update_method: programs.update_method,
        copy_method: programs.copy_method,
        events: (programs.events.names)(),
        questions: programs.user_interface.questions,
        capabilities: programs.user_interface.capabilities,
        host_request: programs.user_interface.host_request,
        answer: programs.user_interface.answer,
        refuse: programs.refuse,
    }
}
