//! Writes the answers for hosts.

use serde_json::Value;
use tenterhook_engine::{Decision, JsonObject};

use crate::host::answer::HostAnswer;
use crate::host::verdict::HostVerdict;
use crate::host::{EventRole, HostEvent};

/// The object that answers a host, in two parts: keys that are valid for all events, and keys that belong
/// to the event.
#[derive(Debug, Default)]
pub(crate) struct AnswerObject {
    general: JsonObject,
    specific: JsonObject,
}

impl AnswerObject {
    /// Starts an answer with what most hosts have in common: prompts and other operations are blocked with
    /// a reason, a block of `Stop` keeps the agent working, and the model sees added texts.
    pub(crate) fn of(event: &HostEvent, verdict: &HostVerdict) -> Self {
        let mut answer = Self::default();
        let is_tool = matches!(event.role, EventRole::ToolGate | EventRole::ToolResult);
        if let (Some(reason), false) = (stop_reason(verdict), is_tool) {
            answer.block(reason);
        } else if event.role == EventRole::Stop && !verdict.follow_up.is_empty() {
            answer.block(&joined(&verdict.follow_up));
        }
        if !verdict.context.is_empty() {
            answer.set_specific("additionalContext", joined(&verdict.context));
        }
        answer
    }

    /// Sets the decision about a tool call and its changed arguments.
    pub(crate) fn judge(&mut self, verdict: &HostVerdict) {
        let decision = match &verdict.decision {
            Decision::Stop { reason, .. } => Some(("deny", Some(reason))),
            Decision::Ask { reason, .. } => Some(("ask", Some(reason))),
            Decision::Proceed if verdict.is_allowed => Some(("allow", None)),
            Decision::Proceed => None,
        };
        if let Some((word, reason)) = decision {
            self.set_specific("permissionDecision", word);
            if let Some(reason) = reason {
                self.set_specific("permissionDecisionReason", reason.as_str());
            }
        }
        if let Some(input) = &verdict.input {
            self.set_specific("updatedInput", input.clone());
        }
    }

    /// Shows the person the notices, unless there are none.
    pub(crate) fn notify(&mut self, verdict: &HostVerdict) {
        if !verdict.notices.is_empty() {
            self.set("systemMessage", verdict.notices.join("\n"));
        }
    }

    /// Ends the run, if the verdict says so.
    pub(crate) fn end_run(&mut self, verdict: &HostVerdict) {
        if let Some(reason) = &verdict.stop_run {
            self.set("continue", false);
            self.set("stopReason", reason.as_str());
        }
    }

    /// Returns whether the answer is empty: the hooks have no opinion.
    pub(crate) fn is_empty(&self) -> bool {
        self.general.is_empty() && self.specific.is_empty()
    }

    /// Sets a key that is valid for all events.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.general.insert(key.to_owned(), value.into());
    }

    /// Sets a key of the event.
    pub(crate) fn set_specific(&mut self, key: &str, value: impl Into<Value>) {
        self.specific.insert(key.to_owned(), value.into());
    }

    /// Blocks the event, with the reason.
    pub(crate) fn block(&mut self, reason: &str) {
        self.set("decision", "block");
        self.set("reason", reason);
    }

    /// Returns the answer: nothing at all, or one line of JSON.
    pub(crate) fn print(mut self, event: &HostEvent) -> HostAnswer {
        if !self.specific.is_empty() {
            let mut specific = JsonObject::new();
            specific.insert("hookEventName".to_owned(), event.name.into());
            specific.extend(self.specific);
            self.general
                .insert("hookSpecificOutput".to_owned(), specific.into());
        }
        if self.general.is_empty() {
            return HostAnswer::default();
        }
        HostAnswer {
            stdout: format!("{}\n", Value::Object(self.general)),
            ..HostAnswer::default()
        }
    }
}

/// Returns the reason of a verdict that stops the operation.
pub(crate) fn stop_reason(verdict: &HostVerdict) -> Option<&str> {
    match &verdict.decision {
        Decision::Stop { reason, .. } => Some(reason),
        Decision::Proceed | Decision::Ask { .. } => None,
    }
}

/// Joins texts for the model.
pub(crate) fn joined(texts: &[String]) -> String {
    texts.join("\n\n")
}
