//! How one event passes its hooks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tenterhook_engine::event::{
    BeforeCompaction, Custom, PostToolUse, PreToolUse, SessionStart, ToolGuard, TurnStart,
    UserInput,
};
use tenterhook_engine::{
    AnyEffect, Decision, Effect, Engine, EventKind, EventName, Handler, HookSpec, Matcher, Origin,
    Permission, Phase, StopKind, ToolResult, parse_event,
};

use crate::{Slow, shell_call, spec, verdict};

pub(crate) fn answering(effect: AnyEffect) -> Handler {
    Handler::Async(Arc::new(Slow {
        turns: 1,
        answer: Ok(effect),
    }))
}

fn patching(key: &str, value: &str) -> AnyEffect {
    let mut effect = AnyEffect::default();
    effect
        .rewrite
        .insert("tool_input".to_owned(), json!({ key: value }));
    effect
}

#[tokio::test]
async fn an_event_that_nobody_hooks_is_not_built() {
    let engine = Engine::new();
    engine.on(|_: &PreToolUse| ());
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks
        .dispatch_with(|| -> TurnStart { unreachable!("nobody hooks it") })
        .await;
    assert!(outcome.context().is_empty());
    assert!(hooks.is_hooked::<PreToolUse>() && !hooks.is_hooked::<TurnStart>());
}

#[tokio::test]
async fn rewrites_chain_in_order_and_keep_the_other_arguments() {
    // D-70
    let append = |suffix: &'static str| {
        move |event: &PreToolUse| {
            let cmd = event
                .tool_input
                .get("cmd")
                .and_then(|cmd| cmd.as_str())
                .unwrap_or_default();
            Effect::<PreToolUse>::none().patch_input(
                json!({ "cmd": format!("{cmd}{suffix}") })
                    .as_object()
                    .cloned()
                    .unwrap_or_default(),
            )
        }
    };
    for waiting in [false, true] {
        let engine = Engine::new();
        engine.on(append(" -l"));
        engine.on(append(" -h"));
        if waiting {
            // A hook that may wait makes the dispatch use the other path through the engine.
            engine.register(spec(
                EventKind::PreToolUse,
                "waits",
                answering(AnyEffect::default()),
            ));
        }
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell_call("ls"))
            .await;
        let input = outcome.into_rewritten().unwrap().tool_input;
        assert_eq!(json!(input), json!({ "cmd": "ls -l -h", "cwd": "src" }));
    }
}

#[tokio::test]
async fn nothing_is_rewritten_when_no_hook_rewrites() {
    // D-72
    let engine = Engine::new();
    engine.on(|_: &PreToolUse| Effect::allow());
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert!(outcome.rewritten().is_none());
    assert!(outcome.is_allowed());
}

#[tokio::test]
async fn a_deny_ends_the_series_and_observers_still_see_it() {
    let engine = Engine::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let after = Arc::clone(&seen);
    engine.register(spec(
        EventKind::PreToolUse,
        "denies",
        answering(verdict(Permission::Deny, "no")),
    ));
    engine.on(move |_: &PreToolUse| after.lock().unwrap().push("after"));
    let subscriber = Arc::clone(&seen);
    engine.subscribe(move |event| {
        assert_eq!(event.envelope().sequence, 1);
        subscriber.lock().unwrap().push("subscriber");
    });
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), Some("no"));
    assert_eq!(outcome.decision().by().unwrap().as_str(), "denies");
    assert_eq!(*seen.lock().unwrap(), ["subscriber"]);
}

#[tokio::test]
async fn an_allow_never_skips_another_hooks_deny() {
    for waiting in [false, true] {
        let engine = Engine::new();
        engine.on(|_: &PreToolUse| Effect::allow());
        if waiting {
            engine.register(spec(
                EventKind::PreToolUse,
                "denies",
                answering(verdict(Permission::Deny, "no")),
            ));
        } else {
            engine.on(|_: &PreToolUse| Effect::deny("no"));
        }
        engine.on(|_: &PreToolUse| Effect::allow());
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell_call("ls"))
            .await;
        let Decision::Stop { reason, kind, .. } = outcome.decision() else {
            panic!("{outcome:?}");
        };
        assert_eq!((&*reason, kind), ("no", StopKind::Denied));
    }
}

