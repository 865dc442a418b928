//! One tool call of the reference agent, from the model's request to the result that the model gets.
//!
//! [`tenterhook_engine::tool_call`] sends the events and decides. This module does the agent's part: it finds the
//! tool, applies the [permissions](permission), enforces the token budget, runs the tool, and retries. Every text for
//! the model passes `tool_response_transform`, even if the call was skipped or cancelled, or names an unknown tool. A
//! result is shown only after the hooks have seen it.

mod permission;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use futures_util::{FutureExt, future};
use tenterhook_engine::tool_call::{
    CANCELLED, FinishedToolCall, JudgedToolCall, RanToolCall, ReadyToolCall, StartedToolCall,
    StoppedToolCall, ToolCallView, start,
};
use tenterhook_protocol::event::{TokenBudgetExceeded, ToolExecutionUpdate};
use tenterhook_protocol::{HookId, JsonObject, ToolCall, ToolResult};
use tokio_util::sync::CancellationToken;

use self::permission::{Agreement, CallHost};
use crate::frontend::Denial;
use crate::hooks::{Hooks, NO_REASON};
use crate::state::AgentState;
use tenterhook_tools::{Delegate, Progress, Restrictions, Tool, ToolContext, ToolFailure};

/// The result of a call that did not run because the user sent a message.
const STEERED: &str = "The tool call was skipped because the user sent a message.";

/// The context that all calls of one model answer share.
pub(crate) struct ToolCalls<'a> {
    pub(crate) state: &'a AgentState,
    pub(crate) agent: &'a str,
    pub(crate) hooks: &'a Hooks,
    pub(crate) cancel: &'a CancellationToken,
    /// The names of the tools that were offered in this model call.
    pub(crate) offered: &'a [String],
    /// Whether messages that the user sends meanwhile are for this agent.
    pub(crate) listens: bool,
    /// Whether the user follows another agent.
    pub(crate) in_background: bool,
    pub(crate) delegate: &'a dyn Delegate,
    pub(crate) restrictions: &'a Restrictions,
}

/// Why a call ends before the first gate.
enum NotAdmitted {
    /// The text for the model.
    Refused(String),
    /// The tool is not offered to this agent.
    Disabled,
}

/// Returns why no further call of the answer runs, as text for the model.
fn reason_to_end(done: &FinishedToolCall) -> Option<String> {
    let stop = done.stop_run.as_ref()?;
    Some(format!(
        "The tool call was skipped because a {} hook ended the run.",
        stop.event
    ))
}

