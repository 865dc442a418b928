//! Folders of executables that are hooks: what is found in them, and which of it runs.
//!
//! An executable says by itself what it is for: asked with the argument `hook` it prints one event's name, and run
//! with the argument `run` it answers one event. In `.kodelet` folders the names and the contract are kodelet's. In
//! `.tenterhook/hooks` and the user's `hooks` folder, every event of the catalogue may be named too, and is answered as
//! commands of hook files answer it.
//!
//! A file of `.tenterhook/hooks` or of the user's or the machine's `hooks` folder that may not be executed and ends in `.py`, `.js`, `.mjs` or
//! `.cjs`, `.ts` or `.mts` is a script: it registers hooks through the module `tenterhook`, and one worker for each language serves all of
//! them. One whose name begins with `_` is none.
//!
//! An executable `kodelet-extension-NAME` of a folder `extensions` is an extension of kodelet: one process that registers hooks, tools and commands.
//!
//! Folders in the order in which they count:
//!
//! | folder | a hook's name |
//! |---|---|
//! | the system's `hooks` | `file` |
//! | `~/.operator/profiles/profile/hooks` | `profile/file` |
//! | `.tenterhook/hooks` of the project | `file` |
//! | `.operator/hooks` of the project | `file` |
//! | `core/hooks` of the project | `file` |
//! | `workspaces/workspace/hooks` of the project | `workspace/file` |
//! | `.pi/extensions` of the project | `file`, `folder/file` |
//! | `.kodelet/hooks` of the project | `file` |
//! | `.kodelet/plugins/org@repo/hooks` of the project | `org/repo/file` |
//! | `.kodelet/extensions`, and `.kodelet/plugins/org@repo/extensions`, of the project | `name`, `org@repo/name` |
//! | `hooks` of the user's configuration folder | `file` |
//! | `~/.pi/agent/extensions` | `file`, `folder/file` |
//! | `~/.kodelet/hooks` | `file` |
//! | `~/.kodelet/plugins/org@repo/hooks` | `org/repo/file` |
//! | `~/.kodelet/extensions`, and `~/.kodelet/plugins/org@repo/extensions` | `name`, `org@repo/name` |
//!
//! Within a folder files count in the byte order of their names. Of several files of one name the first that works
//! is the hook; the others of the same system are shadowed, where its files have no order of loading as those of Operator, morphix and pi do.
//! A file that is broken, disabled or not trusted shadows nothing,
//! and the system's hooks are never shadowed.
//!
//! Hooks of `hooks` folders run with the hooks of their layer; kodelet's and pi's run in the order above, behind those of the
//! project.

mod approved;
mod cache;
mod extension;
mod pi;
mod place;
mod probe;
mod scan;
mod script;
mod version;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use tenterhook::{
    CommandHandler, Dialect, EventKind, EventName, Handler, HookId, HookSpec, Layer, Policy, Source,
};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_dialects::kodelet::Kodelet;
use tenterhook_dialects::tools;
use tenterhook_handlers::worker::{Host, NoHost};

pub(crate) use self::place::is_in_force;

use self::extension::Extensions;
use self::place::{Choice, Places};
use self::probe::{Declared, Probes};
use self::scan::{Candidate, Scanned};
use self::script::Workers;
use self::version::Versions;
use crate::broken::{BrokenSource, Fault, FaultPlace};
use crate::disabled::DisabledSources;
use crate::folder_name::FolderName;
use crate::layers::Layers;
use crate::problem::{LoadError, Problem};
use crate::project::Project;
use crate::suggest::{nearest, one_of};
use crate::trust::{Brought, DivergedHook, Trust, below, deny};

pub use self::extension::FoundExtension;
pub use self::script::FoundScript;

/// How long a source may take to load: to start, and to say which hooks it has.
pub const LOAD_DEADLINE: Duration = Duration::from_secs(30);

/// How long one run of an executable may take where nobody says otherwise; the documented default.
pub const EXECUTABLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A folder of executables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFolder {
    /// The folder. It need not exist.
    pub dir: PathBuf,
    /// What stands before the names of its files: `org/repo/` for a plugin.
    pub prefix: String,
    /// The layer that its hooks belong to.
    pub layer: Layer,
    /// What its executables speak.
    pub speaks: Speaks,
    /// The project that brings it; what a project brings needs an approval.
    pub project: Option<Project>,
}

