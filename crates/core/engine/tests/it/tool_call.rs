//! The pipeline of a tool call: the events that it sends, who decides, and how a changed call is
//! judged.

use std::error::Error;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use tenterhook_engine::event::{
    PermissionRequest, PostToolUse, PreToolUse, ToolApprovalDecision, ToolError, ToolExecutionEnd,
    ToolExecutionStart, ToolGuard, ToolInputTransform, ToolResponseTransform,
};
use tenterhook_engine::tool_call::{
    AskedBy, FinishedToolCall, JudgedToolCall, PermissionRuling, RuleVerdict, ToolCallHost,
    ToolCallView, UserAnswer, judge, start,
};
use tenterhook_engine::{
    ContentBlock, Decision, Dispatcher, Effect, Engine, EventInfo, EventKind, Failure,
    HandlerError, HookObserver, HookRun, HookVerdict, JsonObject, Origin, StopKind, ToolCall,
    ToolResult,
};
use tokio_util::sync::CancellationToken;

use crate::spec;

/// A host whose rules each test sets.
#[derive(Default)]
struct Rules {
    ruling: Option<PermissionRuling>,
    /// Arguments that a rule denies.
    denied_cmd: Option<&'static str>,
    consent: Option<&'static str>,
    answers_yes: bool,
    shown: Mutex<Vec<String>>,
}

impl Rules {
    fn of(ruling: PermissionRuling) -> Self {
        Self {
            ruling: Some(ruling),
            ..Self::default()
        }
    }
}

impl ToolCallHost for Rules {
    fn check_input(&self, call: ToolCallView<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if call.input.contains_key("force") {
            return Err("an unknown argument `force`".into());
        }
        Ok(())
    }

    fn rule<'a>(&'a self, call: ToolCallView<'a>) -> BoxFuture<'a, RuleVerdict> {
        let is_denied = self.denied_cmd.is_some_and(|cmd| call.input["cmd"] == cmd);
        let ruling = if is_denied {
            PermissionRuling::Deny("a rule denies it".to_owned())
        } else {
            self.ruling.clone().unwrap_or(PermissionRuling::Allow)
        };
        let mut verdict = RuleVerdict::from(ruling);
        if let Some(reason) = self.consent {
            verdict = verdict.with_consent(reason);
        }
        Box::pin(ready(verdict))
    }

    fn answers_yes(&self) -> bool {
        self.answers_yes
    }

    fn still_agreed(&self, _call: ToolCallView<'_>) -> bool {
        true
    }

    fn category(&self, _call: ToolCallView<'_>) -> Option<String> {
        Some("shell".to_owned())
    }

    fn show(&self, event: &'static EventInfo, notices: &[String], failures: &[Failure]) {
        let mut shown = self.shown.lock();
        shown.extend(notices.iter().map(|text| format!("{} {text}", event.name)));
        let causes = failures.iter().map(|failure| &failure.cause);
        shown.extend(causes.map(|text| format!("{} {text}", event.name)));
    }
}

fn cmd(line: &str) -> JsonObject {
    json!({ "cmd": line }).as_object().unwrap().clone()
}

fn shell(line: &str) -> ToolCall {
    ToolCall::new("call_1", "shell", json!({ "cmd": line }))
}

/// An engine that records the names of the events that its hooks receive.
struct Stage {
    engine: Engine,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new() -> Self {
        let engine = Engine::new();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let names = Arc::clone(&heard);
        engine.subscribe(move |event| names.lock().push(event.event().name().to_owned()));
        Self { engine, heard }
    }

    fn hooks(&self) -> Dispatcher {
        self.engine.dispatcher(Origin::default())
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock())
    }

    /// Records `field` of each event of type `E`.
    fn collect<E: tenterhook_engine::Event>(
        &self,
        field: impl Fn(&E) -> String + Send + Sync + 'static,
    ) -> Arc<Mutex<Vec<String>>> {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let values = Arc::clone(&seen);
        self.engine.subscribe(move |event| {
            if let Some(event) = event.downcast::<E>() {
                values.lock().push(field(event));
            }
        });
        seen
    }
}

