//! Finds and loads every hook of a session, in the order in which they run. The command line and
//! embedders use the same function.

use std::path::PathBuf;
use std::thread;

use tenterhook_engine::{HookSpec, Scoped};
use tenterhook_hookfile::{AgentFile, BrokenSource, HookLine, LoadError, Problem};
use tenterhook_trust::{DivergedHook, ProjectHook, displaced_hooks};
use tokio::sync::oneshot;

use crate::folder::FoundFile;
#[cfg(feature = "workers")]
use crate::folder::{FoundExtension, FoundScript};
use crate::layers::Layers;
use crate::load::{load_files, load_lines};
use crate::loaded::{Loaded, LoadedFile};
use crate::options::LoadOptions;
use crate::order::HooksByOrigin;
use crate::reload::{FixedHooks, Reloader};
use crate::sources::Sources;

/// Everything that was found and loaded for a session.
#[derive(Debug)]
pub struct DiscoveredHooks {
    /// The hooks, in the order in which they run.
    pub specs: Vec<HookSpec>,
    /// Warnings about hook files.
    pub warnings: Vec<Problem>,
    /// Warnings about folders, one line each.
    pub notes: Vec<String>,
    /// The files that [`Sources::named`] has more than once. Each is loaded once.
    pub repeated: Vec<PathBuf>,
    /// The sources that should be in force but cannot be loaded. A session must not start without them
    /// unless the user asked for that.
    pub broken: Vec<BrokenSource>,
    /// The sources of the project that cannot be loaded and were never approved.
    pub untrusted: Vec<BrokenSource>,
    /// The project hooks, including those that may not run.
    pub project_hooks: Vec<ProjectHook>,
    /// The approved hooks that the project changed or no longer has.
    pub diverged: Vec<DivergedHook>,
    /// The agents of the agent files among [`Sources::named`].
    pub agent_files: Vec<AgentFile>,
    /// The hook files that were examined.
    pub hook_files: Vec<LoadedFile>,
    /// The files of folders that were examined.
    pub folder_files: Vec<FoundFile>,
    /// The tools, commands and flags of scripts.
    #[cfg(feature = "workers")]
    pub scripts: Vec<FoundScript>,
    /// The extensions that run, with their tools and commands.
    #[cfg(feature = "workers")]
    pub extensions: Vec<FoundExtension>,
    /// The state that a session needs to follow changes of the files.
    pub followed: FollowedSources,
}

/// The sources of a session, as they were loaded.
#[derive(Debug)]
pub struct FollowedSources {
    sources: Sources,
    loaded: Loaded,
    folder_files: Vec<FoundFile>,
    lines: Vec<HookSpec>,
    #[cfg(feature = "workers")]
    scripts: Vec<FoundScript>,
    #[cfg(feature = "workers")]
    extensions: Vec<FoundExtension>,
}

impl FollowedSources {
    /// Follows the files of the hooks that are registered in a scope. `last` has the host's own hooks
    /// that run after all others.
    pub fn follow(self, scope: Scoped, last: Vec<HookSpec>) -> Reloader {
        let fixed = FixedHooks {
            behind: self.lines,
            last,
        };
        let reloader = Reloader::new(scope, self.sources, &self.loaded, self.folder_files, fixed);
        #[cfg(feature = "workers")]
        let reloader = reloader.with_additions(self.scripts, self.extensions);
        reloader
    }
}

