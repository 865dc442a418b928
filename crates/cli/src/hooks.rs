//! From the files on the command line to an engine with their hooks.

use std::path::PathBuf;
use std::sync::Arc;

use tenterhook::{Engine, JournalSink, Layer, Scope};
use tenterhook_config::{LoadOptions, Loaded, Problem, load_files};

use crate::args::HookArgs;
use crate::error::CliError;
use crate::output;

/// Loads the hook files of a call and shows what a person should look at.
pub(crate) fn load(args: &HookArgs) -> Result<Loaded, CliError> {
    let loaded = load_quietly(&args.files, args.lenient)?;
    show_warnings(&loaded.warnings);
    Ok(loaded)
}

/// Loads hook files.
pub(crate) fn load_quietly(files: &[PathBuf], lenient: bool) -> Result<Loaded, CliError> {
    let options = LoadOptions {
        lenient,
        ..LoadOptions::of_process()
    };
    Ok(load_files(
        files.iter().map(|path| (path, Layer::Explicit)),
        &options,
    )?)
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
