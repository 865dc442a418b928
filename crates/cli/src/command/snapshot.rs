//! `tenterhook snapshot`: saves, lists and restores checkpoints of files that agents change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tenterhook_builtins::snapshot::{
    Checkpoint, Kind, Note, RestoreOptions, Restored, Shadow, SnapshotError,
};

use clap::builder::TypedValueParser as _;
use clap::{Parser, Subcommand};
use tenterhook_protocol::escape::escape_indented;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::progress::ProgressLine;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style, styled};

#[derive(Debug, Parser)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    pub(crate) command: SnapshotCommand,

    /// A folder in the git work tree.
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,

    /// Print a single JSON object.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Save a checkpoint of the files as they are now.
    Checkpoint {
        /// A label for the checkpoint.
        #[arg(long, value_name = "TEXT")]
        label: Option<String>,
    },
    /// List the checkpoints, newest first.
    List,
    /// Undo the newest change of an agent that is not undone yet. Files that it did not change stay as they are.
    Undo {
        /// How many changes to undo.
        #[arg(value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
        count: usize,

        #[command(flatten)]
        restore: RestoreArgs,
    },
    /// Restore all files to their state before an agent's change, or at a checkpoint that you saved.
    Reset {
        /// The checkpoint's number, as `list` shows it.
        #[arg(value_name = "ID")]
        id: u64,

        #[command(flatten)]
        restore: RestoreArgs,
    },
}

/// How files are restored.
#[derive(Debug, Clone, Copy, Parser)]
pub(crate) struct RestoreArgs {
    /// Overwrite files that have changed since.
    #[arg(long)]
    pub(crate) force: bool,

    /// Show what would change, but change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The time limit for one git command.
const TIMEOUT: Duration = Duration::from_mins(10);

/// The maximum number of files that are named in the output.
const NAMED: usize = 10;

pub(crate) async fn snapshot(
    args: SnapshotArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let data = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find a home folder for snapshots")
            .hint("set `TENTERHOOK_DATA_DIR` to a folder")
    })?;
    let dir = std::path::absolute(&args.dir).map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    if !dir.is_dir() {
        let message = format!("`{}` is not a directory", dir.display());
        return Err(CliError::new(Exit::Usage, message)
            .hint("name a folder of the work tree with `--dir DIR`"));
    }
    let progress = ProgressLine::start("reading the files");
    let done = run_snapshot_command(&args, &data, &dir, interrupts).await;
    drop(progress);
    let report = done.map_err(|error| refusal(&error, &args.command))?;
    if args.json {
        output::json(&report.json);
    } else {
        report.lines.iter().for_each(output::line);
    }
    Ok(Exit::Done)
}

/// The output of a command, for people and for programs.
struct RestoreReport {
    lines: Vec<String>,
    json: serde_json::Value,
}

async fn run_snapshot_command(
    args: &SnapshotArgs,
    data: &Path,
    dir: &Path,
    interrupts: &Interrupts,
) -> Result<RestoreReport, SnapshotError> {
    let shadow = Shadow::open(data, dir, TIMEOUT, interrupts.token()).await?;
    match &args.command {
        SnapshotCommand::Checkpoint { label } => checkpoint(&shadow, label.as_ref()).await,
        SnapshotCommand::List => list(&shadow).await,
        SnapshotCommand::Undo { count, restore } => {
            let restored = shadow.undo(*count, options(*restore)).await?;
            Ok(report(&restored, *restore))
        }
        SnapshotCommand::Reset { id, restore } => {
            let restored = shadow.reset(*id, options(*restore)).await?;
            Ok(report(&restored, *restore))
        }
    }
}

fn options(args: RestoreArgs) -> RestoreOptions {
    RestoreOptions {
        force: args.force,
        dry_run: args.dry_run,
    }
}

async fn checkpoint(
    shadow: &Shadow,
    label: Option<&String>,
) -> Result<RestoreReport, SnapshotError> {
    let state = shadow.take().await?;
    let note = Note {
        kind: Kind::Manual,
        label: label.cloned(),
        ..Note::default()
    };
    let id = shadow.keep(&state, &state, note).await?.unwrap_or_default();
    let mut lines = vec![format!(
        "Checkpoint {id} holds the files of `{}`.",
        shadow.work_tree().display()
    )];
    lines.extend(left_out(&state.skipped));
    Ok(RestoreReport {
        lines,
        json: json!({"checkpoint": id, "skipped": state.skipped}),
    })
}

