//! The report of one event that was sent through hooks: what each of them did, and the decision.

use std::io::{self, IsTerminal as _};

use serde_json::{Value, json};
use tenterhook_engine::journal::{RunRecord, RunStatus};
use tenterhook_engine::{
    Decision, Dispatched, EventClass, HookId, Permission, StopKind, WriteError,
};

use crate::output::plural::count;
use crate::output::{self, style, styled};
use crate::timeline;
use tenterhook_protocol::escape::{escape_indented, escape_line};

/// An event after its hooks have run.
#[derive(Debug)]
pub struct FireReport {
    dispatched: Dispatched,
    decision: Decision,
    /// What the user can do if a denial was wrong.
    remedy: Option<String>,
    runs: Vec<RunRecord>,
    diverged: Value,
    explanation: String,
}

/// Returns the decision of the hooks. If a hook of a gate ends the run, the decision is to stop the operation: a host
/// that calls this program sees only its exit status, and there is no run that could be ended later.
fn decision_of(dispatched: &Dispatched) -> Decision {
    let outcome = &dispatched.outcome;
    let info = dispatched.event.info();
    let decision = dispatched.decision();
    let is_stopped = matches!(decision, Decision::Stop { .. });
    match &outcome.stop_run {
        Some(reason) if info.class == EventClass::Gate && !is_stopped => Decision::Stop {
            reason: reason.clone(),
            by: outcome.run_stopped_by.clone(),
            kind: StopKind::RunEnded,
        },
        _ => decision,
    }
}

impl FireReport {
    /// Creates the report of an event. `explanation` is the command that shows why hooks did not match. `diverged` are
    /// approved hooks that changed in the project or are gone, as the JSON report shows them.
    pub fn new(
        mut dispatched: Dispatched,
        runs: Vec<RunRecord>,
        explanation: String,
        diverged: Value,
    ) -> Self {
        // The reason of the decision would repeat it.
        let remedy = dispatched.outcome.remedy.take();
        Self {
            remedy,
            decision: decision_of(&dispatched),
            dispatched,
            runs,
            diverged,
            explanation,
        }
    }

    /// Returns whether the operation may proceed. Observers cannot stop an operation, but their hooks may end the run.
    pub fn may_proceed(&self) -> bool {
        matches!(self.decision, Decision::Proceed) && self.dispatched.outcome.stop_run.is_none()
    }

    fn name(&self) -> &str {
        self.dispatched.event.event().name()
    }

    /// Returns the hook that asks or stops, and its reason.
    fn objection(&self) -> Option<(Option<&HookId>, &str)> {
        match &self.decision {
            Decision::Proceed => None,
            Decision::Ask { reason, by } | Decision::Stop { reason, by, .. } => {
                Some((by.as_ref(), reason))
            }
        }
    }

    /// Writes to stderr why the operation does not proceed, because other agents show a hook's stderr. [`show`](Self::show)
    /// leaves this verdict out, so that a person reads it once.
    pub fn explain_to_host(&self) {
        if self.objection().is_some() {
            let (verdict, look) = self.verdict();
            output::note(format_args!("{}: {}", self.name(), styled(look, verdict)));
            if let Some(remedy) = self.remedy.as_ref().filter(|_| io::stdout().is_terminal()) {
                output::note(format_args!("If this was wrong, you can {remedy}."));
            }
        }
    }

    /// Describes the decision, who made it, and why.
    fn verdict(&self) -> (String, anstyle::Style) {
        let outcome = &self.dispatched.outcome;
        let (text, look) = match &self.decision {
            Decision::Ask { by, .. } => {
                let hook = by
                    .as_ref()
                    .map(|hook| format!("`{}`", escape_line(hook.as_str())));
                (
                    format!("{} asks", hook.as_deref().unwrap_or("a hook")),
                    style::CARE,
                )
            }
            Decision::Stop { by, .. } => {
                let by = by
                    .as_ref()
                    .map(|hook| format!(" by `{}`", escape_line(hook.as_str())));
                (format!("stopped{}", by.unwrap_or_default()), style::BAD)
            }
            Decision::Proceed if outcome.stop_run.is_some() => {
                ("the run ends".to_owned(), style::BAD)
            }
            Decision::Proceed if outcome.permission == Permission::Allow => {
                ("allowed".to_owned(), style::GOOD)
            }
            Decision::Proceed => ("not stopped".to_owned(), style::GOOD),
        };
        let reason = self.objection().map(|(_, reason)| reason);
        let reason = reason
            .or(outcome.stop_run.as_deref())
            .or(outcome.permission_reason.as_deref())
            .filter(|reason| !reason.is_empty());
        let reason = reason.map(|reason| format!(": {}", escape_indented(reason, 2)));
        (format!("{text}{}", reason.unwrap_or_default()), look)
    }

