//! The stages of a tool call. Each is a separate type, so that a call that is denied cannot run and
//! only the last stage contains the result for the model.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;
use tenterhook_protocol::event::{ApprovalDecision, ApprovalSource};
use tenterhook_protocol::{Decision, JsonObject, StopKind, ToolCall, ToolResult};
use thiserror::Error;

use super::gates::{GateResult, Refusal};
use super::host::{ToolCallHost, ToolCallView};
use super::in_flight::{InFlight, RunStop};
use super::question::{ToolCallDenial, ToolCallQuestion, UserAnswer};
use super::result::{FinishedToolCall, ResultOf};
use crate::dispatcher::Dispatcher;

/// The result of a call that did not run because the agent run was cancelled.
pub const CANCELLED: &str = "The tool call was cancelled.";

/// Starts a tool call and sends it through its gates. See [`StartedToolCall::judge`].
pub async fn judge<'a>(
    hooks: &'a Dispatcher,
    host: &'a dyn ToolCallHost,
    call: &'a ToolCall,
) -> JudgedToolCall<'a> {
    start(hooks, host, call).await.judge().await
}

/// Starts a tool call by sending `tool_execution_start`. A host that knows that the tool is missing
/// or disabled can then [refuse](StartedToolCall::refuse) the call before any hook judges it.
///
/// A token passed to [`Dispatcher::with_cancel`] cancels the call until the tool runs.
pub async fn start<'a>(
    hooks: &'a Dispatcher,
    host: &'a dyn ToolCallHost,
    call: &'a ToolCall,
) -> StartedToolCall<'a> {
    let in_flight = Box::new(InFlight::new(hooks, host, call));
    in_flight.announce_start().await;
    StartedToolCall { in_flight }
}

/// A tool call that has been announced to hooks, but not judged.
#[must_use = "a call that has started must be judged or refused, so that `tool_execution_end` follows"]
pub struct StartedToolCall<'a> {
    in_flight: Box<InFlight<'a>>,
}

/// The result of the gates for a tool call.
#[must_use = "the decision may be to stop the call or to ask a person"]
#[derive(Debug)]
pub enum JudgedToolCall<'a> {
    /// The call may run.
    Proceed(ReadyToolCall<'a>),
    /// A person must be asked.
    Ask(AskedToolCall<'a>),
    /// The call must not run.
    Stop(StoppedToolCall<'a>),
}

/// A tool call that may run, with the arguments that the hooks have judged.
#[must_use = "a call that may run must be finished, so that `tool_execution_end` follows"]
pub struct ReadyToolCall<'a> {
    pub(super) in_flight: Box<InFlight<'a>>,
    source: ApprovalSource,
    began: Instant,
}

/// A tool call that requires the answer of a person.
#[must_use = "the question needs an answer, even if it is `UserAnswer::Unavailable`"]
pub struct AskedToolCall<'a> {
    pub(super) in_flight: Box<InFlight<'a>>,
    question: ToolCallQuestion,
}

/// A tool call that must not run.
#[must_use = "a call that was stopped must be finished, so that the model gets a result"]
pub struct StoppedToolCall<'a> {
    pub(super) in_flight: Box<InFlight<'a>>,
    cause: StopCause,
}

/// A tool call that has run. Its result has passed `tool_response_transform`.
#[must_use = "a call that has run must be finished or tried again, so that the model gets a result"]
pub struct RanToolCall<'a> {
    pub(super) in_flight: Box<InFlight<'a>>,
    result: ToolResult,
    is_error_announced: bool,
}

/// The arguments of a tool call are not a JSON object. The message is for the model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("The arguments of `{tool}` are not a JSON object.")]
pub struct ArgumentsNotObject {
    /// The name of the tool.
    pub tool: String,
}

/// Why a call must not run.
enum StopCause {
    /// The gates refused it, and `tool_approval_decision` has reported that.
    Refused(Refusal),
    /// It was approved, and then the run was cancelled.
    CancelledAfter,
    /// The run was cancelled before the first gate.
    CancelledBefore,
    /// The arguments are not an object, so they cannot be judged.
    Unreadable(ArgumentsNotObject),
}

macro_rules! debug_as_call {
    ($($stage:ident),+) => { $(
        impl fmt::Debug for $stage<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($stage))
                    .field("call", &self.call())
                    .finish_non_exhaustive()
            }
        }

        impl $stage<'_> {
            /// Returns the call with its current arguments.
            pub fn call(&self) -> ToolCallView<'_> {
                self.in_flight.view()
            }
        }
    )+ };
}
debug_as_call!(
    StartedToolCall,
    ReadyToolCall,
    AskedToolCall,
    StoppedToolCall,
    RanToolCall
);

