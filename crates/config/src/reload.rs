//! Hooks that follow their files while a session goes on.
//!
//! Nothing weakens by itself. A look at the files ([`Reloader::follow`]) brings new hooks in and takes none away; only a reload
//! that somebody asks for ([`Reloader::reload`]) replaces what was in force:
//!
//! | a file | when the files are looked at | when a reload is asked for |
//! |---|---|---|
//! | stays as it is | its hooks stay, with the state of their worker | the same |
//! | is new | its hooks come | the same |
//! | is changed | the version in force stays, with a notice | the new hooks take their place |
//! | cannot be loaded any more | the version in force stays, with a notice | the same |
//! | is gone | the version in force stays, with a notice | its hooks go |
//! | was named by the call | its hooks stay: nobody has approved what stands there now | the same |
//! | of a project is changed or gone, and was approved | the approved version stays in force | the same |
//! | of a project is approved anew, or its approval is taken back | its hooks come; go | the same |
//!
//! Calls under way finish on the hooks that they began with.
//!
//! All that changes at once is swapped in at once: no event sees a part of it.

mod unit;
mod watch;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook::{HookSpec, Scoped};

use self::unit::{Rules, Unit};
use self::watch::Watch;
use crate::folder::{Discovered, Discovery, FoundExtension, FoundFile};
use crate::folder_name::FolderName;
use crate::layers::{self, Layers};
use crate::link::dead_link;
use crate::load::{LoadOptions, Loaded, load_files};
use crate::trust::{Approvals, Trust, displaced};

/// Where hooks come from, and what decides which of them run.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Where hook files are looked for.
    pub layers: Layers,
    /// The hook files that the call names.
    pub named: Vec<PathBuf>,
    /// How hook files are loaded.
    pub options: LoadOptions,
    /// How folders are searched.
    pub search: Discovery,
    /// The folder for data whose approvals count; they are read each time. Without it those of the options do.
    pub approvals: Option<PathBuf>,
}

/// Hooks that nobody reloads, such as those of the command line.
#[derive(Debug, Clone, Default)]
pub struct FixedHooks {
    /// They run behind those of files and folders.
    pub behind: Vec<HookSpec>,
    /// They run behind everything else.
    pub last: Vec<HookSpec>,
}

/// What was noticed of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file.
    pub path: PathBuf,
    /// What it means for its hooks.
    pub kind: ChangeKind,
}

/// What the change of a file means for its hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The hooks that it has now are in force.
    Reloaded {
        /// How many there are.
        hooks: usize,
    },
    /// Its hooks are gone.
    Removed,
    /// It waits for an approval.
    Waits {
        /// The hooks of the approved version go on.
        goes_on: bool,
    },
    /// It is new and cannot be loaded.
    Failed {
        /// What is wrong with it.
        problem: String,
        /// What it may guard is denied.
        denies: bool,
    },
    /// The version that was in force stays in force.
    Stays {
        /// What happened to the file.
        because: StayReason,
    },
}

/// Why hooks stay in force that are not those of their file any more.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StayReason {
    /// The file cannot be loaded any more.
    Broken {
        /// What is wrong with it.
        problem: String,
    },
    /// The file is another one, and nobody has asked for a reload.
    Changed,
    /// The file is gone, and nobody has asked for a reload.
    Gone,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let name = name.to_string_lossy();
        match &self.kind {
            ChangeKind::Reloaded { hooks: 1 } => write!(f, "reloaded {name}: 1 hook"),
            ChangeKind::Reloaded { hooks } => write!(f, "reloaded {name}: {hooks} hooks"),
            ChangeKind::Removed => write!(f, "unloaded {name}: its hooks are gone"),
            ChangeKind::Waits { goes_on: true } => write!(
                f,
                "{name} is not as it was approved; the approved version stays in force until you approve the change"
            ),
            ChangeKind::Waits { goes_on: false } => write!(f, "{name} waits for an approval"),
            ChangeKind::Failed { problem, denies } => {
                let denied = if *denies {
                    "; what they may guard is denied"
                } else {
                    ""
                };
                write!(f, "the hooks of {name} are not in force: {problem}{denied}")
            }
            ChangeKind::Stays { because } => match because {
                StayReason::Broken { problem } => write!(
                    f,
                    "{name} cannot be loaded any more, so the version that was in force stays: {problem}"
                ),
                StayReason::Changed => write!(
                    f,
                    "{name} has changed; the version that was in force stays until you reload"
                ),
                StayReason::Gone => {
                    write!(
                        f,
                        "{name} is gone; its hooks stay in force until you reload"
                    )
                }
            },
        }
    }
}