/// Runs a call through all stages. The tool returns the command line that it received.
async fn play(
    hooks: &Dispatcher,
    host: &dyn ToolCallHost,
    call: &ToolCall,
    answer: UserAnswer,
) -> FinishedToolCall {
    let permitted = match judge(hooks, host, call).await {
        JudgedToolCall::Proceed(ready) => Ok(ready),
        JudgedToolCall::Ask(asked) => asked.answer(answer).await,
        JudgedToolCall::Stop(stopped) => Err(stopped),
    };
    match permitted {
        Ok(ready) => {
            let text = format!("ran {}", ready.call().input["cmd"].as_str().unwrap());
            ready.finish(ToolResult::text(text)).await
        }
        Err(stopped) => stopped.finish().await,
    }
}

type Register = fn(&Engine);

/// Who answers, the ruling of the host, the person's answer, the number of gates that fire, and the
/// expected decision.
struct Row {
    who: &'static str,
    register: Register,
    rules: Rules,
    answer: UserAnswer,
    gates: usize,
    decides: &'static str,
}

const GATES: [&str; 4] = [
    "tool_input_transform",
    "tool_guard",
    "pre_tool_use",
    "permission_request",
];

fn row(who: &'static str, register: Register, gates: usize, decides: &'static str) -> Row {
    Row {
        who,
        register,
        rules: Rules::default(),
        answer: UserAnswer::Unavailable,
        gates,
        decides,
    }
}

fn no_hook(_engine: &Engine) {}

fn hooks_allow(engine: &Engine) {
    engine.on(|_: &PreToolUse| Effect::allow());
    engine.on(|_: &PermissionRequest| Effect::allow());
}

fn guard_asks(engine: &Engine) {
    engine.on(|_: &ToolGuard| Effect::ask("a guard asks"));
    hooks_allow(engine);
}

#[expect(clippy::too_many_lines, reason = "it is one table")]
fn rows() -> Vec<Row> {
    let unruled = || Rules::of(PermissionRuling::Unruled);
    let asking = || Rules::of(PermissionRuling::Ask("a rule asks".to_owned()));
    let consent = || Rules {
        consent: Some("it is protected"),
        answers_yes: true,
        ..Rules::default()
    };
    let yes = |mut rules: Rules| {
        rules.answers_yes = true;
        rules
    };
    let deny = UserAnswer::Deny {
        reason: Some("not now".to_owned()),
    };
    let ruled = |who, rules, gates, decides| Row {
        rules,
        ..row(who, no_hook, gates, decides)
    };
    let answered = |who, rules, answer, decides| Row {
        answer,
        ..ruled(who, rules, 4, decides)
    };
    vec![
        row("no one", no_hook, 3, "rule_allow"),
        row(
            "a transform that blocks",
            |engine| {
                engine.on(|_: &ToolInputTransform| Effect::block("x"));
            },
            1,
            "tool_input_transform_deny",
        ),
        row(
            "a guard that denies",
            |engine| {
                engine.on(|_: &ToolGuard| Effect::deny("x"));
            },
            2,
            "tool_guard_deny",
        ),
        row(
            "a guard that fails",
            |engine| {
                engine.on(|_: &ToolGuard| -> Result<(), &str> { Err("broke") });
            },
            2,
            "tool_guard_deny",
        ),
        ruled(
            "a deny rule",
            Rules::of(PermissionRuling::Deny("x".to_owned())),
            2,
            "rule_deny",
        ),
        Row {
            rules: yes(unruled()),
            ..row(
                "a hook that denies, under yes",
                |engine| {
                    engine.on(|_: &PreToolUse| Effect::deny("x"));
                },
                3,
                "pre_tool_use_hook_deny",
            )
        },
        Row {
            rules: unruled(),
            ..row(
                "a hook that answers no",
                |engine| {
                    engine.on(|_: &PermissionRequest| Effect::deny("x"));
                },
                4,
                "permission_request_hook_deny",
            )
        },
        ruled(
            "a grant",
            Rules::of(PermissionRuling::Granted),
            3,
            "session_allow",
        ),
        ruled(
            "a harmless tool",
            Rules::of(PermissionRuling::Harmless),
            3,
            "readonly_hint",
        ),
        ruled("yes for no rule", yes(unruled()), 3, "mode_yes"),
        ruled("yes for an ask rule", yes(asking()), 3, "mode_yes"),
        Row {
            rules: unruled(),
            ..row(
                "a hook that allows",
                hooks_allow,
                3,
                "pre_tool_use_hook_allow",
            )
        },
        Row {
            rules: asking(),
            ..row(
                "an ask rule beats that hook",
                hooks_allow,
                4,
                "permission_request_hook_allow",
            )
        },
        Row {
            rules: yes(Rules::default()),
            ..row("a guard that asks", guard_asks, 4, "non_interactive_deny")
        },
        Row {
            rules: consent(),
            ..row(
                "consent beats every hook",
                hooks_allow,
                4,
                "non_interactive_deny",
            )
        },
        answered(
            "no answer",
            unruled(),
            UserAnswer::Unavailable,
            "non_interactive_deny",
        ),
        answered("a no", asking(), deny.clone(), "user_rejected"),
        answered("a no to a protected call", consent(), deny, "user_rejected"),
        answered("a yes", asking(), UserAnswer::Allow, "user_approved"),
        answered(
            "a yes for the session",
            unruled(),
            UserAnswer::AllowForSession,
            "user_approved_session",
        ),
        answered(
            "a yes before",
            unruled(),
            UserAnswer::AllowedBefore,
            "session_allow",
        ),
        Row {
            answer: UserAnswer::AllowedBefore,
            ..row(
                "a yes before does not answer a guard",
                guard_asks,
                4,
                "non_interactive_deny",
            )
        },
    ]
}

