//! `tenterhook allow`: lets a tool call through that a hook denied wrongly.

use std::io::{IsTerminal as _, stdin};

use clap::{ArgGroup, Parser};
use jiff::civil::{DateTime, Time};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tenterhook_engine::journal::{ExceptionAction, ExceptionRecord, JournalRecord};
use tenterhook_protocol::escape::{escape_invisible_indented, escape_line};
use tenterhook_setup::local_time::zone;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::line_source::LineSource;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;
use tenterhook_trust::{
    DenialId, DeniedCall, ExceptionStore, ExceptionTerm, TrustError, UserException,
};

use crate::ancestry::require_user;
use crate::journal_args::JournalArgs;
use crate::notice::unanswered;
use tenterhook_setup::blocking::run_blocking;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exceptions::{ExceptionReport, json_of, term};
use tenterhook_setup::exit::Exit;
use tenterhook_setup::warning::{hint, warn};

/// The maximum number of denials that are listed.
const MAX_LISTED: usize = 10;

/// The options of `tenterhook allow`.
#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook allow [OPTIONS] [ID]")]
#[command(group = ArgGroup::new("term").args(["once", "project", "until", "revoke", "list"]))]
pub(crate) struct AllowArgs {
    /// The id that the denial shows, such as `7K3MZQ2P`. Without it, the last denials are listed.
    #[arg(
        value_name = "ID",
        required_if_eq_any([("once", "true"), ("project", "true"), ("revoke", "true")]),
        conflicts_with = "list"
    )]
    id: Option<DenialId>,

    #[command(flatten)]
    term: TermArgs,

    #[command(flatten)]
    mode: AllowMode,

    #[command(flatten)]
    journal: JournalArgs,

    /// Do not ask for confirmation. Required if stdin is not a terminal.
    #[arg(long)]
    yes: bool,

    /// Print a single JSON object. To let a call through, add `--yes`.
    #[arg(long)]
    json: bool,
}

/// How long to let a call through.
#[derive(Debug, Parser)]
struct TermArgs {
    /// Let the call through the next time, within a day. This is the default.
    #[arg(long)]
    once: bool,

    /// Let the call through in this project until you revoke that.
    #[arg(long)]
    project: bool,

    /// Let the call through until TIME: a duration such as `30m` or `48h`, or a local time such as `18:00` or
    /// `2026-01-31T18:00`.
    #[arg(long, value_name = "TIME", value_parser = parse_end, requires = "id")]
    until: Option<Timestamp>,
}

/// What to do instead of letting a call through.
#[derive(Debug, Parser)]
struct AllowMode {
    /// End the exception, so that the hook decides about the call again.
    #[arg(long)]
    revoke: bool,

    /// List the exceptions in force.
    #[arg(long)]
    list: bool,
}

impl TermArgs {
    fn term(&self) -> ExceptionTerm {
        match self.until {
            Some(end) => ExceptionTerm::Until(end),
            None if self.project => ExceptionTerm::Project,
            None => ExceptionTerm::Once,
        }
    }
}

/// Lets a call through, revokes that, or lists the exceptions or the last denials.
pub(crate) async fn allow(args: AllowArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let Some(id) = args.id.clone() else {
        return if args.mode.list {
            let report = run_blocking(&interrupts.token(), || Ok(ExceptionReport::read())).await?;
            Ok(list(&report, args.json))
        } else {
            list_denied(&args, interrupts).await
        };
    };
    let action = if args.mode.revoke {
        "revoke exceptions"
    } else {
        "let a denied call through"
    };
    require_user(action)?;
    let store = store()?;
    if args.mode.revoke {
        return revoke(&args, &store, &id).await;
    }
    let call = store.denied(&id).map_err(|error| unusable(&error))?;
    let call = call.ok_or_else(|| {
        CliError::new(Exit::Usage, format!("unknown id `{id}`"))
            .hint("`tenterhook allow` lists the last denials with their ids")
    })?;
    if !args.json {
        show(&id, &call);
    }
    if !args.yes && !confirm(&args, interrupts).await? {
        output::line("Nothing was allowed.");
        return Ok(Exit::Done);
    }
    let exception = UserException::new(call, args.term.term());
    // If the journal cannot be written, nothing is allowed.
    record(&args, &id, ExceptionAction::Granted, Some(&exception)).await?;
    store.allow(&exception).map_err(|error| unusable(&error))?;
    if args.json {
        output::json(&json_of(&id, &exception));
    } else {
        output::line(format_args!(
            "Allowed {}. To end this, run `tenterhook allow {id} --revoke`.",
            term(&exception)
        ));
    }
    Ok(Exit::Done)
}

