//! `tenterhook init`: a first guard for a project or for all sessions of the user, with its test cases.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use tenterhook_cases::{StarterGuard, StarterLanguage, StarterPlace};
use tenterhook_trust::{in_search_path, repository_root};

use crate::ancestry;
use crate::working_dir::current_dir;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::config_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::warn;
use tenterhook_terminal::output;

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook init [OPTIONS]")]
pub(crate) struct InitArgs {
    /// Write the guard into your configuration folder. It is then in force in every project and every agent that
    /// Tenterhook guards, without an approval.
    #[arg(long, conflicts_with = "dir")]
    user: bool,

    /// The language of the guard. `yaml` denies commands with a built-in hook. The others are scripts, which keep file
    /// tools away from files with secrets.
    #[arg(long, default_value = "yaml", value_name = "LANG", value_parser = PossibleValuesParser::new(languages()).try_map(|name| name.parse::<StarterLanguage>()))]
    lang: StarterLanguage,

    /// The folder of the project. It is created if it does not exist. The default is the root of the repository, or
    /// the working directory if there is no repository.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Returns the values of `--lang`. The short names work, too.
fn languages() -> impl Iterator<Item = PossibleValue> {
    let names = StarterLanguage::NAMES.into_iter();
    names.map(|(name, short, _)| PossibleValue::new(name).alias(short))
}

pub(crate) fn init(args: &InitArgs) -> Result<Exit, CliError> {
    // The hooks of a project are protected files: an agent must not add one to those that guard it.
    ancestry::require_user("write hooks")?;
    let start = current_dir()?;
    if args.user {
        let folder = config_dir::user(None)?.ok_or_else(|| {
            CliError::new(Exit::Failed, "your configuration folder is not known")
                .hint("set `HOME`, or name the folder in `TENTERHOOK_CONFIG_DIR`")
        })?;
        return write(args.lang, StarterPlace::User(&folder), &start);
    }
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
    write(args.lang, StarterPlace::Project(&project), &start)
}

/// Writes the guard, and prints what to do next in `start`.
fn write(lang: StarterLanguage, place: StarterPlace<'_>, start: &Path) -> Result<Exit, CliError> {
    let guard = StarterGuard::write(place, lang)
        .map_err(|error| CliError::of(Exit::Failed, &error).hint(error.hint()))?;
    for line in guard.next_steps(place, start) {
        output::line(escape_line(&line));
    }
    if let Some(interpreter) = guard.interpreter
        && in_search_path(interpreter, place.folder()).is_none()
    {
        warn(format_args!(
            "`{interpreter}` was not found in `PATH`; install it before you run this guard"
        ));
    }
    Ok(Exit::Done)
}