#[tokio::test]
async fn the_events_and_the_decision_follow_from_who_speaks() {
    for row in rows() {
        let stage = Stage::new();
        let decided = stage.collect(|event: &ToolApprovalDecision| event.source.to_string());
        (row.register)(&stage.engine);
        let finished = play(&stage.hooks(), &row.rules, &shell("ls"), row.answer).await;
        let runs = !row.decides.ends_with("_deny") && row.decides != "user_rejected";
        let mut expected = vec!["tool_execution_start"];
        expected.extend(&GATES[..row.gates]);
        expected.push("tool_approval_decision");
        if !runs {
            expected.push("permission_denied");
        }
        expected.extend([
            "tool_response_transform",
            "post_tool_use",
            "tool_execution_end",
        ]);
        assert_eq!(stage.heard(), expected, "{}", row.who);
        assert_eq!(*decided.lock(), [row.decides], "{}", row.who);
        assert_eq!(finished.result.is_error, !runs, "{}", row.who);
        assert_eq!(
            finished.result.joined_text() == "ran ls",
            runs,
            "{}",
            row.who
        );
    }
}

#[tokio::test]
async fn a_judgement_is_the_decision_of_the_hook_that_made_it() {
    let stage = Stage::new();
    stage.engine.hook("careful").on(|event: &PreToolUse| {
        match event.tool_input["cmd"].as_str().unwrap() {
            "ask" => Effect::ask("sure?"),
            "deny" => Effect::deny("no"),
            _ => Effect::none(),
        }
    });
    let hooks = stage.hooks();
    let by = Some("careful".into());
    let reason = "sure?".to_owned();
    let asked = Decision::Ask {
        reason,
        by: by.clone(),
    };
    let (reason, kind) = ("no".to_owned(), StopKind::Denied);
    let stopped = Decision::Stop { reason, by, kind };
    for (line, expected) in [("ls", Decision::Proceed), ("ask", asked), ("deny", stopped)] {
        let call = shell(line);
        assert_eq!(judge(&hooks, &(), &call).await.decision(), expected);
    }
    let call = shell("ask");
    let JudgedToolCall::Ask(asked) = judge(&hooks, &(), &call).await else {
        panic!("a hook asks");
    };
    let (event, hook) = ("pre_tool_use", Some("careful"));
    assert_eq!(asked.question().asked_by(), AskedBy::Hook { event, hook });
}

