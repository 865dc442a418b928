//! Tool calls that another program runs. Its gate and its result are two separate requests, possibly
//! to different processes, so no stage can be kept in between.

use std::time::{Duration, Instant};

use tenterhook_protocol::event::ApprovalSource;
use tenterhook_protocol::{JsonObject, ToolCall, ToolResult};

use super::host::ToolCallHost;
use super::in_flight::{InFlight, RunStop};
use super::result::FinishedToolCall;
use super::stage::{AskedToolCall, RanToolCall, ReadyToolCall, StoppedToolCall};
use crate::dispatcher::Dispatcher;

/// A judged tool call that another program runs or asks a person about.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use = "the other program needs the arguments that the hooks have judged"]
pub struct HandedOverToolCall {
    /// The arguments, including all changes by hooks.
    pub input: JsonObject,
    /// Whether hooks changed the arguments.
    pub is_rewritten: bool,
    /// Texts that hooks add for the model, in order.
    pub context: Vec<String>,
    /// A hook's request to end the agent run.
    pub stop_run: Option<RunStop>,
    /// What approved the call. `None` if a person must be asked.
    pub source: Option<ApprovalSource>,
}

impl HandedOverToolCall {
    fn new(is_rewritten: bool, in_flight: InFlight<'_>, source: Option<ApprovalSource>) -> Self {
        Self {
            input: in_flight.input,
            is_rewritten,
            context: in_flight.contexts,
            stop_run: in_flight.stop,
            source,
        }
    }
}

impl ReadyToolCall<'_> {
    /// Ends this part of a call that another program runs. When it has run, [`returned`] sends the
    /// remaining events.
    pub fn hand_over(self) -> HandedOverToolCall {
        let (is_rewritten, source) = (self.is_rewritten(), self.source());
        HandedOverToolCall::new(is_rewritten, *self.in_flight, Some(source))
    }
}

impl AskedToolCall<'_> {
    /// Ends this part of a call about which another program asks a person. If the person agrees and
    /// the call has run, [`returned`] sends the remaining events.
    pub fn hand_over(self) -> HandedOverToolCall {
        let is_rewritten = self.in_flight.is_rewritten();
        HandedOverToolCall::new(is_rewritten, *self.in_flight, None)
    }
}

impl StoppedToolCall<'_> {
    /// Returns the texts that hooks added for the model before the call was stopped.
    pub fn context(&self) -> &[String] {
        &self.in_flight.contexts
    }

    /// Returns a hook's request to end the agent run, if there is one.
    pub fn stop_run(&self) -> Option<&RunStop> {
        self.in_flight.stop.as_ref()
    }
}

/// Lets hooks see the result of a call that another program ran. Sends the same events as
/// [`ReadyToolCall::finish`].
///
/// ```
/// use std::time::Duration;
/// use tenterhook_engine::tool_call::{JudgedToolCall, judge, returned};
/// use tenterhook_engine::{Engine, Origin, ToolCall, ToolResult};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let hooks = Engine::new().dispatcher(Origin::default());
/// let call = ToolCall::new("call_1", "shell", serde_json::json!({ "cmd": "ls" }));
/// let JudgedToolCall::Proceed(ready) = judge(&hooks, &(), &call).await else {
///     panic!("no hook is registered");
/// };
/// assert!(!ready.hand_over().is_rewritten);
///
/// // Later, when the other program has run the tool:
/// let result = ToolResult::text("Cargo.toml");
/// let finished = returned(&hooks, &(), &call, result.clone(), Duration::from_millis(4)).await;
/// assert_eq!(finished.result, result);
/// # });
/// ```
pub async fn returned(
    hooks: &Dispatcher,
    host: &dyn ToolCallHost,
    call: &ToolCall,
    result: ToolResult,
    duration: Duration,
) -> FinishedToolCall {
    let mut in_flight = Box::new(InFlight::new(hooks, host, call));
    in_flight.clock.began = Instant::now().checked_sub(duration);
    in_flight.clock.last = duration;
    let result = in_flight.transform(result).await;
    RanToolCall::new(in_flight, result).finish().await
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::json;
    use std::sync::Arc;

    use tenterhook_protocol::event::{
        PostToolUse, PreToolUse, ToolError, ToolExecutionEnd, ToolResponseTransform,
    };
    use tenterhook_protocol::{Effect, Event, Origin};

    use super::*;
    use crate::engine::Engine;
    use crate::tool_call::{JudgedToolCall, judge};

    fn call() -> ToolCall {
        ToolCall::new("call_1", "shell", json!({"cmd": "ls"}))
    }

    #[tokio::test]
    async fn a_call_that_is_handed_over_carries_what_hooks_changed_and_added() {
        let engine = Engine::new();
        engine.on(|_: &PreToolUse| {
            let change = json!({"cmd": "ls -a"});
            let change = change.as_object().unwrap().clone();
            Effect::none().context("a note").patch_input(change)
        });
        let hooks = engine.dispatcher(Origin::default());
        let call = call();
        let JudgedToolCall::Proceed(ready) = judge(&hooks, &(), &call).await else {
            panic!("no hook stops it");
        };
        let handed_over = ready.hand_over();
        assert!(handed_over.is_rewritten);
        assert_eq!(handed_over.input["cmd"], "ls -a");
        assert_eq!(handed_over.context, ["a note"]);
    }

    #[tokio::test]
    async fn a_question_is_handed_over_without_an_approval() {
        let engine = Engine::new();
        engine.on(|_: &PreToolUse| Effect::ask("sure?"));
        let hooks = engine.dispatcher(Origin::default());
        let call = call();
        let JudgedToolCall::Ask(asked) = judge(&hooks, &(), &call).await else {
            panic!("a hook asks");
        };
        let handed_over = asked.hand_over();
        assert!(!handed_over.is_rewritten);
        assert_eq!(handed_over.source, None);
    }

    #[tokio::test]
    async fn the_result_of_a_call_that_ran_elsewhere_passes_the_result_events_in_order() {
        let engine = Engine::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = |name: &'static str| {
            let seen = Arc::clone(&seen);
            move || seen.lock().push(name)
        };
        let transform = note(ToolResponseTransform::INFO.name);
        engine.on(move |_: &ToolResponseTransform| {
            transform();
            Effect::none().replace_response("clean".to_owned())
        });
        let error = note(ToolError::INFO.name);
        engine.on(move |_: &ToolError| error());
        let post = note(PostToolUse::INFO.name);
        engine.on(move |event: &PostToolUse| {
            assert_eq!((event.duration_ms, event.blocked), (7, false));
            post();
            Effect::none().context("look again")
        });
        let end = note(ToolExecutionEnd::INFO.name);
        engine.on(move |_: &ToolExecutionEnd| end());
        let hooks = engine.dispatcher(Origin::default());
        let result = ToolResult::error("secret");
        let finished = returned(&hooks, &(), &call(), result, Duration::from_millis(7)).await;
        assert_eq!(finished.result.joined_text(), "clean");
        assert_eq!(finished.context, ["look again"]);
        let expected = [
            "tool_response_transform",
            "tool_error",
            "post_tool_use",
            "tool_execution_end",
        ];
        assert_eq!(*seen.lock(), expected);
    }
}
