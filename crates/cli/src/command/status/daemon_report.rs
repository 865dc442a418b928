//! What the daemon does, for `tenterhook status`.

use serde_json::Value;
use tenterhook_daemon::{DaemonStatus, ProjectStatus};
use tenterhook_setup::guard_problem::{GuardProblem, GuardProblemKind};
use tenterhook_setup::warning::warn;
use tenterhook_shim::place::DaemonPlace;
use tenterhook_systems::host::HostAgent;
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

    /// Returns what needs the user's attention.
    pub(crate) fn problems(&self) -> Vec<GuardProblem> {
        let of_daemon = |text: &String| {
            let text = escape_line(text);
            GuardProblem::new(GuardProblemKind::Daemon, text, "tenterhook daemon --stop")
        };
        let status = match &self.0 {
            Ok(Some(status)) => status,
            Ok(None) => return Vec::new(),
            Err(problem) => return vec![of_daemon(problem)],
        };
        let journal = status.journal_problem.as_ref();
        let journal = journal.map(|problem| format!("cannot write the journal: {problem}"));
        let own = journal
            .iter()
            .chain(&status.sessions_problem)
            .map(of_daemon);
        own.chain(status.projects.iter().flat_map(of_project))
            .collect()
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

/// Returns what needs the user's attention in the hooks of one folder.
fn of_project(project: &ProjectStatus) -> Vec<GuardProblem> {
    let folder = escape_line(&project.path.display().to_string());
    let host = HostAgent::by_name(&project.host);
    let title = host.map_or(project.host.as_str(), |host| host.title);
    let in_sessions = |kind, text: &str, step: &str| {
        let text = escape_line(text);
        let text = format!("in sessions of {title} in `{folder}`: {text}");
        let problem = GuardProblem::new(kind, text, escape_line(step));
        match host {
            Some(host) => problem.of_host(host.name),
            None => problem,
        }
    };
    let whole = project.problem.iter().map(|problem| {
        let text = format!("no hook can be loaded, so every gate denies: {problem}");
        in_sessions(GuardProblemKind::BrokenHooks, &text, "tenterhook check")
    });
    let broken = project.broken.iter().map(|source| {
        let (path, problem) = (source.path.display(), &source.problem);
        let text = format!("`{path}` cannot be loaded, so every gate denies: {problem}");
        let step = format!("repair the file, or run `tenterhook disable '{path}'`");
        in_sessions(GuardProblemKind::BrokenHooks, &text, &step)
    });
    let outdated = project.outdated.iter();
    let outdated =
        outdated.map(|it| in_sessions(GuardProblemKind::Outdated, &it.change, &it.next_step));
    whole.chain(broken).chain(outdated).collect()
}