/// Finds and loads every hook of a session: from hook files, folders and the command line.
///
/// The search of folders takes its trust, its disabled sources and its treatment of untrusted hooks from
/// [`Sources::options`], not from [`Sources::search`].
///
/// Sources that cannot be loaded are returned in [`DiscoveredHooks::broken`], even without
/// [`LoadOptions::lenient`]. The caller decides about all of them at once.
///
/// This example runs the hooks of the user, and the hooks of the project that the user approved:
///
/// ```no_run
/// use std::path::Path;
/// use std::sync::Arc;
/// use tenterhook_discovery::{Layers, LoadOptions, Sources, discover};
/// use tenterhook_engine::{Engine, Scope};
/// use tenterhook_trust::{Approvals, Trust};
///
/// # async fn load(config: &Path, data: &Path, project: &Path) -> Result<Engine, Box<dyn std::error::Error>> {
/// let approvals = Approvals::open_at(data, project).await?;
/// let layers = Layers {
///     user: Some(config.to_owned()),
///     start: Some(project.to_owned()),
///     ..Layers::default()
/// };
/// let options = LoadOptions {
///     directory: project.to_owned(),
///     trust: Trust::Approved(Arc::new(approvals)),
///     ..LoadOptions::of_process()
/// };
/// let discovered = discover(Sources::new(layers, options).with_approvals(data), Vec::new()).await?;
/// if !discovered.broken.is_empty() {
///     for problem in discovered.broken.iter().flat_map(|source| &source.problems) {
///         eprintln!("{}", problem.render(false));
///     }
///     return Err("a hook cannot be loaded".into());
/// }
/// for hook in &discovered.project_hooks {
///     if let Some(reason) = hook.reason() {
///         eprintln!("`{}` does not run: {reason}", hook.item.name);
///     }
/// }
/// let engine = Engine::new();
/// engine.scope(Scope::Global).replace(discovered.specs);
/// # Ok(engine)
/// # }
/// ```
///
/// To approve hooks, search with [`Trust::Review`](tenterhook_trust::Trust::Review) and show your
/// user the items of [`DiscoveredHooks::project_hooks`]. Then call
/// [`Approvals::identify`](tenterhook_trust::Approvals::identify) and
/// [`Approvals::approve`](tenterhook_trust::Approvals::approve), and search again.
///
/// # Errors
/// Fails if a folder cannot be searched at all, or if no thread can be started.
///
/// # Panics
/// Panics outside a tokio runtime with I/O and time enabled.
pub async fn discover(
    mut sources: Sources,
    lines: Vec<HookLine>,
) -> Result<DiscoveredHooks, LoadError> {
    sources.options.lenient = true;
    // Files and folders share one trust. With two, the weaker one would decide about its part.
    let options = &sources.options;
    sources.search = sources
        .search
        .lenient(true)
        .trust(options.trust.clone())
        .deny_untrusted(options.deny_untrusted)
        .disabled(options.disabled.clone());
    let search = sources.search.clone();
    let read = read_files(sources, lines).await?;
    let FilesRead {
        sources,
        mut loaded,
        mut lines,
        repeated,
    } = read;
    let found = search.discover().await?;
    let mut broken = loaded.broken.clone();
    add_sources(&mut broken, found.broken);
    broken.append(&mut lines.broken);
    let mut untrusted = loaded.untrusted.clone();
    add_sources(&mut untrusted, found.untrusted);
    loaded.specs.extend(found.specs);
    loaded.project_hooks.extend(found.project_hooks);
    loaded.diverged.extend(found.diverged);
    let mut denials = Vec::new();
    let approvals = sources.options.trust.approvals();
    for hook in approvals.into_iter().flat_map(displaced_hooks) {
        denials.extend(hook.denials());
        loaded.diverged.push(hook);
    }
    let hooks = HooksByOrigin {
        sources: loaded.specs.clone(),
        denials: denials.clone(),
        lines: lines.specs.clone(),
        wired: loaded.wired.clone(),
        last: Vec::new(),
    };
    // A reload groups hooks by file, and treats hooks that have no loaded file as denials.
    loaded.specs.extend(denials);
    let mut warnings = loaded.warnings.clone();
    warnings.append(&mut lines.warnings);
    Ok(DiscoveredHooks {
        specs: hooks.in_order(),
        warnings,
        notes: found.warnings,
        repeated,
        broken,
        untrusted,
        project_hooks: loaded.project_hooks.clone(),
        diverged: loaded.diverged.clone(),
        agent_files: loaded.agent_files.clone(),
        hook_files: loaded.files.clone(),
        folder_files: found.files.clone(),
        #[cfg(feature = "workers")]
        scripts: found.scripts.clone(),
        #[cfg(feature = "workers")]
        extensions: found.extensions.clone(),
        followed: FollowedSources {
            sources,
            loaded,
            folder_files: found.files,
            lines: lines.specs,
            #[cfg(feature = "workers")]
            scripts: found.scripts,
            #[cfg(feature = "workers")]
            extensions: found.extensions,
        },
    })
}

/// The hook files and command lines of a session, as they were read.
struct FilesRead {
    sources: Sources,
    loaded: Loaded,
    lines: Loaded,
    repeated: Vec<PathBuf>,
}

/// Reads hook files and lines on a separate thread, which cannot delay the end of the program.
async fn read_files(sources: Sources, lines: Vec<HookLine>) -> Result<FilesRead, LoadError> {
    let (sender, receiver) = oneshot::channel();
    let read = move || {
        let options = &sources.options;
        let (loaded, repeated) = load_named(&sources.named, &sources.layers, options)?;
        let lines = load_lines(lines, options)?;
        Ok(FilesRead {
            sources,
            loaded,
            lines,
            repeated,
        })
    };
    let thread = thread::Builder::new().spawn(move || {
        // There is no receiver if the session has ended.
        let _unwanted = sender.send(read());
    });
    if let Err(error) = thread {
        return Err(LoadError::without_source(format!(
            "cannot start a thread to load hooks: {error}"
        )));
    }
    receiver.await.unwrap_or_else(|_| {
        let message = "loading the hooks panicked; this is a bug in Tenterhook";
        Err(LoadError::without_source(message.to_owned()))
    })
}

/// Loads the hook files of the layers and the named ones, each once. Also returns the files that were
/// named more than once.
///
/// # Errors
/// Returns every problem of every file, unless [`LoadOptions::lenient`] is set.
pub fn load_named(
    named: &[PathBuf],
    layers: &Layers,
    options: &LoadOptions,
) -> Result<(Loaded, Vec<PathBuf>), LoadError> {
    let found = layers.hook_files_and(named, &options.disabled, &options.trust);
    let mut loaded = load_files(found.files, options)?;
    // Only a named file can define the agent that runs. Files of the layers only have hooks.
    loaded
        .agent_files
        .retain(|file| !found.own.contains(&file.path));
    Ok((loaded, found.twice))
}

/// Adds sources that are not yet in the list. So a broken link in place of a folder with several kinds
/// of sources is reported only once.
pub fn add_sources(known: &mut Vec<BrokenSource>, more: Vec<BrokenSource>) {
    for source in more {
        if known.iter().all(|known| known.path != source.path) {
            known.push(source);
        }
    }
}