#[tokio::test]
async fn phases_run_in_order_and_guards_judge_the_final_value() {
    let engine = Engine::new();
    let mut guard = spec(
        EventKind::PreToolUse,
        "guard",
        answering(AnyEffect::default()),
    );
    let judged = Arc::new(Mutex::new(String::new()));
    let sees = Arc::clone(&judged);
    guard.handling = Handler::Async(Arc::new(SeesInput { sees }));
    guard.phase = Phase::Guard;
    engine.register(guard);
    engine.register(spec(
        EventKind::PreToolUse,
        "main",
        answering(patching("cmd", "second")),
    ));
    let mut transform = spec(
        EventKind::PreToolUse,
        "transform",
        answering(patching("cmd", "first")),
    );
    transform.phase = Phase::Transform;
    engine.register(transform);
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(*judged.lock().unwrap(), "second");
    assert_eq!(
        outcome.rewritten().unwrap().tool_input.get("cmd"),
        Some(&json!("second"))
    );
}

/// Records the command that it receives.
#[derive(Debug)]
struct SeesInput {
    sees: Arc<Mutex<String>>,
}

impl tenterhook_engine::AsyncHandler for SeesInput {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn describe(&self) -> String {
        "test".to_owned()
    }

    fn handle<'a>(
        &'a self,
        call: &'a tenterhook_engine::Call,
    ) -> futures_util::future::BoxFuture<'a, tenterhook_engine::Answer> {
        let event = call.event.downcast::<PreToolUse>().unwrap();
        let cmd = event
            .tool_input
            .get("cmd")
            .and_then(|cmd| cmd.as_str())
            .unwrap_or_default();
        cmd.clone_into(&mut self.sees.lock().unwrap());
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[tokio::test]
async fn a_guard_that_rewrites_has_failed_and_denies() {
    let engine = Engine::new();
    let mut guard = spec(
        EventKind::PreToolUse,
        "guard",
        answering(patching("cmd", "other")),
    );
    guard.phase = Phase::Guard;
    engine.register(guard);
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    let reason = "pre_tool_use hook failed to execute: hook \"guard\": a hook of the guard phase may not rewrite `tool_input`";
    assert_eq!(outcome.decision().reason(), Some(reason));
    assert!(outcome.rewritten().is_none());
}

#[tokio::test]
async fn an_observing_hook_of_a_gate_cannot_affect_the_result() {
    let engine = Engine::new();
    for (id, answer) in [
        ("denies", Ok(verdict(Permission::Deny, "no"))),
        ("fails", Err("broke".to_owned())),
    ] {
        let mut observer = spec(
            EventKind::PreToolUse,
            id,
            Handler::Async(Arc::new(Slow { turns: 0, answer })),
        );
        observer.phase = Phase::Observe;
        engine.register(observer);
    }
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.decision(), Decision::Proceed);
    assert_eq!(
        outcome.notices(),
        ["pre_tool_use hook failed to execute: hook \"fails\": broke"]
    );
    assert!(!outcome.failures()[0].let_through);
}

#[tokio::test]
async fn a_rewrite_of_the_wrong_type_is_a_failure_and_changes_nothing() {
    let engine = Engine::new();
    let mut effect = AnyEffect::default();
    effect
        .rewrite
        .insert("tool_input".to_owned(), json!("text"));
    engine.register(spec(EventKind::PreToolUse, "rewrites", answering(effect)));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    let decision = outcome.decision();
    let reason = decision.reason().unwrap();
    assert!(
        reason.contains("the new value of `tool_input` does not fit: invalid type"),
        "{reason}"
    );
    assert!(outcome.rewritten().is_none());
}

#[tokio::test]
async fn an_effect_that_the_event_does_not_honour_is_a_failure() {
    let engine = Engine::new();
    let deny = verdict(Permission::Deny, "no");
    engine.register(spec(
        EventKind::BeforeCompaction,
        "denies",
        answering(deny.clone()),
    ));
    engine.register(spec(EventKind::TurnStart, "denies", answering(deny)));
    let hooks = engine.dispatcher(Origin::default());
    let gate = hooks.dispatch(BeforeCompaction::default()).await;
    assert!(
        gate.decision()
            .reason()
            .unwrap()
            .ends_with("`before_compaction` does not honour `permission`")
    );
    let observer = hooks.dispatch(TurnStart::default()).await;
    assert_eq!(observer.failures().len(), 1);
}

