//! The end of a tool call: hooks see the result, and it becomes final.

use std::time::Duration;

use tenterhook_protocol::event::{
    PostToolUse, ToolError, ToolExecutionEnd, ToolExecutionStart, ToolResponseTransform,
    ToolsDisabled,
};
use tenterhook_protocol::{ContentBlock, Event, HookId, Outcome, ToolResult};

use super::in_flight::{InFlight, RunStop, call_event};

/// A tool call that is over, with the result for the model and the requests of hooks.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use = "the model needs the result of every call that it made"]
pub struct FinishedToolCall {
    /// The result that the model receives.
    pub result: ToolResult,
    /// Texts that hooks add for the model, in order.
    pub context: Vec<String>,
    /// A hook's request to end the agent run. If there is one, no further call of the same model
    /// answer should run.
    pub stop_run: Option<RunStop>,
    /// The hook whose failure withheld the tool's result, if any. The result then contains a notice
    /// instead. The host must drop every other copy of the tool's output.
    pub withheld_by: Option<HookId>,
}

/// Whether a result comes from a run of the tool, as `post_tool_use` reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultOf {
    /// The tool ran.
    Run,
    /// The tool did not run, or was not run again.
    Refusal,
}

impl InFlight<'_> {
    pub(super) async fn announce_start(&self) {
        let started = || {
            let mut event = ToolExecutionStart::new(&self.call.name)
                .with_tool_use_id(self.call.id.clone())
                .with_tool_input(self.input.clone());
            event.extra = self.host.extra(self.view());
            event
        };
        self.announce(started).await;
    }

    pub(super) async fn announce_disabled(&self) {
        let disabled = || {
            let mut event = ToolsDisabled::new(&self.call.name).with_tool_input(self.input.clone());
            event.extra = self.host.extra(self.view());
            event
        };
        self.announce(disabled).await;
    }

    pub(super) async fn announce_error(&self, result: &ToolResult, will_retry: bool) {
        let event = call_event!(
            ToolError,
            self,
            with_error(result.joined_text()),
            with_will_retry(will_retry)
        );
        self.announce(event).await;
    }

    /// Lets hooks change the text of a result before anyone sees it.
    pub(super) async fn transform(&mut self, result: ToolResult) -> ToolResult {
        let event = call_event!(
            ToolResponseTransform,
            self,
            with_tool_response(result.joined_text()),
            with_is_error(result.is_error)
        );
        let outcome = self.fire_always(event).await;
        self.note_withheld(outcome.withheld_by());
        with_response(result, outcome)
    }

    /// Ends a call without `post_tool_use`, because nothing was decided about it.
    pub(super) async fn finish_unjudged(mut self: Box<Self>, text: String) -> FinishedToolCall {
        let result = self.transform(ToolResult::error(text)).await;
        self.end(result).await
    }

    /// Ends a call that does not run, or is not run again.
    pub(super) async fn finish_with_text(
        mut self: Box<Self>,
        mut text: String,
    ) -> FinishedToolCall {
        if let Some(failure) = &self.failure {
            // The model must not assume that nothing happened if an earlier attempt did run.
            let (attempt, error) = (self.attempt - 1, failure.joined_text());
            text = format!("{text}\nThe tool has already run: attempt {attempt} failed: {error}");
        }
        let result = self.transform(ToolResult::error(text)).await;
        self.finish(result, ResultOf::Refusal).await
    }

    /// Ends a call whose result has passed `tool_response_transform`.
    pub(super) async fn finish(
        mut self: Box<Self>,
        result: ToolResult,
        of: ResultOf,
    ) -> FinishedToolCall {
        let event = call_event!(
            PostToolUse,
            self,
            with_result(result.clone()),
            with_duration_ms(milliseconds(self.clock.last)),
            with_total_duration_ms(milliseconds(self.clock.total())),
            with_blocked(of == ResultOf::Refusal)
        );
        let outcome = self.fire_always(event).await;
        self.note_withheld(outcome.withheld_by());
        self.contexts.extend_from_slice(outcome.context());
        if let (None, Some(reason)) = (&self.stop, outcome.stop_run()) {
            self.stop = Some(RunStop::new(PostToolUse::INFO.name, reason));
        }
        let result = outcome
            .into_rewritten()
            .map_or(result, |event| event.result);
        self.end(result).await
    }

    async fn end(self: Box<Self>, result: ToolResult) -> FinishedToolCall {
        let ended = || {
            let mut event = ToolExecutionEnd::new(&self.call.name, result.clone())
                .with_tool_use_id(self.call.id.clone())
                .with_is_error(result.is_error);
            event.extra = self.host.extra(self.view());
            event
        };
        self.announce(ended).await;
        FinishedToolCall {
            result,
            context: self.contexts,
            stop_run: self.stop,
            withheld_by: self.withheld_by,
        }
    }

    fn note_withheld(&mut self, by: Option<&HookId>) {
        if self.withheld_by.is_none() {
            self.withheld_by = by.cloned();
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the result with the text that hooks returned. Other content is kept, unless the text was
/// withheld: images and details may contain the same secret.
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
    // Hooks only saw the text blocks. Text that they removed may also be in a block of another
    // type.
    result
        .content
        .retain(|block| matches!(block, ContentBlock::Image { .. }));
    if !text.is_empty() {
        result.content.insert(0, ContentBlock::text(text));
    }
    result
}