/// What the executables of a folder speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaks {
    /// kodelet's events in kodelet's contract.
    Kodelet,
    /// Every event of the catalogue in the contract of native commands, and kodelet's other events in its own.
    Tenterhook,
    /// kodelet's events as its extensions are told them: one process each, which says what it has when it is started.
    KodeletExtension,
    /// Operator's events: files in Python with a list `hooks`. Nothing of such a folder is executed.
    Operator,
    /// morphix's events: files in Python that name `hooks_registry`; others are none of its. Nothing of such a folder is
    /// executed.
    Morphix,
    /// pi's events: extensions in TypeScript or JavaScript. Nothing of such a folder is executed.
    Pi,
}

impl HookFolder {
    /// Says whether it is what the command line names as an extension of pi: a folder or a file.
    fn is_named(&self) -> bool {
        self.layer == Layer::Explicit && self.speaks == Speaks::Pi
    }

    /// Returns the folder of the sources that a script may load: its own one, or that of its extension. A file that the
    /// command line names has none, because anything may be next to it, and a program has none either.
    fn sources_of(&self, path: &Path) -> Option<PathBuf> {
        let is_program = self.speaks == Speaks::KodeletExtension;
        if is_program || (self.is_named() && self.dir == path) {
            return None;
        }
        let mut below = path.strip_prefix(&self.dir).ok()?.components();
        let first = below.next()?;
        Some(match below.next() {
            Some(_) => self.dir.join(first),
            None => self.dir.clone(),
        })
    }

    /// Returns what a file is called in the folder: its path below it.
    fn name_of(&self, path: &Path) -> String {
        let base = if self.is_named() {
            self.dir.parent()
        } else {
            Some(self.dir.as_path())
        };
        let name = base.map_or(path, |base| path.strip_prefix(base).unwrap_or(path));
        name.to_string_lossy().into_owned()
    }
}

impl Speaks {
    /// Returns the event of a declared name, and the contract that it is spoken in.
    fn event(self, name: &str) -> Option<(EventName, Arc<dyn Dialect>)> {
        if self == Self::Tenterhook
            && let Some(kind) = EventKind::ALL.iter().find(|kind| kind.info().name == name)
        {
            return Some((EventName::Known(*kind), DockerAgent::native()));
        }
        let event = Kodelet::event(name)?;
        Some((EventName::Known(event.kind), Kodelet::new()))
    }

    /// Makes the fault of an executable that declares an unknown event.
    fn unknown(self, declared: &str) -> Fault {
        let kodelet = || {
            tenterhook_dialects::kodelet::EVENTS
                .iter()
                .map(|it| it.name)
        };
        let catalogue = EventKind::ALL.iter().map(|kind| kind.info().name);
        let is_ours = self == Self::Tenterhook;
        let known = kodelet().chain(catalogue.filter(|_| is_ours));
        let also = if is_ours {
            "an event of the catalogue, or "
        } else {
            ""
        };
        Fault {
            suggestion: nearest(declared, known).map(str::to_owned),
            allowed: Some(format!("{also}{}", one_of(kodelet()))),
            place: FaultPlace::Quoted(declared.to_owned()),
            ..format!(
                "the file declares the unknown event `{}`",
                declared.escape_debug()
            )
            .into()
        }
    }

    /// Returns the name of the hook system.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kodelet | Self::KodeletExtension => "kodelet",
            Self::Tenterhook => "tenterhook",
            Self::Operator => "operator",
            Self::Morphix => "morphix",
            Self::Pi => "pi",
        }
    }
}

/// A file of a folder, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundFile {
    /// The file.
    pub path: PathBuf,
    /// The name that it has as a hook.
    pub name: String,
    /// Its layer.
    pub layer: Layer,
    /// What its folder speaks.
    pub speaks: Speaks,
    /// What becomes of it.
    #[serde(flatten)]
    pub state: FileState,
    /// Stands for what it holds, and the sources beside it.
    #[serde(skip)]
    pub(crate) version: String,
}

impl FoundFile {
    /// Says whether the command line names it as an extension of pi.
    fn is_named(&self) -> bool {
        self.layer == Layer::Explicit && self.speaks == Speaks::Pi
    }
}

/// A hook of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundHook {
    /// What it is called in its file.
    pub name: String,
    /// The event.
    pub event: EventName,
    /// The name of the event as the file declares it.
    pub declared: String,
    /// Which events of that name; `None` is all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// Higher runs first.
    pub priority: i32,
}

