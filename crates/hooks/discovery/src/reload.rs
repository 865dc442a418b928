//! Follows changes of hook sources during a session.
//!
//! Guards never become weaker by themselves. [`Reloader::follow`] adds hooks of new files and removes
//! none. Only [`Reloader::reload`], which the user requests, replaces hooks in force:
//!
//! | a file | when following | on a reload |
//! |---|---|---|
//! | is unchanged | its hooks stay, with the state of their worker | the same |
//! | is new | its hooks are added | the same |
//! | has changed | the version in force stays, with a notice | the new hooks replace the old ones |
//! | can no longer be loaded | the version in force stays, with a notice | the same |
//! | is gone | the version in force stays, with a notice | its hooks are removed |
//! | was named on the command line | its hooks stay, because its new content is not approved | the same |
//! | of a project has changed or is gone, and was approved | the approved version stays in force | the same |
//! | of a project was approved | its hooks are added | the same |
//! | of a project lost its approval | its hooks are removed | the same |
//!
//! Calls in progress finish with the hooks that they started with.
//!
//! Changes that are found together take effect together, so that no event sees only some of them.

mod change;
mod unit;
mod watch;

use std::path::Path;
use std::sync::Arc;

use tenterhook_engine::{HookSpec, Scoped};
use tenterhook_hookfile::has_extension;
use tenterhook_systems::hook_folder::Selection;

pub use self::change::{Change, ChangeKind, StayReason};
use self::unit::{Rules, Unit};
use self::watch::Watch;
use crate::folder::{FolderHooks, FoundFile};
#[cfg(feature = "workers")]
use crate::folder::{FoundExtension, FoundScript};
use crate::load::load_files;
use crate::loaded::Loaded;
use crate::options::LoadOptions;
use crate::order::HooksByOrigin;
use crate::sources::Sources;
use tenterhook_hookfile::link::dead_link;
use tenterhook_systems::folder_name::FolderName;
use tenterhook_trust::{Approvals, Trust, displaced_hooks};

/// Hooks that are never reloaded, such as hooks of the command line.
#[derive(Debug, Clone, Default)]
pub struct FixedHooks {
    /// Hooks that run after those from files and folders.
    pub behind: Vec<HookSpec>,
    /// Hooks that run after all others.
    pub last: Vec<HookSpec>,
}

/// The result of a reload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// The changes of files, in the order of the files.
    pub changes: Vec<Change>,
    /// Sources that could not be examined. Their hooks stay in force.
    pub problems: Vec<String>,
}

/// Keeps the hooks of a scope up to date with their files.
///
/// ```
/// use tenterhook_discovery::{Sources, discover};
/// use tenterhook_engine::{Engine, Scope};
/// use tenterhook_hookfile::LoadError;
///
/// # async fn example(engine: Engine, sources: Sources) -> Result<(), LoadError> {
/// let discovered = discover(sources, Vec::new()).await?;
/// let scope = engine.scope(Scope::Global);
/// scope.replace(discovered.specs);
/// let mut reloader = discovered.followed.follow(scope, Vec::new());
/// loop {
///     reloader.changed().await;
///     for change in reloader.reload().await.changes {
///         println!("{change}");
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Reloader {
    scope: Scoped,
    sources: Sources,
    fixed: FixedHooks,
    units: Vec<Unit>,
    denials: Vec<HookSpec>,
    /// The extensions of the last search. Held so that they keep running, even those without hooks.
    #[cfg(feature = "workers")]
    found_extensions: Vec<FoundExtension>,
    /// The scripts whose tools and commands the session has.
    #[cfg(feature = "workers")]
    scripts: Vec<FoundScript>,
    /// The extensions whose tools and commands the session has.
    #[cfg(feature = "workers")]
    extensions: Vec<FoundExtension>,
    watch: Option<Watch>,
    /// The problems that were already reported.
    reported: Vec<String>,
}

