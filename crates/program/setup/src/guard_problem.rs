//! What keeps guards from being in force, as `tenterhook status` and `tenterhook doctor` report it.

use serde::Serialize;

/// A reason why a guard is not in force, or not as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardProblem {
    /// What is wrong. The order of kinds is the order in which problems are reported.
    pub problem: GuardProblemKind,
    /// The agent, if it concerns only one.
    pub host: Option<&'static str>,
    /// What is wrong, as a sentence without a full stop. It is safe to print.
    pub text: String,
    /// What the user can do: a command, or a sentence without a full stop.
    pub next_step: String,
}

/// The kinds of reasons, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardProblemKind {
    /// The program that agents start cannot run, or is of another version.
    Program,
    /// A setting of the agent switches its hooks off.
    SwitchedOff,
    /// Entries in the configuration of the agent are missing, changed or unreadable.
    Entries,
    /// The agent waits until the user approves the entries.
    EntriesNotApproved,
    /// Tenterhook is in the configuration of no agent.
    NotInstalled,
    /// A source of hooks cannot be loaded, so every gate denies.
    BrokenHooks,
    /// No hook can stop anything.
    NoGuard,
    /// A hook never runs, because the name of its tool is misspelt.
    NeverRuns,
    /// Hooks of the project are not approved.
    NotApproved,
    /// An earlier version of a file is in force.
    Outdated,
    /// The user has disabled a source of hooks.
    Disabled,
    /// The daemon does not answer, or cannot write its files.
    Daemon,
    /// An exception of the user cannot be read, so the denial stands.
    Exceptions,
    /// The agent runs every hook twice.
    RunsTwice,
    /// The agent is newer than the version that was tested.
    NewerVersion,
}

impl GuardProblem {
    /// Creates a problem of no agent in particular.
    pub fn new(
        problem: GuardProblemKind,
        text: impl Into<String>,
        next_step: impl Into<String>,
    ) -> Self {
        Self {
            problem,
            host: None,
            text: text.into(),
            next_step: next_step.into(),
        }
    }

    /// Returns the same problem of one agent.
    #[must_use]
    pub fn of_host(self, host: &'static str) -> Self {
        Self {
            host: Some(host),
            ..self
        }
    }
}

/// Sorts problems, the worst first, and keeps one of each text: several agents may have the same.
pub fn worst_first(mut problems: Vec<GuardProblem>) -> Vec<GuardProblem> {
    problems.sort_by_key(|it| it.problem);
    let mut kept: Vec<GuardProblem> = Vec::new();
    for problem in problems {
        if kept.iter().all(|it| it.text != problem.text) {
            kept.push(problem);
        }
    }
    kept
}