impl ToolCalls<'_> {
    /// Handles all calls of one answer. The results are in the order of the calls.
    ///
    /// If all tools are read-only, the calls run in parallel, otherwise one after another. In the second case, the
    /// remaining calls are skipped when a hook ends the run or the user sends a message.
    pub(crate) async fn call_all(&self, calls: &[ToolCall]) -> Vec<FinishedToolCall> {
        let toolbox = self.state.toolbox();
        let is_harmless = |call: &ToolCall| {
            toolbox
                .get(&call.name)
                .is_none_or(|tool| tool.is_read_only())
        };
        if calls.len() > 1 && calls.iter().all(is_harmless) {
            return future::join_all(calls.iter().map(|call| self.handle(call))).await;
        }
        let mut all: Vec<FinishedToolCall> = Vec::with_capacity(calls.len());
        for call in calls {
            let called = match self.reason_to_skip(&all) {
                Some(why) => self.skip(call, &why).await,
                None => self.handle(call).await,
            };
            all.push(called);
        }
        all
    }

    /// Returns why the next call does not run, as text for the model.
    fn reason_to_skip(&self, done: &[FinishedToolCall]) -> Option<String> {
        let ended = done.iter().find_map(reason_to_end);
        let is_steered = self.listens && !done.is_empty() && self.state.queues.is_steered();
        ended.or_else(|| is_steered.then(|| STEERED.to_owned()))
    }

    fn host<'h>(&'h self, tool: Option<&'h Arc<dyn Tool>>) -> CallHost<'h> {
        CallHost {
            state: self.state,
            agent: self.agent,
            hooks: self.hooks,
            cancel: self.cancel,
            in_background: self.in_background,
            tool,
            agreement: Agreement::default(),
        }
    }

    /// Handles a call from its start to its result.
    async fn handle(&self, call: &ToolCall) -> FinishedToolCall {
        let toolbox = self.state.toolbox();
        let tool = toolbox.get(&call.name);
        let host = self.host(tool);
        let started = start(self.hooks.cancellable(), &host, call).await;
        let shown = tool.filter(|_| self.hooks.frontend().shows_tool_lines());
        self.show_start(call, shown).await;
        let finished = Box::pin(self.process(call, &host, started)).await;
        self.show_end(call, shown, finished).await
    }

    async fn show_start(&self, call: &ToolCall, tool: Option<&Arc<dyn Tool>>) {
        let frontend = self.hooks.frontend();
        let lines = match (tool, call.arguments.as_object()) {
            (Some(tool), Some(input)) => {
                let lines = self.cancel.run_until_cancelled(tool.call_lines(input));
                lines.await.flatten()
            }
            _ => None,
        };
        match lines {
            Some(lines) => frontend.tool_start_lines(self.agent, call, &lines),
            None => frontend.tool_start(self.agent, call),
        }
    }

    /// Answers a call that does not run, without judging it.
    async fn skip(&self, call: &ToolCall, why: &str) -> FinishedToolCall {
        let host = self.host(None);
        let started = start(self.hooks.cancellable(), &host, call).await;
        self.hooks.frontend().tool_start(self.agent, call);
        let finished = started.refuse(why).await;
        self.show_end(call, None, finished).await
    }

    /// Shows the result that the hooks left. Errors are always shown in the default form, so that no tool hides them.
    async fn show_end(
        &self,
        call: &ToolCall,
        tool: Option<&Arc<dyn Tool>>,
        finished: FinishedToolCall,
    ) -> FinishedToolCall {
        let (frontend, result) = (self.hooks.frontend(), &finished.result);
        let lines = match tool.filter(|_| !result.is_error) {
            Some(tool) => {
                let lines = self.cancel.run_until_cancelled(tool.result_lines(result));
                lines.await.flatten()
            }
            None => None,
        };
        match lines {
            Some(lines) => frontend.tool_end_lines(self.agent, call, result, &lines),
            None => frontend.tool_end(self.agent, call, result),
        }
        finished
    }

    async fn process(
        &self,
        call: &ToolCall,
        host: &CallHost<'_>,
        mut started: StartedToolCall<'_>,
    ) -> FinishedToolCall {
        if self.cancel.is_cancelled() {
            return started.refuse(CANCELLED).await;
        }
        let tool = match self.admit(host, &started) {
            Ok(tool) => tool,
            Err(NotAdmitted::Refused(text)) => return started.refuse(text).await,
            Err(NotAdmitted::Disabled) => return started.refuse_as_disabled().await,
        };
        loop {
            let ready = match self.pass_gates(host, &**tool, started).await {
                Ok(ready) => ready,
                Err(stopped) => {
                    self.show_denial(call, &stopped);
                    return stopped.finish().await;
                }
            };
            if ready.is_rewritten() {
                let frontend = self.hooks.frontend();
                frontend.tool_rewritten(self.agent, call, ready.call().input);
            }
            if let Some(budget) = self.exceeded_budget() {
                let text = self.refuse_for_budget(ready.call(), budget).await;
                return ready.refuse(text).await;
            }
            let result = self.run_tool(&**tool, call, host, &ready).await;
            let is_permanent = result
                .as_ref()
                .is_err_and(ToolFailure::is_permanent_failure);
            let result = result.unwrap_or_else(ToolFailure::into_result);
            let ran = ready.ran(result).await;
            let retry = self.state.toolbox().retry_of(&**tool);
            let attempt = ran.call().attempt;
            if is_permanent || attempt >= retry.attempts || !self.may_retry(&ran) {
                return ran.finish().await;
            }
            let pause = tokio::time::sleep(retry.random_pause(attempt));
            started = match ran.retry(pause).await {
                Ok(again) => again,
                Err(ran) => return ran.finish().await,
            };
        }
    }

    /// Sends a call through the gates once, including the question to the user.
    async fn pass_gates<'c>(
        &self,
        host: &CallHost<'_>,
        tool: &dyn Tool,
        started: StartedToolCall<'c>,
    ) -> Result<ReadyToolCall<'c>, StoppedToolCall<'c>> {
        match started.judge().await {
            JudgedToolCall::Proceed(ready) => Ok(ready),
            JudgedToolCall::Ask(asked) => {
                let answer = host.ask_user(&asked, tool).await;
                asked.answer(answer).await
            }
            JudgedToolCall::Stop(stopped) => Err(stopped),
        }
    }

    fn may_retry(&self, ran: &RanToolCall<'_>) -> bool {
        ran.result().is_error && ran.stop_run().is_none() && !self.cancel.is_cancelled()
    }

    fn show_denial(&self, call: &ToolCall, stopped: &StoppedToolCall<'_>) {
        let Some(denial) = stopped.denial() else {
            return;
        };
        let shown = Denial {
            call,
            event: denial.event,
            hook: denial.hook.as_ref().map(HookId::as_str),
            reason: if denial.reason.is_empty() {
                NO_REASON
            } else {
                &denial.reason
            },
        };
        self.hooks.frontend().tool_denied(self.agent, &shown);
    }

    /// Finds the tool and checks the arguments that the model wrote.
    fn admit<'h>(
        &self,
        host: &CallHost<'h>,
        started: &StartedToolCall<'_>,
    ) -> Result<&'h Arc<dyn Tool>, NotAdmitted> {
        let name = started.call().name;
        let Some(tool) = host.tool else {
            let names: Vec<String> = self
                .offered
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            return Err(NotAdmitted::Refused(format!(
                "Unknown tool `{name}`. Available tools: {}.",
                names.join(", ")
            )));
        };
        let input = started.arguments();
        let input = input.map_err(|error| NotAdmitted::Refused(error.to_string()))?;
        if let Err(error) = tool.check(input) {
            return Err(NotAdmitted::Refused(capitalised(&error.to_string())));
        }
        if self.offered.iter().all(|offered| offered != name) {
            return Err(NotAdmitted::Disabled);
        }
        Ok(tool)
    }

    /// Runs the tool, and reports its partial results meanwhile.
    async fn run_tool(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        host: &CallHost<'_>,
        ready: &ReadyToolCall<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let audience = ProgressAudience::of(self.hooks);
        let progress = audience.progress();
        let context = ToolContext {
            cwd: self.cwd(),
            session: self.hooks.session(),
            call: &call.id,
            cancel: self.cancel.clone(),
            progress: progress.clone(),
            delegate: self.delegate,
            restrictions: self.restrictions,
            write_guard: host.write_guard(),
        };
        let running = async {
            let ran = self.run_to_end(tool, ready.call(), context).await;
            progress.close();
            ran
        };
        let telling = async {
            while let Some(partial) = progress.next().await {
                self.announce_update(call, ready.call().input, partial, audience)
                    .await;
            }
        };
        future::join(running, telling).await.0
    }

    async fn run_to_end(
        &self,
        tool: &dyn Tool,
        call: ToolCallView<'_>,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let running = AssertUnwindSafe(tool.run(call.input.clone(), context)).catch_unwind();
        let given_up = async {
            if tool.ends_itself() {
                future::pending::<()>().await;
            }
            self.cancel.cancelled().await;
            tokio::time::sleep(self.state.config.limits.grace).await;
        };
        tokio::select! {
            ran = running => ran.unwrap_or_else(|_| Err(ToolFailure::new(format!("the tool `{}` panicked", call.name)))),
            () = given_up => Err(ToolFailure::new(CANCELLED)),
        }
    }

    async fn announce_update(
        &self,
        call: &ToolCall,
        input: &JsonObject,
        partial: ToolResult,
        audience: ProgressAudience,
    ) {
        if audience.has_screen {
            self.hooks
                .frontend()
                .tool_update(self.agent, call, &partial);
        }
        let updated = || {
            ToolExecutionUpdate::new(call.name.clone(), partial)
                .with_tool_use_id(call.id.clone())
                .with_extra("tool_input", input.clone())
        };
        // These hooks are cancelled with the run, so a cancelled run does not wait for them.
        let _heard = self.hooks.fire(updated).await;
    }

    /// Returns the budget and the tokens spent, if the budget is used up.
    fn exceeded_budget(&self) -> Option<(u64, u64)> {
        let budget = self.state.config.limits.token_budget?;
        let spent = self.state.spent_tokens();
        (spent >= budget).then_some((budget, spent))
    }

    /// Reports that the budget is used up. Returns the text for the model.
    async fn refuse_for_budget(
        &self,
        call: ToolCallView<'_>,
        (budget, used): (u64, u64),
    ) -> String {
        let exceeded = || {
            TokenBudgetExceeded::new(call.name.to_owned(), budget, used)
                .with_tool_input(call.input.clone())
        };
        self.hooks.announce(exceeded).await;
        format!(
            "The tool call did not run: {used} tokens are used and the budget is {budget}. Answer with what you have."
        )
    }

    fn cwd(&self) -> &Path {
        &self.state.config.cwd
    }
}

/// Who receives the partial results of a tool.
#[derive(Clone, Copy)]
struct ProgressAudience {
    has_screen: bool,
    has_hooks: bool,
}

impl ProgressAudience {
    fn of(hooks: &Hooks) -> Self {
        Self {
            has_screen: hooks.frontend().shows_progress() && !hooks.may_change_results(),
            has_hooks: hooks.is_hooked::<ToolExecutionUpdate>(),
        }
    }

    fn progress(self) -> Progress {
        if self.has_screen || self.has_hooks {
            Progress::heard()
        } else {
            Progress::default()
        }
    }
}

/// Turns an error message into a sentence.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first
            .to_uppercase()
            .chain(characters)
            .chain(['.'])
            .collect(),
        None => String::new(),
    }
}
