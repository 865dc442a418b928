//! The result of sending the event of a case to hooks.

use serde::{Deserialize, Serialize};
use tenterhook_engine::journal::{RunRecord, RunStatus};
use tenterhook_engine::{JsonObject, RegisteredHook};

use crate::decision::ExpectedDecision;

/// The result of a case, as the process that ran it reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// The decision of the hooks.
    pub decision: ExpectedDecision,
    /// Why they ask or stop.
    pub reason: Option<String>,
    /// The hook that asks or stops, if it is known.
    pub by: Option<DecidedBy>,
    /// The payload that was sent.
    pub before: JsonObject,
    /// The payload as the hooks left it.
    pub after: JsonObject,
    /// The texts that hooks gave the model.
    pub context: Vec<String>,
    /// What each hook did, in order.
    pub runs: Vec<RunRecord>,
    /// What was sent to the hooks, in a few words: the event, or the call of a tool.
    pub sent: String,
    /// The hooks that were loaded. Empty if a hook ran.
    pub unmatched: Vec<LoadedHook>,
}

/// A hook that was loaded, with its event and its matcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedHook {
    /// The hook.
    pub hook: String,
    /// The event, or `None` for every event.
    pub event: Option<String>,
    /// The matcher, or `*` if it matches everything.
    pub matcher: String,
}

impl From<RegisteredHook> for LoadedHook {
    fn from(hook: RegisteredHook) -> Self {
        Self {
            hook: hook.id.to_string(),
            event: hook.event.map(|event| event.to_string()),
            matcher: hook.matcher,
        }
    }
}

/// The hook that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidedBy {
    /// The hook.
    pub hook: String,
    /// Its file, and the line if it is known.
    pub source: String,
    /// The event on which it decided.
    pub event: String,
}

/// A hook that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseFailure {
    /// The hook.
    pub hook: String,
    /// Its file, and the line if it is known.
    pub source: String,
    /// What went wrong.
    pub cause: String,
}

impl CaseResult {
    /// Returns the hooks that failed.
    pub fn failures(&self) -> Vec<CaseFailure> {
        // Every other end of a run is a failure, also one that a later version adds.
        let has_failed =
            |run: &&RunRecord| !matches!(run.status, RunStatus::Completed | RunStatus::Skipped);
        let failed = self.runs.iter().filter(has_failed);
        failed
            .map(|run| CaseFailure {
                hook: run.hook.to_string(),
                source: run.source.clone(),
                cause: run.cause.clone().unwrap_or_default(),
            })
            .collect()
    }

    /// Returns how many hooks ran.
    pub fn hooks_run(&self) -> usize {
        let ran = |run: &&RunRecord| run.status != RunStatus::Skipped;
        self.runs.iter().filter(ran).count()
    }
}
