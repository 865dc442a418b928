//! The folders of each hook system, as data: where they are and what their files mean.
//!
//! The `discovery` crate reads the folders, checks approvals and starts programs. It knows nothing about
//! individual systems.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use tenterhook_engine::{Dialect, EventName, Layer};

use crate::project_packages::ProjectPackages;

/// The maximum number of files in one folder.
pub const MAX_FILES: usize = 8_192;

/// A kind of folder that contains hooks of one system.
pub struct FolderKind {
    /// The name in machine-readable output, which is unique among all kinds.
    pub name: &'static str,
    /// The name of the system in reports.
    pub system: &'static str,
    /// Where such folders are, in order of precedence.
    pub locations: &'static [FolderLocation],
    /// Which files of a folder belong to the system.
    pub files: FolderFiles,
    /// How to use executables in the folder. `None` means that they are not executed.
    pub executables: Option<ExecutableHooks>,
    /// How to use scripts in the folder. `None` means that they are not loaded.
    pub scripts: Option<ScriptHooks>,
    /// Whether only the first of several files with the same name counts.
    pub has_unique_names: bool,
    /// The layer in whose order the folder's hooks run, if it differs from their own layer.
    pub order_within_layer: Option<Layer>,
    /// Whether native hook files belong next to the folder, so that a hook file inside it is misplaced.
    pub is_next_to_hook_files: bool,
}

/// Where folders of one kind are.
#[derive(Debug)]
pub struct FolderLocation {
    /// The base folders that `path` is relative to.
    pub bases: &'static [FolderBase],
    /// The path below each base folder.
    pub path: FolderPath,
}

/// A base folder that paths of hook folders are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderBase {
    /// The machine's configuration folder.
    Machine,
    /// The user's home directory, with precedence over projects.
    HomeBeforeProjects,
    /// A project. If the location also has the base [`Home`](Self::Home), a project in the home directory
    /// itself is skipped.
    Project,
    /// The user's configuration folder.
    User,
    /// The user's home directory.
    Home,
}

impl FolderLocation {
    /// Returns the selection, if the folder is in the selected member of a collection.
    pub const fn selection(&self) -> Option<&'static Selection> {
        match self.path {
            FolderPath::Selected(selection) => Some(selection),
            FolderPath::Fixed(_) | FolderPath::Each { .. } => None,
        }
    }
}

/// The path of a hook folder below its base.
#[derive(Debug, Clone, Copy)]
pub enum FolderPath {
    /// A fixed path.
    Fixed(&'static str),
    /// A folder in the selected member of a collection.
    Selected(&'static Selection),
    /// A folder in every member of a collection.
    Each {
        /// The collection.
        collection: &'static str,
        /// The folder in each member.
        below: &'static str,
        /// Returns the prefix for the names of a member's files, given the name of the member.
        prefix: fn(&str) -> String,
    },
}

/// A collection of folders of which one is selected, such as the workspaces of a project.
#[derive(Debug)]
pub struct Selection {
    /// The name of a member, for example `workspace`.
    pub name: &'static str,
    /// The command line option that selects a member, without `--`.
    pub option: &'static str,
    /// The environment variable that selects a member if the option is absent.
    pub variable: &'static str,
    /// The folder of the collection, below its base.
    pub collection: &'static str,
    /// The default member.
    pub default: &'static str,
    /// The hook folder in a member.
    pub below: &'static str,
    /// Returns the warning for a selected member that does not exist, given its name and its folder.
    pub missing: fn(&str, &Path) -> String,
}

/// Which files of a folder belong to its system.
#[derive(Debug)]
pub enum FolderFiles {
    /// Every file.
    All,
    /// Scripts that contain this text, because other projects use folders with the same name for other
    /// purposes.
    Containing(&'static [u8]),
    /// Packages, which are single scripts or folders of scripts.
    Packages(PackageSearch),
    /// Executables that run as separate processes and register their hooks when they start.
    Extensions(ExtensionPrograms),
}

/// How packages of scripts are found.
#[derive(Debug)]
pub struct PackageSearch {
    /// Returns the packages in a folder, in the byte order of their names.
    pub in_folder: fn(&Path, FileReader<'_>) -> io::Result<Vec<ScriptPackage>>,
    /// Returns the packages that a path on the command line names.
    pub named: fn(&Path, FileReader<'_>) -> io::Result<Vec<ScriptPackage>>,
}

/// Reads a whole file, with the limits that discovery sets.
pub type FileReader<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// A script or a folder of scripts that is loaded as one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptPackage {
    /// The scripts that are loaded.
    pub entries: Vec<PathBuf>,
    /// The folder of the package; `None` if it is a single file.
    pub folder: Option<PathBuf>,
}

/// Executables that register hooks, tools and commands when they are started.
#[derive(Debug)]
pub struct ExtensionPrograms {
    /// The prefix of their file names.
    pub prefix: &'static str,
    /// The events that they subscribe to.
    pub events: SystemEvents,
    /// The version of the protocol that they speak.
    pub protocol_version: &'static str,
    /// The version of their system that Tenterhook reports to them.
    pub system_version: &'static str,
    /// The environment variable with the directory of the agent.
    pub workspace_variable: &'static str,
    /// The request with which a tool reports partial results.
    pub update_method: &'static str,
    /// The request with which a tool copies the conversation up to its own call.
    pub copy_method: &'static str,
    /// The requests about the user interface.
    pub user_interface: ExtensionUi,
    /// Answers a request that only the original system supports. Returns `None` for an unknown method.
    pub refuse: fn(&str) -> Option<Value>,
}

/// How requests of extensions about the user interface become requests of the host.
#[derive(Debug)]
pub struct ExtensionUi {
    /// The requests that ask the user something.
    pub questions: &'static [&'static str],
    /// Describes what the host supports. The argument is whether there is a user.
    pub capabilities: fn(bool) -> Value,
    /// Translates a request to the method and the parameters of the host's request. Returns `None` if the host has
    /// no such request, and an error if the parameters are invalid.
    pub host_request: TranslateRequest,
    /// Translates the host's answer to a request. `None` stands for a request that the host did not get, because
    /// there is no user.
    pub answer: fn(&str, &Value, Option<&Value>) -> Value,
}

/// Translates a request, given by its method and parameters, to a request of the host.
pub type TranslateRequest = fn(&str, &Value) -> Option<Result<(&'static str, Value), String>>;

/// Executables that print the name of an event when called with `hook`, and answer the event when called
/// with `run`.
#[derive(Debug)]
pub struct ExecutableHooks {
    /// The events that they declare.
    pub events: SystemEvents,
    /// Whether they may also declare any event of the catalogue.
    pub accepts_catalogue: bool,
    /// Whether they may also print `worker`, in which case they run as workers.
    pub may_be_workers: bool,
}

/// Scripts that a worker loads.
#[derive(Debug)]
pub struct ScriptHooks {
    /// The name of the API that they are written for.
    pub api: &'static str,
    /// The extensions of their file names.
    pub extensions: &'static [(&'static str, ScriptLanguage)],
    /// File names with these prefixes are not hooks; scripts may load them.
    pub private_prefixes: &'static [char],
    /// Whether a script is valid if it registers no hook.
    pub may_register_nothing: bool,
    /// Strings that only scripts of this system contain. They identify a script of this system that is outside of
    /// the system's folders.
    pub marks: &'static [&'static str],
    /// The packages of a project that they may import.
    pub project_packages: ProjectPackages,
    /// The events that they register hooks for.
    pub events: SystemEvents,
}

/// A language in which scripts are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptLanguage {
    /// Python.
    Python,
    /// JavaScript, and TypeScript after its types are stripped.
    JavaScript,
}

