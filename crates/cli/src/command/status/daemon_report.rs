//! What the daemon does, for `tenterhook status`.

use serde_json::Value;
use tenterhook_daemon::{DaemonStatus, of_daemon};
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::guard_problem::GuardProblem;
use tenterhook_setup::warning::warn;
use tenterhook_shim::place::DaemonPlace;
use tenterhook_terminal::output;
use tenterhook_terminal::output::plural::count;

/// What is known of the daemon.
#[derive(Debug)]
pub(crate) struct DaemonReport(Result<Option<DaemonStatus>, String>);

impl DaemonReport {
    /// Asks the daemon, if one runs. Blocks the thread.
    pub(crate) fn query() -> Self {
        let place = DaemonPlace::of_user().map_err(|error| error.to_string());
        let status = |place| tenterhook_daemon::query(&place).map_err(|error| error.to_string());
        Self(place.and_then(status))
    }

    /// Returns what needs the user's attention.
    pub(crate) fn problems(&self) -> Vec<GuardProblem> {
        match &self.0 {
            Ok(Some(status)) => status.problems(),
            Ok(None) => Vec::new(),
            Err(problem) => vec![of_daemon(problem)],
        }
    }

    /// Returns the report as JSON: null if no daemon runs.
    pub(crate) fn json(&self) -> Value {
        match &self.0 {
            Ok(status) => serde_json::to_value(status).unwrap_or(Value::Null),
            Err(problem) => serde_json::json!({ "problem": problem }),
        }
    }

    pub(crate) fn show(&self) {
        let status = match &self.0 {
            Ok(Some(status)) => status,
            Ok(None) => return output::line("The daemon is not running. It starts on demand."),
            Err(problem) => return warn(escape_line(problem)),
        };
        output::line(format!(
            "The daemon runs (process {}, version {}): {}, {} stopped, {} denied because a hook could not be asked.",
            status.process,
            escape_line(&status.version),
            count(
                usize::try_from(status.events).unwrap_or(usize::MAX),
                "event"
            ),
            status.stopped,
            status.failed,
        ));
        for project in &status.projects {
            let folder = escape_line(&project.path.display().to_string());
            for line in &project.warnings {
                let (host, line) = (&project.host, escape_line(line));
                warn(format_args!("`{folder}` ({host}): {line}"));
            }
        }
    }
}
