//! One tool call from the model's wish to the result that the model gets.
//!
//! The order is fixed: `tool_execution_start` → an unknown tool or bad arguments end here →
//! `tools_disabled` → the gates of [`gate`] → token budget → the tool → `tool_response_transform` →
//! `tool_error` for a failure → after a failure that is tried again, a pause and back to the gates →
//! `post_tool_use` where the gates came to a decision → `tool_execution_end`.
//! The first and the last always pair, and every text for the model passes `tool_response_transform`,
//! also that of a call which was skipped, cancelled or none of a tool's. Nothing but a call that passed
//! every gate reaches a tool, and nobody sees a result before the hooks had it.

mod gate;
mod settle;

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, future};
use serde_json::Value;
use tenterhook_protocol::event::{
    DenialSource, DeniedBy, TokenBudgetExceeded, ToolError, ToolExecutionEnd, ToolExecutionStart,
    ToolExecutionUpdate, ToolsDisabled,
};
use tenterhook_protocol::{HookId, JsonObject, ToolCall, ToolResult};
use tokio_util::sync::CancellationToken;

use crate::hooks::Hooks;
use crate::life::Setup;
use crate::protection::WriteGuard;
use crate::tool::{Delegate, Progress, Tool, ToolContext, ToolFailure};

/// What the model is told of a call that the end of the run prevented.
const CANCELED: &str = "The tool call was cancelled.";

/// What the model is told of a call that did not run because the user has said something.
const STEERED: &str = "The tool call was skipped because the user has said something.";

/// What the calls of one model answer have in common.
pub(crate) struct Bench<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) agent: &'a str,
    pub(crate) hooks: &'a Hooks,
    pub(crate) cancel: &'a CancellationToken,
    /// The names of the tools that this call of the model offered.
    pub(crate) offered: &'a [String],
    /// What the user says meanwhile is for this agent.
    pub(crate) listens: bool,
    /// The user follows another agent.
    pub(crate) in_background: bool,
    pub(crate) delegate: &'a dyn Delegate,
}

/// What came of a tool call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Called {
    /// What the model gets.
    pub(crate) result: ToolResult,
    /// What hooks add for the model.
    pub(crate) contexts: Vec<String>,
    /// The hook that ends the run.
    pub(crate) stop: Option<Stop>,
}

impl Called {
    /// Says why no further call of the answer runs, in words for the model.
    fn reason_to_end(&self) -> Option<String> {
        let stop = self.stop.as_ref()?;
        Some(format!(
            "The tool call was skipped because a {} hook ended the run.",
            stop.event
        ))
    }
}

/// A hook's wish to end the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) event: &'static str,
    pub(crate) reason: String,
}

/// One call on its way.
struct Passage<'a> {
    call: &'a ToolCall,
    tool: Arc<dyn Tool>,
    input: JsonObject,
    contexts: Vec<String>,
    stop: Option<Stop>,
    /// Which run of the tool it is, from 1.
    attempt: u32,
    /// The arguments that the user has agreed to.
    approved: Option<JsonObject>,
    /// The protected file whose change the user has agreed to.
    agreed_target: Option<PathBuf>,
    /// What became of the run before.
    failure: Option<ToolResult>,
    /// The newest run failed in a way in which the next one would fail too.
    failed_permanently: bool,
    clock: Clock,
}

/// How long the runs of a tool take.
#[derive(Default)]
struct Clock {
    /// When the first one began.
    began: Option<Instant>,
    /// How long the newest one took.
    last: Duration,
}

impl Clock {
    /// Returns the time since the first run began.
    fn total(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }
}

/// Why a call does not pass the gates.
enum Refusal {
    /// It was denied.
    Denied(Denied),
    /// The run was cancelled on the way.
    Canceled,
}

/// Why a call does not run.
enum Unrun {
    Refused(Refusal),
    /// It was let through; what keeps it from running, in words for the model.
    Text(String),
}

impl From<Refusal> for Unrun {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A denial.
struct Denied {
    by: DeniedBy,
    /// The event whose hook denied.
    event: Option<&'static str>,
    /// That hook, where it is known.
    hook: Option<HookId>,
    /// Why, without the words around it.
    reason: String,
    /// What decided, as `tool_approval_decision` reports it.
    source: DenialSource,
}

/// Builds an event that describes the call and its present arguments.
macro_rules! call_event {
    ($event:ident, $passage:expr $(, $field:ident: $value:expr)* $(,)?) => {
        || $event {
            tool_use_id: $passage.call.id.clone(),
            tool_name: $passage.call.name.clone(),
            tool_input: $passage.input.clone(),
            tool_category: Some($passage.tool.category().to_owned()),
            attempt: $passage.attempt,
            $($field: $value,)*
            ..$event::default()
        }
    };
}
use call_event;

impl Bench<'_> {
    /// Takes all calls of one answer; the results are in their order.
    ///
    /// Calls of read-only tools run beside each other, all others one after another. When a hook ends the run
    /// at one of the latter, or the user says something meanwhile, those behind it are skipped.
    pub(crate) async fn call_all(&self, calls: &[ToolCall]) -> Vec<Called> {
        let is_harmless = |call: &ToolCall| {
            self.setup
                .toolbox
                .get(&call.name)
                .is_none_or(|tool| tool.is_read_only())
        };
        if calls.len() > 1 && calls.iter().all(is_harmless) {
            return future::join_all(calls.iter().map(|call| self.call(call))).await;
        }
        let mut all: Vec<Called> = Vec::with_capacity(calls.len());
        for call in calls {
            let called = match self.reason_to_skip(&all) {
                Some(why) => self.skip(call, &why).await,
                None => self.call(call).await,
            };
            all.push(called);
        }
        all
    }

