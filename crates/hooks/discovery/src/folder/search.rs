//! Searches folders for hooks: locates the folders, scans them, asks their files which hooks they have,
//! and assembles the result.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenterhook_engine::Layer;
use tenterhook_files::read_whole;
use tenterhook_hookfile::{BrokenSource, LoadError, SourceProblem};
#[cfg(feature = "workers")]
use tenterhook_runners::worker::{Host, NoHost};
use tenterhook_systems::hook_folder::{FolderFiles, FolderKind, Selection};
use tenterhook_systems::kind_of_file;
use tenterhook_trust::Trust;

use super::assemble::{Denials, assemble};
use super::candidate::set_search_paths;
use super::declared_state::apply_probe_results;
use super::folder_hooks::FolderHooks;
use super::hook_folder::HookFolder;
use super::locate::{LocatedFolders, Selections, home_collections, locate_folders};
use super::probe::Probes;
use super::processes::FolderProcesses;
use super::scan::{ScannedFolders, scan};
use crate::disabled::DisabledSources;
use crate::layers::Layers;
use tenterhook_systems::folder_name::FolderName;

/// How long a source may take to load: to start, and to register its hooks.
pub const LOAD_DEADLINE: Duration = Duration::from_secs(30);

/// A search for hooks in folders. Clones share the processes of scripts and extensions.
#[derive(Debug, Clone)]
pub struct FolderSearch {
    layers: Layers,
    selections: Selections,
    folders: Vec<HookFolder>,
    trust: Trust,
    deny_untrusted: bool,
    is_strict: bool,
    is_lenient: bool,
    disabled: DisabledSources,
    deadline: Duration,
    data_dir: Option<PathBuf>,
    directory: PathBuf,
    without: Option<&'static str>,
    processes: Arc<OnceLock<FolderProcesses>>,
    #[cfg(feature = "workers")]
    host: Arc<dyn Host>,
}

impl FolderSearch {
    /// Creates a search in the folders of these layers.
    pub fn of_layers(layers: &Layers) -> Self {
        let start = layers.start.clone().unwrap_or_default();
        Self {
            layers: layers.clone(),
            ..Self::of_folders([]).directory(start)
        }
    }

    /// Creates a search in these folders, in this order.
    pub fn of_folders(folders: impl IntoIterator<Item = HookFolder>) -> Self {
        Self {
            layers: Layers::default(),
            selections: Selections::default(),
            folders: folders.into_iter().collect(),
            trust: Trust::none(),
            deny_untrusted: false,
            is_strict: false,
            is_lenient: false,
            disabled: DisabledSources::default(),
            deadline: LOAD_DEADLINE,
            data_dir: None,
            directory: PathBuf::new(),
            without: None,
            processes: Arc::default(),
            #[cfg(feature = "workers")]
            host: Arc::new(NoHost),
        }
    }

    /// Selects a member of a collection, such as a workspace of a project. Only its hooks are searched.
    #[must_use]
    pub fn select(mut self, selection: &Selection, name: Option<FolderName>) -> Self {
        self.selections.set(selection, name);
        self
    }