/// What becomes of a file of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum FileState {
    /// It is a hook.
    Hook {
        /// The event.
        event: EventName,
        /// The name of the event as the file declares it.
        declared: String,
    },
    /// It says what it has when a worker loads it, or when it is started as one.
    Script {
        /// The hooks, in the order in which the script registers them.
        hooks: Vec<FoundHook>,
        /// The names of its tools.
        tools: Vec<String>,
        /// The names of its commands.
        commands: Vec<String>,
    },
    /// A file of the same name counts more.
    Shadowed {
        /// That file.
        by: PathBuf,
    },
    /// Its name ends in `.disable`.
    Disabled,
    /// The user has disabled it.
    TurnedOff,
    /// It may not be executed, and does not look like a program.
    NotExecutable,
    /// It cannot be loaded, so none of its hooks is in force.
    Broken {
        /// What is wrong with it.
        problem: Box<Problem>,
    },
    /// Nobody approved it.
    Untrusted,
    /// It was changed since it was approved.
    Changed,
    /// It was approved and cannot run, so its gates deny.
    Denied {
        /// Why.
        reason: String,
    },
}

impl FileState {
    /// Returns the events that a file has hooks of.
    pub fn events(&self) -> Vec<&EventName> {
        match self {
            Self::Hook { event, .. } => vec![event],
            Self::Script { hooks, .. } => hooks.iter().map(|hook| &hook.event).collect(),
            Self::Shadowed { .. }
            | Self::Disabled
            | Self::TurnedOff
            | Self::NotExecutable
            | Self::Broken { .. }
            | Self::Untrusted
            | Self::Changed
            | Self::Denied { .. } => Vec::new(),
        }
    }

    /// Says whether the file is one that counts: others of its name are shadowed.
    pub const fn is_in_force(&self) -> bool {
        match self {
            Self::Hook { .. } | Self::Script { .. } => true,
            Self::Shadowed { .. }
            | Self::Disabled
            | Self::TurnedOff
            | Self::NotExecutable
            | Self::Broken { .. }
            | Self::Untrusted
            | Self::Changed
            | Self::Denied { .. } => false,
        }
    }

    /// Says what becomes of the file, in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Hook { declared, .. } => format!("runs for {declared}"),
            Self::Script {
                hooks,
                tools,
                commands,
            } => {
                let mut parts = Vec::new();
                if !hooks.is_empty() {
                    parts.push(runs_for(hooks));
                }
                for (what, names) in [("tools", tools), ("commands", commands)] {
                    if !names.is_empty() {
                        parts.push(format!("{what}: {}", names.join(", ")));
                    }
                }
                if parts.is_empty() {
                    return "registers nothing".to_owned();
                }
                parts.join("; ")
            }
            Self::Shadowed { by } => format!("shadowed by {}", by.display()),
            Self::Disabled => "disabled by its name".to_owned(),
            Self::TurnedOff => "disabled with `tenterhook disable`".to_owned(),
            Self::NotExecutable => "not executable".to_owned(),
            Self::Broken { problem } => match problem.place {
                Some(place) => format!("broken: line {}: {}", place.line, problem.message),
                None => format!("broken: {}", problem.message),
            },
            Self::Untrusted => "untrusted: never approved in this project".to_owned(),
            Self::Changed => "changed since it was approved".to_owned(),
            Self::Denied { reason } => format!("denies: {reason}"),
        }
    }
}

fn runs_for(hooks: &[FoundHook]) -> String {
    let mut events: Vec<&str> = hooks.iter().map(|hook| hook.event.as_str()).collect();
    events.dedup();
    format!("runs for {}", events.join(", "))
}

