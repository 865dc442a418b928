//! What hooks did, as lines that a newcomer understands.

use std::fmt;
use std::sync::Arc;

use anstyle::Style;
use futures_util::future::BoxFuture;
use tenterhook::journal::{JournalRecord, RunRecord, RunStatus};
use tenterhook::{EventName, HookSpec, JournalSink};

use crate::output::style;
use crate::safe::safe;
use crate::table::{self, Cell, plain};
use crate::terminal::Terminal;

/// The narrowest column of event names.
const EVENT_WIDTH: usize = 14;

/// Returns a line for each hook: event, hook, what it decided, how long it took, why.
pub(crate) fn run_lines(runs: &[RunRecord]) -> Vec<String> {
    run_lines_of_width(runs, EVENT_WIDTH)
}

fn run_lines_of_width(runs: &[RunRecord], width: usize) -> Vec<String> {
    let rows: Vec<Vec<Cell>> = runs.iter().map(|run| run_row(run, width)).collect();
    table::lines(&rows)
        .into_iter()
        .map(|line| format!("  {line}"))
        .collect()
}

fn run_row(run: &RunRecord, width: usize) -> Vec<Cell> {
    let (word, look) = decision(run);
    let why = run
        .cause
        .as_ref()
        .or(run.reason.as_ref())
        .filter(|_| run.effect != "context");
    vec![
        (format!("{:<width$}", run.event), style::QUIET),
        (format!("{:<14}", run.hook), style::NAME),
        (format!("{word:<10}"), look),
        (format!("{:>8}", duration(run)), style::QUIET),
        plain(
            why.map(|why| safe(&why.trim().replace('\n', " ")))
                .unwrap_or_default(),
        ),
    ]
}

fn duration(run: &RunRecord) -> String {
    if run.status == RunStatus::Skipped {
        String::new()
    } else {
        format!("{:.1} ms", run.duration_ms)
    }
}

fn decision(run: &RunRecord) -> (&str, Style) {
    match (run.status, run.effect.as_str()) {
        (RunStatus::Skipped, _) => ("not run", style::QUIET),
        (RunStatus::Completed, "none") => ("no opinion", style::QUIET),
        (RunStatus::Completed, "allow") => ("allow", style::GOOD),
        (RunStatus::Completed, "deny" | "block" | "stop_run") => ("deny", style::BAD),
        (RunStatus::Completed, "ask") => ("ask", style::CARE),
        (RunStatus::Completed, other) => (other, style::CARE),
        (_, _) if run.let_through => ("let through", style::BAD),
        (RunStatus::TimedOut, _) => ("timed out", style::BAD),
        (RunStatus::Cancelled, _) => ("cancelled", style::CARE),
        (_, _) => ("failed", style::BAD),
    }
}

/// Prints the runs of each dispatch as it ends.
pub(crate) struct Timeline {
    terminal: Arc<Terminal>,
    /// The width of the longest name of an event that has hooks: lines of different dispatches line up.
    width: usize,
}

impl Timeline {
    pub(crate) fn new(terminal: Arc<Terminal>, hooks: &[HookSpec]) -> Self {
        let names = hooks.iter().filter_map(|hook| hook.event.as_ref());
        let longest = names.map(|name| EventName::as_str(name).len()).max();
        Self {
            terminal,
            width: longest.unwrap_or_default().max(EVENT_WIDTH),
        }
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timeline")
    }
}

impl JournalSink for Timeline {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        let lines = run_lines_of_width(&runs(records), self.width);
        self.terminal
            .lines(lines.iter().map(|line| format!("  {line}")));
        Box::pin(std::future::ready(()))
    }

    fn record_dropped(&self, _record: JournalRecord) {}
}

/// Returns the records of runs.
pub(crate) fn runs(records: Vec<JournalRecord>) -> Vec<RunRecord> {
    let run = |record| {
        if let JournalRecord::Run(run) = record {
            Some(run)
        } else {
            None
        }
    };
    records.into_iter().filter_map(run).collect()
}