    /// Sets the host to which scripts may send requests. The default has no session.
    #[cfg(feature = "workers")]
    #[must_use]
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = host;
        self
    }

    /// Adds packages of scripts that the command line names: files, folders of one package, or folders of
    /// several packages. They are loaded last and need no approval.
    #[must_use]
    pub fn packages(
        mut self,
        kind: &'static FolderKind,
        paths: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        self.folders.extend(paths.into_iter().map(|dir| HookFolder {
            dir,
            prefix: String::new(),
            layer: Layer::Explicit,
            kind,
            project: None,
            file: None,
        }));
        self
    }

    /// Adds one script or executable that the user names, of any hook system. It needs no approval. If it is not a hook, it is
    /// broken.
    #[must_use]
    pub fn file(mut self, path: &Path) -> Self {
        // A file that cannot be read is reported when it is loaded.
        let text = read_whole(path).map_or_else(|_| Vec::new(), |(bytes, _)| bytes);
        let kind = kind_of_file(path, &text);
        if matches!(kind.files, FolderFiles::Packages(_)) {
            return self.packages(kind, [path.to_owned()]);
        }
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        self.folders.push(HookFolder {
            dir: parent.unwrap_or(Path::new(".")).to_owned(),
            prefix: String::new(),
            layer: Layer::Explicit,
            kind,
            project: None,
            file: Some(path.to_owned()),
        });
        self
    }

    /// Leaves out the folders and files that the command line names.
    pub(crate) fn without_named(mut self) -> Self {
        self.folders
            .retain(|folder| folder.layer != Layer::Explicit);
        self
    }

    /// Sets which hooks of a project are trusted. The default trusts none.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets whether hooks deny in place of untrusted files that may have gates.
    #[must_use]
    pub fn deny_untrusted(mut self, deny: bool) -> Self {
        self.deny_untrusted = deny;
        self
    }

    /// Sets whether hooks deny in place of broken files: files of the user and the machine, and approved
    /// files of a project.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.is_strict = strict;
        self
    }

    /// Sets whether broken sources are returned in [`FolderHooks::broken`]. By default, a broken source
    /// makes the search fail.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.is_lenient = lenient;
        self
    }

    /// Leaves out the sources that the user has disabled.
    #[must_use]
    pub fn disabled(mut self, disabled: DisabledSources) -> Self {
        self.disabled = disabled;
        self
    }

    /// Sets how long each source may take to load. The default is [`LOAD_DEADLINE`].
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the folder that stores the events of executables, so that an unchanged executable is not asked
    /// again. By default, every executable is asked every time.
    #[must_use]
    pub fn data_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.data_dir = dir;
        self
    }

    /// Sets the directory in which executables are asked for their event. The default is the directory of
    /// this process.
    #[must_use]
    pub fn directory(mut self, dir: PathBuf) -> Self {
        self.directory = dir;
        self
    }

    /// Leaves out the folders of the hook system with this name, because an agent of this system runs their hooks
    /// itself. Folders that the command line names are searched nevertheless.
    #[must_use]
    pub fn without_system(mut self, system: Option<&'static str>) -> Self {
        self.without = system;
        self
    }

    /// Returns the folders that are searched. They need not exist.
    pub(crate) fn folder_paths(&self) -> Vec<PathBuf> {
        let folders = self.located_folders().folders.into_iter();
        folders.map(|folder| folder.dir).collect()
    }

    /// Returns whether hooks in this file can be in force. They cannot in an unselected member of a
    /// collection, such as another workspace.
    pub(crate) fn may_be_in_force(&self, path: &Path) -> bool {
        self.layers
            .approved_projects(&self.trust)
            .iter()
            .all(|project| {
                path.strip_prefix(&project.dir)
                    .map_or(true, |below| self.selections.allow(below))
            })
    }

    /// Finds the hooks. Sources are loaded in parallel, each for at most [`LOAD_DEADLINE`] unless
    /// [`deadline`](Self::deadline()) sets another limit. Untrusted sources never run.
    ///
    /// # Errors
    /// Returns every source that should be in force but cannot be loaded, unless the search is
    /// [lenient](Self::lenient).
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn discover(self) -> Result<FolderHooks, LoadError> {
        let is_lenient = self.is_lenient;
        let discovered = self.search().await;
        if discovered.broken.is_empty() || is_lenient {
            return Ok(discovered);
        }
        Err(LoadError::from(discovered.broken))
    }

    /// Returns the files and folders that may have hooks, each with its name and layer. Runs nothing.
    pub fn sources(&self) -> Vec<(PathBuf, String, Layer)> {
        let scanned = scan(
            self.located_folders(),
            &self.trust,
            &DisabledSources::default(),
        );
        let files = scanned.candidates.into_iter();
        let files = files.map(|it| (it.found.path, it.found.name, it.found.layer));
        let folders = scanned.broken.into_iter();
        let folders = folders.map(|it| (it.path.clone(), it.path.display().to_string(), it.layer));
        files.chain(folders).collect()
    }

    fn located_folders(&self) -> LocatedFolders {
        let mut places = locate_folders(&self.layers, &self.selections, &self.trust);
        places
            .folders
            .retain(|folder| self.without != Some(folder.kind.system));
        places.folders.extend(self.folders.iter().cloned());
        places
    }

    /// Returns the folders whose hooks need no approval: folders of the machine, the user and the command
    /// line, and folders in which a new plugin or profile of the user would be found. They need not exist.
    pub fn trusted_folders(&self) -> Vec<PathBuf> {
        let places = self.located_folders().folders.into_iter();
        // The folder of a single script that the user names is any folder, even the whole project.
        let trusted =
            places.filter(|folder| folder.layer != Layer::Project && folder.file.is_none());
        let trusted = trusted.map(|folder| folder.dir);
        let home = self.layers.home.iter();
        trusted
            .chain(home.flat_map(|home| home_collections(home)))
            .collect()
    }

    /// Looks at the files of all folders, without starting a program.
    async fn scan(&self) -> Result<ScannedFolders, BrokenSource> {
        let this = self.clone();
        let scan = tokio::task::spawn_blocking(move || {
            let mut scanned = scan(this.located_folders(), &this.trust, &this.disabled);
            set_search_paths(&mut scanned.candidates, &this.directory);
            scanned
        });
        scan.await.map_err(|error| {
            let problem = SourceProblem::from(format!("the search for hooks failed: {error}"));
            BrokenSource::of(&self.directory, Layer::User, "tenterhook", problem)
        })
    }

    async fn search(self) -> FolderHooks {
        let mut scanned = match self.scan().await {
            Ok(scanned) => scanned,
            Err(broken) => {
                return FolderHooks {
                    broken: vec![broken],
                    ..FolderHooks::default()
                };
            }
        };
        let processes = self.processes.get_or_init(|| {
            FolderProcesses::new(
                &self.directory,
                self.data_dir.as_deref(),
                #[cfg(feature = "workers")]
                Arc::clone(&self.host),
            )
        });
        processes.drop_unused();
        let mut probes = Probes::open(
            self.data_dir.as_deref(),
            &self.directory,
            processes,
            self.deadline,
        );
        if let Some(approvals) = self.trust.approvals() {
            probes.recall(&mut scanned.candidates, approvals);
        }
        loop {
            let asked = scanned.next_to_probe();
            if asked.is_empty() {
                break;
            }
            let answers = probes.ask(asked).await;
            apply_probe_results(&mut scanned.candidates, answers);
        }
        probes.keep();
        let denials = Denials {
            for_untrusted: self.deny_untrusted,
            for_broken: self.is_strict,
        };
        assemble(scanned, processes, denials).await
    }
}