/// What was found in folders.
#[derive(Debug, Default)]
pub struct Discovered {
    /// The hooks, in the order in which they run.
    pub specs: Vec<HookSpec>,
    /// Every file that was looked at, in the order of folders and names.
    pub files: Vec<FoundFile>,
    /// What scripts have beside hooks, in the order of folders and names.
    pub scripts: Vec<FoundScript>,
    /// The extensions that run, with their tools and commands, in the order of folders and names.
    pub extensions: Vec<FoundExtension>,
    /// What the project brings.
    pub brought: Vec<Brought>,
    /// Approved executables, scripts and extensions that changed in the project or are gone.
    pub diverged: Vec<DivergedHook>,
    /// What a person should look at.
    pub warnings: Vec<String>,
    /// The files and folders that are in force and cannot be loaded, of a search that is [lenient](Discovery::lenient).
    pub broken: Vec<BrokenSource>,
    /// Files and folders of the project that cannot be loaded and of which nothing was ever approved. They would not run
    /// anyway.
    pub untrusted: Vec<BrokenSource>,
    /// Who has the tools and commands of these names.
    names: HashMap<(&'static str, String), String>,
}

impl Discovered {
    /// Says whether a script or an extension may have a tool or a command: it has a name, and one that is not taken. What it may not
    /// have is left out with a warning.
    fn claim(&mut self, id: &str, kind: &'static str, name: &str) -> bool {
        let problem = if name.is_empty() {
            format!("a {kind} of extension `{id}` has no name; it is left out")
        } else if let Some(holder) = self.names.get(&(kind, name.to_owned())) {
            format!(
                "{kind} `{}` of extension `{id}` is left out: extension `{holder}` has one of that name",
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

/// The processes that scripts and extensions are served by.
#[derive(Debug)]
struct Served {
    workers: Workers,
    extensions: Extensions,
}

/// How folders are searched. Clones serve scripts and extensions with the same processes.
#[derive(Debug, Clone)]
pub struct Discovery {
    layers: Layers,
    choice: Choice,
    folders: Vec<HookFolder>,
    trust: Trust,
    deny_untrusted: bool,
    is_strict: bool,
    is_lenient: bool,
    disabled: DisabledSources,
    deadline: Duration,
    data_dir: Option<PathBuf>,
    directory: PathBuf,
    served: Arc<OnceLock<Served>>,
    host: Arc<dyn Host>,
}

impl Discovery {
    /// Searches the folders of these layers.
    pub fn of_layers(layers: &Layers) -> Self {
        let start = layers.start.clone().unwrap_or_default();
        Self {
            layers: layers.clone(),
            ..Self::of_folders([]).directory(start)
        }
    }

    /// Searches folders in this order.
    pub fn of_folders(folders: impl IntoIterator<Item = HookFolder>) -> Self {
        Self {
            layers: Layers::default(),
            choice: Choice::default(),
            folders: folders.into_iter().collect(),
            trust: Trust::nobody(),
            deny_untrusted: false,
            is_strict: false,
            is_lenient: false,
            disabled: DisabledSources::default(),
            deadline: LOAD_DEADLINE,
            data_dir: None,
            directory: PathBuf::new(),
            served: Arc::default(),
            host: Arc::new(NoHost),
        }
    }

    /// Chooses the workspace of morphix whose hooks are looked for. The default is `main`.
    #[must_use]
    pub fn workspace(mut self, name: Option<FolderName>) -> Self {
        self.choice.workspace = name;
        self
    }

    /// Chooses the profile of Operator whose hooks are looked for. The default is `default`.
    #[must_use]
    pub fn operator_profile(mut self, name: Option<FolderName>) -> Self {
        self.choice.profile = name;
        self
    }

    /// Sets what scripts may ask. The default is a program without a session.
    #[must_use]
    pub fn host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = host;
        self
    }

    /// Adds extensions of pi: files, folders of one, or folders of several. They are loaded last, and need no approval.
    #[must_use]
    pub fn extensions(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.folders.extend(paths.into_iter().map(|dir| HookFolder {
            dir,
            prefix: String::new(),
            layer: Layer::Explicit,
            speaks: Speaks::Pi,
            project: None,
        }));
        self
    }

    /// Leaves out what the call names.
    pub(crate) fn without_named(mut self) -> Self {
        self.folders
            .retain(|folder| folder.layer != Layer::Explicit);
        self
    }

    /// Sets who says which hooks of a project run. The default is nobody: none of them.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Makes what may be a gate deny where it is not trusted.
    #[must_use]
    pub fn deny_untrusted(mut self, deny: bool) -> Self {
        self.deny_untrusted = deny;
        self
    }

    /// Makes what a file of the user, of the machine, or that a project brings and somebody approved may guard be denied
    /// where the file is broken or does not say what it is for.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.is_strict = strict;
        self
    }

    /// Finds the sources that can be loaded, and returns the others as [`Discovered::broken`]. By default a search with a
    /// broken source is an error.
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

    /// Keeps what executables declare in a folder for data, so that an unchanged one is not asked again. The default is
    /// to ask every time.
    #[must_use]
    pub fn data_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.data_dir = dir;
        self
    }

    /// Sets where executables run when they are asked what they are for. The default is this process's directory.
    #[must_use]
    pub fn directory(mut self, dir: PathBuf) -> Self {
        self.directory = dir;
        self
    }

    pub(crate) fn chosen_workspace(&self) -> Option<&FolderName> {
        self.choice.workspace.as_ref()
    }

    /// Returns the folders that are looked at. They need not exist.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let found = place::of_layers(&self.layers, &self.choice, &self.trust).folders;
        let folders = found.iter().chain(&self.folders);
        folders.map(|folder| folder.dir.clone()).collect()
    }