fn list(report: &ExceptionReport, is_json: bool) -> Exit {
    if is_json {
        output::json(&report.json());
    } else if report.is_empty() {
        output::line("No exceptions are in force.");
    } else {
        show_exceptions(report);
    }
    let mut exit = Exit::Done;
    for problem in report.problems() {
        if !is_json {
            warn(problem.text);
        }
        exit = Exit::Config;
    }
    exit
}

/// Shows the exceptions that are in force, a line each.
pub(crate) fn show_exceptions(report: &ExceptionReport) {
    let lines = report.lines();
    if lines.len() > 0 {
        output::line(format_args!(
            "{} in force:",
            count(lines.len(), "exception")
        ));
    }
    for line in lines {
        output::line(format_args!("  {line}"));
    }
}

/// Lists the last denials with their ids, because not every agent shows them to a person.
async fn list_denied(args: &AllowArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let store = store()?;
    let mut denied = run_blocking(&interrupts.token(), move || Ok(store.last_denied())).await?;
    denied.truncate(MAX_LISTED);
    if args.json {
        let denied = denied.iter().map(|(id, call)| {
            json!({
                "id": id.as_str(), "hook": call.hook, "source": call.source, "event": call.event,
                "tool": call.tool, "input": call.input, "project": call.project,
                "reason": call.reason, "denied_at": call.denied_at,
            })
        });
        output::json(&json!({ "denied": denied.collect::<Vec<Value>>() }));
        return Ok(Exit::Done);
    }
    if denied.is_empty() {
        output::line("No hook has denied a tool call yet.");
        return Ok(Exit::Done);
    }
    output::line("The last denials, the newest first:");
    for (id, call) in &denied {
        output::line(escape_line(&format!(
            "  {id}  {}  `{}` denied a call of `{}` in {}: {}",
            call.denied_at.to_zoned(zone()).strftime("%Y-%m-%d %H:%M"),
            call.hook,
            call.tool,
            call.project.display(),
            call.reason.as_deref().unwrap_or("no reason was given")
        )));
    }
    hint("`tenterhook allow ID` shows the whole call, and asks whether to let it through");
    Ok(Exit::Done)
}

fn store() -> Result<ExceptionStore, CliError> {
    let data_dir = data_dir().ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find a folder for your exceptions")
            .hint("set `TENTERHOOK_DATA_DIR` to a folder")
    })?;
    Ok(ExceptionStore::open(&data_dir))
}

/// Records in the journal what the user does with an exception.
async fn record(
    args: &AllowArgs,
    id: &DenialId,
    action: ExceptionAction,
    exception: Option<&UserException>,
) -> Result<(), CliError> {
    let record = ExceptionRecord {
        user: whoami::username().ok(),
        ..ExceptionRecord::now(action, id.as_str(), exception.map(UserException::details))
    };
    args.journal.record(JournalRecord::Exception(record)).await
}

async fn revoke(args: &AllowArgs, store: &ExceptionStore, id: &DenialId) -> Result<Exit, CliError> {
    // A damaged exception can be revoked, too.
    let exception = store.exception_of(id).ok().flatten();
    let was_there = store.revoke(id).map_err(|error| unusable(&error))?;
    if was_there {
        record(args, id, ExceptionAction::Revoked, exception.as_ref()).await?;
    }
    if args.json {
        output::json(&json!({ "id": id.as_str(), "revoked": was_there }));
    } else if was_there {
        output::line(format_args!("Revoked the exception {id}."));
    } else {
        return Err(
            CliError::new(Exit::Usage, format!("there is no exception `{id}`"))
                .hint("list the exceptions with `tenterhook allow --list`"),
        );
    }
    Ok(Exit::Done)
}

