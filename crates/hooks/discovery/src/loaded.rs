//! The result of loading hook files.

use std::path::{Path, PathBuf};

use tenterhook_engine::{HookSpec, Layer};
use tenterhook_hookfile::{AgentFile, BrokenSource, Problem};
use tenterhook_trust::{DivergedHook, ProjectHook};

/// The hooks of one or several files.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The hooks that files list, file by file and in the order of each file. To register all hooks, use
    /// [`into_specs`](Self::into_specs).
    pub specs: Vec<HookSpec>,
    /// The hooks that keys of agents declare, such as `redact_secrets`. They run after all other hooks of
    /// their event, from any file.
    pub wired: Vec<HookSpec>,
    /// The warnings about the files.
    pub warnings: Vec<Problem>,
    /// With [`LoadOptions::lenient`](crate::LoadOptions::lenient), the files that should be in force but
    /// cannot be loaded.
    pub broken: Vec<BrokenSource>,
    /// Files of the project that cannot be loaded and have no approval. They would not run anyway.
    pub untrusted: Vec<BrokenSource>,
    /// The agents of the agent files.
    pub agent_files: Vec<AgentFile>,
    /// With [`Trust::Approved`](tenterhook_trust::Trust::Approved), the project hooks, including those
    /// that may not run.
    pub project_hooks: Vec<ProjectHook>,
    /// Approved hooks that the project changed or no longer has. They are in force as approved, or their
    /// gates deny.
    pub diverged: Vec<DivergedHook>,
    /// The files, in their order.
    pub files: Vec<LoadedFile>,
    /// The files that import others.
    pub importing: Vec<PathBuf>,
}

impl Loaded {
    /// Returns all hooks, in the order in which to register them.
    pub fn into_specs(self) -> Vec<HookSpec> {
        let mut specs = self.specs;
        specs.extend(self.wired);
        specs
    }

    /// Returns the hook files that were loaded and neither have hooks, not even unapproved ones, nor import other
    /// files.
    pub fn files_without_hooks(&self) -> impl Iterator<Item = &Path> {
        let files = self.files.iter();
        let files = files.filter(|file| !file.is_broken && !file.is_disabled);
        let paths = files.map(|file| file.path.as_path());
        let imports = |path: &Path| self.importing.iter().any(|file| file == path);
        paths.filter(move |path| !self.has_hooks_of(path) && !imports(path))
    }

    fn has_hooks_of(&self, path: &Path) -> bool {
        let mut specs = self.specs.iter().chain(&self.wired);
        let mut project = self.project_hooks.iter();
        let mut agents = self.agent_files.iter();
        specs.any(|spec| spec.source.path.as_deref() == Some(path))
            || project.any(|hook| hook.item.project.join(&hook.item.source) == path)
            || agents.any(|file| file.path == path)
    }
}

/// A hook file as it was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// The file.
    pub path: PathBuf,
    /// The layer of its hooks.
    pub layer: Layer,
    /// The SHA-256 of its content, in hexadecimal digits. Empty if it could not be read.
    pub sha256: String,
    /// The variables that its hooks have from the file that imports it.
    pub variables: Vec<(String, String)>,
    /// Whether it has errors. Then it has no hooks.
    pub is_broken: bool,
    /// Whether the user has disabled it. Then it has no hooks.
    pub is_disabled: bool,
}