    /// Says whether a file stands in one of the folders that are looked at, or in none of a workspace.
    pub(crate) fn has_in_force(&self, path: &Path) -> bool {
        self.layers
            .approved_projects(&self.trust)
            .iter()
            .all(|project| {
                path.strip_prefix(&project.dir)
                    .map_or(true, |below| is_in_force(below, self.chosen_workspace()))
            })
    }

    /// Finds the hooks. Sources are loaded in parallel, each for at most [`LOAD_DEADLINE`]; one that is not trusted is not run
    /// at all.
    ///
    /// # Errors
    /// With every source that is in force and cannot be loaded, unless the search is [lenient](Self::lenient): a guard that
    /// cannot be loaded has failed.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn discover(self) -> Result<Discovered, LoadError> {
        let is_lenient = self.is_lenient;
        let discovered = self.search().await;
        if discovered.broken.is_empty() || is_lenient {
            return Ok(discovered);
        }
        Err(LoadError::from(discovered.broken))
    }

    /// Returns the files and folders that may have hooks, and what each is called. Nothing is run.
    pub fn sources(&self) -> Vec<(PathBuf, String, Layer)> {
        let scanned = scan::scan(self.all_places(), &self.trust, &DisabledSources::default());
        let files = scanned.candidates.into_iter();
        let files = files.map(|it| (it.found.path, it.found.name, it.found.layer));
        let folders = scanned.broken.into_iter();
        let folders = folders.map(|it| (it.path.clone(), it.path.display().to_string(), it.layer));
        files.chain(folders).collect()
    }

    fn all_places(&self) -> Places {
        let mut places = place::of_layers(&self.layers, &self.choice, &self.trust);
        places.folders.extend(self.folders.iter().cloned());
        places
    }

    /// Returns the folders whose hooks need no approval: those of the machine, of the user and of the call, and those in which a
    /// new plugin or profile of the user would be found. They need not exist.
    pub fn trusted_folders(&self) -> Vec<PathBuf> {
        let places = self.all_places().folders.into_iter();
        let trusted = places.filter(|folder| folder.layer != Layer::Project);
        let trusted = trusted.map(|folder| folder.dir);
        let home = self.layers.home.iter();
        trusted
            .chain(home.flat_map(|home| place::collections(home)))
            .collect()
    }

    async fn search(self) -> Discovered {
        let scan = {
            let this = self.clone();
            tokio::task::spawn_blocking(move || {
                scan::scan(this.all_places(), &this.trust, &this.disabled)
            })
        };
        let mut scanned = match scan.await {
            Ok(scanned) => scanned,
            Err(error) => {
                let fault = Fault::from(format!("the search for hooks failed: {error}"));
                return Discovered {
                    broken: vec![BrokenSource::of(
                        &self.directory,
                        Layer::User,
                        "tenterhook",
                        fault,
                    )],
                    ..Discovered::default()
                };
            }
        };
        let served = self.served.get_or_init(|| Served {
            workers: Workers::new(&self.directory, self.host.clone()),
            extensions: Extensions::new(&self.directory, self.data_dir.as_deref()),
        });
        served.workers.drop_unused();
        served.extensions.drop_unused();
        let served = (&served.workers, &served.extensions);
        let mut probes = Probes::open(
            self.data_dir.as_deref(),
            &self.directory,
            served,
            self.deadline,
        );
        if let Some(approvals) = self.trust.approvals() {
            probes.recall(&mut scanned.candidates, approvals);
        }
        loop {
            let asked = scanned.unasked();
            if asked.is_empty() {
                break;
            }
            let answers = probes.ask(asked).await;
            scanned.settle(answers);
        }
        probes.keep();
        self.finish(scanned, served).await
    }

