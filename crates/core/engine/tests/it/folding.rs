//! Properties of folding: results that must not depend on order, latency or additional hooks.

use std::sync::Arc;

use proptest::prelude::*;
use tenterhook_engine::event::{PreCompact, ToolGuard};
use tenterhook_engine::{
    AnyEffect, AnyOutcome, Decision, Engine, EventKind, Handler, HookId, OnError, Origin,
    Permission, fold,
};

use crate::{Slow, on_error, shell_call, spec, verdict};

fn any_permission() -> impl Strategy<Value = Permission> {
    prop::sample::select(&Permission::ALL[..])
}

fn any_judgement() -> impl Strategy<Value = AnyEffect> {
    (
        any_permission(),
        "[a-c]{0,3}",
        prop::option::of("[a-c]{1,2}"),
        prop::collection::vec("[x-z]{0,2}", 0..3),
    )
        .prop_map(|(permission, reason, block, context)| AnyEffect {
            block,
            context,
            ..verdict(permission, &reason)
        })
}

fn is_stopped(outcome: &AnyOutcome) -> bool {
    let decision = EventKind::PreToolUse.info().decision(outcome);
    matches!(decision, Decision::Stop { .. })
}

fn folded(effects: &[AnyEffect]) -> AnyOutcome {
    let mut outcome = AnyOutcome::default();
    for (index, effect) in effects.iter().enumerate() {
        fold(
            &mut outcome,
            &HookId::new(index.to_string()),
            effect.clone(),
        );
    }
    outcome
}

/// One gate of a dispatch: its answer and delay, or its failure and policy.
#[derive(Debug, Clone)]
struct Gate {
    turns: usize,
    answer: Result<AnyEffect, String>,
    on_error: OnError,
}

fn any_gate() -> impl Strategy<Value = Gate> {
    let answer = prop_oneof![
        4 => any_permission().prop_map(|permission| Ok(verdict(permission, permission.as_str()))),
        1 => Just(Err("broke".to_owned())),
    ];
    (0..4usize, answer, prop::sample::select(&OnError::ALL[..])).prop_map(
        |(turns, answer, on_error)| Gate {
            turns,
            answer,
            on_error,
        },
    )
}

