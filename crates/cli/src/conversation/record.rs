//! The result of a conversation: its runs, its exit status, and the report for programs.

use serde::Serialize;
use tenterhook_agent::{RunEnd, RunReport};
use tenterhook_engine::{SessionId, Usage};

use tenterhook_setup::exit::Exit;

/// The results of the prompts of a session.
#[derive(Default)]
pub(super) struct ConversationRecord {
    pub(super) runs: Vec<PromptRun>,
    /// The worst status so far.
    pub(super) exit: Option<Exit>,
    /// Why the last failed command failed.
    pub(super) problem: Option<String>,
    pub(super) broken: Option<std::io::Error>,
}

/// The result of one prompt.
#[derive(Serialize)]
pub(super) struct PromptRun {
    prompt: String,
    pub(super) end: &'static str,
    pub(super) reason: Option<String>,
    response: String,
    turns: u32,
    usage: Usage,
    cost: Option<f64>,
}

/// The report of a session for programs: the last run, and all runs.
#[derive(Serialize)]
pub(super) struct SessionReport<'a> {
    session_id: &'a SessionId,
    end: Option<&'a str>,
    reason: Option<&'a str>,
    response: Option<&'a str>,
    turns: Option<u32>,
    usage: Option<&'a Usage>,
    cost: Option<f64>,
    runs: &'a [PromptRun],
}

impl ConversationRecord {
    pub(super) fn note(&mut self, exit: Exit) {
        self.exit = self.exit.max(Some(exit));
    }

    pub(super) fn report<'a>(&'a self, session_id: &'a SessionId) -> SessionReport<'a> {
        let last = self.runs.last();
        SessionReport {
            session_id,
            end: last.map(|run| run.end),
            reason: last.and_then(|run| run.reason.as_deref()),
            response: last.map(|run| run.response.as_str()),
            turns: last.map(|run| run.turns),
            usage: last.map(|run| &run.usage),
            cost: last.and_then(|run| run.cost),
            runs: &self.runs,
        }
    }
}

/// Describes a run for the report.
pub(super) fn prompt_run(prompt: &str, ending: RunEnding, report: RunReport) -> PromptRun {
    PromptRun {
        prompt: prompt.to_owned(),
        end: ending.word,
        reason: ending.reason,
        response: report.response,
        turns: report.turns,
        usage: report.usage,
        cost: report.cost,
    }
}

/// How the end of a run is reported to a person, to a program and to a shell.
pub(super) struct RunEnding {
    pub(super) word: &'static str,
    /// Why the run ended before the model had finished.
    pub(super) reason: Option<String>,
    /// Whether the agent itself has already shown the reason as an error.
    pub(super) is_shown_by_agent: bool,
    pub(super) exit: Exit,
}

impl RunEnding {
    pub(super) fn of(end: &RunEnd) -> Self {
        let ending = |word, reason, exit| Self {
            word,
            reason,
            is_shown_by_agent: matches!(
                end,
                RunEnd::HookBlocked { .. } | RunEnd::LoopDetected { .. } | RunEnd::Error { .. }
            ),
            exit,
        };
        match end {
            RunEnd::Completed => ending("completed", None, Exit::Done),
            RunEnd::Handled => ending("handled", None, Exit::Done),
            RunEnd::Cancelled => ending(
                "cancelled",
                Some("it was interrupted".to_owned()),
                Exit::Interrupted,
            ),
            RunEnd::HookBlocked { event, reason } => ending(
                "hook_blocked",
                Some(format!("a {event} hook stopped it: {reason}")),
                Exit::Stopped,
            ),
            RunEnd::LoopDetected { tool } => {
                let reason =
                    format!("the model called `{tool}` repeatedly with the same arguments");
                ending("loop_detected", Some(reason), Exit::Run)
            }
            RunEnd::MaxIterations { limit } => ending(
                "max_iterations",
                Some(format!("the limit of {limit} model calls was reached")),
                Exit::Run,
            ),
            RunEnd::Error { message } => ending("error", Some(message.clone()), Exit::Run),
            other => ending("unknown", Some(format!("{other:?}")), Exit::Run),
        }
    }
}
