//! What needs the user's attention in the state of the daemon.

use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::guard_problem::{GuardProblem, GuardProblemKind};
use tenterhook_systems::host::HostAgent;

use crate::requests::{DaemonStatus, ProjectStatus};

impl DaemonStatus {
    /// Returns what needs the user's attention.
    pub fn problems(&self) -> Vec<GuardProblem> {
        let journal = self.journal_problem.as_ref();
        let journal = journal.map(|problem| format!("cannot write the journal: {problem}"));
        let own = journal.iter().chain(&self.sessions_problem);
        let own = own.map(|problem| of_daemon(problem));
        own.chain(self.projects.iter().flat_map(of_project))
            .collect()
    }
}

/// Creates the problem of a daemon that does not work.
pub fn of_daemon(text: &str) -> GuardProblem {
    let text = escape_line(text);
    GuardProblem::new(GuardProblemKind::Daemon, text, "tenterhook daemon --stop")
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