    /// Says why the next call does not run, in words for the model.
    fn reason_to_skip(&self, done: &[Called]) -> Option<String> {
        let ended = done.iter().find_map(Called::reason_to_end);
        let is_steered = self.listens && !done.is_empty() && self.setup.queues.is_steered();
        ended.or_else(|| is_steered.then(|| STEERED.to_owned()))
    }

    /// Takes a call through all of it.
    async fn call(&self, call: &ToolCall) -> Called {
        let started = || ToolExecutionStart {
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            tool_input: shown_input(call),
        };
        self.hooks.tell(started).await;
        self.hooks.frontend().tool_start(self.agent, call);
        let called = Box::pin(self.carry_out(call)).await;
        self.close(call, &called.result).await;
        called
    }

    /// Answers a call that is not even looked at, because the run ends.
    async fn skip(&self, call: &ToolCall, why: &str) -> Called {
        let started = || ToolExecutionStart {
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            tool_input: shown_input(call),
        };
        self.hooks.tell(started).await;
        self.hooks.frontend().tool_start(self.agent, call);
        let input = shown_input(call);
        let called = self.answer_unjudged(call, input, why.to_owned()).await;
        self.close(call, &called.result).await;
        called
    }

    async fn close(&self, call: &ToolCall, result: &ToolResult) {
        let ended = || ToolExecutionEnd {
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: result.clone(),
            is_error: result.is_error,
        };
        self.hooks.tell(ended).await;
        self.hooks.frontend().tool_end(self.agent, call, result);
    }

    async fn carry_out(&self, call: &ToolCall) -> Called {
        if self.cancel.is_cancelled() {
            let input = shown_input(call);
            return self.answer_unjudged(call, input, CANCELED.to_owned()).await;
        }
        let mut passage = match self.admit(call).await {
            Ok(passage) => passage,
            Err((input, text)) => return self.answer_unjudged(call, input, text).await,
        };
        loop {
            let result = match self.attempt(&mut passage).await {
                Ok(result) => result,
                Err(unrun) => return self.settle(passage, unrun).await,
            };
            if !self.try_again(&mut passage, &result).await {
                return self.after_use(passage, result, false).await;
            }
        }
    }

    /// Takes a call through the gates and the tool once; returns what came of it, and what hooks made of that.
    async fn attempt(&self, passage: &mut Passage<'_>) -> Result<ToolResult, Unrun> {
        let source = self.pass_gates(passage).await?;
        self.settle_allowed(passage, source).await;
        if self.cancel.is_cancelled() {
            return Err(Unrun::Text(CANCELED.to_owned()));
        }
        if let Some(budget) = self.exceeded_budget() {
            return Err(Unrun::Text(self.refuse_for_budget(passage, budget).await));
        }
        let began = Instant::now();
        passage.clock.began.get_or_insert(began);
        let ran = self.run_tool(passage).await;
        passage.clock.last = began.elapsed();
        passage.failed_permanently = ran.as_ref().is_err_and(ToolFailure::is_permanent_failure);
        let result = ran.unwrap_or_else(ToolFailure::into_result);
        Ok(self.transform(passage, result).await)
    }

    /// Makes a failure known, and waits until the tool may be run again; says whether it may.
    async fn try_again(&self, passage: &mut Passage<'_>, result: &ToolResult) -> bool {
        if !result.is_error {
            return false;
        }
        let retry = self.setup.toolbox.retry_of(&*passage.tool);
        let error = result.joined_text();
        let will_retry = passage.attempt < retry.attempts
            && passage.stop.is_none()
            && !self.cancel.is_cancelled()
            && !passage.failed_permanently;
        let failed = call_event!(ToolError, passage, error: error, will_retry: will_retry);
        self.hooks.tell(failed).await;
        if !will_retry {
            return false;
        }
        let pause = tokio::time::sleep(retry.random_pause(passage.attempt));
        if self.cancel.run_until_cancelled(pause).await.is_none() {
            return false;
        }
        passage.attempt += 1;
        passage.failure = Some(result.clone());
        passage.clock.last = Duration::ZERO;
        true
    }