/// What a reload came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// What was noticed of files, in their order.
    pub changes: Vec<Change>,
    /// What could not be looked at. Its hooks stay as they are.
    pub problems: Vec<String>,
}

/// Keeps the hooks of a scope as their files are.
#[derive(Debug)]
pub struct Reloader {
    scope: Scoped,
    sources: Sources,
    fixed: FixedHooks,
    units: Vec<Unit>,
    denials: Vec<HookSpec>,
    /// They go on as long as they are there, also those without hooks.
    extensions: Vec<FoundExtension>,
    watch: Option<Watch>,
    /// What could not be looked at the last time.
    told: Vec<String>,
}

impl Reloader {
    /// Takes over a scope whose hooks are those that were loaded from these sources, with what was found in folders among them.
    pub fn new(
        scope: Scoped,
        sources: Sources,
        loaded: &Loaded,
        found: Vec<FoundFile>,
        fixed: FixedHooks,
    ) -> Self {
        let (units, denials) = unit::of(loaded, found);
        Self {
            scope,
            sources,
            fixed,
            units,
            denials,
            extensions: Vec::new(),
            watch: None,
            told: Vec::new(),
        }
    }

    /// Looks at every file again, and swaps in what is there now, because somebody asked for it. What cannot be loaded any
    /// more stays as it was.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn reload(&mut self) -> Reloaded {
        self.reload_all(|_| true, true).await
    }

    /// Looks at every file again, and swaps in what is new. Hooks that are in force stay, whatever became of their files:
    /// nobody has asked for less.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn follow(&mut self) -> Reloaded {
        self.reload_all(|_| true, false).await
    }

    /// Leaves a workspace for another one: its hooks go, and those of the other one come. All others stay as they are.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn switch_workspace(&mut self, name: FolderName) -> Reloaded {
        self.sources.search = self.sources.search.clone().workspace(Some(name));
        let other = self.sources.search.clone();
        self.reload_all(move |path| other.has_in_force(path), false)
            .await
    }

    /// Waits until something happens in the folders that are looked at, and for a moment after it, so that much that happens at once
    /// is one change. It returns early where other folders have to be watched than before, as the first time, so that nothing is
    /// missed between two waits: look again whenever it returns. Where nothing can be watched, it waits for ever.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with time enabled.
    pub async fn changed(&mut self) {
        let (places, watch) = (self.places(), self.watch.take());
        let watched = tokio::task::spawn_blocking(move || watch::over(&places, watch));
        let (watch, is_other) = watched.await.unwrap_or_default();
        self.watch = watch;
        match &self.watch {
            Some(_) if is_other => {}
            Some(watch) => watch.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the folders and files that hooks may come from.
    fn places(&self) -> Vec<PathBuf> {
        let layers = &self.sources.layers;
        let mut places: BTreeSet<PathBuf> = self.sources.search.places().into_iter().collect();
        let own = [&layers.system, &layers.user]
            .into_iter()
            .flatten()
            .cloned();
        places.extend(own);
        let projects = layers
            .approved_projects(&self.sources.options.trust)
            .into_iter();
        places.extend(projects.map(|project| project.dir.join(crate::project::TENTERHOOK)));
        places.extend(self.sources.named.iter().cloned());
        let approvals = self.sources.approvals.iter();
        places.extend(approvals.map(|dir| dir.join("trust")));
        places.into_iter().collect()
    }

    async fn reload_all(
        &mut self,
        is_in_force: impl Fn(&Path) -> bool,
        is_asked: bool,
    ) -> Reloaded {
        let mut problems = Vec::new();
        let trust = self.trust(&mut problems).await;
        let loaded = Box::pin(self.load(&trust, &mut problems)).await;
        let changes = match loaded {
            Some((loaded, discovered)) => {
                self.extensions = discovered.extensions;
                let approvals = match trust {
                    Trust::Caller => None,
                    Trust::Approved(approvals) => Some(approvals),
                };
                let rules = Rules {
                    approvals,
                    is_asked,
                };
                self.take(&loaded, discovered.files, &rules, is_in_force)
            }
            None => Vec::new(),
        };
        let told = std::mem::replace(&mut self.told, problems.clone());
        problems.retain(|problem| !told.contains(problem));
        Reloaded { changes, problems }
    }

    /// Swaps in what is loaded now, as far as it is not what was there.
    fn take(
        &mut self,
        loaded: &Loaded,
        found: Vec<FoundFile>,
        rules: &Rules,
        is_in_force: impl Fn(&Path) -> bool,
    ) -> Vec<Change> {
        let (units, denials) = unit::of(loaded, found);
        let mut before = std::mem::take(&mut self.units);
        before.retain(|unit| !unit.is_empty());
        let (units, changes) = unit::merge(before, units, rules, is_in_force);
        self.units = units;
        let is_denied_anew = ids(&denials) != ids(&self.denials);
        self.denials = denials;
        if !changes.is_empty() || is_denied_anew {
            self.swap();
        }
        changes
    }

    /// Returns who says which hooks of the project run, by now.
    async fn trust(&self, problems: &mut Vec<String>) -> Trust {
        let Some(dir) = self.sources.approvals.clone() else {
            return self.sources.options.trust.clone();
        };
        let start = self.sources.layers.start.clone().unwrap_or_default();
        match Approvals::open_at(&dir, &start).await {
            Ok(approvals) => Trust::Approved(Arc::new(approvals)),
            Err(error) => {
                problems.push(tenterhook::error_chain(&error));
                self.sources.options.trust.clone()
            }
        }
    }

    async fn load(
        &self,
        trust: &Trust,
        problems: &mut Vec<String>,
    ) -> Option<(Loaded, Discovered)> {
        let sources = self.sources.clone();
        let options = LoadOptions {
            // A broken file hides no other.
            lenient: true,
            trust: trust.clone(),
            ..sources.options
        };
        let read = tokio::task::spawn_blocking(move || {
            let files =
                sources
                    .layers
                    .hook_files_and(&sources.named, &options.disabled, &options.trust);
            load_files(files.files, &options).map_err(|error| error.to_string())
        });
        // What the call names is not followed: its new version would run without an approval.
        let search = self.sources.search.clone().without_named();
        let search = search.trust(trust.clone());
        let mut loaded = match read.await {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(problem)) => {
                problems.push(problem);
                return None;
            }
            Err(_) => return None,
        };
        let mut discovered = match search.lenient(true).discover().await {
            Ok(discovered) => discovered,
            Err(error) => {
                problems.push(error.to_string());
                return None;
            }
        };
        // What is below a folder that cannot be read is unknown, so nothing of it changes.
        let broken = loaded.broken.iter().chain(&discovered.broken);
        let is_file = |path: &Path| discovered.files.iter().any(|file| file.path == path);
        let is_link = |path: &Path| {
            dead_link(path).is_some() && !is_file(path) && !layers::has_extension(path)
        };
        let is_folder =
            |path: &Path| path.is_dir() || is_link(path) || !is_listed(&loaded, path, is_file);
        let mut folders = broken.filter(|it| is_folder(&it.path));
        if let Some(folder) = folders.next() {
            let problem = folder.first_error().map(|problem| problem.message.as_str());
            problems.push(format!(
                "the hooks of `{}` stay as they were: {}",
                folder.path.display(),
                problem.unwrap_or("it cannot be read")
            ));
            return None;
        }
        loaded.specs.append(&mut discovered.specs);
        loaded.brought.append(&mut discovered.brought);
        loaded.diverged.append(&mut discovered.diverged);
        if let Trust::Approved(approvals) = trust {
            let displaced = displaced(approvals).into_iter();
            loaded
                .specs
                .extend(displaced.flat_map(|(_, denials)| denials));
        }
        Some((loaded, discovered))
    }

    /// Registers everything that is in force.
    fn swap(&self) {
        let all = self.units.iter();
        let mut specs: Vec<HookSpec> = all.clone().flat_map(|unit| unit.specs.clone()).collect();
        specs.extend(self.denials.iter().cloned());
        specs.extend(self.fixed.behind.iter().cloned());
        specs.extend(all.flat_map(|unit| unit.wired.clone()));
        specs.extend(self.fixed.last.iter().cloned());
        self.scope.replace(specs);
    }
}

/// Says whether a path is one of the files that were looked at.
fn is_listed(loaded: &Loaded, path: &Path, is_found: impl Fn(&Path) -> bool) -> bool {
    is_found(path) || loaded.files.iter().any(|file| file.path == path)
}

/// Returns what hooks are called, and their events.
fn ids(specs: &[HookSpec]) -> Vec<(&str, Option<&str>)> {
    specs
        .iter()
        .map(|spec| {
            (
                spec.id.as_str(),
                spec.event.as_ref().map(tenterhook::EventName::as_str),
            )
        })
        .collect()
}
