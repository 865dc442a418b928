//! Loads the hooks of files, folders and the command line, and creates an engine with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook_agent::CancellationToken;
use tenterhook_discovery::{
    FileState, FolderSearch, FollowedSources, FoundFile, Layers, LoadOptions, Loaded, Sources,
    add_sources, discover, is_script_or_program,
};
use tenterhook_engine::{Engine, EngineBuilder, HookSpec, JournalSink, Layer, Scope};
use tenterhook_hookfile::BrokenSource;
use tenterhook_providers::{ModelClients, Providers};
use tenterhook_runners::Services;
use tenterhook_systems::SYSTEMS;
use tenterhook_systems::pi;
use tenterhook_systems::tools;
use tenterhook_trust::{Approvals, Trust};

use crate::approval;
use crate::blocking::run_blocking;
use crate::config_dir;
use crate::data_dir::data_dir;
use crate::disabled;
use crate::error::CliError;
use crate::exit::Exit;
use crate::extensions::{PrintingHost, SessionExtensions};
use crate::hook_options::HookOptions;
use crate::models;
use crate::warning::{self, Notice, show_warnings, warn};
use tenterhook_protocol::escape::escape_line;

/// The hooks of one call of the program.
#[derive(Debug)]
pub struct Hooks {
    /// The hooks in force.
    pub loaded: Loaded,
    /// Every file that was found in the hook folders, whether it is in force or not.
    pub found: Vec<FoundFile>,
    /// The sources whose changes a session follows.
    pub followed: FollowedSources,
    /// The tools, commands and flags of scripts and extensions.
    pub extras: SessionExtensions,
    /// The sources that are in force and cannot be loaded.
    pub broken: Vec<BrokenSource>,
    /// Sources of the project that cannot be loaded and were never approved.
    pub untrusted: Vec<BrokenSource>,
}

impl Hooks {
    /// Returns an error if a source cannot be loaded, because a guard that cannot be loaded has failed. If
    /// `is_lenient`, shows a warning for each instead.
    pub fn refuse_broken(&self, is_lenient: bool) -> Result<(), CliError> {
        refuse(&self.broken, is_lenient)
    }

    /// Returns the exit status of a command that has already shown the broken sources.
    pub fn exit(&self, is_lenient: bool) -> Exit {
        if self.broken.is_empty() || is_lenient {
            Exit::Done
        } else {
            Exit::Config
        }
    }

    /// Warns of sources that the user has disabled.
    pub fn warn_of_disabled(&self) {
        for path in self.disabled_paths() {
            let path = escape_line(&path.display().to_string());
            warn(format_args!(
                "the hooks of a file are disabled; to use them again, run `tenterhook enable '{path}'`"
            ));
        }
    }

    /// Returns the paths of the sources that would be loaded if the user had not disabled them.
    pub fn disabled_paths(&self) -> Vec<&Path> {
        let of_folders = self.found.iter();
        let of_folders = of_folders.filter(|file| file.state == FileState::TurnedOff);
        let hook_files = self.loaded.files.iter().filter(|file| file.is_disabled);
        let hook_files = hook_files.map(|file| file.path.as_path());
        hook_files
            .chain(of_folders.map(|file| file.path.as_path()))
            .collect()
    }
}

/// Loads the hooks of an agent that works in `start`, and shows warnings. A source that cannot be loaded is an error,
/// unless the call is lenient.
pub async fn load(
    options: &HookOptions,
    start: &Path,
    services: Services,
    token: &CancellationToken,
) -> Result<Hooks, CliError> {
    let hooks = load_and_warn(options, start, services, token).await?;
    hooks.refuse_broken(options.lenient)?;
    Ok(hooks)
}

/// Loads the hooks that can be loaded, for commands that report the others themselves. Such a command ends with
/// [`Hooks::refuse_broken`] or shows the broken sources.
pub async fn load_and_warn(
    options: &HookOptions,
    start: &Path,
    services: Services,
    token: &CancellationToken,
) -> Result<Hooks, CliError> {
    let hooks = load_for_event(options, start, services, token).await?;
    approval::warn_of_withheld(&hooks.loaded.project_hooks, options.deny_untrusted);
    Ok(hooks)
}