#[tokio::test]
async fn the_model_learns_why_a_hook_denied_and_not_why_one_failed() {
    let stage = Stage::new();
    stage.engine.hook("guard").on(
        |event: &PreToolUse| -> Result<Effect<PreToolUse>, HandlerError> {
            match event.tool_input["cmd"].as_str() {
                Some("deny") => Ok(Effect::deny("not on Fridays")),
                _ => Err(HandlerError::Start {
                    problem: "no file /home/ann/.keys".to_owned(),
                }),
            }
        },
    );
    for (line, expected) in [
        (
            "deny",
            "The tool call was rejected by a pre_tool_use hook. Reason: not on Fridays",
        ),
        (
            "fail",
            "The tool call was rejected because a pre_tool_use hook failed. The journal has the cause.",
        ),
    ] {
        let call = shell(line);
        let hooks = stage.hooks();
        let JudgedToolCall::Stop(stopped) = judge(&hooks, &(), &call).await else {
            panic!("the hook stops `{line}`");
        };
        assert_eq!(stopped.text(), expected);
        let reason = &stopped.denial().unwrap().reason;
        assert_eq!(reason.contains("/home/ann"), line == "fail", "{reason}");
    }
}

#[tokio::test]
async fn what_a_hook_of_permission_request_changes_is_judged_by_all_again() {
    let guard: Register = |engine| {
        engine.on(|event: &ToolGuard| match event.tool_input["cmd"].as_str() {
            Some("rm") => Effect::deny("a guard"),
            _ => Effect::none(),
        });
    };
    let gate: Register = |engine| {
        engine.on(
            |event: &PreToolUse| match event.tool_input["cmd"].as_str() {
                Some("rm") => Effect::deny("a hook"),
                _ => Effect::none(),
            },
        );
    };
    let changing: Register = |engine| {
        engine.on(
            |event: &PreToolUse| match event.tool_input["cmd"].as_str() {
                Some("rm") => Effect::none().patch_input(cmd("rm -rf")),
                _ => Effect::none(),
            },
        );
    };
    for (register, denied_cmd, decides) in [
        (guard, None, "tool_guard_deny"),
        (gate, None, "pre_tool_use_hook_deny"),
        (changing, None, "pre_tool_use_hook_deny"),
        (no_hook, Some("rm"), "rule_deny"),
    ] {
        let stage = Stage::new();
        let decided = stage.collect(|event: &ToolApprovalDecision| event.source.to_string());
        register(&stage.engine);
        stage
            .engine
            .on(|_: &PermissionRequest| Effect::allow().patch_input(cmd("rm")));
        let rules = Rules {
            denied_cmd,
            ..Rules::of(PermissionRuling::Unruled)
        };
        let finished = play(&stage.hooks(), &rules, &shell("ls"), UserAnswer::Allow).await;
        assert!(finished.result.is_error, "{decides}");
        assert_eq!(*decided.lock(), [decides]);
    }
}

#[tokio::test]
async fn a_guard_that_asks_about_changed_arguments_is_not_answered_by_the_hook_that_changed_them() {
    let stage = Stage::new();
    stage
        .engine
        .on(|event: &ToolGuard| match event.tool_input["cmd"].as_str() {
            Some("rm") => Effect::ask("sure?"),
            _ => Effect::none(),
        });
    stage
        .engine
        .on(|_: &PermissionRequest| Effect::allow().patch_input(cmd("rm")));
    let (hooks, call) = (stage.hooks(), shell("ls"));
    let rules = Rules::of(PermissionRuling::Unruled);
    let JudgedToolCall::Ask(asked) = judge(&hooks, &rules, &call).await else {
        panic!("the guard asks");
    };
    assert_eq!(asked.question().reason(), Some("sure?"));
    assert!(asked.question().is_changed());
    assert_eq!(*asked.call().input, cmd("rm"));
}

