//! The result of a search: the hooks of folders, and everything else that was found there.

#[cfg(feature = "workers")]
use std::collections::HashMap;
#[cfg(feature = "workers")]
use std::path::PathBuf;
#[cfg(feature = "workers")]
use std::sync::Arc;

use tenterhook_engine::HookSpec;
use tenterhook_hookfile::BrokenSource;
#[cfg(feature = "workers")]
use tenterhook_runners::worker::{
    Extension, ExtensionCommand, ExtensionInForce, ExtensionTool, Lease, ScriptCommand, ScriptFlag,
    ScriptInForce, ScriptProvider, ScriptTool, Worker,
};
use tenterhook_trust::{DivergedHook, ProjectHook};

use super::found_file::FoundFile;

/// The hooks that were found in folders, and everything else that the search reports.
#[derive(Debug, Default)]
pub struct FolderHooks {
    /// The hooks, in the order in which they run.
    pub specs: Vec<HookSpec>,
    /// Every file that was found, in the order of folders and names.
    pub files: Vec<FoundFile>,
    /// The tools, commands and flags of scripts, in the order of folders and names.
    #[cfg(feature = "workers")]
    pub scripts: Vec<FoundScript>,
    /// The extensions that run, with their tools and commands, in the order of folders and names.
    #[cfg(feature = "workers")]
    pub extensions: Vec<FoundExtension>,
    /// The project's hooks, with their approvals.
    pub project_hooks: Vec<ProjectHook>,
    /// Approved executables, scripts and extensions that the project changed or no longer has.
    pub diverged: Vec<DivergedHook>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// In a [lenient](super::FolderSearch::lenient) search, the files and folders that should be in force
    /// but cannot be loaded.
    pub broken: Vec<BrokenSource>,
    /// Files and folders of the project that cannot be loaded and have no approval. They would not run
    /// anyway.
    pub untrusted: Vec<BrokenSource>,
    /// The owners of tools and commands, by kind and name.
    #[cfg(feature = "workers")]
    pub(super) names: HashMap<(&'static str, String), String>,
}

#[cfg(feature = "workers")]
impl FolderHooks {
    /// Claims the name of a tool or command for a script or an extension. Returns `false`, with a warning, if the name is
    /// empty or taken.
    pub(super) fn claim_name(&mut self, id: &str, kind: &'static str, name: &str) -> bool {
        let problem = if name.is_empty() {
            format!("a {kind} of extension `{id}` has no name and is ignored")
        } else if let Some(holder) = self.names.get(&(kind, name.to_owned())) {
            format!(
                "{kind} `{}` of extension `{id}` is ignored, because extension `{holder}` has one with the same name",
                name.escape_debug()
            )
        } else {
            self.names.insert((kind, name.to_owned()), id.to_owned());
            return true;
        };
        self.warnings.push(problem);
        false
    }
}

/// The tools, commands and flags of a script, and its worker.
#[cfg(feature = "workers")]
#[derive(Debug, Clone)]
pub struct FoundScript {
    /// The name of the file.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Its worker.
    pub worker: Worker,
    /// Keeps the script in the worker.
    pub lease: Lease,
    /// The version in force, which a reload replaces.
    pub in_force: Arc<ScriptInForce>,
    /// Its tools. If several have the same name, the first is used.
    pub tools: Vec<ScriptTool>,
    /// Its commands. If several have the same name, the first is used.
    pub commands: Vec<ScriptCommand>,
    /// Its flags.
    pub flags: Vec<ScriptFlag>,
    /// Its providers of models. If several have the same name, the first is used.
    pub providers: Vec<ScriptProvider>,
}

/// A running extension with its tools and commands.
#[cfg(feature = "workers")]
#[derive(Debug, Clone)]
pub struct FoundExtension {
    /// Its id: `name`, or `org@repo/name` in a plugin.
    pub id: String,
    /// Its file.
    pub path: PathBuf,
    /// The process.
    pub extension: Extension,
    /// The version in force, which a reload replaces.
    pub in_force: Arc<ExtensionInForce>,
    /// Its tools, without those whose names an earlier extension has.
    pub tools: Vec<ExtensionTool>,
    /// Its commands, without those whose names an earlier extension has.
    pub commands: Vec<ExtensionCommand>,
}
