//! `tenterhook disable` and `tenterhook enable`: leave a source of hooks out, and bring it back.

use std::io::{IsTerminal as _, stdin};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;
use tenterhook::journal::{FORMAT_VERSION, JournalRecord, SourceAction, SourceRecord};
use tenterhook::{JournalSink as _, Layer};
use tenterhook_config::{DisabledError, DisabledSources, Discovery, Trust};

use crate::answers::Answers;
use crate::args::SourceArgs;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::{self, Interrupts};
use crate::output;
use crate::safe::safe_line;
use crate::{approval, below, config_dir, journal};

/// A source that is in force here.
#[derive(Debug, Clone)]
struct Known {
    path: PathBuf,
    name: String,
    layer: Layer,
}

/// Returns the sources that the user has disabled.
pub(crate) fn known() -> Result<DisabledSources, CliError> {
    let Some(dir) = data_dir() else {
        return Ok(DisabledSources::default());
    };
    DisabledSources::open(&dir).map_err(|error| unusable(&error))
}

pub(crate) async fn disable(args: SourceArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    below::refuse("disable hooks")?;
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
    // Without a record nothing is disabled.
    record(&args, &path, SourceAction::Disabled).await?;
    DisabledSources::disable(&dir, &path).map_err(|error| unusable(&error))?;
    report(&args, &path, SourceAction::Disabled, true);
    Ok(Exit::Done)
}

pub(crate) async fn enable(args: SourceArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    below::refuse("enable hooks")?;
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

/// Returns the disabled source that a word names by its path or file name, also where the file is gone.
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

/// Returns the one source in force that the call names.
async fn find(args: &SourceArgs, interrupts: &Interrupts) -> Result<Known, CliError> {
    let (place, config) = (args.place.clone(), args.config.clone());
    let start = std::env::current_dir().map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    let approvals = approval::known(&start).await?;
    let look = move || {
        let layers = config_dir::layers(&config, Some(&start))?;
        let trust = approvals.map_or_else(Trust::nobody, Trust::Approved);
        let hook_files = layers.hook_files(&trust).into_iter();
        let search = Discovery::of_layers(&layers)
            .trust(trust)
            .workspace(config_dir::workspace(&place)?)
            .operator_profile(config_dir::operator_profile(&place)?);
        let hook_files = hook_files.map(|(path, layer)| Known {
            name: path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            path,
            layer,
        });
        let found = search.sources().into_iter();
        let found = found.map(|(path, name, layer)| Known { path, name, layer });
        Ok(hook_files.chain(found).collect::<Vec<Known>>())
    };
    let known = interrupt::blocking(interrupts, look).await?;
    choose(&args.source, &known)
}

fn choose(word: &str, known: &[Known]) -> Result<Known, CliError> {
    let word_path = std::path::absolute(word).unwrap_or_else(|_| word.into());
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if let Some(source) = known.iter().find(|source| whole(&source.path) == word_path) {
        return Ok(source.clone());
    }
    let is_called = |source: &&Known| {
        source.name == word || source.path.file_name().is_some_and(|name| name == word)
    };
    let called: Vec<&Known> = known.iter().filter(is_called).collect();
    match called.as_slice() {
        [source] => Ok((*source).clone()),
        [] => {
            let paths: Vec<String> = known
                .iter()
                .map(|it| format!("`{}`", shown(&it.path)))
                .collect();
            let message = format!("no source of hooks here is called `{}`", safe_line(word));
            let hint = match paths.as_slice() {
                [] => "no hook files or folders are in force here".to_owned(),
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
                safe_line(word),
                several.len()
            );
            Err(CliError::new(Exit::Usage, message)
                .hint(format!("name one by its path: {}", paths.join(", "))))
        }
    }
}

async fn confirm(path: &Path, interrupts: &Interrupts) -> Result<bool, CliError> {
    if !stdin().is_terminal() {
        let message = "stdin is not a terminal, so no one can be asked; nothing was disabled";
        return Err(CliError::new(Exit::Usage, message).hint("pass `--yes`"));
    }
    let question = format!(
        "Disable `{}`? Its hooks will not run, so what they guard is not guarded. [y/N] ",
        shown(path)
    );
    let unchanged = "nothing was disabled";
    let answers = Answers::plain();
    let answer = answers.confirm(&question, unchanged, interrupts).await?;
    Ok(answer.unwrap_or(false))
}

/// Writes to the journal what the user did.
async fn record(args: &SourceArgs, path: &Path, action: SourceAction) -> Result<(), CliError> {
    let file = journal::open(&args.journal)?;
    if let Some(file) = &file {
        let record = JournalRecord::Source(SourceRecord {
            v: FORMAT_VERSION,
            timestamp: Timestamp::now(),
            action,
            path: path.display().to_string(),
        });
        file.record(vec![record]).await;
    }
    journal::close(file.as_ref())
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
            format!("Disabled `{path}`. `tenterhook enable '{path}'` brings its hooks back.")
        }
        (true, false) => format!("`{path}` was disabled before."),
        (false, true) => format!("Enabled `{path}`."),
        (false, false) => format!("`{path}` was not disabled."),
    });
}

fn shown(path: &Path) -> String {
    safe_line(&path.display().to_string())
}

fn folder() -> Result<PathBuf, CliError> {
    data_dir().ok_or_else(|| {
        CliError::new(
            Exit::Failed,
            "there is no folder for the list of disabled sources",
        )
        .hint("name one with `TENTERHOOK_DATA_DIR`")
    })
}

fn unusable(error: &DisabledError) -> CliError {
    CliError::of(Exit::Config, error).hint(format!(
        "repair or remove `{}`; without it no source is disabled",
        error.path.display()
    ))
}
