//! `tenterhook snapshot`: the checkpoints of the files that agents changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tenterhook_handlers::snapshot::{
    Checkpoint, Kind, Note, RestoreOptions, Restored, Shadow, SnapshotError,
};

use crate::args::{RestoreArgs, SnapshotArgs, SnapshotCommand};
use crate::check::count;
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{self, style, styled};
use crate::progress::Progress;
use crate::safe::inset;
use crate::table::{self, Cell, plain};

/// How long git may take for one step.
const TIMEOUT: Duration = Duration::from_mins(10);

/// How many files are named on the screen.
const NAMED: usize = 10;

pub(crate) async fn snapshot(
    args: SnapshotArgs,
    interrupts: &Interrupts,
) -> Result<Exit, CliError> {
    let data = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "there is no home folder to keep snapshots in")
            .hint("name a folder with the variable `TENTERHOOK_DATA_DIR`")
    })?;
    let dir = std::path::absolute(&args.dir).map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    if !dir.is_dir() {
        let message = format!("`{}` is no directory", dir.display());
        return Err(CliError::new(Exit::Usage, message)
            .hint("name a folder of the work tree with `--dir DIR`"));
    }
    let progress = Progress::start("looking at the files");
    let done = carry_out(&args, &data, &dir, interrupts).await;
    drop(progress);
    let report = done.map_err(|error| refusal(&error, &args.command))?;
    if args.json {
        output::json(&report.json);
    } else {
        report.lines.iter().for_each(output::line);
    }
    Ok(Exit::Done)
}

/// What a command has to say, for people and for programs.
struct Report {
    lines: Vec<String>,
    json: serde_json::Value,
}

async fn carry_out(
    args: &SnapshotArgs,
    data: &Path,
    dir: &Path,
    interrupts: &Interrupts,
) -> Result<Report, SnapshotError> {
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

async fn checkpoint(shadow: &Shadow, label: Option<&String>) -> Result<Report, SnapshotError> {
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
    Ok(Report {
        lines,
        json: json!({"checkpoint": id, "skipped": state.skipped}),
    })
}

/// Says what could not be kept.
fn left_out(skipped: &[String]) -> Option<String> {
    let names: Vec<String> = skipped
        .iter()
        .take(NAMED)
        .map(|name| inset(name, 2))
        .collect();
    let more = skipped.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!skipped.is_empty()).then(|| {
        format!(
            "{} too large files or nested repositories: {}{more}",
            styled(style::CARE, "Left out"),
            names.join(", ")
        )
    })
}

async fn list(shadow: &Shadow) -> Result<Report, SnapshotError> {
    let checkpoints = shadow.list().await?;
    let json = json!({"work_tree": shadow.work_tree(), "checkpoints": checkpoints});
    let lines = if checkpoints.is_empty() {
        vec!["No checkpoints.".to_owned()]
    } else {
        let rows: Vec<Vec<Cell>> = checkpoints.iter().rev().map(row).collect();
        table::lines(&rows)
    };
    Ok(Report { lines, json })
}

fn row(checkpoint: &Checkpoint) -> Vec<Cell> {
    let time = jiff::Timestamp::from_second(checkpoint.time)
        .map(|time| time.to_zoned(jiff::tz::TimeZone::system()))
        .map_or_else(
            |_| String::new(),
            |time| time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        );
    let note = &checkpoint.note;
    let mut remarks: Vec<String> = note.label.iter().map(|label| inset(label, 2)).collect();
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

fn report(restored: &Restored, args: RestoreArgs) -> Report {
    let total = restored.written.len() + restored.removed.len();
    let would = if args.dry_run {
        "Would restore"
    } else {
        "Restored"
    };
    let mut lines = match (total, restored.checkpoint) {
        (0, _) => vec!["The files are as they were; nothing to restore.".to_owned()],
        (_, Some(id)) => vec![format!(
            "{would} {}. `tenterhook snapshot reset {id}` takes that back.",
            count(total, "file")
        )],
        (_, None) => vec![format!("{would} {}.", count(total, "file"))],
    };
    let named = |mark: &'static str, paths: &[PathBuf]| -> Vec<String> {
        let names = paths
            .iter()
            .take(NAMED)
            .map(|path| inset(&path.to_string_lossy(), 4));
        let mut lines: Vec<String> = names.map(|name| format!("  {mark} {name}")).collect();
        if paths.len() > NAMED {
            lines.push(format!("  {mark} {} more", paths.len() - NAMED));
        }
        lines
    };
    lines.extend(named("written", &restored.written));
    lines.extend(named("removed", &restored.removed));
    Report {
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
                .map(|path| inset(&path.to_string_lossy(), 4))
                .collect();
            CliError::new(Exit::Failed, format!("{error}: {}", names.join(", ")))
                .hint("`--force` overwrites them, after a checkpoint of how they are now")
        }
        SnapshotError::NoWorkTree { .. } => {
            message.hint("snapshots are kept of git work trees; `git init` makes one")
        }
        SnapshotError::NoCheckpoint { .. } => {
            message.hint("`tenterhook snapshot list` shows those that there are")
        }
        SnapshotError::NothingToUndo if matches!(command, SnapshotCommand::Undo { .. }) => message
            .hint("a hook `builtin: snapshot` keeps what agents change; `reset ID` goes to any checkpoint"),
        SnapshotError::NothingToUndo
        | SnapshotError::Busy
        | SnapshotError::Git(_)
        | SnapshotError::File { .. }
        | _ => message,
    }
}
