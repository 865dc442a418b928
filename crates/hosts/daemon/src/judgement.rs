//! Sends an event of a host through the hooks, and collects what they want in a [`HostVerdict`].

use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use tenterhook_engine::event::{ApprovalSource, UserInput, UserPromptSubmit};
use tenterhook_engine::tool_call::{
    FinishedToolCall, HandedOverToolCall, JudgedToolCall, PermissionRuling, RuleVerdict,
    ToolCallHost, ToolCallView, judge, returned,
};
use tenterhook_engine::{
    AnyEvent, AnyOutcome, Decision, Dispatched, Dispatcher, EventInfo, Failure, JsonObject,
    Permission, StopKind, ToolCall, ToolResult,
};
use tenterhook_systems::host::verdict::HostVerdict;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long hooks may take that see a denied call after the host has its answer.
const AFTERMATH: Duration = Duration::from_mins(1);

/// What the hooks of one event want, and how many failures let it continue.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) verdict: HostVerdict,
    pub(crate) let_through: usize,
}

/// The host's part in a tool call: its own permission rules apply after the hooks. Collects what hooks
/// report to the person.
#[derive(Default)]
struct HostRules {
    reports: Mutex<Reports>,
}

#[derive(Default)]
struct Reports {
    notices: Vec<String>,
    let_through: usize,
}

impl Reports {
    fn add(&mut self, notices: &[String], failures: &[Failure]) {
        self.notices.extend_from_slice(notices);
        for failure in failures.iter().filter(|failure| failure.let_through) {
            self.let_through += 1;
            let Failure { hook, cause, .. } = failure;
            self.notices.push(format!(
                "the hook `{hook}` failed and stopped nothing: {cause}"
            ));
        }
    }
}

impl ToolCallHost for HostRules {
    /// A hook may allow the call. Otherwise the host decides by its own rules.
    fn rule<'a>(&'a self, _call: ToolCallView<'a>) -> BoxFuture<'a, RuleVerdict> {
        Box::pin(ready(PermissionRuling::Unruled.into()))
    }

    /// The host asks the question of its own rules, if there is one.
    fn answers_yes(&self) -> bool {
        true
    }

    fn show(&self, _event: &'static EventInfo, notices: &[String], failures: &[Failure]) {
        self.reports.lock().add(notices, failures);
    }
}

impl HostRules {
    fn judgement(&self, verdict: HostVerdict) -> Judgement {
        let reports = std::mem::take(&mut *self.reports.lock());
        Judgement {
            verdict: HostVerdict {
                notices: reports.notices,
                ..verdict
            },
            let_through: reports.let_through,
        }
    }
}

/// Judges a tool call, and sends the result to `answered`. If the call is stopped, the hooks that watch
/// denied calls run after that, because the host does not wait for them.
pub(crate) async fn judge_call(
    hooks: Dispatcher,
    call: ToolCall,
    answered: oneshot::Sender<Judgement>,
) {
    let rules = HostRules::default();
    let judged = judge(&hooks, &rules, &call).await;
    let decision = judged.decision();
    let (verdict, stopped) = match judged {
        JudgedToolCall::Proceed(ready) => (of_handed_over(decision, ready.hand_over()), None),
        JudgedToolCall::Ask(asked) => (of_handed_over(decision, asked.hand_over()), None),
        JudgedToolCall::Stop(stopped) => {
            let verdict = HostVerdict {
                decision,
                context: stopped.context().to_vec(),
                stop_run: stopped.stop_run().map(|stop| stop.reason.clone()),
                ..HostVerdict::default()
            };
            (verdict, Some(stopped))
        }
    };
    // The receiver is gone if the host has given up.
    answered.send(rules.judgement(verdict)).ok();
    if let Some(stopped) = stopped {
        timeout(AFTERMATH, stopped.finish()).await.ok();
    }
}

fn of_handed_over(decision: Decision, call: HandedOverToolCall) -> HostVerdict {
    let by_hook = [
        Some(ApprovalSource::PreToolUseHook),
        Some(ApprovalSource::PermissionRequestHook),
    ];
    HostVerdict {
        decision,
        is_allowed: by_hook.contains(&call.source),
        input: call.is_rewritten.then_some(call.input),
        context: call.context,
        stop_run: call.stop_run.map(|stop| stop.reason),
        ..HostVerdict::default()
    }
}