impl<'a> StartedToolCall<'a> {
    /// Returns the arguments of the call.
    ///
    /// # Errors
    /// Fails if the arguments are not a JSON object.
    pub fn arguments(&self) -> Result<&JsonObject, ArgumentsNotObject> {
        match &self.in_flight.call.arguments {
            Value::Object(_) | Value::Null => Ok(&self.in_flight.input),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(ArgumentsNotObject {
                    tool: self.in_flight.call.name.clone(),
                })
            }
        }
    }

    /// Sends the call through its gates. Reports the decision, unless a person has to be asked
    /// first.
    ///
    /// A call whose arguments are not a JSON object is stopped. So is a call whose run is
    /// cancelled.
    pub async fn judge(self) -> JudgedToolCall<'a> {
        let unjudged = match self.arguments() {
            Err(error) => Some(StopCause::Unreadable(error)),
            Ok(_) if self.in_flight.attempt == 1 && self.in_flight.is_cancelled() => {
                Some(StopCause::CancelledBefore)
            }
            Ok(_) => None,
        };
        let mut in_flight = self.in_flight;
        if let Some(cause) = unjudged {
            return JudgedToolCall::Stop(StoppedToolCall { in_flight, cause });
        }
        let decided = match in_flight.pass_gates().await {
            Ok(GateResult::Question(question)) => {
                return JudgedToolCall::Ask(AskedToolCall {
                    in_flight,
                    question,
                });
            }
            Ok(GateResult::Approved(source)) => Ok(source),
            Err(refusal) => Err(refusal),
        };
        match decide(in_flight, decided).await {
            Ok(ready) => JudgedToolCall::Proceed(ready),
            Err(stopped) => JudgedToolCall::Stop(stopped),
        }
    }

    /// Ends the call without a judgement, for example because the tool does not exist. `text` is
    /// for the model.
    pub async fn refuse(self, text: impl Into<String>) -> FinishedToolCall {
        if self.in_flight.attempt > 1 {
            return self.in_flight.finish_with_text(text.into()).await;
        }
        self.in_flight.finish_unjudged(text.into()).await
    }

    /// Ends the call because its tool is not available to this agent. Sends `tools_disabled`.
    pub async fn refuse_as_disabled(self) -> FinishedToolCall {
        self.in_flight.announce_disabled().await;
        let text = format!("The tool `{}` is disabled.", self.in_flight.call.name);
        self.refuse(text).await
    }
}

/// Reports a decision.
async fn decide(
    in_flight: Box<InFlight<'_>>,
    decided: Result<ApprovalSource, Refusal>,
) -> Result<ReadyToolCall<'_>, StoppedToolCall<'_>> {
    match decided {
        Ok(source) => {
            in_flight
                .announce_decision(ApprovalDecision::Allow, source)
                .await;
            if in_flight.is_cancelled() {
                let cause = StopCause::CancelledAfter;
                return Err(StoppedToolCall { in_flight, cause });
            }
            Ok(ReadyToolCall {
                in_flight,
                source,
                began: Instant::now(),
            })
        }
        Err(refusal) => {
            in_flight.announce_refusal(&refusal).await;
            let cause = StopCause::Refused(refusal);
            Err(StoppedToolCall { in_flight, cause })
        }
    }
}

impl JudgedToolCall<'_> {
    /// Returns what the host must do with the call.
    pub fn decision(&self) -> Decision {
        match self {
            Self::Proceed(_) => Decision::Proceed,
            Self::Ask(asked) => asked.decision(),
            Self::Stop(stopped) => stopped.decision(),
        }
    }
}

impl<'a> AskedToolCall<'a> {
    /// Returns the question for the person.
    pub fn question(&self) -> &ToolCallQuestion {
        &self.question
    }

    /// Applies the person's answer and reports the decision.
    ///
    /// # Errors
    /// Returns the stopped call if it must not run.
    pub async fn answer(
        self,
        answer: UserAnswer,
    ) -> Result<ReadyToolCall<'a>, StoppedToolCall<'a>> {
        let mut in_flight = self.in_flight;
        let decided = in_flight.apply_answer(&self.question, answer);
        decide(in_flight, decided).await
    }

    fn decision(&self) -> Decision {
        let reason = self.question.reason();
        Decision::Ask {
            reason: reason.unwrap_or("no rule allows the call").to_owned(),
            by: self.question.asking_hook().cloned(),
        }
    }
}

impl<'a> ReadyToolCall<'a> {
    /// Returns what approved the call.
    pub fn source(&self) -> ApprovalSource {
        self.source
    }

    /// Returns whether hooks changed the arguments that the model wrote.
    pub fn is_rewritten(&self) -> bool {
        self.in_flight.is_rewritten()
    }

