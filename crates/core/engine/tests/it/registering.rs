//! Adding, replacing and removing hooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tenterhook_engine::event::{PreToolUse, SessionStart, TurnStart};
use tenterhook_engine::{
    AnyEffect, Effect, Engine, EventKind, EventName, Handler, Layer, Origin, Phase, Scope, Source,
};

use crate::{Slow, shell_call, spec};

fn nothing() -> Handler {
    Handler::Async(Arc::new(Slow {
        turns: 0,
        answer: Ok(AnyEffect::default()),
    }))
}

fn ids(engine: &Engine) -> Vec<String> {
    engine
        .hooks()
        .iter()
        .map(|hook| hook.id.to_string())
        .collect()
}

#[tokio::test]
async fn an_unsubscribed_hook_is_gone_and_the_event_is_unhooked() {
    let engine = Engine::new();
    let hooks = engine.dispatcher(Origin::default());
    let registration = engine.on(|_: &PreToolUse| Effect::deny("no"));
    assert_eq!(engine.handler_count(&EventKind::PreToolUse.into()), 1);
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_some()
    );
    registration.unsubscribe();
    assert_eq!(engine.handler_count(&EventKind::PreToolUse.into()), 0);
    assert!(!hooks.is_hooked::<PreToolUse>());
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_none()
    );
}

#[tokio::test]
async fn clearing_a_workspace_leaves_the_global_guard() {
    let engine = Engine::new();
    engine.on(|_: &PreToolUse| Effect::deny("global"));
    let workspace = engine.scope(Scope::Workspace("a".to_owned()));
    workspace.on(|_: &PreToolUse| Effect::deny("workspace"));
    workspace.on(|_: &TurnStart| ());
    workspace.clear(&EventKind::PreToolUse.into());
    assert_eq!(engine.handler_count(&EventKind::PreToolUse.into()), 1);
    workspace.clear_all();
    assert_eq!(
        engine.registered_events(),
        [EventName::Known(EventKind::PreToolUse)]
    );
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), Some("global"));
    engine.clear(&EventKind::PreToolUse.into());
    assert_eq!(engine.registered_events(), []);
}

#[tokio::test]
async fn hooks_of_a_workspace_or_session_fire_there_only() {
    let engine = Engine::new();
    let calls = Arc::new(AtomicUsize::new(0));
    for scope in [
        Scope::Workspace("a".to_owned()),
        Scope::Session("s1".into()),
    ] {
        let calls = Arc::clone(&calls);
        engine.scope(scope).on(move |_: &SessionStart| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
    }
    let origin = |workspace: Option<&str>, session: &str| {
        Origin::new(session, "").with_workspace(workspace.map(str::to_owned))
    };
    for (origin, expected) in [
        (origin(None, "s2"), 0),
        (origin(Some("b"), "s2"), 0),
        (origin(Some("a"), "s2"), 1),
        (origin(None, "s1"), 1),
        (origin(Some("a"), "s1"), 2),
    ] {
        calls.store(0, Ordering::Relaxed);
        drop(
            engine
                .dispatcher(origin.clone())
                .dispatch(SessionStart::default())
                .await,
        );
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{origin:?}");
    }
}

#[tokio::test]
async fn a_scope_is_replaced_whole_and_dispatches_under_way_keep_the_old_hooks() {
    let engine = Engine::new();
    let file = engine.scope(Scope::File("hooks.yaml".into()));
    let (begun, may_end) = (
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(tokio::sync::Notify::new()),
    );
    let (started, waits) = (Arc::clone(&begun), Arc::clone(&may_end));
    file.on_async(move |_: &PreToolUse| {
        let (started, waits) = (Arc::clone(&started), Arc::clone(&waits));
        Box::pin(async move {
            started.notify_one();
            waits.notified().await;
            Effect::deny("old")
        })
    });
    let hooks = engine.dispatcher(Origin::default());
    let under_way = {
        let hooks = hooks.clone();
        tokio::spawn(async move {
            hooks
                .dispatch(shell_call("ls"))
                .await
                .decision()
                .reason()
                .map(str::to_owned)
        })
    };
    begun.notified().await;
    file.replace(vec![spec(EventKind::PreToolUse, "new", nothing())]);
    assert_eq!(ids(&engine), ["new"]);
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .is_none()
    );
    may_end.notify_one();
    assert_eq!(under_way.await.unwrap().as_deref(), Some("old"));
}