/// Does the same for a command that sends an event and then warns of hooks that are not approved.
pub async fn load_for_event(
    options: &HookOptions,
    start: &Path,
    services: Services,
    token: &CancellationToken,
) -> Result<Hooks, CliError> {
    let hooks = load_quietly(options, start, services, Trust::Approved, token).await?;
    for file in &options.files {
        let of_file = |spec: &&HookSpec| spec.source.path.as_ref() == Some(file);
        let mut specs = hooks.loaded.specs.iter().filter(of_file);
        let system = specs.next().map(HookSpec::system);
        let mut foreign = SYSTEMS.iter().filter(|it| it.settings.is_some());
        if let Some(system) = foreign.find(|it| Some(it.name) == system) {
            let file = escape_line(&file.display().to_string());
            let text = format!("`{file}` has hooks of {}", system.name);
            warning::show(Notice::Note(&text));
        }
    }
    show_warnings(&hooks.loaded.warnings);
    for source in &hooks.untrusted {
        let problem = source.first_error().map(|problem| problem.message.as_str());
        warn(escape_line(&format!(
            "the current version of `{}` is not approved and cannot be loaded: {}",
            source.path.display(),
            problem.unwrap_or("it is broken")
        )));
    }
    hooks.warn_of_disabled();
    approval::warn_of_diverged(&hooks.loaded.diverged);
    Ok(hooks)
}

/// Refuses to continue without sources that cannot be loaded. A lenient call continues with a warning for each.
fn refuse(broken: &[BrokenSource], is_lenient: bool) -> Result<(), CliError> {
    if broken.is_empty() {
        return Ok(());
    }
    if !is_lenient {
        return Err(CliError::broken(broken.to_vec()));
    }
    for source in broken {
        show_warnings(&source.problems);
        warn(format_args!(
            "the hooks of `{}` are not in force",
            escape_line(&source.path.display().to_string())
        ));
    }
    Ok(())
}

/// Loads the hooks of a call. Warns only about repeated files and about ignored entries of folders. `trust` decides
/// what the approvals are for.
pub async fn load_quietly(
    options: &HookOptions,
    start: &Path,
    services: Services,
    trust: fn(Arc<Approvals>) -> Trust,
    token: &CancellationToken,
) -> Result<Hooks, CliError> {
    let start = &approval::named_dir(start);
    let approvals = match options.script {
        None => approval::load_approvals(start).await?,
        Some(_) => None,
    };
    // Decided once, so that it does not depend on the state of the project's folders when they are searched.
    let trust = approvals.map_or_else(Trust::none, trust);
    let sources = sources(options, start, services, trust)?;
    let found = token
        .run_until_cancelled(Box::pin(discover(sources, options.lines.clone())))
        .await
        .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))??;
    warn_of_repeated(&found.repeated);
    for note in &found.notes {
        warn(escape_line(note));
    }
    Ok(Hooks {
        loaded: Loaded {
            specs: found.specs,
            warnings: found.warnings,
            agent_files: found.agent_files,
            project_hooks: found.project_hooks,
            diverged: found.diverged,
            files: found.hook_files,
            ..Loaded::default()
        },
        found: found.folder_files,
        followed: found.followed,
        extras: SessionExtensions {
            scripts: found.scripts,
            extensions: found.extensions,
        },
        broken: found.broken,
        untrusted: found.untrusted,
    })
}

/// Returns the sources from which a call loads its hooks.
pub fn sources(
    options: &HookOptions,
    start: &Path,
    services: Services,
    trust: Trust,
) -> Result<Sources, CliError> {
    let layers = config_dir::layers(options.config_dir.as_deref(), Some(start))?;
    let layers = match options.script {
        None => layers,
        // Hooks that are managed for all users are in force whatever the call names.
        Some(_) => Layers {
            system: layers.system,
            ..Layers::default()
        },
    };
    let disabled = disabled::load_disabled()?;
    let loading = LoadOptions {
        trust: trust.clone(),
        deny_untrusted: options.deny_untrusted,
        disabled: disabled.clone(),
        host: options.host,
        ..load_options(true, services)
    };
    let host = loading.services.scripts.clone();
    let search = FolderSearch::of_layers(&layers)
        .directory(start.to_owned())
        .trust(trust)
        .deny_untrusted(options.deny_untrusted)
        .strict(options.strict)
        .disabled(disabled)
        .without_system(options.host)
        .deadline(options.deadline)
        .packages(&pi::FOLDER, options.extensions.iter().cloned())
        .host(host.unwrap_or_else(|| Arc::new(PrintingHost::default())))
        .data_dir(data_dir());
    let search = config_dir::select(search, &options.place)?;
    let sources = Sources {
        layers,
        named: Vec::new(),
        options: loading,
        search,
        approvals: data_dir().filter(|_| options.script.is_none()),
    };
    let named = options.files.iter();
    let sources = named.fold(sources, |sources, file| sources.with_named(file));
    let script = options.script.iter();
    Ok(script.fold(sources, |sources, file| sources.with_file(file)))
}

