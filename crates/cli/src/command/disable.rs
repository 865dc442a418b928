//! `tenterhook disable` and `tenterhook enable`: leave out a source of hooks, and use it again.

use std::io::{IsTerminal as _, stdin};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;
use tenterhook_discovery::{DisabledSources, FolderSearch};
use tenterhook_engine::Layer;
use tenterhook_engine::journal::{FORMAT_VERSION, JournalRecord, SourceAction, SourceRecord};
use tenterhook_trust::Trust;

use crate::ancestry;
use crate::hook_args::{ConfigArgs, PlaceArgs};
use crate::journal_args::JournalArgs;
use crate::notice::unanswered;
use clap::Parser;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::approval;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::config_dir;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::disabled::unusable;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::line_source::LineSource;
use tenterhook_terminal::output;

/// Which source of hooks to disable or to enable.
#[derive(Debug, Parser)]
pub(crate) struct SourceArgs {
    /// The source: the path of a hook file, the path of a file in a hooks folder, or the name that `tenterhook list`
    /// shows.
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,

    /// Do not ask for confirmation. Required if stdin is not a terminal.
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    #[command(flatten)]
    pub(crate) config: ConfigArgs,

    #[command(flatten)]
    pub(crate) journal: JournalArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A source that is in force here.
#[derive(Debug, Clone)]
struct KnownSource {
    path: PathBuf,
    name: String,
    layer: Layer,
}

pub(crate) async fn disable(args: SourceArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    ancestry::require_user("disable hooks")?;
    let dir = folder()?;
    let known = find(&args, interrupts).await?;
    if known.layer == Layer::System {
        let message = format!("`{}` is managed for all users", shown(&known.path));
        return Err(CliError::new(Exit::Usage, message)
            .hint("only the administrator of this machine can change it"));
    }
    let path = known.path.clone();
    if DisabledSources::open(&dir)
        .map_err(|error| unusable(&error))?
        .contains(&path, known.layer)
    {
        report(&args, &path, SourceAction::Disabled, false);
        return Ok(Exit::Done);
    }
    if !args.yes && !confirm(&path, interrupts).await? {
        output::line("Nothing was disabled.");
        return Ok(Exit::Done);
    }
    // If the journal cannot be written, nothing is disabled.
    record(&args, &path, SourceAction::Disabled).await?;
    DisabledSources::disable(&dir, &path).map_err(|error| unusable(&error))?;
    report(&args, &path, SourceAction::Disabled, true);
    Ok(Exit::Done)
}

pub(crate) async fn enable(args: SourceArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    ancestry::require_user("enable hooks")?;
    let dir = folder()?;
    let path = match disabled_path(&dir, &args.source)? {
        Some(path) => path,
        None => find(&args, interrupts).await?.path,
    };
    let was_disabled = DisabledSources::enable(&dir, &path).map_err(|error| unusable(&error))?;
    if was_disabled {
        record(&args, &path, SourceAction::Enabled).await?;
    }
    report(&args, &path, SourceAction::Enabled, was_disabled);
    Ok(Exit::Done)
}

/// Returns the disabled source that has this path or file name, even if the file no longer exists.
fn disabled_path(dir: &Path, word: &str) -> Result<Option<PathBuf>, CliError> {
    let disabled = DisabledSources::open(dir).map_err(|error| unusable(&error))?;
    let word_path = std::path::absolute(word).unwrap_or_else(|_| word.into());
    let mut named = disabled
        .iter()
        .map(|(path, _)| path)
        .filter(|path| *path == word_path || path.file_name().is_some_and(|name| name == word));
    match (named.next(), named.next()) {
        (Some(path), None) => Ok(Some(path.to_owned())),
        _ => Ok(None),
    }
}

/// Returns the one source in force that the command line names.
async fn find(args: &SourceArgs, interrupts: &Interrupts) -> Result<KnownSource, CliError> {
    let (place, config_dir) = (args.place.options(), args.config.config_dir.clone());
    let start = std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    let approvals = approval::load_approvals(&start).await?;
    let look = move || {
        let layers = config_dir::layers(config_dir.as_deref(), Some(&start))?;
        let trust = approvals.map_or_else(Trust::none, Trust::Approved);
        let hook_files = layers.hook_files(&trust).into_iter();
        let search = FolderSearch::of_layers(&layers).trust(trust);
        let search = config_dir::select(search, &place)?;
        let hook_files = hook_files.map(|(path, layer)| KnownSource {
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path,
            layer,
        });
        let found = search.sources().into_iter();
        let found = found.map(|(path, name, layer)| KnownSource { path, name, layer });
        Ok(hook_files.chain(found).collect::<Vec<KnownSource>>())
    };
    let known = run_blocking(&interrupts.token(), look).await?;
    choose(&args.source, &known)
}

fn choose(word: &str, known: &[KnownSource]) -> Result<KnownSource, CliError> {
    let word_path = std::path::absolute(word).unwrap_or_else(|_| word.into());
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(source) = known.iter().find(|source| whole(&source.path) == word_path) {
        return Ok(source.clone());
    }
    let is_called = |source: &&KnownSource| {
        source.name == word || source.path.file_name().is_some_and(|name| name == word)
    };
    let called: Vec<&KnownSource> = known.iter().filter(is_called).collect();
    match called.as_slice() {
        [source] => Ok((*source).clone()),
        [] => {
            let paths: Vec<String> = known
                .iter()
                .map(|it| format!("`{}`", shown(&it.path)))
                .collect();
            let message = format!("unknown source of hooks `{}`", escape_line(word));
            let hint = match paths.as_slice() {
                [] => "no hook files or folders are in force in this directory".to_owned(),
                paths => format!("available: {}", paths.join(", ")),
            };
            Err(CliError::new(Exit::Usage, message).hint(hint))
        }
        several => {
            let paths: Vec<String> = several
                .iter()
                .map(|it| format!("`{}`", shown(&it.path)))
                .collect();
            let message = format!(
                "`{}` is the name of {} sources",
                escape_line(word),
                several.len()
            );
            Err(CliError::new(Exit::Usage, message)
                .hint(format!("give the path of one: {}", paths.join(", "))))
        }
    }
}

async fn confirm(path: &Path, interrupts: &Interrupts) -> Result<bool, CliError> {
    if !stdin().is_terminal() {
        let message = "stdin is not a terminal, so no one can be asked; nothing was disabled";
        return Err(CliError::new(Exit::Usage, message).hint("pass `--yes`"));
    }
    let question = format!(
        "Disable `{}`? Its hooks will not run, so they no longer guard anything. [y/N] ",
        shown(path)
    );
    let unchanged = "nothing was disabled";
    let answers = LineSource::plain();
    let answer = answers.confirm(&question, interrupts).await;
    let answer = answer.map_err(|error| unanswered(&error, unchanged))?;
    Ok(answer.unwrap_or(false))
}

/// Records the user's action in the journal.
async fn record(args: &SourceArgs, path: &Path, action: SourceAction) -> Result<(), CliError> {
    let record = JournalRecord::Source(SourceRecord {
        v: FORMAT_VERSION,
        timestamp: Timestamp::now(),
        action,
        path: path.display().to_string(),
    });
    args.journal.record(record).await
}

fn report(args: &SourceArgs, path: &Path, action: SourceAction, has_changed: bool) {
    if args.json {
        output::json(&json!({
            "source": path.display().to_string(),
            "state": action,
            "changed": has_changed,
        }));
        return;
    }
    let path = shown(path);
    output::line(match (action == SourceAction::Disabled, has_changed) {
        (true, true) => {
            format!("Disabled `{path}`. To use its hooks again, run `tenterhook enable '{path}'`.")
        }
        (true, false) => format!("`{path}` is already disabled."),
        (false, true) => format!("Enabled `{path}`."),
        (false, false) => format!("`{path}` was not disabled."),
    });
}

fn shown(path: &Path) -> String {
    escape_line(&path.display().to_string())
}

fn folder() -> Result<PathBuf, CliError> {
    data_dir().ok_or_else(|| {
        CliError::new(
            Exit::Failed,
            "cannot find a folder for the list of disabled sources",
        )
        .hint("set `TENTERHOOK_DATA_DIR` to a folder")
    })
}