#[tokio::test]
async fn arguments_that_the_host_does_not_accept_refuse_the_call_at_each_gate() {
    let force = || json!({ "force": true }).as_object().unwrap().clone();
    for event in ["tool_input_transform", "pre_tool_use", "permission_request"] {
        let stage = Stage::new();
        stage.engine.on(move |_: &ToolInputTransform| {
            let patch = (event == "tool_input_transform").then(force);
            patch.map_or(Effect::none(), |patch| Effect::none().patch_input(patch))
        });
        stage.engine.on(move |_: &PreToolUse| {
            let patch = (event == "pre_tool_use").then(force);
            patch.map_or(Effect::none(), |patch| Effect::none().patch_input(patch))
        });
        stage
            .engine
            .on(move |_: &PermissionRequest| Effect::allow().patch_input(force()));
        let rules = Rules::of(PermissionRuling::Unruled);
        let finished = play(&stage.hooks(), &rules, &shell("ls"), UserAnswer::Allow).await;
        let expected = format!(
            "The tool call was rejected by a {event} hook. Reason: the hook left an unknown argument `force`"
        );
        assert_eq!(finished.result.joined_text(), expected);
    }
}

proptest! {
    /// For all changes and denials by hooks: a call that may run never has arguments that a guard
    /// or a rule denies, and the guard has always seen its final arguments.
    #[test]
    fn no_change_of_arguments_escapes_a_gate(
        changes in proptest::array::uniform3(proptest::option::of(0_usize..4)),
        denies in proptest::array::uniform3(proptest::option::of(0_usize..4)),
        allows in any::<bool>(),
    ) {
        const LINES: [&str; 4] = ["a", "b", "c", "d"];
        let [by_transform, by_gate, by_request] = changes.map(|to| to.map(|to| LINES[to]));
        let [guarded, gated, ruled] = denies.map(|line| line.map(|line| LINES[line]));
        let stage = Stage::new();
        let seen = stage.collect(|event: &ToolGuard| {
            event.tool_input["cmd"].as_str().unwrap().to_owned()
        });
        stage.engine.on(move |_: &ToolInputTransform| {
            by_transform.map_or(Effect::none(), |line| Effect::none().patch_input(cmd(line)))
        });
        stage.engine.on(move |event: &ToolGuard| {
            let is_denied = guarded.is_some_and(|line| event.tool_input["cmd"] == line);
            if is_denied { Effect::deny("no") } else { Effect::none() }
        });
        stage.engine.on(move |event: &PreToolUse| {
            if gated.is_some_and(|line| event.tool_input["cmd"] == line) {
                return Effect::deny("no");
            }
            by_gate.map_or(Effect::none(), |line| Effect::none().patch_input(cmd(line)))
        });
        stage.engine.on(move |_: &PermissionRequest| {
            let effect = if allows { Effect::allow() } else { Effect::none() };
            match by_request {
                Some(line) => effect.patch_input(cmd(line)),
                None => effect,
            }
        });
        let rules = Rules { denied_cmd: ruled, ..Rules::of(PermissionRuling::Unruled) };
        let (hooks, call) = (stage.hooks(), shell("a"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let line = runtime.block_on(async {
            let permitted = match judge(&hooks, &rules, &call).await {
                JudgedToolCall::Proceed(ready) => Ok(ready),
                JudgedToolCall::Ask(asked) => asked.answer(UserAnswer::Allow).await,
                JudgedToolCall::Stop(stopped) => Err(stopped),
            };
            permitted.ok().map(|ready| ready.call().input["cmd"].as_str().unwrap().to_owned())
        });
        if let Some(line) = line {
            prop_assert_ne!(Some(line.as_str()), guarded);
            prop_assert_ne!(Some(line.as_str()), ruled);
            // A hook does not judge its own change, and a change without effect is not judged
            // again.
            if by_gate.is_none() || by_request.is_some_and(|line| Some(line) != by_gate) {
                prop_assert_ne!(Some(line.as_str()), gated);
            }
            let last = seen.lock().last().cloned();
            prop_assert_eq!(last, Some(line));
        }
    }
}

#[tokio::test]
async fn hooks_change_the_result_add_context_and_end_the_run() {
    let stage = Stage::new();
    stage.engine.on(|_: &ToolResponseTransform| {
        Effect::none()
            .replace_response("redacted".to_owned())
            .notice("took out a secret")
    });
    stage
        .engine
        .on(|_: &PreToolUse| Effect::none().context("before"));
    stage
        .engine
        .on(|_: &PostToolUse| Effect::none().context("after").stop_run("enough"));
    let rules = Rules::default();
    let finished = play(
        &stage.hooks(),
        &rules,
        &shell("ls"),
        UserAnswer::Unavailable,
    )
    .await;
    assert_eq!(finished.result, ToolResult::text("redacted"));
    assert_eq!(finished.context, ["before", "after"]);
    let stop = finished.stop_run.unwrap();
    assert_eq!((stop.event, &*stop.reason), ("post_tool_use", "enough"));
    assert_eq!(
        *rules.shown.lock(),
        ["tool_response_transform took out a secret"]
    );
}

#[tokio::test]
async fn a_redactor_that_fails_withholds_the_result_and_all_that_goes_with_it() {
    let stage = Stage::new();
    stage
        .engine
        .hook("redactor")
        .on_error(tenterhook_engine::OnError::Block)
        .on(|_: &ToolResponseTransform| -> Result<(), &str> { Err("broke") });
    let (hooks, call) = (stage.hooks(), shell("ls"));
    let JudgedToolCall::Proceed(ready) = judge(&hooks, &(), &call).await else {
        panic!("no one objects");
    };
    let mut result = ToolResult::text("secret");
    result.details = Some(cmd("secret"));
    let finished = ready.finish(result).await;
    assert_eq!(finished.withheld_by, Some("redactor".into()));
    assert!(!format!("{:?}", finished.result).contains("secret"));
    assert_eq!(finished.result.details, None);
    assert!(matches!(
        finished.result.content.as_slice(),
        [ContentBlock::Text { .. }]
    ));
}

#[tokio::test]
async fn a_failed_attempt_can_be_tried_again_and_its_yes_holds() {
    let stage = Stage::new();
    let retries = stage.collect(|event: &ToolError| event.will_retry.to_string());
    let rules = Rules::of(PermissionRuling::Unruled);
    let (hooks, call) = (stage.hooks(), shell("ls"));
    let JudgedToolCall::Ask(asked) = judge(&hooks, &rules, &call).await else {
        panic!("no rule allows it");
    };
    let ready = asked.answer(UserAnswer::Allow).await.unwrap();
    let ran = ready.ran(ToolResult::error("no network")).await;
    let again = ran.retry(std::future::ready(())).await.unwrap();
    let JudgedToolCall::Proceed(ready) = again.judge().await else {
        panic!("the person has agreed");
    };
    assert_eq!(ready.call().attempt, 2);
    let finished = ready.finish(ToolResult::error("still no network")).await;
    assert_eq!(finished.result.joined_text(), "still no network");
    assert_eq!(*retries.lock(), ["true", "false"]);
    let heard = stage.heard();
    let count = |name: &str| heard.iter().filter(|heard| *heard == name).count();
    let counts = [
        ("tool_execution_start", 1),
        ("tool_input_transform", 1),
        ("tool_guard", 2),
        ("pre_tool_use", 2),
        ("permission_request", 1),
        ("tool_approval_decision", 2),
        ("tool_response_transform", 2),
        ("post_tool_use", 1),
        ("tool_execution_end", 1),
    ];
    for (name, expected) in counts {
        assert_eq!(count(name), expected, "{name}");
    }
}

#[tokio::test]
async fn a_result_that_is_no_failure_is_not_tried_again() {
    let stage = Stage::new();
    let (hooks, call) = (stage.hooks(), shell("ls"));
    let rules = Rules::default();
    let JudgedToolCall::Proceed(ready) = judge(&hooks, &rules, &call).await else {
        panic!("a rule allows it");
    };
    let ran = ready.ran(ToolResult::text("done")).await;
    let Err(ran) = ran.retry(std::future::ready(())).await else {
        panic!("it was no failure");
    };
    assert_eq!(ran.finish().await.result.joined_text(), "done");
    assert!(!stage.heard().iter().any(|event| *event == "tool_error"));
}

/// A host that adds values to events.
struct Talkative;

impl ToolCallHost for Talkative {
    fn extra(&self, call: ToolCallView<'_>) -> JsonObject {
        [("turn_of".to_owned(), call.name.into())]
            .into_iter()
            .collect()
    }
}

#[tokio::test]
async fn every_event_of_a_call_has_what_the_host_adds() {
    let stage = Stage::new();
    let said = |extra: &JsonObject| extra["turn_of"].as_str().unwrap().to_owned();
    let told = [
        stage.collect(move |event: &ToolExecutionStart| said(&event.extra)),
        stage.collect(move |event: &PreToolUse| said(&event.extra)),
        stage.collect(move |event: &ToolApprovalDecision| said(&event.extra)),
        stage.collect(move |event: &ToolExecutionEnd| said(&event.extra)),
    ];
    let (hooks, call) = (stage.hooks(), shell("ls"));
    let finished = play(&hooks, &Talkative, &call, UserAnswer::Unavailable).await;
    assert!(!finished.result.is_error);
    for told in told {
        assert_eq!(*told.lock(), ["shell"]);
    }
}

#[tokio::test]
async fn the_model_learns_that_a_call_denied_at_the_second_attempt_has_run() {
    let stage = Stage::new();
    stage.engine.on(|event: &ToolGuard| {
        if event.attempt > 1 {
            Effect::deny("once is enough")
        } else {
            Effect::none()
        }
    });
    let (hooks, call) = (stage.hooks(), shell("ls"));
    let JudgedToolCall::Proceed(ready) = judge(&hooks, &(), &call).await else {
        panic!("no one objects");
    };
    let ran = ready.ran(ToolResult::error("no network")).await;
    let again = ran.retry(std::future::ready(())).await.unwrap();
    let JudgedToolCall::Stop(stopped) = again.judge().await else {
        panic!("the guard denies");
    };
    let text = stopped.finish().await.result.joined_text();
    assert_eq!(
        text,
        "The tool call was rejected by a tool_guard hook. Reason: once is enough\n\
         The tool has already run: attempt 1 failed: no network"
    );
}

#[tokio::test]
async fn a_cancelled_pause_leaves_the_failure_to_be_finished() {
    let stage = Stage::new();
    let retries = stage.collect(|event: &ToolError| event.will_retry.to_string());
    let cancel = CancellationToken::new();
    let hooks = stage.hooks().with_cancel(cancel.clone());
    let call = shell("ls");
    let JudgedToolCall::Proceed(ready) = judge(&hooks, &(), &call).await else {
        panic!("no one objects");
    };
    let ran = ready.ran(ToolResult::error("no network")).await;
    cancel.cancel();
    let ran = ran.retry(std::future::pending()).await.unwrap_err();
    let finished = ran.finish().await;
    assert_eq!(finished.result.joined_text(), "no network");
    assert_eq!(*retries.lock(), ["true"]);
    assert_eq!(stage.heard().last().unwrap(), "tool_execution_end");
}

#[tokio::test]
async fn calls_that_cannot_be_judged_pass_the_transform_of_results_only() {
    let around = |middle: &[&str]| {
        let mut names = vec!["tool_execution_start"];
        names.extend(middle);
        names.extend(["tool_response_transform", "tool_execution_end"]);
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let stage = Stage::new();
    let (hooks, call) = (stage.hooks(), shell("ls"));

    let finished = start(&hooks, &(), &call).await.refuse("no such tool").await;
    assert_eq!(finished.result, ToolResult::error("no such tool"));
    assert_eq!(stage.heard(), around(&[]));

    let started = start(&hooks, &(), &call).await;
    let finished = started.refuse_as_disabled().await;
    let expected = ToolResult::error("The tool `shell` is disabled.");
    assert_eq!(finished.result, expected);
    assert_eq!(stage.heard(), around(&["tools_disabled"]));

    let mut unreadable = shell("ls");
    unreadable.arguments = json!("rm -rf ~");
    let seen = stage.collect(|event: &ToolResponseTransform| json!(event.tool_input).to_string());
    let finished = play(&hooks, &(), &unreadable, UserAnswer::Allow).await;
    let expected = "The arguments of `shell` are not a JSON object.";
    assert_eq!(finished.result.joined_text(), expected);
    assert_eq!(stage.heard(), around(&[]));
    assert_eq!(*seen.lock(), [r#"{"arguments":"rm -rf ~"}"#]);
}

#[tokio::test]
async fn a_cancelled_call_is_not_a_denied_one() {
    let stage = Stage::new();
    let decided = stage.collect(|event: &ToolApprovalDecision| event.source.to_string());
    let endless = crate::observing::endless(false);
    stage
        .engine
        .register(spec(EventKind::ToolGuard, "endless", endless));
    let cancel = CancellationToken::new();
    let hooks = stage.hooks().with_cancel(cancel.clone());
    let call = shell("ls");
    let mut judging = Box::pin(judge(&hooks, &(), &call));
    assert!(futures_util::poll!(&mut judging).is_pending());
    cancel.cancel();
    let JudgedToolCall::Stop(stopped) = judging.await else {
        panic!("the run was cancelled");
    };
    assert_eq!(stopped.denial(), None);
    let finished = stopped.finish().await;
    let expected = "The tool call was cancelled.";
    assert_eq!(finished.result.joined_text(), expected);
    assert_eq!(*decided.lock(), ["context_cancelled"]);
    let heard = stage.heard();
    assert!(!heard.contains(&"permission_denied".to_owned()));
    assert!(!heard.contains(&"post_tool_use".to_owned()));

    // Before the first gate, and after a person's answer.
    let finished = play(&hooks, &(), &call, UserAnswer::Allow).await;
    assert_eq!(finished.result.joined_text(), expected);
    let expected = [
        "tool_execution_start",
        "tool_response_transform",
        "tool_execution_end",
    ];
    assert_eq!(stage.heard(), expected);
}

/// Counts the runs of hooks that were cancelled.
#[derive(Debug, Default)]
struct Cancelled(Mutex<Vec<String>>);

impl HookObserver for Cancelled {
    fn hook_ended(&self, run: &HookRun<'_>, _: std::time::Duration, verdict: HookVerdict<'_>) {
        if verdict == HookVerdict::Cancelled {
            self.0.lock().push(run.hook.to_string());
        }
    }
}

#[tokio::test]
async fn a_dropped_judgement_cancels_the_hooks_under_way() {
    let observer = Arc::new(Cancelled::default());
    let engine = Engine::builder()
        .observer(Arc::clone(&observer) as Arc<dyn HookObserver>)
        .build();
    let endless = crate::observing::endless(false);
    engine.register(spec(EventKind::PreToolUse, "endless", endless));
    let (hooks, call) = (engine.dispatcher(Origin::default()), shell("ls"));
    let mut judging = Box::pin(judge(&hooks, &(), &call));
    assert!(futures_util::poll!(&mut judging).is_pending());
    drop(judging);
    assert_eq!(*observer.0.lock(), ["endless"]);
}

/// A host that must not be asked for values that only events need.
struct Silent;

impl ToolCallHost for Silent {
    fn category(&self, _call: ToolCallView<'_>) -> Option<String> {
        unreachable!("no event is built")
    }
}

#[tokio::test]
async fn without_hooks_no_event_is_built() {
    let engine = Engine::new();
    let (hooks, call) = (engine.dispatcher(Origin::default()), shell("ls"));
    let finished = play(&hooks, &Silent, &call, UserAnswer::Unavailable).await;
    assert_eq!(finished.result, ToolResult::text("ran ls"));
    assert_eq!(finished.context, [""; 0]);
}

#[tokio::test]
async fn a_failing_hook_is_shown_with_its_event() {
    let stage = Stage::new();
    stage
        .engine
        .on(|_: &PostToolUse| -> Result<(), HandlerError> { Err(HandlerError::Cancelled) });
    let rules = Rules::default();
    let finished = play(
        &stage.hooks(),
        &rules,
        &shell("ls"),
        UserAnswer::Unavailable,
    )
    .await;
    assert!(!finished.result.is_error);
    let shown = rules.shown.lock();
    assert!(
        shown.iter().any(|line| line.starts_with("post_tool_use ")),
        "{shown:?}"
    );
}