    async fn finish(
        &self,
        scanned: Scanned,
        (workers, extensions): (&Workers, &Extensions),
    ) -> Discovered {
        let mut discovered = Discovered {
            warnings: scanned.warnings,
            broken: scanned.broken,
            untrusted: scanned.untrusted,
            ..Discovered::default()
        };
        let mut versions = Versions::default();
        for candidate in scanned.candidates {
            discovered.specs.extend(self.hooks(&candidate));
            script::take(&candidate, workers, &mut versions, &mut discovered).await;
            extension::take(&candidate, extensions, &mut versions, &mut discovered).await;
            if let FileState::Broken { problem } = &candidate.found.state {
                let broken = BrokenSource {
                    path: candidate.found.path.clone(),
                    layer: candidate.found.layer,
                    system: candidate.found.speaks.as_str(),
                    problems: vec![(**problem).clone()],
                };
                if candidate.is_in_force {
                    discovered.broken.push(broken);
                } else {
                    discovered.untrusted.push(broken);
                }
            }
            let mut found = candidate.found;
            found.version = format!("{}{}", candidate.sha256, candidate.beside);
            let runs = found.state.is_in_force();
            if let Some((item, state)) = candidate.item {
                found.version.push_str(&item.digest());
                let mut events: Vec<EventName> =
                    found.state.events().into_iter().cloned().collect();
                events.extend(candidate.known_event);
                let brought = Brought::new(item, state, events);
                discovered.brought.push(Brought {
                    is_approved_in_force: runs && candidate.diverged.is_some(),
                    ..brought
                });
            }
            // What the user has disabled, or what another file shadows, would not run either as it was approved.
            let is_left_out = matches!(
                found.state,
                FileState::TurnedOff | FileState::Shadowed { .. }
            );
            let diverged = candidate.diverged.filter(|_| !is_left_out);
            discovered.diverged.extend(diverged);
            discovered.files.push(found);
        }
        discovered
    }

    /// Makes the hooks of a file: the one that it is, or those that deny in its place.
    fn hooks(&self, candidate: &Candidate) -> Vec<HookSpec> {
        let found = &candidate.found;
        match &found.state {
            FileState::Hook { declared, .. } => {
                let Some((event, dialect)) = found.speaks.event(declared) else {
                    return Vec::new();
                };
                let text = candidate.project().map_or_else(
                    || found.path.display().to_string(),
                    |project| below(&found.path, &project.dir),
                );
                let policy = dialect.policy(event.info(), None);
                let tools = tools::of_hooks(&*dialect);
                let handler = CommandHandler::executable(&candidate.run, text, dialect);
                let spec = spec(found, event, Arc::new(handler), policy);
                vec![HookSpec { tools, ..spec }]
            }
            FileState::Untrusted | FileState::Changed if self.deny_untrusted => denials(candidate),
            FileState::Denied { .. } => {
                let events = candidate.known_event.clone();
                let hook = candidate.diverged.iter();
                hook.flat_map(|hook| hook.denials_of(&source(found), events.clone()))
                    .collect()
            }
            FileState::Broken { problem } if self.is_strict && candidate.is_in_force => {
                let reason = format!("`{}` cannot be loaded: {}", found.name, problem.message);
                deny(&found.name, Vec::new(), &source(found), &reason)
            }
            FileState::Untrusted
            | FileState::Changed
            | FileState::Script { .. }
            | FileState::Shadowed { .. }
            | FileState::Disabled
            | FileState::TurnedOff
            | FileState::NotExecutable
            | FileState::Broken { .. } => Vec::new(),
        }
    }
}

/// Returns the hooks that deny in the place of one that nobody approved.
fn denials(candidate: &Candidate) -> Vec<HookSpec> {
    let Some((item, state)) = &candidate.item else {
        return Vec::new();
    };
    let found = &candidate.found;
    let events = candidate.known_event.iter().cloned().collect();
    let reason = Brought::new(item.clone(), *state, Vec::new()).reason();
    deny(&found.name, events, &source(found), &reason)
}

fn source(found: &FoundFile) -> Source {
    Source {
        layer: found.layer,
        path: Some(found.path.clone()),
        line: None,
    }
}

fn spec(
    found: &FoundFile,
    event: EventName,
    handler: Arc<dyn Handler>,
    policy: Policy,
) -> HookSpec {
    HookSpec {
        among: found.speaks.system().among,
        timeout: EXECUTABLE_TIMEOUT,
        policy,
        source: source(found),
        ..HookSpec::new(event, HookId::new(found.name.clone()), handler)
    }
}

/// What a file declares, or why it cannot be loaded.
type Answer = Result<Declared, Fault>;