/// Loads the agents of the call's files, but no hooks except those that are managed for all users.
pub async fn load_agents(
    options: &HookOptions,
    services: Services,
    token: &CancellationToken,
) -> Result<Loaded, CliError> {
    let layers = Layers {
        system: config_dir::layers(options.config_dir.as_deref(), None)?.system,
        ..Layers::default()
    };
    let search = FolderSearch::of_layers(&layers)
        .lenient(true)
        .deadline(options.deadline)
        .data_dir(data_dir())
        .discover();
    let files = options
        .files
        .iter()
        .filter(|file| !is_script_or_program(file));
    let (files, loading): (Vec<PathBuf>, _) =
        (files.cloned().collect(), load_options(true, services));
    let read = move || load_named(&files, &layers, &loading);
    let mut loaded = run_blocking(token, read).await?;
    loaded.wired.clear();
    loaded
        .specs
        .retain(|spec| spec.source.layer == Layer::System);
    let found = search.await?;
    add_sources(&mut loaded.broken, found.broken);
    refuse(&loaded.broken, options.lenient)?;
    for warning in &found.warnings {
        warn(escape_line(warning));
    }
    loaded.specs.extend(found.specs);
    let managed = match loaded.specs.len() {
        0 => String::new(),
        managed => format!(", except {managed} that are managed for all users"),
    };
    warn(format_args!("no hooks run{managed}"));
    Ok(loaded)
}

/// Loads the hook files of the layers and the named files, each once.
pub fn load_named(
    named: &[PathBuf],
    layers: &Layers,
    options: &LoadOptions,
) -> Result<Loaded, CliError> {
    let (loaded, repeated) = tenterhook_discovery::load_named(named, layers, options)?;
    warn_of_repeated(&repeated);
    Ok(loaded)
}

/// Warns about files that the command line names more than once.
fn warn_of_repeated(paths: &[PathBuf]) {
    for path in paths {
        warn(format_args!(
            "`{}` is given more than once; it is loaded once",
            path.display()
        ));
    }
}

/// Creates the options that loading needs in addition to the files. All hooks of the files run, because the caller names them.
/// A search sets `trust` itself.
pub fn load_options(lenient: bool, services: Services) -> LoadOptions {
    LoadOptions {
        lenient,
        services,
        trust: Trust::Caller,
        ..LoadOptions::of_process()
    }
}

/// Creates the services that handlers may use. Models have the names of the user's `models.yaml`, and keys and URLs
/// come from the environment.
pub fn services(config_dir: Option<&Path>) -> Result<(Services, Arc<ModelClients>), CliError> {
    let providers = models::providers(config_dir)?;
    Ok(services_with(&providers))
}

/// Creates the services that handlers may use, with the models of `providers`.
pub fn services_with(providers: &Arc<Providers>) -> (Services, Arc<ModelClients>) {
    let variable = |name: &str| std::env::var(name).ok();
    let judges = Arc::new(ModelClients::new(Arc::clone(providers), variable));
    let services = Services {
        data_dir: data_dir(),
        model: Some(Arc::clone(&judges) as _),
        ..Services::default()
    };
    (services, judges)
}

/// Creates an engine with the loaded hooks, for a command in which no agent works.
pub fn engine(loaded: &Loaded, strict: bool, journal: Option<Arc<dyn JournalSink>>) -> Engine {
    engine_of(Engine::builder(), loaded, strict, journal)
}

/// Creates an engine with the loaded hooks and further settings.
pub fn engine_of(
    builder: EngineBuilder,
    loaded: &Loaded,
    strict: bool,
    journal: Option<Arc<dyn JournalSink>>,
) -> Engine {
    let builder = builder.strict(strict).tools(tools::native());
    let engine = match journal {
        Some(journal) => builder.journal(journal).build(),
        None => builder.build(),
    };
    engine.scope(Scope::Global).replace(loaded.specs.clone());
    engine
}
