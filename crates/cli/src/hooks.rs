//! From the files on the command line to an engine with their hooks.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use tenterhook::{Engine, JournalSink, Layer, Scope};
use tenterhook_agent::provider::{Endpoint, Judges};
use tenterhook_config::{LoadOptions, Loaded, Problem, Severity, load_files, load_lines};
use tenterhook_handlers::Services;

use crate::args::{ConfigArgs, HookArgs, LineArgs};
use crate::config_dir;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::output::{self, style, styled};

/// Loads the hooks of a call and shows what a person should look at.
pub(crate) fn load(args: &HookArgs, services: Services) -> Result<Loaded, CliError> {
    load_with_lines(args, &LineArgs::default(), services)
}

/// Loads the hooks of a call, shell lines among them, and shows what a person should look at.
pub(crate) fn load_with_lines(
    args: &HookArgs,
    lines: &LineArgs,
    services: Services,
) -> Result<Loaded, CliError> {
    let options = options(args.lenient, services);
    let mut loaded = load_quietly(&args.files, &args.config, &options)?;
    let lines = load_lines(lines.lines(), &options)?;
    loaded.specs.extend(lines.specs);
    loaded.specs.append(&mut loaded.wired);
    loaded.warnings.extend(lines.warnings);
    show_warnings(&loaded.warnings);
    let errors = loaded
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
    Ok(loaded)
}

/// Loads the user's own hook files and those that were named, each once.
pub(crate) fn load_quietly(
    named: &[PathBuf],
    config: &ConfigArgs,
    options: &LoadOptions,
) -> Result<Loaded, CliError> {
    let own = config_dir::hook_files(config)?;
    let mut seen = BTreeSet::new();
    let mut distinct = Vec::new();
    let own_files = own.iter().map(|path| (path, Layer::User));
    for (path, layer) in own_files.chain(named.iter().map(|path| (path, Layer::Explicit))) {
        let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if seen.insert(whole) {
            distinct.push((path, layer));
        } else {
            warn(format_args!(
                "`{}` is named more than once; it is loaded once",
                path.display()
            ));
        }
    }
    let mut loaded = load_files(distinct, options)?;
    // Which agent runs is said by the files of the call; the user's own give hooks only.
    loaded.agent_files.retain(|file| !own.contains(&file.path));
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

/// Makes what handlers may use: models are asked with keys and URLs of the environment.
pub(crate) fn services() -> (Services, Arc<Judges>) {
    let judges = Arc::new(Judges::new(|service| {
        Endpoint::from_variables(service, |name| std::env::var(name).ok())
    }));
    let services = Services {
        data_dir: data_dir(),
        model: Some(Arc::clone(&judges) as _),
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
    let builder = Engine::builder().strict(strict);
    let engine = match journal {
        Some(journal) => builder.journal(journal).build(),
        None => builder.build(),
    };
    engine.scope(Scope::Global).replace(loaded.specs.clone());
    engine
}
