//! What follows a decision or a run: the result passes the hooks and becomes final.

use std::time::Duration;

use tenterhook_protocol::event::{
    ApprovalDecision, ApprovalSource, DecisionSource, DenialSource, PermissionDenied, PostToolUse,
    ToolApprovalDecision, ToolResponseTransform,
};
use tenterhook_protocol::{ContentBlock, Event, HookId, JsonObject, Outcome, ToolCall, ToolResult};

use super::{Bench, CANCELED, Called, Denied, Passage, Refusal, Stop, Unrun, call_event};
use crate::frontend::Denial;
use crate::hooks::{NO_REASON, reason_or_none};

impl Denied {
    /// Returns the words for the model.
    fn for_model(&self) -> String {
        let because = if self.reason.is_empty() {
            String::new()
        } else {
            format!(" Reason: {}", self.reason)
        };
        match self.event {
            Some(event) => format!("The tool call was rejected by a {event} hook.{because}"),
            None if self.source == DenialSource::User => {
                format!("The tool call was rejected by the user.{because}")
            }
            None => format!("The tool call was denied.{because}"),
        }
    }
}

impl Bench<'_> {
    /// Says that a call runs.
    pub(super) async fn settle_allowed(&self, passage: &Passage<'_>, source: ApprovalSource) {
        self.tell_decision(passage, ApprovalDecision::Allow, source)
            .await;
        if passage.call.arguments.as_object() != Some(&passage.input) {
            let frontend = self.hooks.frontend();
            frontend.tool_rewritten(self.agent, passage.call, &passage.input);
        }
    }

    /// Says that a call does not run, and why, to hooks, human and model.
    async fn deny(&self, passage: Passage<'_>, denied: Denied) -> Called {
        self.tell_decision(&passage, ApprovalDecision::Deny, denied.source)
            .await;
        let event =
            call_event!(PermissionDenied, passage, reason: denied.reason.clone(), by: denied.by);
        self.hooks.tell(event).await;
        let shown = Denial {
            call: passage.call,
            event: denied.event,
            hook: denied.hook.as_ref().map(HookId::as_str),
            reason: if denied.reason.is_empty() {
                NO_REASON
            } else {
                &denied.reason
            },
        };
        self.hooks.frontend().tool_denied(self.agent, &shown);
        self.settle_unrun(passage, denied.for_model()).await
    }

    /// Says that the end of the run came before a decision.
    async fn canceled(&self, passage: Passage<'_>) -> Called {
        self.tell_decision(
            &passage,
            ApprovalDecision::Canceled,
            DecisionSource::Cancelled,
        )
        .await;
        if passage.failure.is_some() {
            // The tool has run: hooks and model must not take it for a call that did nothing.
            return self.settle_unrun(passage, CANCELED.to_owned()).await;
        }
        let result = ToolResult::error(CANCELED);
        Called {
            result: self.transform(&passage, result).await,
            contexts: passage.contexts,
            stop: passage.stop,
        }
    }

    async fn tell_decision(
        &self,
        passage: &Passage<'_>,
        decision: ApprovalDecision,
        source: impl Into<DecisionSource>,
    ) {
        let source = source.into();
        let event = call_event!(ToolApprovalDecision, passage, decision: decision, source: source);
        self.hooks.tell(event).await;
    }

    /// Answers a call that nobody judges: it is none of a tool that is there, or the run ends first.
    pub(super) async fn answer_unjudged(
        &self,
        call: &ToolCall,
        input: JsonObject,
        text: String,
    ) -> Called {
        let result = ToolResult::error(text);
        let event = || ToolResponseTransform {
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            tool_input: input,
            tool_response: result.joined_text(),
            is_error: true,
            ..ToolResponseTransform::default()
        };
        let outcome = self.hooks.fire_always(event).await;
        Called {
            result: with_response(result, outcome),
            ..Called::default()
        }
    }

    /// Makes the result of a call that does not run, or not again.
    pub(super) async fn settle(&self, passage: Passage<'_>, unrun: Unrun) -> Called {
        match unrun {
            Unrun::Refused(Refusal::Denied(denied)) => self.deny(passage, denied).await,
            Unrun::Refused(Refusal::Canceled) => self.canceled(passage).await,
            Unrun::Text(text) => self.settle_unrun(passage, text).await,
        }
    }

    async fn settle_unrun(&self, passage: Passage<'_>, mut text: String) -> Called {
        if let Some(failure) = &passage.failure {
            let before = passage.attempt - 1;
            text.push_str(&format_attempt(before, failure));
        }
        let result = self.transform(&passage, ToolResult::error(text)).await;
        self.after_use(passage, result, true).await
    }

    pub(super) async fn transform(&self, passage: &Passage<'_>, result: ToolResult) -> ToolResult {
        let event = call_event!(
            ToolResponseTransform,
            passage,
            tool_response: result.joined_text(),
            is_error: result.is_error,
        );
        let outcome = self.hooks.fire_always(event).await;
        with_response(result, outcome)
    }

    pub(super) async fn after_use(
        &self,
        passage: Passage<'_>,
        result: ToolResult,
        blocked: bool,
    ) -> Called {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let event = call_event!(
            PostToolUse,
            passage,
            result: result.clone(),
            duration_ms: milliseconds(passage.clock.last),
            total_duration_ms: milliseconds(passage.clock.total()),
            blocked: blocked,
        );
        let outcome = self.hooks.fire_always(event).await;
        let mut contexts = passage.contexts;
        contexts.extend_from_slice(outcome.context());
        let asked = outcome.stop_run().map(|reason| Stop {
            event: PostToolUse::INFO.name,
            reason: reason_or_none(reason),
        });
        Called {
            contexts,
            stop: passage.stop.or(asked),
            result: outcome
                .into_rewritten()
                .map_or(result, |event| event.result),
        }
    }
}

/// Says that a tool ran before, and what came of it: the model must not take it for a call that did nothing.
fn format_attempt(attempt: u32, failure: &ToolResult) -> String {
    let error = failure.joined_text();
    format!("\nIt had run before: attempt {attempt} failed: {error}")
}

/// Returns a result with the text that hooks left of it. Other content stays, unless the text was withheld: images and
/// details may hold what the text held.
fn with_response(mut result: ToolResult, outcome: Outcome<ToolResponseTransform>) -> ToolResult {
    let is_withheld = outcome.withheld_by().is_some();
    let Some(event) = outcome.into_rewritten() else {
        return result;
    };
    let text = event.tool_response;
    if is_withheld {
        result.content.clear();
        result.details = None;
    }
    result.content.retain(|block| block.as_text().is_none());
    if !text.is_empty() {
        result.content.insert(0, ContentBlock::text(text));
    }
    result
}