    /// Returns the report as JSON.
    ///
    /// # Errors
    /// Fails if the event cannot be written as JSON.
    pub fn to_json(&self) -> Result<Value, WriteError> {
        let outcome = &self.dispatched.outcome;
        let event = self.dispatched.event.to_json()?;
        let run = |run: &RunRecord| {
            json!({
                "hook": run.hook,
                "handler": run.handler,
                "source": run.source,
                "status": run.status,
                "effect": run.effect,
                "reason": run.reason,
                "cause": run.cause,
                "let_through": run.let_through,
                "exception": run.exception,
                "duration_ms": run.duration_ms,
            })
        };
        let runs: Vec<Value> = self.runs.iter().map(run).collect();
        let (decision, kind) = match &self.decision {
            Decision::Proceed => ("proceed", None),
            Decision::Ask { .. } => ("ask", None),
            Decision::Stop { kind, .. } => ("stop", Some(kind)),
        };
        let (by, reason) = self.objection().unzip();
        Ok(json!({
            "decision": decision,
            "reason": reason.or(outcome.stop_run.as_deref()).or(outcome.permission_reason.as_deref()),
            "by": by.flatten(),
            "kind": kind,
            "error": null,
            "permission": outcome.permission,
            "blocked": decision == "stop" || outcome.stop_run.is_some(),
            "remedy": self.remedy,
            "event": event,
            "rewritten": outcome.rewritten,
            "context": outcome.context,
            "inject": outcome.inject,
            "follow_up": outcome.follow_up,
            "handled": outcome.handled,
            "supply": outcome.supply,
            "collect": outcome.collect,
            "notices": outcome.notices,
            "metadata": outcome.metadata,
            "failures": outcome.failures,
            "runs": runs,
            "diverged": self.diverged,
        }))
    }

    /// Shows what each hook did, the changes, and the decision unless [`explain_to_host`](Self::explain_to_host)
    /// reports it.
    pub fn show(&self) {
        for line in timeline::run_lines(&self.runs) {
            output::line(line);
        }
        let outcome = &self.dispatched.outcome;
        if self.objection().is_none() {
            let (verdict, look) = self.verdict();
            output::line(format_args!(
                "{}: {}{}",
                self.name(),
                styled(look, verdict),
                self.how_many()
            ));
        }
        for field in &outcome.rewritten {
            self.show_rewritten(field);
        }
        for (label, texts) in [
            ("context", &outcome.context),
            ("follow-up", &outcome.follow_up),
            ("notice", &outcome.notices),
        ] {
            for text in texts {
                output::line(format_args!("{label}: {}", escape_indented(text, 2)));
            }
        }
    }

    /// Describes how many hooks ran, or how to find out why none did.
    fn how_many(&self) -> String {
        let ran = self
            .runs
            .iter()
            .filter(|run| run.status != RunStatus::Skipped)
            .count();
        if self.runs.is_empty() {
            format!("; no hook matched (`{}` shows why)", self.explanation)
        } else {
            format!(" ({} ran)", count(ran, "hook"))
        }
    }

    fn show_rewritten(&self, field: &str) {
        let event = &self.dispatched.event;
        let rewrite = event.info().rewrites.iter().find(|row| row.field == field);
        let target = rewrite.map_or(field, |row| row.target);
        let mut parts = target.split('.');
        let payload = event.payload().ok();
        let top = payload.zip(parts.next());
        let value = top
            .and_then(|(payload, part)| payload.get(part))
            .and_then(|value| parts.try_fold(value, |value, part| value.get(part)))
            .map(ToString::to_string);
        output::line(format_args!(
            "rewritten `{target}`: {}",
            value.unwrap_or_default()
        ));
    }
}