fn explode() -> futures_util::future::BoxFuture<'static, ()> {
    Box::pin(async { panic!("boom") })
}

#[tokio::test]
async fn a_panic_is_a_failure_of_that_hook_only() {
    for waiting in [false, true] {
        let engine = Engine::new();
        if waiting {
            engine.on_async(|_: &PreToolUse| explode());
        } else {
            engine.on(|_: &PreToolUse| -> Effect<PreToolUse> { panic!("boom") });
        }
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell_call("ls"))
            .await;
        assert!(
            outcome
                .decision()
                .reason()
                .unwrap()
                .ends_with("panicked: boom"),
            "{outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_async_function_has_a_deadline() {
    let engine = Engine::new();
    engine.on_async(|_: &PreToolUse| {
        Box::pin(async {
            std::future::pending::<()>().await;
            Effect::allow()
        })
    });
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .ends_with("timed out after 60s")
    );
}

#[tokio::test(start_paused = true)]
async fn all_hooks_of_a_session_end_have_ten_seconds_together() {
    let engine = Engine::new();
    engine.on_async(|_: &tenterhook_engine::event::SessionEnd| {
        Box::pin(async {
            std::future::pending::<()>().await;
            Effect::none()
        })
    });
    let began = tokio::time::Instant::now();
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(tenterhook_engine::event::SessionEnd::default())
        .await;
    // The deadline uses the real clock, so on a busy machine the hook gets a little less.
    let cause = &outcome.failures()[0].cause;
    let seconds = cause.strip_prefix("timed out after ").unwrap();
    let seconds: f64 = seconds.strip_suffix('s').unwrap().parse().unwrap();
    assert!(seconds > 9.0 && seconds <= 10.0, "{cause}");
    assert!(began.elapsed() < Duration::from_secs(11));
}

#[tokio::test]
async fn a_cancelled_dispatch_fails_its_hooks_and_so_denies() {
    let engine = Engine::new();
    engine.on_async(|_: &PreToolUse| {
        Box::pin(async {
            std::future::pending::<()>().await;
            Effect::allow()
        })
    });
    let cancel = tokio_util::sync::CancellationToken::new();
    let hooks = engine
        .dispatcher(Origin::default())
        .with_cancel(cancel.clone());
    let dispatch = tokio::spawn(async move {
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .map(str::to_owned)
    });
    cancel.cancel();
    let stopped = dispatch.await.unwrap().unwrap();
    assert_eq!(
        stopped,
        "pre_tool_use hook failed to execute: hook \"function 1 on pre_tool_use\": cancelled"
    );
}

#[tokio::test]
async fn parallel_hooks_overlap() {
    // D-78: each waits for the other to begin.
    let engine = Engine::new();
    let barrier = Arc::new(tokio::sync::Barrier::new(2));
    for _ in 0..2 {
        let barrier = Arc::clone(&barrier);
        engine.on_async(move |_: &ToolGuard| {
            let barrier = Arc::clone(&barrier);
            Box::pin(async move {
                barrier.wait().await;
                Effect::allow()
            })
        });
    }
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(ToolGuard::default())
        .await;
    assert!(outcome.is_allowed());
}

#[tokio::test]
async fn the_first_supplied_product_wins_and_a_wrong_one_is_a_failure() {
    // D-68
    let engine = Engine::new();
    let supply = |value: serde_json::Value| AnyEffect {
        supply: Some(value),
        ..AnyEffect::default()
    };
    engine.register(spec(
        EventKind::BeforeCompaction,
        "one",
        answering(supply(json!("first"))),
    ));
    engine.register(spec(
        EventKind::BeforeCompaction,
        "two",
        answering(supply(json!("second"))),
    ));
    let hooks = engine.dispatcher(Origin::default());
    assert_eq!(
        hooks.dispatch(BeforeCompaction::default()).await.supplied(),
        Some("first".to_owned())
    );
    engine.register(spec(
        EventKind::BeforeCompaction,
        "three",
        answering(supply(json!(3))),
    ));
    assert!(
        hooks
            .dispatch(BeforeCompaction::default())
            .await
            .decision()
            .reason()
            .is_some()
    );
}