impl Reloader {
    /// Takes over a scope that has the hooks loaded from these sources. `loaded` includes the hooks of
    /// folders.
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
            #[cfg(feature = "workers")]
            found_extensions: Vec::new(),
            #[cfg(feature = "workers")]
            scripts: Vec::new(),
            #[cfg(feature = "workers")]
            extensions: Vec::new(),
            watch: None,
            reported: Vec::new(),
        }
    }

    /// Takes over the scripts and extensions whose tools and commands the session has. A reload replaces their code.
    #[cfg(feature = "workers")]
    #[must_use]
    pub fn with_additions(
        mut self,
        mut scripts: Vec<FoundScript>,
        mut extensions: Vec<FoundExtension>,
    ) -> Self {
        // The others are unloaded when their hooks are no longer in force.
        scripts.retain(|script| !script.additions().is_empty());
        self.scripts = scripts;
        extensions.retain(|extension| !extension.additions().is_empty());
        self.extensions = extensions;
        self
    }

    /// Loads every file again because the user requested it, and replaces the hooks in force. Hooks whose
    /// files can no longer be loaded stay in force.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn reload(&mut self) -> Reloaded {
        self.reload_all(|_| true, true).await
    }

    /// Examines every file again, and adds the hooks of new files. Hooks in force stay, even if their
    /// files have changed or are gone, because the user did not request a reload.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn follow(&mut self) -> Reloaded {
        self.reload_all(|_| true, false).await
    }

    /// Returns the files of which an earlier version is in force, because they changed after their hooks were loaded.
    pub fn pending(&self) -> Vec<Change> {
        self.units.iter().filter_map(Unit::pending).collect()
    }

    /// Selects another member of a collection, such as another workspace of a project. The hooks of the
    /// new member replace the hooks of the old one. All other hooks stay.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn switch_to(&mut self, selection: &Selection, name: FolderName) -> Reloaded {
        self.sources.search = self.sources.search.clone().select(selection, Some(name));
        let other = self.sources.search.clone();
        self.reload_all(move |path| other.may_be_in_force(path), false)
            .await
    }

    /// Waits until something changes in the watched folders. Changes in quick succession count as one.
    ///
    /// Call [`follow`](Self::follow) whenever it returns. It returns early if the set of watched folders
    /// has changed, as on the first call, so that no change between two waits is missed. If folders cannot
    /// be watched on this system, it waits forever.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with time enabled.
    pub async fn changed(&mut self) {
        let (places, watch) = (self.sources.places(), self.watch.take());
        let watched = tokio::task::spawn_blocking(move || watch::over(&places, watch));
        let (watch, is_other) = watched.await.unwrap_or_default();
        self.watch = watch;
        match &mut self.watch {
            Some(_) if is_other => {}
            Some(watch) => watch.changed().await,
            None => std::future::pending().await,
        }
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
                #[cfg(feature = "workers")]
                {
                    if is_asked {
                        problems.extend(self.replace_scripts(discovered.scripts));
                        problems.extend(self.replace_extensions(&discovered.extensions));
                    }
                    self.found_extensions = discovered.extensions;
                }
                let approvals = trust.shared_approvals().cloned();
                let rules = Rules {
                    approvals,
                    is_asked,
                };
                self.take(&loaded, discovered.files, &rules, is_in_force)
            }
            None => Vec::new(),
        };
        let before = std::mem::replace(&mut self.reported, problems.clone());
        problems.retain(|problem| !before.contains(problem));
        Reloaded { changes, problems }
    }

    /// Puts the current versions of scripts in force, so that their tools and commands run the same code as their hooks.
    /// Returns a problem for each script that now adds other tools, commands, flags or providers, because a session
    /// keeps those that it began with.
    #[cfg(feature = "workers")]
    fn replace_scripts(&mut self, now: Vec<FoundScript>) -> Vec<String> {
        let mut problems = Vec::new();
        for script in now {
            let mut known = self.scripts.iter_mut();
            let Some(known) = known.find(|known| known.path == script.path) else {
                continue;
            };
            known.in_force.replace_with(&script.in_force);
            if known.additions() != script.additions() || known.tools != script.tools {
                problems.push(adds_others(&script.name));
            }
            *known = FoundScript {
                in_force: Arc::clone(&known.in_force),
                ..script
            };
        }
        problems
    }

    /// Does the same for extensions, which are processes.
    #[cfg(feature = "workers")]
    fn replace_extensions(&mut self, now: &[FoundExtension]) -> Vec<String> {
        let mut problems = Vec::new();
        for extension in now {
            let mut known = self.extensions.iter_mut();
            let Some(known) = known.find(|known| known.path == extension.path) else {
                continue;
            };
            known.in_force.replace_with(&extension.in_force);
            if known.commands != extension.commands || known.tools != extension.tools {
                problems.push(adds_others(&extension.id));
            }
            *known = FoundExtension {
                in_force: Arc::clone(&known.in_force),
                ..extension.clone()
            };
        }
        problems
    }

    /// Replaces the hooks whose files have changed, according to the rules, and reports the changes.
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

    /// Returns the current trust: approvals are read again.
    async fn trust(&self, problems: &mut Vec<String>) -> Trust {
        let Some(dir) = self.sources.approvals.clone() else {
            return self.sources.options.trust.clone();
        };
        let start = self.sources.layers.start.clone().unwrap_or_default();
        match Approvals::open_at(&dir, &start).await {
            Ok(approvals) => Trust::Approved(Arc::new(approvals)),
            Err(error) => {
                problems.push(tenterhook_engine::error_chain(&error));
                self.sources.options.trust.clone()
            }
        }
    }

    async fn load(
        &self,
        trust: &Trust,
        problems: &mut Vec<String>,
    ) -> Option<(Loaded, FolderHooks)> {
        let sources = self.sources.clone();
        let options = LoadOptions {
            // A broken file must not hide the others.
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
        // Named sources are not followed, because their new versions would run without an approval.
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
        // If a folder cannot be read, the state of its files is unknown, so nothing is changed.
        let broken = loaded.broken.iter().chain(&discovered.broken);
        let is_file = |path: &Path| discovered.files.iter().any(|file| file.path == path);
        let is_link =
            |path: &Path| dead_link(path).is_some() && !is_file(path) && !has_extension(path);
        let is_folder =
            |path: &Path| path.is_dir() || is_link(path) || !is_listed(&loaded, path, is_file);
        let mut folders = broken.filter(|it| is_folder(&it.path));
        if let Some(folder) = folders.next() {
            let problem = folder.first_error().map(|problem| problem.message.as_str());
            problems.push(format!(
                "the hooks of `{}` were not reloaded: {}",
                folder.path.display(),
                problem.unwrap_or("the folder cannot be read")
            ));
            return None;
        }
        loaded.specs.append(&mut discovered.specs);
        loaded.project_hooks.append(&mut discovered.project_hooks);
        loaded.diverged.append(&mut discovered.diverged);
        if let Some(approvals) = trust.approvals() {
            let displaced = displaced_hooks(approvals).into_iter();
            loaded
                .specs
                .extend(displaced.flat_map(|hook| hook.denials()));
        }
        Some((loaded, discovered))
    }

    /// Registers all hooks that are in force.
    fn swap(&self) {
        let units = || self.units.iter();
        let hooks = HooksByOrigin {
            sources: units().flat_map(|unit| unit.specs.clone()).collect(),
            denials: self.denials.clone(),
            lines: self.fixed.behind.clone(),
            wired: units().flat_map(|unit| unit.wired.clone()).collect(),
            last: self.fixed.last.clone(),
        };
        self.scope.replace(hooks.in_order());
    }
}

/// Returns whether a path is one of the examined files.
fn is_listed(loaded: &Loaded, path: &Path, is_found: impl Fn(&Path) -> bool) -> bool {
    is_found(path) || loaded.files.iter().any(|file| file.path == path)
}

/// Returns the ids of hooks and their events.
fn ids(specs: &[HookSpec]) -> Vec<(&str, Option<&str>)> {
    specs
        .iter()
        .map(|spec| {
            (
                spec.id.as_str(),
                spec.event
                    .as_ref()
                    .map(tenterhook_engine::EventName::as_str),
            )
        })
        .collect()
}

/// Returns the problem of a script or extension that adds other things to a session than when the session began.
#[cfg(feature = "workers")]
fn adds_others(name: &str) -> String {
    format!(
        "`{name}` registers other tools, commands, flags or providers than when the session began; they take effect in a \
         new session"
    )
}