    /// Finds the tool and reads the arguments; the error is what could be read, and the text for the model.
    async fn admit<'c>(&self, call: &'c ToolCall) -> Result<Passage<'c>, (JsonObject, String)> {
        let Some(tool) = self.setup.toolbox.get(&call.name) else {
            let names: Vec<String> = self
                .offered
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            let text = format!(
                "There is no tool `{}`. The tools are: {}.",
                call.name,
                names.join(", ")
            );
            return Err((shown_input(call), text));
        };
        let input = match &call.arguments {
            Value::Object(input) => input.clone(),
            Value::Null => JsonObject::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let text = format!("The arguments of `{}` are no JSON object.", call.name);
                return Err((shown_input(call), text));
            }
        };
        if let Err(error) = tool.check(&input) {
            return Err((input, capitalised(&error.to_string())));
        }
        if !self.offered.contains(&call.name) {
            let disabled = || ToolsDisabled {
                tool_name: call.name.clone(),
                tool_input: input.clone(),
                role: None,
            };
            self.hooks.tell(disabled).await;
            return Err((input, format!("The tool `{}` is disabled.", call.name)));
        }
        Ok(Passage {
            call,
            tool: Arc::clone(tool),
            input,
            contexts: Vec::new(),
            stop: None,
            attempt: 1,
            approved: None,
            agreed_target: None,
            failure: None,
            failed_permanently: false,
            clock: Clock::default(),
        })
    }

    /// Runs the tool, and tells what it has so far meanwhile.
    async fn run_tool(&self, passage: &Passage<'_>) -> Result<ToolResult, ToolFailure> {
        let audience = Audience::of(self.hooks);
        let progress = audience.progress();
        let running = async {
            let ran = self.run_to_end(passage, progress.clone()).await;
            progress.close();
            ran
        };
        let telling = async {
            while let Some(partial) = progress.next().await {
                self.tell_update(passage.call, partial, audience).await;
            }
        };
        future::join(running, telling).await.0
    }

    async fn run_to_end(
        &self,
        passage: &Passage<'_>,
        progress: Progress,
    ) -> Result<ToolResult, ToolFailure> {
        let context = ToolContext {
            cwd: self.cwd(),
            session: self.hooks.session(),
            call: &passage.call.id,
            cancel: self.cancel.clone(),
            progress,
            delegate: self.delegate,
            write_guard: self.write_guard(passage),
        };
        let running =
            AssertUnwindSafe(passage.tool.run(passage.input.clone(), context)).catch_unwind();
        let given_up = async {
            if passage.tool.ends_itself() {
                future::pending::<()>().await;
            }
            self.cancel.cancelled().await;
            tokio::time::sleep(self.setup.limits.grace).await;
        };
        tokio::select! {
            ran = running => ran.unwrap_or_else(|_| Err(ToolFailure::new(format!("the tool `{}` broke", passage.call.name)))),
            () = given_up => Err(ToolFailure::new(CANCELED)),
        }
    }

    async fn tell_update(&self, call: &ToolCall, partial: ToolResult, audience: Audience) {
        if audience.is_screen {
            self.hooks
                .frontend()
                .tool_update(self.agent, call, &partial);
        }
        let updated = || ToolExecutionUpdate {
            tool_use_id: call.id.clone(),
            tool_name: call.name.clone(),
            partial_result: partial,
        };
        // A run that is cancelled does not wait for news of what it gives up.
        let _heard = self.hooks.fire(updated).await;
    }

    /// Returns budget and tokens spent, if the budget is used up.
    fn exceeded_budget(&self) -> Option<(u64, u64)> {
        let budget = self.setup.limits.token_budget?;
        let spent = self.setup.spent.load(Ordering::Relaxed);
        (spent >= budget).then_some((budget, spent))
    }

    /// Says that the budget is used up; returns the words for the model.
    async fn refuse_for_budget(&self, passage: &Passage<'_>, (budget, used): (u64, u64)) -> String {
        let exceeded = || TokenBudgetExceeded {
            tool_name: passage.call.name.clone(),
            tool_input: passage.input.clone(),
            budget,
            used,
        };
        self.hooks.tell(exceeded).await;
        format!(
            "The tool call did not run: {used} tokens are used and the budget is {budget}. Answer with what you have."
        )
    }

    /// Returns what opens files for a call.
    fn write_guard(&self, passage: &Passage<'_>) -> WriteGuard {
        let files = Arc::clone(&self.setup.protected_files);
        WriteGuard::new(files, passage.agreed_target.clone())
    }

    fn cwd(&self) -> &Path {
        &self.setup.cwd
    }
}

/// Who hears what a tool has so far.
#[derive(Clone, Copy)]
struct Audience {
    is_screen: bool,
    are_hooks: bool,
}

impl Audience {
    fn of(hooks: &Hooks) -> Self {
        Self {
            is_screen: hooks.frontend().shows_progress() && !hooks.may_change_results(),
            are_hooks: hooks.are_there::<ToolExecutionUpdate>(),
        }
    }

    fn progress(self) -> Progress {
        if self.is_screen || self.are_hooks {
            Progress::heard()
        } else {
            Progress::default()
        }
    }
}

/// Returns the arguments as hooks see them. Hooks know objects only; anything else is shown as `arguments`, because an
/// empty object would hide what the model asked for.
fn shown_input(call: &ToolCall) -> JsonObject {
    match &call.arguments {
        Value::Object(input) => input.clone(),
        Value::Null => JsonObject::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            JsonObject::from_iter([("arguments".to_owned(), other.clone())])
        }
    }
}

/// Makes a sentence of an error message.
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