fn register(engine: &Engine, kind: EventKind, gates: &[Gate]) {
    for (index, gate) in gates.iter().enumerate() {
        let slow = Slow {
            turns: gate.turns,
            answer: gate.answer.clone(),
        };
        let hook = spec(
            kind,
            &format!("gate {index}"),
            Handler::Async(Arc::new(slow)),
        );
        engine.register(on_error(hook, gate.on_error));
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn pre_tool_use(gates: &[Gate]) -> AnyOutcome {
    let engine = Engine::new();
    register(&engine, EventKind::PreToolUse, gates);
    block_on(
        engine
            .dispatcher(Origin::default())
            .dispatch(shell_call("ls")),
    )
    .into_any()
}

fn tool_guard(gates: &[Gate]) -> AnyOutcome {
    let engine = Engine::new();
    register(&engine, EventKind::ToolGuard, gates);
    let event = ToolGuard::new("shell");
    block_on(engine.dispatcher(Origin::default()).dispatch(event)).into_any()
}

/// Returns the effect of a gate on the permission if it is alone.
fn weight(gate: &Gate) -> Permission {
    match (&gate.answer, gate.on_error) {
        (Ok(effect), _) => effect.permission.as_ref().unwrap().permission,
        (Err(_), OnError::Block) => Permission::Deny,
        (Err(_), OnError::Warn | OnError::Ignore) => Permission::None,
    }
}

proptest! {
    #[test]
    fn the_order_of_effects_does_not_change_the_permission(
        (effects, shuffled) in prop::collection::vec(any_judgement(), 0..6)
            .prop_flat_map(|effects| (Just(effects.clone()), Just(effects).prop_shuffle()))
    ) {
        let (one, other) = (folded(&effects), folded(&shuffled));
        prop_assert_eq!(one.permission, other.permission);
        prop_assert_eq!(is_stopped(&one), is_stopped(&other));
    }

    #[test]
    fn another_effect_never_weakens_the_outcome(
        effects in prop::collection::vec(any_judgement(), 0..6),
        more in any_judgement(),
    ) {
        let before = folded(&effects);
        let mut all = effects;
        all.push(more);
        let after = folded(&all);
        prop_assert!(after.permission >= before.permission);
        prop_assert!(is_stopped(&after) || !is_stopped(&before));
    }

    #[test]
    fn the_first_reason_of_the_strongest_permission_is_kept(
        effects in prop::collection::vec(any_judgement(), 1..6)
    ) {
        let outcome = folded(&effects);
        let verdicts = || effects.iter().filter_map(|effect| effect.permission.as_ref());
        let strongest = verdicts().map(|verdict| verdict.permission).max().unwrap();
        prop_assert_eq!(outcome.permission, strongest);
        if strongest > Permission::None {
            let first = verdicts().find(|verdict| verdict.permission == strongest).unwrap();
            prop_assert_eq!(outcome.permission_reason, first.reason.clone());
        }
    }

    #[test]
    fn folding_nothing_changes_nothing(effects in prop::collection::vec(any_judgement(), 0..4)) {
        let mut outcome = folded(&effects);
        let before = outcome.clone();
        fold(&mut outcome, &HookId::new("nothing"), AnyEffect::default());
        prop_assert_eq!(outcome, before);
    }

    #[test]
    fn a_permutation_of_gates_does_not_change_what_a_dispatch_permits(
        (gates, shuffled) in prop::collection::vec(any_gate(), 0..6)
            .prop_flat_map(|gates| (Just(gates.clone()), Just(gates).prop_shuffle()))
    ) {
        prop_assert_eq!(pre_tool_use(&gates).permission, pre_tool_use(&shuffled).permission);
        prop_assert_eq!(tool_guard(&gates).permission, tool_guard(&shuffled).permission);
    }

    #[test]
    fn latency_changes_nothing(
        gates in prop::collection::vec(any_gate(), 0..6),
        turns in prop::collection::vec(0..4usize, 6),
    ) {
        let mut delayed = gates.clone();
        for (gate, turns) in delayed.iter_mut().zip(turns) {
            gate.turns = turns;
        }
        prop_assert_eq!(pre_tool_use(&gates), pre_tool_use(&delayed));
        prop_assert_eq!(tool_guard(&gates), tool_guard(&delayed));
    }

    #[test]
    fn a_failed_gate_is_at_least_as_strict_as_its_policy(
        gates in prop::collection::vec(any_gate(), 0..6)
    ) {
        let expected = gates.iter().map(weight).max().unwrap_or_default();
        prop_assert_eq!(pre_tool_use(&gates).permission, expected);
        let guarded = tool_guard(&gates);
        prop_assert_eq!(guarded.permission, expected);
        let let_through = guarded.failures.iter().filter(|failure| failure.let_through).count();
        let lenient = gates.iter().filter(|gate| gate.answer.is_err() && gate.on_error != OnError::Block).count();
        // Nothing was let through if another gate denied.
        prop_assert_eq!(let_through, if expected == Permission::Deny { 0 } else { lenient });
    }
}

#[test]
fn context_keeps_configured_order_when_the_second_hook_is_faster() {
    // D-69
    let engine = Engine::new();
    for (text, turns) in [("first", 5), ("second", 0), ("", 0)] {
        let answer = Ok(AnyEffect {
            context: vec![text.to_owned()],
            ..AnyEffect::default()
        });
        engine.register(spec(
            EventKind::PreCompact,
            text,
            Handler::Async(Arc::new(Slow { turns, answer })),
        ));
    }
    let outcome = block_on(
        engine
            .dispatcher(Origin::default())
            .dispatch(PreCompact::default()),
    );
    assert_eq!(outcome.context(), ["first", "second"]);
}