#[tokio::test]
async fn handled_input_ends_the_series() {
    let engine = Engine::new();
    let calls = Arc::new(AtomicUsize::new(0));
    engine.on(|_: &UserInput| Effect::handled());
    let counted = Arc::clone(&calls);
    engine.on(move |_: &UserInput| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(UserInput::default())
        .await;
    assert!(outcome.is_handled());
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_stop_of_the_run_does_not_end_post_tool_use() {
    let engine = Engine::new();
    engine.on(|_: &PostToolUse| Effect::none().stop_run("enough"));
    engine.on(|_: &PostToolUse| Effect::<PostToolUse>::none().replace_is_error(true));
    let event = PostToolUse::new("shell").with_result(ToolResult::text("a"));
    let outcome = engine.dispatcher(Origin::default()).dispatch(event).await;
    assert_eq!(outcome.stop_run(), Some("enough"));
    assert!(outcome.into_rewritten().unwrap().result.is_error);
}

#[tokio::test]
async fn matchers_choose_by_the_subject() {
    let engine = Engine::new();
    let mut shell = spec(
        EventKind::PreToolUse,
        "shell",
        answering(verdict(Permission::Deny, "no")),
    );
    shell.matcher = Matcher::parse("shell|bash").unwrap();
    engine.register(shell);
    let hooks = engine.dispatcher(Origin::default());
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_some()
    );
    let mut other = shell_call("ls");
    other.tool_name = "read_file".to_owned();
    assert!(hooks.dispatch(other).await.decision().reason().is_none());
}

#[tokio::test]
async fn user_defined_events_reach_the_hooks_of_their_name_only() {
    let engine = Engine::new();
    let mut deploy = spec(
        EventKind::Custom,
        "deploy",
        answering(verdict(Permission::Deny, "frozen")),
    );
    deploy.event = Some("x-acme.deploy".parse().unwrap());
    engine.register(deploy);
    let hooks = engine.dispatcher(Origin::default());
    let send = |name: &str| Custom::gate(name.parse().unwrap());
    assert_eq!(
        hooks
            .dispatch(send("x-acme.deploy"))
            .await
            .decision()
            .reason(),
        Some("frozen")
    );
    assert_eq!(
        hooks
            .dispatch(send("x-acme.rollback"))
            .await
            .decision()
            .reason(),
        None
    );
}

#[tokio::test]
async fn an_event_of_a_type_known_at_run_time_goes_the_same_way() {
    let engine = Engine::new();
    engine.on(|event: &SessionStart| Effect::none().context(format!("source {}", event.source)));
    let event = parse_event(
        &EventName::Known(EventKind::SessionStart),
        json!({ "source": "resume" }),
    )
    .unwrap();
    let dispatched = engine
        .dispatcher(Origin::default())
        .dispatch_any(event)
        .await;
    assert_eq!(dispatched.outcome.context, ["source resume"]);
    assert_eq!(
        dispatched.event.to_json().unwrap().get("event"),
        Some(&json!("session_start"))
    );
}

#[tokio::test]
async fn a_hook_of_one_agent_does_not_fire_for_another() {
    let engine = Engine::new();
    let mut only = spec(
        EventKind::PreToolUse,
        "only",
        answering(verdict(Permission::Deny, "no")),
    );
    only.agent = Some("researcher".to_owned());
    engine.register(only);
    let hooks = engine.dispatcher(Origin::default());
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_none()
    );
    let mut origin = Origin::default();
    origin.agent.name = "researcher".to_owned();
    assert!(
        hooks
            .child(origin)
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_some()
    );
}

/// The origin of an agent's session.
fn of_agent(name: &str, session: &str) -> Origin {
    let mut origin = Origin::new(session, "");
    name.clone_into(&mut origin.agent.name);
    origin
}

#[tokio::test]
async fn a_guard_is_not_escaped_by_delegating() {
    for waiting in [false, true] {
        let engine = Engine::new();
        let mut of_writer = spec(
            EventKind::PreToolUse,
            "writer",
            answering(verdict(Permission::Deny, "agent")),
        );
        of_writer.agent = Some("writer".to_owned());
        let session = engine.scope(tenterhook_engine::Scope::Session("s1".into()));
        if waiting {
            engine.register(of_writer);
            session.register(spec(
                EventKind::ToolGuard,
                "s1",
                answering(verdict(Permission::Deny, "session")),
            ));
        } else {
            session.on(|_: &PreToolUse| Effect::deny("agent"));
            session.on(|_: &ToolGuard| Effect::deny("session"));
        }
        let parent = engine.dispatcher(of_agent("writer", "s1"));
        let grandchild = parent
            .child(of_agent("helper", "s2"))
            .child(of_agent("helper", "s3"));
        for hooks in [&parent, &grandchild] {
            assert_eq!(
                hooks.dispatch(shell_call("ls")).await.decision().reason(),
                Some("agent")
            );
            assert_eq!(
                hooks
                    .dispatch(ToolGuard::default())
                    .await
                    .decision()
                    .reason(),
                Some("session")
            );
        }
        let other = engine.dispatcher(of_agent("helper", "s2"));
        assert_eq!(
            other.dispatch(shell_call("ls")).await.decision().reason(),
            None
        );
    }
}

