//! Functions of the host as hooks: their return types and settings.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenterhook_engine::event::{
    Custom, PermissionRequest, PreToolUse, ToolInputTransform, TurnStart,
};
use tenterhook_engine::{
    Decision, Effect, Engine, EventClass, JsonObject, Matcher, MemoryJournal, OnError, Origin,
    Phase, StopKind,
};

use crate::shell_call;

fn patch(cmd: &str) -> JsonObject {
    [("cmd".to_owned(), cmd.into())].into_iter().collect()
}

async fn decide(engine: &Engine, cmd: &str) -> Decision {
    let hooks = engine.dispatcher(Origin::default());
    hooks.dispatch(shell_call(cmd)).await.decision()
}

/// `patch_input` used to exist once for each event, so the compiler could not choose (E0034).
#[tokio::test]
async fn a_closure_that_only_rewrites_compiles() {
    let engine = Engine::new();
    engine.on(|_: &ToolInputTransform| Effect::none().patch_input(patch("echo transformed")));
    engine.on(|_: &PreToolUse| Effect::none().patch_input(patch("echo safe")));
    engine.on(|_: &PermissionRequest| Effect::none().patch_input(patch("echo asked")));
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("rm -rf /")).await;
    let rewritten = outcome.into_rewritten().unwrap();
    assert_eq!(rewritten.tool_input.get("cmd"), Some(&"echo safe".into()));
}

#[tokio::test]
async fn an_error_of_a_closure_denies() {
    let engine = Engine::new();
    engine.on(
        |event: &PreToolUse| -> Result<Effect<PreToolUse>, std::num::ParseIntError> {
            let cmd = event.tool_input.get("cmd").and_then(|cmd| cmd.as_str());
            let _: u32 = cmd.unwrap_or("0").parse()?;
            Ok(Effect::none())
        },
    );
    assert_eq!(decide(&engine, "7").await, Decision::Proceed);
    let Decision::Stop { reason, kind, .. } = decide(&engine, "ls").await else {
        panic!("the call went on");
    };
    assert_eq!(kind, StopKind::Failed);
    assert!(
        reason.ends_with("invalid digit found in string"),
        "{reason}"
    );
}

#[tokio::test]
async fn an_error_of_an_async_closure_denies() {
    let engine = Engine::new();
    engine.on_async(|_: &PreToolUse| Box::pin(async { Err::<(), _>("the policy server is away") }));
    let Decision::Stop { reason, kind, .. } = decide(&engine, "ls").await else {
        panic!("the call went on");
    };
    assert_eq!(kind, StopKind::Failed);
    assert!(reason.ends_with("the policy server is away"), "{reason}");
}

#[tokio::test]
async fn a_builder_gives_a_closure_a_name_a_matcher_a_phase_a_priority_and_a_policy() {
    let engine = Engine::new();
    engine
        .hook("late")
        .matcher(Matcher::parse("shell").unwrap())
        .phase(Phase::Guard)
        .priority(7)
        .timeout(Duration::from_millis(250))
        .on_error(OnError::Warn)
        .on(|_: &PreToolUse| Err::<(), _>("broken"));
    let [hook] = &engine.hooks()[..] else {
        panic!("one hook");
    };
    assert_eq!(hook.id.as_str(), "late");
    assert_eq!(
        (&*hook.matcher, hook.phase, hook.priority),
        ("shell", Phase::Guard, 7)
    );
    assert_eq!(hook.timeout_seconds, Some(0.25));
    assert_eq!(hook.policy.on_error, OnError::Warn);

    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert_eq!(outcome.decision(), Decision::Proceed);
    assert!(outcome.failures()[0].let_through);
    let other = PreToolUse::new("read_file");
    assert!(hooks.dispatch(other).await.failures().is_empty());
}

#[tokio::test]
async fn every_closure_has_an_id_of_its_own() {
    let engine = Engine::new();
    for reason in ["one", "two"] {
        engine.on(move |_: &PreToolUse| Effect::<PreToolUse>::deny(reason));
    }
    engine.on(|_: &TurnStart| ());
    engine.subscribe(|_| {});
    let mut ids: Vec<String> = engine
        .hooks()
        .iter()
        .map(|hook| hook.id.to_string())
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
    let decision = decide(&engine, "ls").await;
    assert_eq!(decision.reason(), Some("one"));
    assert_eq!(
        decision.by().unwrap().as_str(),
        "function 1 on pre_tool_use"
    );
}