/// Shows a denied call in full, so that a person can judge it.
fn show(id: &DenialId, call: &DeniedCall) {
    output::line(format_args!(
        "{id}: the hook `{}` denied a call of `{}` ({})",
        escape_line(&call.hook),
        escape_line(&call.tool),
        escape_line(&call.event)
    ));
    for (label, text) in [
        ("reason", call.reason.as_deref().unwrap_or("none was given")),
        ("hook", &call.source),
        ("project", &call.project.to_string_lossy()),
        ("call", &call.input),
    ] {
        output::line(format_args!(
            "  {label}: {}",
            escape_invisible_indented(text, 2)
        ));
    }
}

async fn confirm(args: &AllowArgs, interrupts: &Interrupts) -> Result<bool, CliError> {
    let unchanged = "nothing was allowed";
    if args.json || !stdin().is_terminal() {
        let message = format!("no one can be asked here; {unchanged}");
        return Err(CliError::new(Exit::Usage, message).hint("pass `--yes`"));
    }
    let when = match args.term.term() {
        ExceptionTerm::Once => "the next time",
        ExceptionTerm::Until(_) => "until that time",
        ExceptionTerm::Project => "in this project from now on",
    };
    let question = format!("Let this call through {when}? [y/N] ");
    let answer = LineSource::plain().confirm(&question, interrupts).await;
    let answer = answer.map_err(|error| unanswered(&error, unchanged))?;
    Ok(answer.unwrap_or(false))
}

fn unusable(error: &TrustError) -> CliError {
    CliError::of(Exit::Failed, error)
}

/// Reads when an exception ends.
fn parse_end(text: &str) -> Result<Timestamp, String> {
    end_after(Timestamp::now(), text)
}

fn end_after(now: Timestamp, text: &str) -> Result<Timestamp, String> {
    let zone = zone();
    let local = |time: DateTime| Some(zone.to_zoned(time).ok()?.timestamp());
    let duration = text.parse::<SignedDuration>().ok();
    let end = duration
        .and_then(|duration| now.checked_add(duration).ok())
        .or_else(|| text.parse().ok())
        .or_else(|| local(text.parse().ok()?))
        .or_else(|| {
            let time: Time = text.parse().ok()?;
            let today = now.to_zoned(zone.clone()).date();
            let end = local(today.to_datetime(time))?;
            if end > now {
                Some(end)
            } else {
                local(today.tomorrow().ok()?.to_datetime(time))
            }
        });
    match end {
        Some(end) if end > now => Ok(end),
        Some(_) => Err("this time has passed".to_owned()),
        None => Err(
            "expected a duration such as `30m` or `48h`, or a time such as `18:00` or `2026-01-31T18:00`"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_duration_or_a_time_in_the_future() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().unwrap();
        let end = |text: &str| end_after(now, text).map(|end| end.to_string());
        assert_eq!(end("30m").unwrap(), "2026-01-31T12:30:00Z");
        assert_eq!(end("48h").unwrap(), "2026-02-02T12:00:00Z");
        assert_eq!(end("2026-01-31T13:00:00Z").unwrap(), "2026-01-31T13:00:00Z");
        for text in ["18:00", "03:00", "12:00"] {
            let end = end_after(now, text).unwrap();
            let wait = end.duration_since(now);
            assert!(
                wait > SignedDuration::ZERO && wait <= SignedDuration::from_hours(25),
                "{text}: {end}"
            );
        }
        assert!(end("2026-03-01T18:00").is_ok());
        assert_eq!(end("-5m").unwrap_err(), "this time has passed");
        assert_eq!(end("0s").unwrap_err(), "this time has passed");
        for text in ["", "soon", "5", "2d!"] {
            assert!(end(text).unwrap_err().starts_with("expected"), "{text}");
        }
    }
}