/// The events that hooks of a folder may use, with the names of their system.
#[derive(Debug)]
pub struct SystemEvents {
    /// Returns the event with the given name.
    pub find: fn(&str) -> Option<SystemEvent>,
    /// Returns the names of all events.
    pub names: fn() -> Vec<&'static str>,
}

/// An event that a hook declares.
#[derive(Debug)]
pub struct SystemEvent {
    /// The event of the catalogue.
    pub event: EventName,
    /// The dialect of the hook.
    pub dialect: Arc<dyn Dialect>,
    /// A warning about the event for the author of the hook.
    pub warning: Option<String>,
}

impl SystemEvent {
    /// Creates an event without a warning.
    pub(crate) fn new(event: impl Into<EventName>, dialect: Arc<dyn Dialect>) -> Self {
        Self {
            event: event.into(),
            dialect,
            warning: None,
        }
    }
}

impl FolderKind {
    /// A kind without locations and hooks, which other kinds use for their default values.
    pub(crate) const EMPTY: Self = Self {
        name: "",
        system: "",
        locations: &[],
        files: FolderFiles::All,
        executables: None,
        scripts: None,
        has_unique_names: false,
        order_within_layer: None,
        is_next_to_hook_files: false,
    };

    /// Returns the settings for extension programs, if the folder contains such programs.
    pub const fn extension_programs(&self) -> Option<&ExtensionPrograms> {
        match &self.files {
            FolderFiles::Extensions(programs) => Some(programs),
            FolderFiles::All | FolderFiles::Containing(_) | FolderFiles::Packages(_) => None,
        }
    }

    /// Returns whether Tenterhook starts executable files of the folder.
    pub const fn runs_executables(&self) -> bool {
        self.executables.is_some() || self.extension_programs().is_some()
    }

    /// Returns the language of a script by its file name, or `None` if the file is not a script of the folder.
    pub fn language(&self, path: &Path) -> Option<ScriptLanguage> {
        let scripts = self.scripts.as_ref()?;
        let name = path.file_name()?.to_str()?;
        let extension = path.extension()?.to_str()?;
        let mut known = scripts.extensions.iter();
        known
            .find(|(end, _)| *end == extension && !name.starts_with(scripts.private_prefixes))
            .map(|(_, language)| *language)
    }
}

impl PartialEq for FolderKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for FolderKind {}

impl std::hash::Hash for FolderKind {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for FolderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for FolderKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}
