//! `tenterhook init`: a first guard for a project, with its test cases.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use tenterhook_cases::{StarterGuard, StarterLanguage};
use tenterhook_trust::{in_search_path, repository_root};

use crate::working_dir::current_dir;
use tenterhook_setup::ancestry;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output;
use tenterhook_terminal::output::escape::escape_line;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook init [OPTIONS]")]
pub(crate) struct InitArgs {
    /// The language of the guard: a hook file with a built-in hook (`yaml`), a script (`py`, `ts`), or an executable (`sh`).
    #[arg(long, default_value = "yaml", value_name = "LANG", value_parser = PossibleValuesParser::new(StarterLanguage::NAMES).try_map(|name| name.parse::<StarterLanguage>()))]
    lang: StarterLanguage,

    /// The folder of the project. It is created if it does not exist. The default is the root of the repository, or
    /// the working directory if there is no repository.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn init(args: &InitArgs) -> Result<Exit, CliError> {
    // The hooks of a project are protected files: an agent must not add one to those that guard it.
    ancestry::require_user("write hooks")?;
    let start = current_dir()?;
    let project = match &args.dir {
        // Without the `.` in the middle of `--dir ./shop`.
        Some(dir) => start.join(dir).components().collect(),
        None => repository_root(&start).unwrap_or(&start).to_owned(),
    };
    fs::create_dir_all(&project).map_err(|error| {
        let message = format!("cannot create the folder `{}`", project.display());
        CliError::new(Exit::Failed, message)
            .cause(&error)
            .hint("name a folder that exists or can be created")
    })?;
    let guard = StarterGuard::write(&project, args.lang)
        .map_err(|error| CliError::of(Exit::Failed, &error).hint(error.hint()))?;
    for line in guard.next_steps(&project, &start) {
        output::line(escape_line(&line));
    }
    if let Some(interpreter) = guard.interpreter
        && in_search_path(interpreter, &project).is_none()
    {
        warn(format_args!(
            "`{interpreter}` was not found in `PATH`; install it before you run this guard"
        ));
    }
    Ok(Exit::Done)
}