/// Lets hooks see the result of a tool.
pub(crate) async fn judge_result(
    hooks: &Dispatcher,
    call: &ToolCall,
    result: ToolResult,
    duration: Duration,
) -> Judgement {
    let rules = HostRules::default();
    let finished = returned(hooks, &rules, call, result.clone(), duration).await;
    let FinishedToolCall {
        result: seen,
        context,
        stop_run,
        withheld_by,
        ..
    } = finished;
    rules.judgement(HostVerdict {
        is_withheld: withheld_by.is_some(),
        result: (seen != result || withheld_by.is_some()).then_some(seen),
        context,
        stop_run: stop_run.map(|stop| stop.reason),
        ..HostVerdict::default()
    })
}

/// Sends an input of the user to the hooks of `user_input`, and then to the hooks of
/// `user_prompt_submit`, which see the changed text. No host has an answer for an input that a hook has
/// handled, so such an input is blocked.
pub(crate) async fn judge_prompt(hooks: &Dispatcher, prompt: String) -> Judgement {
    let outcome = hooks.dispatch(UserInput::new(prompt.clone())).await;
    let rules = HostRules::default();
    let (notices, failures) = (outcome.notices(), outcome.failures());
    rules.reports.lock().add(notices, failures);
    let mut decision = outcome.decision();
    if decision.is_proceed() && outcome.is_handled() {
        decision = blocked("a hook has handled the input, so it is not sent to the model");
    }
    let changed = outcome.into_rewritten();
    if decision.is_proceed()
        && let Some(UserInput {
            images: Some(_), ..
        }) = changed
    {
        decision = blocked("a hook added images to the input, which only the agent can do");
    }
    let before = rules.judgement(HostVerdict {
        decision,
        ..HostVerdict::default()
    });
    if !before.verdict.decision.is_proceed() {
        return before;
    }
    let changed = changed.map(|event| event.text);
    let changed = changed.filter(|text| *text != prompt);
    let text = changed.clone().unwrap_or(prompt);
    let after = judge_other(hooks, Box::new(UserPromptSubmit::new(text))).await;
    let mut notices = before.verdict.notices;
    notices.extend(after.verdict.notices);
    Judgement {
        verdict: HostVerdict {
            prompt: changed,
            notices,
            ..after.verdict
        },
        let_through: before.let_through + after.let_through,
    }
}

fn blocked(reason: &str) -> Decision {
    Decision::Stop {
        reason: reason.to_owned(),
        by: None,
        kind: StopKind::Blocked,
    }
}

/// Sends any other event through its hooks.
pub(crate) async fn judge_other(hooks: &Dispatcher, event: Box<dyn AnyEvent>) -> Judgement {
    let dispatched = hooks.dispatch_any(event).await;
    let (decision, input) = match changed_input(&dispatched) {
        Ok(input) => (dispatched.decision(), input),
        // Without the change, the tool would run with arguments that a hook has replaced.
        Err(problem) => (blocked(&problem), None),
    };
    let AnyOutcome {
        permission,
        mut context,
        inject,
        follow_up,
        stop_run,
        notices,
        failures,
        ..
    } = dispatched.outcome;
    context.extend(inject.into_iter().map(|message| message.content));
    let rules = HostRules::default();
    rules.reports.lock().add(&notices, &failures);
    rules.judgement(HostVerdict {
        decision,
        is_allowed: permission == Permission::Allow,
        input,
        context,
        follow_up,
        stop_run,
        ..HostVerdict::default()
    })
}

/// Returns the arguments of a tool call if hooks changed them.
///
/// # Errors
/// Fails if the changed arguments cannot be read. The text is the reason to stop.
fn changed_input(dispatched: &Dispatched) -> Result<Option<JsonObject>, String> {
    let mut changed = dispatched.outcome.rewritten.iter();
    if !changed.any(|field| field == "tool_input") {
        return Ok(None);
    }
    let unreadable = || "a hook changed the arguments, and they cannot be read".to_owned();
    let payload = dispatched.event.event().payload();
    let payload = payload.map_err(|error| format!("{}: {error}", unreadable()))?;
    let input = payload.get("tool_input").and_then(|it| it.as_object());
    input.cloned().map(Some).ok_or_else(unreadable)
}
