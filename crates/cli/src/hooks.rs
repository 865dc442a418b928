//! From files, folders and the command line to an engine with their hooks.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook::{Engine, HookSpec, JournalSink, Layer, Scope, Scoped};
use tenterhook_agent::provider::{Judges, Providers};
use tenterhook_config::{
    Approvals, BrokenSource, Discovery, FileState, FixedHooks, FoundFile, Layers, LoadOptions,
    Loaded, Problem, Reloader, Sources, Trust, displaced, load_files, load_lines,
};
use tenterhook_dialects::tools;
use tenterhook_handlers::Services;

use crate::approval;
use crate::args::{ConfigArgs, HookArgs, LineArgs};
use crate::config_dir;
use crate::data_dir::data_dir;
use crate::disable;
use crate::error::CliError;
use crate::exit::Exit;
use crate::extras::{Extras, Listener};
use crate::interrupt::{self, Interrupts};
use crate::models;
use crate::output::{self, style, styled};
use crate::safe::safe_line;

/// The hooks of a call.
#[derive(Debug)]
pub(crate) struct Hooks {
    /// What is in force.
    pub(crate) loaded: Loaded,
    /// Every file of a folder of executables that was looked at.
    pub(crate) found: Vec<FoundFile>,
    /// What a session needs to follow the files.
    pub(crate) followed: Followed,
    /// What scripts and extensions have beside hooks.
    pub(crate) extras: Extras,
    /// The sources that are in force and cannot be loaded.
    pub(crate) broken: Vec<BrokenSource>,
    /// Sources of the project that cannot be loaded and were never approved.
    pub(crate) untrusted: Vec<BrokenSource>,
}

impl Hooks {
    /// Returns an error if a source cannot be loaded: a guard that cannot be loaded has failed. With `--lenient` it is a
    /// warning.
    pub(crate) fn refuse_broken(&self, is_lenient: bool) -> Result<(), CliError> {
        refuse(&self.broken, is_lenient)
    }

    /// Returns the status of a command that has shown what is broken.
    pub(crate) fn exit(&self, is_lenient: bool) -> Exit {
        if self.broken.is_empty() || is_lenient {
            Exit::Done
        } else {
            Exit::Config
        }
    }

    /// Returns the paths of the sources that would be loaded if the user had not disabled them.
    pub(crate) fn disabled_paths(&self) -> Vec<&Path> {
        let of_folders = self.found.iter();
        let of_folders = of_folders.filter(|file| file.state == FileState::TurnedOff);
        let hook_files = self.loaded.files.iter().filter(|file| file.is_disabled);
        let hook_files = hook_files.map(|file| file.path.as_path());
        hook_files
            .chain(of_folders.map(|file| file.path.as_path()))
            .collect()
    }
}

/// The files that a session follows, as they were loaded.
#[derive(Debug)]
pub(crate) struct Followed {
    sources: Sources,
    loaded: Loaded,
    found: Vec<FoundFile>,
    lines: Vec<HookSpec>,
}

impl Followed {
    /// Follows the files. `last` are hooks that run behind everything else.
    pub(crate) fn follow(self, scope: Scoped, last: Vec<HookSpec>) -> Reloader {
        let fixed = FixedHooks {
            behind: self.lines,
            last,
        };
        Reloader::new(scope, self.sources, &self.loaded, self.found, fixed)
    }
}

/// Loads the hooks of a call by an agent that works in `start`, and shows what a person should look at. A source that cannot
/// be loaded is an error unless the call is lenient.
pub(crate) async fn load(
    args: &HookArgs,
    lines: &LineArgs,
    start: &Path,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let hooks = load_and_warn(args, lines, start, services, interrupts).await?;
    hooks.refuse_broken(args.lenient)?;
    Ok(hooks)
}