    /// Lets hooks see the tool's output. The time since the judgement counts as the duration of the
    /// run.
    pub async fn ran(self, result: ToolResult) -> RanToolCall<'a> {
        let mut in_flight = self.in_flight;
        in_flight.clock.began.get_or_insert(self.began);
        in_flight.clock.last = self.began.elapsed();
        let result = in_flight.transform(result).await;
        RanToolCall::new(in_flight, result)
    }

    /// Ends the call with the tool's output. Combines [`ran`](Self::ran) and
    /// [`RanToolCall::finish`].
    pub async fn finish(self, result: ToolResult) -> FinishedToolCall {
        self.ran(result).await.finish().await
    }

    /// Ends the call without running the tool, although no hook stops it, for example because a
    /// budget is used up. `text` is for the model.
    pub async fn refuse(self, text: impl Into<String>) -> FinishedToolCall {
        self.in_flight.finish_with_text(text.into()).await
    }
}

impl StoppedToolCall<'_> {
    /// Returns who denied the call and why, or `None` if it was cancelled or its arguments were
    /// unreadable.
    pub fn denial(&self) -> Option<&ToolCallDenial> {
        match &self.cause {
            StopCause::Refused(Refusal::Denied(denial)) => Some(denial),
            StopCause::Refused(Refusal::Cancelled)
            | StopCause::CancelledBefore
            | StopCause::CancelledAfter
            | StopCause::Unreadable(_) => None,
        }
    }

    /// Returns the message for the model.
    pub fn text(&self) -> String {
        match &self.cause {
            StopCause::Refused(Refusal::Denied(denial)) => denial.for_model(),
            StopCause::Refused(Refusal::Cancelled)
            | StopCause::CancelledBefore
            | StopCause::CancelledAfter => CANCELLED.to_owned(),
            StopCause::Unreadable(error) => error.to_string(),
        }
    }

    /// Ends the call. The result tells the model why the tool did not run.
    pub async fn finish(self) -> FinishedToolCall {
        let text = self.text();
        let has_run = self.in_flight.failure.is_some();
        let is_decided = match &self.cause {
            StopCause::Refused(Refusal::Cancelled) => has_run,
            StopCause::Refused(Refusal::Denied(_)) | StopCause::CancelledAfter => true,
            StopCause::CancelledBefore | StopCause::Unreadable(_) => false,
        };
        // `post_tool_use` does not fire for a call about which nothing was decided, unless the tool
        // has run before.
        if is_decided {
            self.in_flight.finish_with_text(text).await
        } else {
            self.in_flight.finish_unjudged(text).await
        }
    }

    fn decision(&self) -> Decision {
        let denial = self.denial();
        let reason = denial.map(|denial| denial.reason.as_str());
        Decision::Stop {
            reason: reason
                .filter(|reason| !reason.is_empty())
                .map_or_else(|| self.text(), str::to_owned),
            by: denial.and_then(|denial| denial.hook.clone()),
            kind: denial.map_or(StopKind::Denied, |denial| denial.kind),
        }
    }
}

impl<'a> RanToolCall<'a> {
    pub(super) fn new(in_flight: Box<InFlight<'a>>, result: ToolResult) -> Self {
        Self {
            in_flight,
            result,
            is_error_announced: false,
        }
    }

    /// Returns the result, including the changes of `tool_response_transform` hooks.
    pub fn result(&self) -> &ToolResult {
        &self.result
    }

    /// Returns a hook's request to end the agent run, if there is one.
    pub fn stop_run(&self) -> Option<&RunStop> {
        self.in_flight.stop.as_ref()
    }

    /// Reports the failure with `will_retry`, waits for `pause`, and returns the call to be judged
    /// again.
    ///
    /// The arguments keep the changes of hooks, and `tool_input_transform` does not fire again. A
    /// person's yes to the same arguments still holds if [`ToolCallHost::still_agreed`] returns
    /// `true`.
    ///
    /// # Errors
    /// Returns the call, which must then be finished, if the run is cancelled during the pause.
    /// Returns it immediately if the result is not an error or a hook ended the run.
    pub async fn retry(
        mut self,
        pause: impl Future<Output = ()>,
    ) -> Result<StartedToolCall<'a>, Self> {
        if !self.result.is_error || self.in_flight.stop.is_some() {
            return Err(self);
        }
        self.in_flight.announce_error(&self.result, true).await;
        if !self.in_flight.wait(pause).await {
            self.is_error_announced = true;
            return Err(self);
        }
        let mut in_flight = self.in_flight;
        in_flight.attempt += 1;
        in_flight.failure = Some(self.result);
        in_flight.clock.last = Duration::ZERO;
        Ok(StartedToolCall { in_flight })
    }

    /// Ends the call. Sends `tool_error` if the result is an error, then `post_tool_use` and
    /// `tool_execution_end`.
    pub async fn finish(self) -> FinishedToolCall {
        if self.result.is_error && !self.is_error_announced {
            self.in_flight.announce_error(&self.result, false).await;
        }
        self.in_flight.finish(self.result, ResultOf::Run).await
    }
}