#[tokio::test]
async fn an_observer_of_one_session_does_not_hear_of_its_subagents() {
    let engine = Engine::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    engine
        .scope(tenterhook_engine::Scope::Session("s1".into()))
        .on(move |_: &TurnStart| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    let parent = engine.dispatcher(of_agent("writer", "s1"));
    drop(
        parent
            .child(of_agent("helper", "s2"))
            .dispatch(TurnStart::default())
            .await,
    );
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    drop(parent.dispatch(TurnStart::default()).await);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn strict_holds_for_a_hook_of_every_event_too() {
    let engine = Engine::builder().strict(true).build();
    let broken = Handler::Async(Arc::new(Slow {
        turns: 0,
        answer: Err("broke".to_owned()),
    }));
    let mut every = spec(EventKind::PreToolUse, "every", broken);
    every.event = None;
    every.policy = tenterhook_engine::Policy::new(tenterhook_engine::OnError::Ignore, "configured");
    engine.register(every);
    let hooks = engine.dispatcher(Origin::default());
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_some()
    );
    assert!(hooks.dispatch(TurnStart::default()).await.failures().len() == 1);
}

#[tokio::test]
async fn a_deny_counts_even_where_the_rest_of_the_answer_is_refused() {
    let engine = Engine::new();
    let effect = AnyEffect {
        ..verdict(Permission::Deny, "no")
    };
    let mut guard = spec(
        EventKind::PreToolUse,
        "guard",
        answering(AnyEffect {
            rewrite: patching("cmd", "x").rewrite,
            ..effect
        }),
    );
    guard.phase = Phase::Guard;
    guard.policy = tenterhook_engine::Policy::new(tenterhook_engine::OnError::Warn, "configured");
    engine.register(guard);
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), Some("no"));
    assert!(!outcome.failures()[0].let_through);
}

/// A handler that claims to enforce its deadline, and panics.
#[derive(Debug)]
struct Panicking;

impl tenterhook_engine::AsyncHandler for Panicking {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn describe(&self) -> String {
        "test".to_owned()
    }

    fn handle<'a>(
        &'a self,
        _call: &'a tenterhook_engine::Call,
    ) -> futures_util::future::BoxFuture<'a, tenterhook_engine::Answer> {
        panic!("boom")
    }

    fn enforces_deadline(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_panic_in_a_handler_that_keeps_its_own_deadline_denies() {
    let engine = Engine::new();
    engine.register(spec(
        EventKind::PreToolUse,
        "panics",
        Handler::Async(Arc::new(Panicking)),
    ));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .ends_with("panicked: boom")
    );
}

