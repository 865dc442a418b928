//! The processes that serve scripts and extensions, for one search and its clones.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_hookfile::SourceProblem;
use tenterhook_runners::worker::Host;
use tenterhook_systems::hook_folder::ExtensionPrograms;

use super::candidate::Candidate;
use super::extension_hooks::add_extension;
use super::extension_processes::ExtensionProcesses;
use super::folder_hooks::FolderHooks;
use super::language::Language;
use super::script_hooks::add_script;
use super::script_workers::ScriptWorkers;

pub(super) use super::registered_state::{extension_state, script_state};
pub(super) use super::script_version::ScriptVersions;

/// The processes that serve scripts and extensions.
#[derive(Debug)]
pub(super) struct FolderProcesses {
    workers: ScriptWorkers,
    extensions: ExtensionProcesses,
}

impl FolderProcesses {
    /// Prepares the processes of a directory. They start when they are needed. Extensions store their data
    /// below `data_dir`.
    pub(super) fn new(directory: &Path, data_dir: Option<&Path>, host: Arc<dyn Host>) -> Self {
        Self {
            extensions: ExtensionProcesses::new(directory, data_dir, Arc::clone(&host)),
            workers: ScriptWorkers::new(directory, host),
        }
    }

    /// Drops the processes that are no longer used.
    pub(super) fn drop_unused(&self) {
        self.workers.drop_unused();
        self.extensions.drop_unused();
    }

    /// Loads scripts. Returns the registration of each as text, with its index.
    pub(super) async fn load_scripts(
        &self,
        scripts: Vec<(usize, Language, &Candidate)>,
        deadline: Duration,
    ) -> Vec<(usize, Result<String, SourceProblem>)> {
        self.workers.load_all(scripts, deadline).await
    }

    /// Starts an extension and returns its registration as text.
    pub(super) async fn ask_extension(
        &self,
        programs: &ExtensionPrograms,
        candidate: &Candidate,
        deadline: Duration,
    ) -> Result<String, SourceProblem> {
        self.extensions.ask(programs, candidate, deadline).await
    }

    /// Adds the hooks of a script or an extension, and what else it registers.
    pub(super) async fn add_hooks(
        &self,
        candidate: &Candidate,
        versions: &mut ScriptVersions,
        discovered: &mut FolderHooks,
    ) {
        add_script(candidate, &self.workers, versions, discovered).await;
        add_extension(candidate, &self.extensions, versions, discovered).await;
    }
}