/// Loads the hooks that can be loaded, for commands that report on the others. They end with
/// [`Hooks::refuse_broken`] or show what is broken.
pub(crate) async fn load_and_warn(
    args: &HookArgs,
    lines: &LineArgs,
    start: &Path,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let hooks = load_quietly(args, lines, start, services, interrupts).await?;
    show_warnings(&hooks.loaded.warnings);
    for source in &hooks.untrusted {
        let problem = source.first_error().map(|problem| problem.message.as_str());
        warn(safe_line(&format!(
            "`{}` is untrusted and cannot be loaded: {}",
            source.path.display(),
            problem.unwrap_or("it is broken")
        )));
    }
    for path in hooks.disabled_paths() {
        let path = safe_line(&path.display().to_string());
        warn(format_args!(
            "`{path}` is disabled; `tenterhook enable '{path}'` brings its hooks back"
        ));
    }
    approval::warn_of_diverged(&hooks.loaded.diverged);
    approval::warn_of_withheld(&hooks.loaded.brought, args.deny_untrusted);
    Ok(hooks)
}

/// Refuses to go on without sources that cannot be loaded. A lenient call goes on with a warning for each.
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
            safe_line(&source.path.display().to_string())
        ));
    }
    Ok(())
}

/// Adds sources that are not among the known ones. A link that stands for a folder with several kinds of sources is
/// reported once.
fn add_sources(known: &mut Vec<BrokenSource>, more: Vec<BrokenSource>) {
    for source in more {
        if known.iter().all(|known| known.path != source.path) {
            known.push(source);
        }
    }
}

/// Loads the hooks of a call, and shows nothing but what folders have that is no hook.
pub(crate) async fn load_quietly(
    args: &HookArgs,
    lines: &LineArgs,
    start: &Path,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let start = &approval::named_dir(start);
    let approvals = approval::known(start).await?;
    let (args, lines, start) = (args.clone(), lines.clone(), start.to_owned());
    let known = approvals.clone();
    let read = move || read_sources(&args, &lines, &start, services, known.as_ref());
    let SourcesRead {
        mut loaded,
        mut lines,
        sources,
    } = interrupt::blocking(interrupts, read).await?;
    let token = interrupts.token();
    let discovered = token
        .run_until_cancelled(sources.search.clone().discover())
        .await
        .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))??;
    for warning in &discovered.warnings {
        warn(safe_line(warning));
    }
    let mut broken = loaded.broken.clone();
    add_sources(&mut broken, discovered.broken);
    broken.append(&mut lines.broken);
    let mut untrusted = loaded.untrusted.clone();
    add_sources(&mut untrusted, discovered.untrusted);
    loaded.specs.extend(discovered.specs);
    loaded.brought.extend(discovered.brought);
    loaded.diverged.extend(discovered.diverged);
    for (hook, denials) in approvals.iter().flat_map(|approvals| displaced(approvals)) {
        loaded.diverged.push(hook);
        loaded.specs.extend(denials);
    }
    let followed = Followed {
        sources,
        loaded: loaded.clone(),
        found: discovered.files.clone(),
        lines: lines.specs.clone(),
    };
    loaded.specs.extend(lines.specs);
    loaded.specs.append(&mut loaded.wired);
    loaded.warnings.extend(lines.warnings);
    Ok(Hooks {
        loaded,
        found: discovered.files,
        followed,
        extras: Extras {
            scripts: discovered.scripts,
            extensions: discovered.extensions,
        },
        broken,
        untrusted,
    })
}

/// The hook files and lines of a call as they were read, and where its folders are.
struct SourcesRead {
    loaded: Loaded,
    lines: Loaded,
    sources: Sources,
}

/// Reads the hook files of a call.
fn read_sources(
    args: &HookArgs,
    lines: &LineArgs,
    start: &Path,
    services: Services,
    approvals: Option<&Arc<Approvals>>,
) -> Result<SourcesRead, CliError> {
    let layers = config_dir::layers(&args.config, Some(start))?;
    // Decided once, whatever the project's folders are by the time that they are looked at.
    let trust = approvals
        .cloned()
        .map_or_else(Trust::nobody, Trust::Approved);
    let disabled = disable::known()?;
    // What cannot be loaded is collected here, and judged once for all kinds of sources.
    let options = LoadOptions {
        trust: trust.clone(),
        deny_untrusted: args.deny_untrusted,
        disabled: disabled.clone(),
        ..options(true, services)
    };
    let host = options.services.scripts.clone();
    let search = Discovery::of_layers(&layers)
        .trust(trust)
        .deny_untrusted(args.deny_untrusted)
        .strict(args.strict)
        .lenient(true)
        .disabled(disabled)
        .deadline(args.load.deadline())
        .workspace(config_dir::workspace(&args.place)?)
        .operator_profile(config_dir::operator_profile(&args.place)?)
        .extensions(args.extensions.iter().cloned())
        .host(host.unwrap_or_else(|| Arc::new(Listener)))
        .data_dir(data_dir());
    let loaded = load_named(&args.files, &layers, &options)?;
    let lines = load_lines(lines.lines(), &options)?;
    let sources = Sources {
        layers,
        named: args.files.clone(),
        options,
        search,
        approvals: data_dir().filter(|_| approvals.is_some()),
    };
    Ok(SourcesRead {
        loaded,
        lines,
        sources,
    })
}