/// Lists the files that the checkpoint does not include.
fn left_out(skipped: &[String]) -> Option<String> {
    let names: Vec<String> = skipped
        .iter()
        .take(NAMED)
        .map(|name| escape_indented(name, 2))
        .collect();
    let more = skipped.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!skipped.is_empty()).then(|| {
        format!(
            "{} as too large, or as nested repositories: {}{more}",
            styled(style::CARE, "Left out"),
            names.join(", ")
        )
    })
}

async fn list(shadow: &Shadow) -> Result<RestoreReport, SnapshotError> {
    let checkpoints = shadow.list().await?;
    let json = json!({"work_tree": shadow.work_tree(), "checkpoints": checkpoints});
    let lines = if checkpoints.is_empty() {
        vec!["No checkpoints.".to_owned()]
    } else {
        let rows: Vec<Vec<Cell>> = checkpoints.iter().rev().map(row).collect();
        table::lines(&rows)
    };
    Ok(RestoreReport { lines, json })
}

fn row(checkpoint: &Checkpoint) -> Vec<Cell> {
    let time = jiff::Timestamp::from_second(checkpoint.time)
        .map(|time| time.to_zoned(jiff::tz::TimeZone::system()))
        .map_or_else(
            |_| String::new(),
            |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        );
    let note = &checkpoint.note;
    let mut remarks: Vec<String> = note
        .label
        .iter()
        .map(|label| escape_indented(label, 2))
        .collect();
    if checkpoint.is_undone {
        remarks.push("undone".to_owned());
    }
    if !checkpoint.skipped.is_empty() {
        remarks.push(format!(
            "{} left out",
            count(checkpoint.skipped.len(), "file")
        ));
    }
    vec![
        (checkpoint.id.to_string(), style::STRONG),
        plain(time),
        plain(note.kind.as_str()),
        plain(count(checkpoint.files, "file")),
        (remarks.join(", "), style::QUIET),
    ]
}

fn report(restored: &Restored, args: RestoreArgs) -> RestoreReport {
    let total = restored.written.len() + restored.removed.len();
    let would = if args.dry_run {
        "Would restore"
    } else {
        "Restored"
    };
    let mut lines = match (total, restored.checkpoint) {
        (0, _) => vec!["Nothing to restore: the files already have this state.".to_owned()],
        (_, Some(id)) => vec![format!(
            "{would} {}. To undo this, run `tenterhook snapshot reset {id}`.",
            count(total, "file")
        )],
        (_, None) => vec![format!("{would} {}.", count(total, "file"))],
    };
    let named = |mark: &'static str, paths: &[PathBuf]| -> Vec<String> {
        let names = paths
            .iter()
            .take(NAMED)
            .map(|path| escape_indented(&path.to_string_lossy(), 4));
        let mut lines: Vec<String> = names.map(|name| format!("  {mark} {name}")).collect();
        if paths.len() > NAMED {
            lines.push(format!("  {mark} {} more", paths.len() - NAMED));
        }
        lines
    };
    lines.extend(named("written", &restored.written));
    lines.extend(named("removed", &restored.removed));
    RestoreReport {
        lines,
        json: json!({
            "dry_run": args.dry_run,
            "checkpoint": restored.checkpoint,
            "written": restored.written.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
            "removed": restored.removed.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>(),
        }),
    }
}

fn refusal(error: &SnapshotError, command: &SnapshotCommand) -> CliError {
    let message = CliError::of(Exit::Failed, error);
    match error {
        SnapshotError::Changed { paths } => {
            let names: Vec<String> = paths
                .iter()
                .take(NAMED)
                .map(|path| escape_indented(&path.to_string_lossy(), 4))
                .collect();
            CliError::new(Exit::Failed, format!("{error}: {}", names.join(", ")))
                .hint("`--force` saves a checkpoint of their current state, then overwrites them")
        }
        SnapshotError::NoWorkTree { .. } => {
            message.hint("snapshots need a git work tree; create one with `git init`")
        }
        SnapshotError::NoCheckpoint { .. } => {
            message.hint("list the checkpoints with `tenterhook snapshot list`")
        }
        SnapshotError::NothingToUndo if matches!(command, SnapshotCommand::Undo { .. }) => message
            .hint("record changes with a hook `builtin: snapshot`, or restore any checkpoint with `reset ID`"),
        SnapshotError::NothingToUndo
        | SnapshotError::Busy
        | SnapshotError::Git(_)
        | SnapshotError::File { .. }
        | _ => message,
    }
}
