//! Reports scripts and extensions as broken, in a program that was built without the feature `workers`.

use std::path::Path;
use std::time::Duration;

use tenterhook_hookfile::SourceProblem;
use tenterhook_systems::hook_folder::ExtensionPrograms;

use super::candidate::Candidate;
use super::folder_hooks::FolderHooks;
use super::found_file::FileState;
use super::language::Language;
use super::probe_output::ProbeOutput;
use crate::runner_feature::RunnerFeature;

/// Replaces the processes, because there are none.
#[derive(Debug)]
pub(super) struct FolderProcesses;

/// Replaces the versions of scripts, because no script is loaded.
#[derive(Debug, Default)]
pub(super) struct ScriptVersions;

impl FolderProcesses {
    pub(super) fn new(_directory: &Path, _data_dir: Option<&Path>) -> Self {
        Self
    }

    #[expect(
        clippy::unused_self,
        reason = "the form of the processes that there are with the feature"
    )]
    pub(super) fn drop_unused(&self) {}

    #[expect(
        clippy::unused_async,
        clippy::unused_self,
        reason = "the form of the processes that there are with the feature"
    )]
    pub(super) async fn load_scripts(
        &self,
        scripts: Vec<(usize, Language, &Candidate)>,
        _deadline: Duration,
    ) -> Vec<(usize, Result<String, SourceProblem>)> {
        let scripts = scripts.into_iter();
        scripts
            .map(|(index, _, candidate)| (index, Err(not_compiled_in(&candidate.found.name))))
            .collect()
    }

    #[expect(
        clippy::unused_async,
        clippy::unused_self,
        reason = "the form of the processes that there are with the feature"
    )]
    pub(super) async fn ask_extension(
        &self,
        _programs: &ExtensionPrograms,
        candidate: &Candidate,
        _deadline: Duration,
    ) -> Result<String, SourceProblem> {
        Err(not_compiled_in(&candidate.found.name))
    }

    #[expect(
        clippy::unused_async,
        clippy::unused_self,
        reason = "the form of the processes that there are with the feature"
    )]
    pub(super) async fn add_hooks(
        &self,
        _candidate: &Candidate,
        _versions: &mut ScriptVersions,
        _discovered: &mut FolderHooks,
    ) {
    }
}

/// Returns the state of a script: it is always broken.
pub(super) fn script_state(
    candidate: &mut Candidate,
    _declared: &str,
) -> Result<FileState, SourceProblem> {
    Err(not_compiled_in(&candidate.found.name))
}

/// Returns the state of an extension: it is always broken.
pub(super) fn extension_state(
    programs: &ExtensionPrograms,
    _declared: &ProbeOutput,
) -> Result<FileState, SourceProblem> {
    Err(not_compiled_in(programs.prefix))
}

fn not_compiled_in(name: &str) -> SourceProblem {
    SourceProblem::from(RunnerFeature::Workers.problem(name).unwrap_or_default())
}