#[tokio::test(start_paused = true)]
async fn the_bound_on_a_session_end_holds_over_all_phases() {
    let engine = Engine::builder()
        .session_end_timeout(Duration::from_millis(50))
        .build();
    for phase in [Phase::Transform, Phase::Transform, Phase::Main] {
        let mut hook = spec(
            EventKind::SessionEnd,
            "slow",
            Handler::Async(Arc::new(Pending)),
        );
        hook.phase = phase;
        engine.register(hook);
    }
    let began = std::time::Instant::now();
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(tenterhook_engine::event::SessionEnd::default())
        .await;
    assert_eq!(outcome.failures().len(), 3);
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// A handler that never answers.
#[derive(Debug)]
struct Pending;

impl tenterhook_engine::AsyncHandler for Pending {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn describe(&self) -> String {
        "test".to_owned()
    }

    fn handle<'a>(
        &'a self,
        _call: &'a tenterhook_engine::Call,
    ) -> futures_util::future::BoxFuture<'a, tenterhook_engine::Answer> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_subscriber_is_told_of_a_cancelled_dispatch_and_adds_nothing_to_it() {
    let engine = Engine::new();
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    engine.subscribe(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    let outcome = engine
        .dispatcher(Origin::default())
        .with_cancel(cancel)
        .dispatch(TurnStart::default())
        .await;
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert!(outcome.failures().is_empty() && outcome.notices().is_empty());
}

#[tokio::test]
async fn a_model_call_that_a_gate_stopped_counts_as_stopped() {
    use tenterhook_engine::event::BeforeLlmCall;
    let engine = Engine::new();
    engine.on(|_: &BeforeLlmCall| Effect::<BeforeLlmCall>::none().stop_run("budget"));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(BeforeLlmCall::default())
        .await;
    assert_eq!(outcome.decision().reason(), Some("budget"));
}

#[tokio::test]
async fn an_outcome_tells_no_hook_from_hooks_without_an_opinion() {
    // (functions without an opinion, hooks that wait, a hook that denies first, hooks that ran)
    let cases = [
        (0, 0, false, 0),
        (2, 0, false, 2),
        (2, 1, false, 3),
        (1, 1, true, 1),
    ];
    for (functions, waiting, denies, ran) in cases {
        let engine = Engine::new();
        if denies {
            engine
                .hook("deny")
                .priority(1)
                .on(|_: &PreToolUse| Effect::deny("no"));
        }
        for _ in 0..functions {
            engine.on(|_: &PreToolUse| Effect::none());
        }
        for _ in 0..waiting {
            engine.on_async(|_: &PreToolUse| Box::pin(async { Effect::none() }));
        }
        engine
            .hook("other")
            .matcher(Matcher::parse("edit_file").unwrap())
            .on(|_: &PreToolUse| Effect::deny("other tool"));
        let dispatcher = engine.dispatcher(Origin::default());
        let outcome = dispatcher.dispatch(shell_call("ls")).await;
        assert_eq!(outcome.hooks_run(), ran);
        assert_eq!(outcome.into_any().hooks_run, ran);
        let any = dispatcher.dispatch_any(Box::new(shell_call("ls"))).await;
        assert_eq!(any.outcome.hooks_run, ran);
    }
}

#[tokio::test]
async fn a_subscriber_does_not_count_as_a_hook_that_ran() {
    let engine = Engine::new();
    engine.subscribe(|_| {});
    engine
        .hook("shell only")
        .matcher(Matcher::parse("shell").unwrap())
        .on(|_: &PreToolUse| ());
    let dispatcher = engine.dispatcher(Origin::default());
    for (tool, ran) in [("shell", 1), ("edit_file", 0)] {
        let outcome = dispatcher.dispatch(PreToolUse::new(tool)).await;
        assert_eq!(outcome.hooks_run(), ran, "{tool}");
    }
    engine.register(HookSpec {
        event: None,
        ..spec(
            EventKind::PreToolUse,
            "every event",
            answering(AnyEffect::default()),
        )
    });
    let outcome = dispatcher.dispatch(PreToolUse::new("edit_file")).await;
    assert_eq!(outcome.hooks_run(), 1);
}

#[tokio::test]
async fn a_hook_that_hears_stops_runs_after_a_denial_and_changes_nothing() {
    let engine = Engine::new();
    let later = |id: &str, hears_stops: bool, effect: AnyEffect| HookSpec {
        hears_stops,
        ..spec(EventKind::PreToolUse, id, answering(effect))
    };
    engine.register(later("denies", false, verdict(Permission::Deny, "no")));
    engine.register(later("skipped", false, patching("cmd", "skipped")));
    engine.register(later("rewrites", true, patching("cmd", "rewritten")));
    engine.register(later("allows", true, verdict(Permission::Allow, "yes")));
    engine.register(HookSpec {
        hears_stops: true,
        ..spec(
            EventKind::PreToolUse,
            "fails",
            Handler::Async(Arc::new(Slow {
                turns: 1,
                answer: Err("the disk is full".to_owned()),
            })),
        )
    });
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), Some("no"));
    assert_eq!(outcome.hooks_run(), 4);
    let any = outcome.into_any();
    assert!(any.rewritten.is_empty(), "{:?}", any.rewritten);
    let failed: Vec<_> = any
        .failures
        .iter()
        .map(|it| (it.hook.as_str(), it.let_through))
        .collect();
    assert_eq!(failed, [("fails", false)]);
}
