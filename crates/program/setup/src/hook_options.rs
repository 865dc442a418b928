//! Which hooks to load, and how strictly.

use std::path::PathBuf;
use std::time::Duration;

use tenterhook_discovery::{FolderName, LOAD_DEADLINE};
use tenterhook_hookfile::HookLine;

/// Which hooks to load, and how strictly. The default is what a session of an agent has.
#[derive(Debug, Clone)]
pub struct HookOptions {
    /// Files with hooks: hook files, agent files, settings of coding agents, scripts and executables.
    pub files: Vec<PathBuf>,
    /// Continue without sources that cannot be loaded, with a warning for each.
    pub lenient: bool,
    /// A gate denies when one of its hooks fails, whatever the hook's `on_error` is.
    pub strict: bool,
    /// Deny every operation that an untrusted project hook may guard, instead of leaving the hook out.
    pub deny_untrusted: bool,
    /// Extensions of pi: files, their folders, or folders of extensions. They are loaded last.
    pub extensions: Vec<PathBuf>,
    /// The only script or file whose hooks run. Hooks of the user and the project are left out.
    pub script: Option<PathBuf>,
    /// The agent whose events are judged, if it runs hooks of its own. Its own hooks are left out, so that none runs
    /// twice.
    pub host: Option<&'static str>,
    /// The time limit for loading each script, executable or extension.
    pub deadline: Duration,
    /// The set of hooks, for hook systems that have several sets.
    pub place: PlaceOptions,
    /// The user's configuration folder, if it is not the usual one.
    pub config_dir: Option<PathBuf>,
    /// Hooks as shell command lines. They run after the hooks of files.
    pub lines: Vec<HookLine>,
}

impl Default for HookOptions {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            lenient: false,
            strict: false,
            deny_untrusted: false,
            extensions: Vec::new(),
            script: None,
            host: None,
            deadline: LOAD_DEADLINE,
            place: PlaceOptions::default(),
            config_dir: None,
            lines: Vec::new(),
        }
    }
}

/// Which set of hooks to load, for hook systems that have several sets.
#[derive(Debug, Clone, Default)]
pub struct PlaceOptions {
    /// The morphix workspace. The default is the value of `TENTERHOOK_WORKSPACE`, else `main`.
    pub workspace: Option<FolderName>,
    /// The Operator profile. The default is the value of `OPERATOR_PROFILE`, else `default`.
    pub operator_profile: Option<FolderName>,
}

impl PlaceOptions {
    /// Returns the value of an option. A system without an option here can be selected only by its environment
    /// variable.
    pub fn selected(&self, option: &str) -> Option<&FolderName> {
        match option {
            "workspace" => self.workspace.as_ref(),
            "operator-profile" => self.operator_profile.as_ref(),
            _ => None,
        }
    }
}
