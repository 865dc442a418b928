//! What commands can request of the daemon, and its answers.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tenterhook_engine::JournalSink as _;
use tokio::time::timeout;

use crate::outdated_hooks::OutdatedHooks;
use crate::projects::LoadResult;
use crate::shared_daemon::SharedDaemon;

/// How long a report of the daemon's state waits for a look at the files of hooks.
const FOLLOW_WAIT: Duration = Duration::from_secs(2);

/// What is reported about a folder whose hooks could not be loaded, and whose files have changed since.
const LOADED_NEXT: &str =
    "a file that could not be loaded has changed, so the next event loads the hooks again";

/// A request of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ControlRequest {
    /// What the daemon does.
    Status,
    /// Replaces the hooks of all sessions by the current versions of their files.
    Reload,
    /// Ends the daemon after the events that are being handled.
    Stop,
}

/// What the daemon does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// The version of the program.
    pub version: String,
    /// The id of its process.
    pub process: u32,
    /// Its socket.
    pub socket: PathBuf,
    /// How long it has been running, in seconds.
    pub uptime_s: u64,
    /// How many events it has handled.
    pub events: u64,
    /// How many events hooks stopped.
    pub stopped: u64,
    /// How many gates denied because their hooks could not be asked.
    pub failed: u64,
    /// How many failures of hooks let an operation continue.
    pub let_through: u64,
    /// How many effects hosts could not honour.
    pub downgrades: u64,
    /// Why the journal cannot be written, if it cannot.
    pub journal_problem: Option<String>,
    /// Why the next daemon may not know in which folders sessions started, if it may not.
    #[serde(default)]
    pub sessions_problem: Option<String>,
    /// The folders whose hooks are loaded.
    pub projects: Vec<ProjectStatus>,
}

/// The hooks of one folder for one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectStatus {
    /// The name of the host.
    pub host: String,
    /// The folder.
    pub path: PathBuf,
    /// How many sessions have these hooks.
    pub sessions: usize,
    /// How many hooks there are.
    pub hooks: usize,
    /// The sources that should be in force but cannot be loaded. Gates deny.
    pub broken: Vec<BrokenHooks>,
    /// The files of which a running session has an earlier version.
    #[serde(default)]
    pub outdated: Vec<OutdatedHooks>,
    /// What the user should know, one line each.
    pub warnings: Vec<String>,
    /// Why no hook could be loaded. Gates deny.
    pub problem: Option<String>,
}

/// A source that should be in force but cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenHooks {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: String,
}

/// What a reload changed in one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadedProject {
    /// The name of the host.
    pub host: String,
    /// The folder.
    pub path: PathBuf,
    /// The changes, one line each.
    pub changes: Vec<String>,
    /// What could not be reloaded, one line each.
    pub problems: Vec<String>,
}

/// Returns the answer to a request that is refused.
pub(crate) fn refused(text: &str) -> Value {
    json!({ "error": text })
}

impl ControlRequest {
    /// Returns whether only the user may request this.
    pub(crate) fn changes_hooks(self) -> bool {
        match self {
            Self::Status => false,
            Self::Reload | Self::Stop => true,
        }
    }

    pub(crate) async fn carry_out(self, daemon: &SharedDaemon) -> Value {
        match self {
            Self::Status => json!({ "result": status(daemon).await }),
            Self::Reload => json!({ "result": reload(daemon).await }),
            Self::Stop => {
                daemon.stop.cancel();
                json!({ "result": null })
            }
        }
    }
}

async fn status(daemon: &SharedDaemon) -> DaemonStatus {
    let counters = &daemon.events.counters;
    let projects = daemon.events.projects.in_use();
    let loaded = projects.iter().filter_map(|(.., project, _)| project.now());
    let follow = loaded
        .flatten()
        .map(|project| async move { project.follow().await });
    // A task for each, because a look that takes too long must not be interrupted.
    let follow: Vec<_> = follow
        .map(|follow| daemon.events.tasks.spawn(follow))
        .collect();
    timeout(FOLLOW_WAIT, join_all(follow)).await.ok();
    let mut of_projects = Vec::new();
    for (host, path, project, sessions) in projects {
        of_projects.push(project_status(host, path, project.now(), sessions).await);
    }
    DaemonStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        process: std::process::id(),
        socket: daemon.about.socket.clone(),
        uptime_s: daemon.about.started.elapsed().as_secs(),
        events: counters.events.get(),
        stopped: counters.stopped.get(),
        failed: counters.failed.get(),
        let_through: counters.let_through.get(),
        downgrades: counters.downgrades.get(),
        journal_problem: daemon.events.journal.take_problem(),
        sessions_problem: daemon.events.projects.starts_problem(),
        projects: of_projects,
    }
}

/// Describes the hooks of one folder for one host.
async fn project_status(
    host: &str,
    path: PathBuf,
    project: Option<LoadResult>,
    sessions: usize,
) -> ProjectStatus {
    let mut status = ProjectStatus {
        host: host.to_owned(),
        path,
        sessions,
        hooks: 0,
        broken: Vec::new(),
        outdated: Vec::new(),
        warnings: Vec::new(),
        problem: None,
    };
    match project {
        None => status
            .warnings
            .push("its hooks are being loaded".to_owned()),
        Some(Err(problem)) => status.problem = Some(problem.to_string()),
        Some(Ok(project)) => {
            status.hooks = project.hooks;
            status.warnings.clone_from(&project.warnings);
            status.outdated = project.outdated();
            let broken = timeout(FOLLOW_WAIT, project.broken_still()).await;
            let broken = broken.unwrap_or(&project.broken);
            if broken.is_empty() && !project.broken.is_empty() {
                status.warnings.push(LOADED_NEXT.to_owned());
            }
            let broken = broken.iter().map(|source| BrokenHooks {
                path: source.path.clone(),
                problem: source
                    .first_error()
                    .map(|problem| problem.message.clone())
                    .unwrap_or_default(),
            });
            status.broken = broken.collect();
        }
    }
    status
}

/// Replaces the hooks of all sessions. A folder whose hooks cannot be loaded is loaded again by its next
/// event.
async fn reload(daemon: &SharedDaemon) -> Vec<ReloadedProject> {
    let mut reloaded = Vec::new();
    for (host, path, project, _) in daemon.events.projects.in_use() {
        let mut report = ReloadedProject {
            host: host.to_owned(),
            path: path.clone(),
            changes: Vec::new(),
            problems: Vec::new(),
        };
        match project.loaded().await {
            Err(problem) => report.problems.push(problem.to_string()),
            Ok(project) => {
                if !project.broken_still().await.is_empty() {
                    report.problems.extend(project.refusal());
                } else if !project.broken.is_empty() {
                    report.changes.push(LOADED_NEXT.to_owned());
                }
                let done = project.reload().await;
                let changes = done.changes.iter().map(ToString::to_string);
                report.changes.extend(changes);
                report.problems.extend(done.problems);
                // What was reported before still waits for the user.
                let waiting = project.outdated().into_iter().map(|it| it.change);
                let is_new = |text: &String| !report.changes.contains(text);
                let waiting: Vec<String> = waiting.filter(is_new).collect();
                report.problems.extend(waiting);
            }
        }
        // New sessions load the hooks again, with everything that a reload does not cover.
        daemon.events.projects.forget(host, &path);
        reloaded.push(report);
    }
    reloaded
}