/// Blocks the thread, as a host's function may do on a lock or a file.
fn block() {
    std::thread::sleep(Duration::from_millis(60));
}

#[tokio::test]
async fn a_function_that_blocks_past_its_deadline_has_timed_out_even_if_it_answers() {
    let limit = Duration::from_millis(20);
    let with_journal = || {
        Engine::builder()
            .journal(Arc::new(MemoryJournal::new()))
            .build()
    };
    for engine in [Engine::new(), with_journal()] {
        engine.hook("blocks").timeout(limit).on(|_: &PreToolUse| {
            block();
            Effect::<PreToolUse>::allow()
        });
        let Decision::Stop { reason, kind, .. } = decide(&engine, "ls").await else {
            panic!("a late allow counted");
        };
        assert_eq!(kind, StopKind::Failed);
        assert!(reason.ends_with("timed out after 0.02s"), "{reason}");
    }
    let engine = Engine::new();
    engine
        .hook("blocks")
        .timeout(limit)
        .on_async(|_: &PreToolUse| {
            Box::pin(async {
                block();
                Effect::<PreToolUse>::allow()
            })
        });
    let decision = decide(&engine, "ls").await;
    assert!(
        decision
            .reason()
            .unwrap()
            .ends_with("timed out after 0.02s"),
        "{decision:?}"
    );
}

fn custom(name: &str) -> Custom {
    Custom::gate(name.parse().unwrap())
}

/// Such a closure used to be ignored without an error.
#[tokio::test]
async fn a_closure_on_custom_events_hears_of_every_one() {
    let engine = Engine::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let names = Arc::clone(&seen);
    engine.on(move |event: &Custom| {
        names.lock().unwrap().push(event.name.to_string());
        Effect::<Custom>::deny("frozen")
    });
    let hooks = engine.dispatcher(Origin::default());
    for name in ["x-acme.deploy", "x-acme.rollback"] {
        let decision = hooks.dispatch(custom(name)).await.decision();
        assert_eq!(decision.reason(), Some("frozen"));
        let decision = hooks.dispatch_any(Box::new(custom(name))).await.decision();
        assert_eq!(decision.reason(), Some("frozen"));
    }
    let names = seen.lock().unwrap().clone();
    assert_eq!(
        names,
        [
            "x-acme.deploy",
            "x-acme.deploy",
            "x-acme.rollback",
            "x-acme.rollback"
        ]
    );
}

#[tokio::test]
async fn matchers_look_at_the_subject_of_custom_events() {
    let engine = Engine::new();
    engine
        .hook("production")
        .matcher(Matcher::parse("production").unwrap())
        .on(|_: &Custom| Effect::<Custom>::deny("frozen"));
    let hooks = engine.dispatcher(Origin::default());
    for (event, is_stopped) in [
        (custom("x-acme.deploy").subject("production"), true),
        (custom("x-acme.deploy").subject("staging"), false),
        (custom("x-acme.rollback").subject("production"), true),
        (custom("x-acme.deploy"), false),
        // Again, because plans are cached per name and subject.
        (custom("x-acme.deploy").subject("production"), true),
    ] {
        let case = format!("{event:?}");
        let decision = hooks.dispatch(event).await.decision();
        assert_eq!(!decision.is_proceed(), is_stopped, "{case}");
    }
}

#[tokio::test]
async fn hooks_of_a_custom_observer_event_stop_nothing() {
    let engine = Engine::new();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    engine.on(move |event: &Custom| {
        counted.fetch_add(1, Ordering::Relaxed);
        assert_eq!(event.class, EventClass::Observer);
        Effect::<Custom>::deny("too late")
    });
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks
        .dispatch(Custom::observer("x-acme.deployed".parse().unwrap()))
        .await;
    assert_eq!(outcome.decision(), Decision::Proceed);
    assert_eq!(outcome.failures().len(), 1);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}
