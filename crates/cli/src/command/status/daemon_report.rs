//! What the daemon does, for `tenterhook status`.

use serde_json::Value;
use tenterhook_daemon::{DaemonStatus, ProjectStatus};
use tenterhook_setup::warning::warn;
use tenterhook_shim::place::DaemonPlace;
use tenterhook_terminal::output;
use tenterhook_terminal::output::escape::escape_line;
use tenterhook_terminal::output::plural::count;

/// What is known of the daemon.
#[derive(Debug)]
pub(crate) struct DaemonReport(Result<Option<DaemonStatus>, String>);

impl DaemonReport {
    /// Asks the daemon, if one runs. Blocks the thread.
    pub(crate) fn query() -> Self {
        let place = DaemonPlace::of_user().map_err(|error| error.to_string());
        Self(place.and_then(|place| tenterhook_daemon::query(&place)))
    }

    /// Returns whether nothing needs the user's attention.
    pub(crate) fn is_sound(&self) -> bool {
        let has_problem =
            |project: &ProjectStatus| project.problem.is_some() || !project.broken.is_empty();
        match &self.0 {
            Ok(Some(status)) => {
                status.journal_problem.is_none()
                    && status.sessions_problem.is_none()
                    && !status.projects.iter().any(has_problem)
            }
            Ok(None) => true,
            Err(_) => false,
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
        if let Some(problem) = &status.journal_problem {
            warn(format_args!(
                "cannot write the journal: {}",
                escape_line(problem)
            ));
        }
        if let Some(problem) = &status.sessions_problem {
            warn(escape_line(problem));
        }
        for project in &status.projects {
            let folder = escape_line(&project.path.display().to_string());
            for broken in &project.broken {
                let path = escape_line(&broken.path.display().to_string());
                let problem = escape_line(&broken.problem);
                warn(format_args!(
                    "`{folder}` ({}): cannot load `{path}`: {problem}",
                    project.host
                ));
            }
            let lines = project.problem.iter().chain(&project.warnings);
            for line in lines {
                warn(format_args!(
                    "`{folder}` ({}): {}",
                    project.host,
                    escape_line(line)
                ));
            }
        }
    }
}
