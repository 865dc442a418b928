//! Shows hook runs as lines that a newcomer understands.

use std::fmt;
use std::sync::Arc;

use anstyle::Style;
use futures_util::future::BoxFuture;
use tenterhook_engine::journal::{JournalRecord, RunRecord, RunStatus};
use tenterhook_engine::{HookSpec, JournalSink};

use crate::frontend::Terminal;
use crate::output::table::{self, Cell, plain};
use crate::output::width::{cut, terminal_columns, wrap};
use crate::output::{style, styled};
use tenterhook_protocol::escape::escape_untrusted;

/// The indent of reasons that do not fit next to a run, as [`Timeline`] prints them.
const WHY_INDENT: usize = 8;
/// The narrowest column of names.
const MIN_WIDTH: usize = 14;
/// The widest common column of hook names. A longer name shifts only the lines of its own dispatch.
const MAX_WIDTH: usize = 28;

/// The widths of the name columns, so that lines of different dispatches are aligned.
#[derive(Debug, Clone, Copy)]
struct Widths {
    event: usize,
    hook: usize,
}

/// Returns a line for each hook run: event, hook, decision, duration and reason.
pub fn run_lines(runs: &[RunRecord]) -> Vec<String> {
    let narrowest = Widths {
        event: MIN_WIDTH,
        hook: MIN_WIDTH,
    };
    run_lines_of_width(runs, narrowest)
}

fn run_lines_of_width(runs: &[RunRecord], widths: Widths) -> Vec<String> {
    let rows: Vec<Vec<Cell>> = runs.iter().map(|run| run_row(run, widths)).collect();
    table::lines(&rows)
        .into_iter()
        .map(|line| format!("  {line}"))
        .collect()
}

/// Returns the lines of one run for a terminal with `columns`. A reason that does not fit gets lines of its own.
fn run_lines_within(run: &RunRecord, widths: Widths, columns: Option<usize>) -> Vec<String> {
    let mut row = run_row(run, widths);
    let whole = 4 + table::width(std::slice::from_ref(&row));
    let Some(columns) = columns.filter(|columns| whole > *columns) else {
        return run_lines_of_width(std::slice::from_ref(run), widths);
    };
    let (why, look) = row.pop().unwrap_or_default();
    let mut lines = table::lines(&[row]);
    let room = columns.saturating_sub(WHY_INDENT);
    let pieces = wrap(&why, room).into_iter();
    lines.extend(pieces.map(|piece| format!("    {}", styled(look, piece))));
    lines.iter().map(|line| format!("  {line}")).collect()
}

fn run_row(run: &RunRecord, widths: Widths) -> Vec<Cell> {
    let (word, look) = decision(run);
    let Widths { event, hook } = widths;
    let why = run
        .exception
        .as_ref()
        .or(run.cause.as_ref())
        .or(run.reason.as_ref())
        .filter(|_| run.effect != "context");
    vec![
        (format!("{:<event$}", run.event), style::QUIET),
        (format!("{:<hook$}", run.hook), style::NAME),
        (format!("{word:<10}"), look),
        (format!("{:>8}", duration(run)), style::QUIET),
        plain(
            why.map(|why| escape_untrusted(&why.trim().replace('\n', " ")))
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
        (RunStatus::Completed, _) if run.exception.is_some() => ("lifted", style::CARE),
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
pub struct Timeline {
    terminal: Arc<Terminal>,
    widths: Widths,
    decided_by: fn(&RunRecord) -> Option<String>,
}

impl Timeline {
    /// Creates a timeline that prints on `terminal`, with columns that fit the names of `hooks` and their events.
    pub fn new(terminal: Arc<Terminal>, hooks: &[HookSpec]) -> Self {
        let events = hooks.iter().filter_map(|hook| hook.event.as_ref());
        let longest_event = events.map(|event| event.as_str().len()).max();
        let longest_hook = hooks.iter().map(|hook| hook.id.as_str().len()).max();
        let widths = Widths {
            event: longest_event.unwrap_or_default().max(MIN_WIDTH),
            hook: longest_hook.unwrap_or_default().clamp(MIN_WIDTH, MAX_WIDTH),
        };
        Self {
            terminal,
            widths,
            decided_by: |_| None,
        }
    }

    /// Also prints, below a run, the line of the hook that decided.
    #[must_use]
    pub fn decided_by(mut self, line: fn(&RunRecord) -> Option<String>) -> Self {
        self.decided_by = line;
        self
    }

    fn lines(&self, runs: &[RunRecord], columns: Option<usize>) -> Vec<String> {
        let mut lines = Vec::new();
        for run in runs {
            lines.extend(run_lines_within(run, self.widths, columns));
            let decided_by = (self.decided_by)(run).into_iter();
            lines.extend(decided_by.flat_map(|line| {
                let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(WHY_INDENT));
                let line = cut(&escape_untrusted(&line), room);
                [format!("      {}", styled(style::QUIET, line))]
            }));
        }
        lines
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timeline")
    }
}

impl JournalSink for Timeline {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        let lines = self.lines(&runs(records), terminal_columns());
        self.terminal
            .print_lines(lines.iter().map(|line| format!("  {line}")));
        Box::pin(std::future::ready(()))
    }

    fn record_dropped(&self, _record: JournalRecord) {}
}

/// Returns the records that are hook runs.
pub fn runs(records: Vec<JournalRecord>) -> Vec<RunRecord> {
    let run = |record| {
        if let JournalRecord::Run(run) = record {
            Some(run)
        } else {
            None
        }
    };
    records.into_iter().filter_map(run).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_line_of_a_run_is_wider_than_the_terminal() {
        let record = json!({
            "v": 1, "event_id": "01939b2c-8f00-7000-8000-000000000001",
            "event": "pre_tool_use", "hook": "guard", "handler": "command", "source": "hooks.yaml",
            "status": "completed", "effect": "deny", "duration_ms": 1.0,
            "reason": "pushes to the main branch are not allowed before the release is done",
        });
        let run: RunRecord = serde_json::from_value(record).unwrap();
        let widths = Widths {
            event: MIN_WIDTH,
            hook: MIN_WIDTH,
        };
        let widest = |columns| {
            let lines = run_lines_within(&run, widths, columns);
            let plain = lines
                .iter()
                .map(|line| anstream::adapter::strip_str(line).to_string());
            let plain: Vec<String> = plain.collect();
            assert!(plain.join(" ").contains("the main branch"), "{plain:?}");
            plain
                .iter()
                .map(|line| line.chars().count() + 2)
                .max()
                .unwrap()
        };
        assert!(widest(Some(80)) <= 80);
        assert!(widest(Some(60)) <= 60);
        assert!(widest(None) > 80);
    }
}
