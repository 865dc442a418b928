//! From files, folders and the command line to an engine with their hooks.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenterhook::{Engine, HookSpec, JournalSink, Layer, Scope, Scoped};
use tenterhook_agent::provider::{Judges, Providers};
use tenterhook_config::{
    Discovery, FixedHooks, FoundFile, Layers, LoadOptions, Loaded, Problem, Reloader, Severity,
    Sources, Trust, gone, load_files, load_lines,
};
use tenterhook_dialects::tools;
use tenterhook_handlers::Services;

use crate::approval;
use crate::args::{ConfigArgs, HookArgs, LineArgs};
use crate::config_dir;
use crate::data_dir::data_dir;
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

/// Loads the hooks of a call by an agent that works in `start`, and shows what a person should look at.
pub(crate) async fn load(
    args: &HookArgs,
    lines: &LineArgs,
    start: &Path,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let hooks = load_quietly(args, lines, start, services, interrupts).await?;
    show_warnings(&hooks.loaded.warnings);
    let errors = hooks
        .loaded
        .warnings
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    let mut broken: Vec<_> = errors.map(|problem| &problem.path).collect();
    broken.dedup();
    for path in broken {
        warn(format_args!(
            "the hooks of `{}` are not in force",
            path.display()
        ));
    }
    approval::tell(&hooks.loaded.brought, args.deny_untrusted);
    Ok(hooks)
}

/// Loads the hooks of a call, and shows nothing but what folders have that is no hook.
pub(crate) async fn load_quietly(
    args: &HookArgs,
    lines: &LineArgs,
    start: &Path,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let (is_lenient, denies_untrusted) = (args.lenient, args.deny_untrusted);
    let (args, lines, start) = (args.clone(), lines.clone(), start.to_owned());
    let read = move || {
        let layers = config_dir::layers(&args.config, Some(&start))?;
        let approvals = approval::known()?;
        // Decided once, whatever the project's folders are by the time that they are looked at.
        let trust = approvals
            .clone()
            .map_or_else(Trust::nobody, Trust::Approved);
        let options = LoadOptions {
            trust: trust.clone(),
            deny_untrusted: args.deny_untrusted,
            ..options(args.lenient, services)
        };
        let host = options.services.scripts.clone();
        let workspace = config_dir::workspace(&args.place)?;
        let search = Discovery::of_layers(&layers)
            .trust(trust)
            .deny_untrusted(args.deny_untrusted)
            .strict(args.strict)
            .workspace(workspace.clone())
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
        Ok((loaded, lines, sources, approvals, workspace))
    };
    let (mut loaded, lines, sources, approvals, workspace) =
        interrupt::blocking(interrupts, read).await?;
    let token = interrupts.token();
    let discovered = token
        .run_until_cancelled(sources.search.clone().discover())
        .await
        .ok_or_else(|| CliError::new(Exit::Interrupted, "interrupted"))?;
    for warning in &discovered.warnings {
        warn(safe_line(warning));
    }
    refuse_unreadable(&discovered.unreadable, is_lenient)?;
    loaded.specs.extend(discovered.specs);
    loaded.brought.extend(discovered.brought);
    if let Some(approvals) = approvals {
        let projects = sources.layers.projects();
        let dirs = projects.iter().map(|project| project.dir.as_path());
        let gone = gone(&approvals, dirs, &loaded.brought, workspace.as_ref());
        approval::tell_gone(&gone);
        let denials = gone.into_iter().flat_map(|gone| gone.denials);
        loaded.specs.extend(denials.filter(|_| denies_untrusted));
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
    })
}

/// Refuses to go on where folders of the user or the machine cannot be read: hooks that are not found guard nothing.
fn refuse_unreadable(unreadable: &[String], is_lenient: bool) -> Result<(), CliError> {
    let Some(first) = unreadable.first() else {
        return Ok(());
    };
    if !is_lenient {
        return Err(CliError::new(Exit::Failed, safe_line(first))
            .hint("make it readable, or go on without it with `--lenient`"));
    }
    for problem in unreadable {
        warn(safe_line(problem));
    }
    Ok(())
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
        .data_dir(data_dir())
        .discover();
    let (files, options) = (args.files.clone(), options(args.lenient, services));
    let read = move || load_named(&files, &layers, &options);
    let mut loaded = interrupt::blocking(interrupts, read).await?;
    loaded.wired.clear();
    loaded
        .specs
        .retain(|spec| spec.source.layer == Layer::System);
    let found = search.await;
    refuse_unreadable(&found.unreadable, args.lenient)?;
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
    let found = layers.hook_files_and(named).map_err(|error| {
        CliError::of(Exit::Failed, &error)
            .hint("make it readable, or name another folder with `--config-dir DIR`")
    })?;
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