#[test]
fn hooks_run_by_phase_then_priority_then_layer_then_position() {
    let engine = Engine::new();
    let hook = |id: &str, phase: Phase, priority: i32, layer: Layer| {
        let mut hook = spec(EventKind::PreToolUse, id, nothing());
        (hook.phase, hook.priority) = (phase, priority);
        hook.source = Source {
            layer,
            path: None,
            line: None,
        };
        hook
    };
    for registered in [
        hook("observe", Phase::Observe, 99, Layer::System),
        hook("guard", Phase::Guard, 0, Layer::System),
        hook("project 2", Phase::Main, 0, Layer::Project),
        hook("project 3", Phase::Main, 0, Layer::Project),
        hook("system 1", Phase::Main, 0, Layer::System),
        hook("urgent 0", Phase::Main, 5, Layer::Explicit),
        hook("late 4", Phase::Main, -1, Layer::System),
        hook("transform", Phase::Transform, -5, Layer::Explicit),
    ] {
        engine.register(registered);
    }
    let expected = [
        "transform",
        "urgent 0",
        "system 1",
        "project 2",
        "project 3",
        "late 4",
        "guard",
        "observe",
    ];
    assert_eq!(ids(&engine), expected);
}

proptest! {
    #[test]
    fn the_order_of_registration_matters_only_between_equals(
        (hooks, shuffled) in prop::collection::vec((0..4usize, -2..3i32, 0..5usize), 0..8).prop_flat_map(|hooks| {
            let numbered: Vec<_> = hooks.into_iter().enumerate().collect();
            (Just(numbered.clone()), Just(numbered).prop_shuffle())
        })
    ) {
        const LAYERS: [Layer; 5] = [Layer::System, Layer::User, Layer::Project, Layer::Explicit, Layer::Code];
        let order = |hooks: &[(usize, (usize, i32, usize))]| {
            let engine = Engine::new();
            for (id, (phase, priority, layer)) in hooks {
                let mut hook = spec(EventKind::PreToolUse, &id.to_string(), nothing());
                (hook.phase, hook.priority) = (Phase::ALL[*phase], *priority);
                hook.source = Source { layer: LAYERS[*layer], path: None, line: None };
                engine.register(hook);
            }
            let key = |hook: &tenterhook_engine::RegisteredHook| (hook.phase, -hook.priority, hook.source.layer);
            engine.hooks().iter().map(key).collect::<Vec<_>>()
        };
        let ordered = order(&hooks);
        prop_assert!(ordered.is_sorted());
        prop_assert_eq!(ordered, order(&shuffled));
    }
}

#[tokio::test]
async fn of_two_hooks_with_one_definition_the_first_runs() {
    // D-11, D-15
    let engine = Engine::new();
    let calls = Arc::new(AtomicUsize::new(0));
    for definition in [Some("a"), Some("a"), Some("b"), None, None] {
        let calls = Arc::clone(&calls);
        let hook = spec(EventKind::SessionStart, "x", nothing());
        engine.register(tenterhook_engine::HookSpec {
            tools: None,
            definition: definition.map(str::to_owned),
            handling: Handler::Inline(Arc::new(Counting { calls })),
            ..hook
        });
    }
    let hooks = engine.dispatcher(Origin::default());
    for dispatches in 1..=2 {
        drop(hooks.dispatch(SessionStart::default()).await);
        assert_eq!(calls.load(Ordering::Relaxed), 4 * dispatches);
    }
}

#[derive(Debug)]
struct Counting {
    calls: Arc<AtomicUsize>,
}

impl tenterhook_engine::InlineFunction for Counting {
    fn call(
        &self,
        _: &dyn tenterhook_engine::AnyEvent,
        _: &Origin,
    ) -> tenterhook_engine::InlineAnswer {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(None)
    }
}