/// Loads what the files of a call say of agents, and no hooks but those that are managed for all users.
pub(crate) async fn load_agents(
    args: &HookArgs,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Loaded, CliError> {
    let layers = Layers {
        system: config_dir::layers(&args.config, None)?.system,
        ..Layers::default()
    };
    let search = Discovery::of_layers(&layers)
        .lenient(true)
        .deadline(args.load.deadline())
        .data_dir(data_dir())
        .discover();
    let (files, options) = (args.files.clone(), options(true, services));
    let read = move || load_named(&files, &layers, &options);
    let mut loaded = interrupt::blocking(interrupts, read).await?;
    loaded.wired.clear();
    loaded
        .specs
        .retain(|spec| spec.source.layer == Layer::System);
    let found = search.await?;
    add_sources(&mut loaded.broken, found.broken);
    refuse(&loaded.broken, args.lenient)?;
    for warning in &found.warnings {
        warn(safe_line(warning));
    }
    loaded.specs.extend(found.specs);
    let managed = match loaded.specs.len() {
        0 => String::new(),
        managed => format!(" but {managed} that are managed for all users"),
    };
    warn(format_args!("no hooks run{managed}"));
    Ok(loaded)
}

/// Loads the hook files of the layers and those that were named, each once.
pub(crate) fn load_named(
    named: &[PathBuf],
    layers: &Layers,
    options: &LoadOptions,
) -> Result<Loaded, CliError> {
    let found = layers.hook_files_and(named, &options.disabled, &options.trust);
    for path in &found.twice {
        warn(format_args!(
            "`{}` is named more than once; it is loaded once",
            path.display()
        ));
    }
    let mut loaded = load_files(found.files, options)?;
    // Which agent runs is said by the files of the call; those of the layers give hooks only.
    loaded
        .agent_files
        .retain(|file| !found.own.contains(&file.path));
    Ok(loaded)
}

/// Makes what a load depends on beside its files.
pub(crate) fn options(lenient: bool, services: Services) -> LoadOptions {
    LoadOptions {
        lenient,
        services,
        ..LoadOptions::of_process()
    }
}

/// Makes what handlers may use: models are asked by the user's names, with keys and URLs of the environment.
pub(crate) fn services(args: &ConfigArgs) -> Result<(Services, Arc<Judges>), CliError> {
    let providers = models::providers(args)?;
    Ok(services_with(&providers))
}

/// Makes what handlers may use, with models by these names.
pub(crate) fn services_with(providers: &Arc<Providers>) -> (Services, Arc<Judges>) {
    let variable = |name: &str| std::env::var(name).ok();
    let judges = Arc::new(Judges::new(Arc::clone(providers), variable));
    let services = Services {
        data_dir: data_dir(),
        model: Some(Arc::clone(&judges) as _),
        ..Services::default()
    };
    (services, judges)
}

/// Shows a warning of one line.
pub(crate) fn warn(text: impl Display) {
    output::note(format_args!("{} {text}", styled(style::CARE, "warning:")));
}

/// Shows problems that keep nothing from being loaded.
pub(crate) fn show_warnings(warnings: &[Problem]) {
    for problem in warnings {
        output::note(problem.render(output::is_coloured()));
    }
}

/// Makes an engine with the loaded hooks.
pub(crate) fn engine(
    loaded: &Loaded,
    strict: bool,
    journal: Option<Arc<dyn JournalSink>>,
) -> Engine {
    let builder = Engine::builder().strict(strict).tools(tools::native());
    let engine = match journal {
        Some(journal) => builder.journal(journal).build(),
        None => builder.build(),
    };
    engine.scope(Scope::Global).replace(loaded.specs.clone());
    engine
}
