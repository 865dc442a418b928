//! Denials that the user lifts.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::event::{PreToolUse, UserPromptSubmit};
use tenterhook_engine::journal::{JournalRecord, RunRecord};
use tenterhook_engine::{
    AnyEffect, Decision, DenialRuling, Effect, Engine, EventKind, Exception, Exceptions, Handler,
    HookDenial, MemoryJournal, OnError, Origin, Permission, Phase, StopKind,
};

use crate::{Slow, on_error, shell_call, spec, verdict};

/// Exceptions for the denials of some hooks. Each counts `left` times.
#[derive(Debug, Default)]
struct Memory {
    hooks: Vec<&'static str>,
    left: Mutex<usize>,
    asked: Mutex<Vec<HookDenial>>,
    problem: Option<String>,
}

impl Memory {
    fn of(hooks: &[&'static str], left: usize) -> Arc<Self> {
        Arc::new(Self {
            hooks: hooks.to_vec(),
            left: Mutex::new(left),
            ..Self::default()
        })
    }

    fn left(&self) -> usize {
        *self.left.lock()
    }
}

impl Exceptions for Memory {
    fn rule(&self, denial: HookDenial) -> BoxFuture<'_, DenialRuling> {
        let id = denial.hook.as_str().to_owned();
        self.asked.lock().push(denial);
        Box::pin(async move {
            tokio::task::yield_now().await;
            DenialRuling {
                exception: self.hooks.contains(&&*id).then(|| Exception {
                    key: id.clone(),
                    origin: format!("`allow {id}`"),
                }),
                remedy: Some(format!("run `allow {id}`")),
                problem: self.problem.clone(),
            }
        })
    }

    fn use_up<'a>(&'a self, _exception: &'a Exception) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            let mut left = self.left.lock();
            let was_left = *left > 0;
            *left = left.saturating_sub(1);
            was_left
        })
    }
}

fn answering(effect: AnyEffect) -> Handler {
    Handler::Async(Arc::new(Slow {
        turns: 1,
        answer: Ok(effect),
    }))
}

fn engine(memory: &Arc<Memory>) -> (Engine, Arc<MemoryJournal>) {
    let journal = Arc::new(MemoryJournal::new());
    let builder = Engine::builder().journal(Arc::clone(&journal) as _);
    (builder.exceptions(Arc::clone(memory) as _).build(), journal)
}

fn deny(engine: &Engine, id: &str, phase: Phase) {
    let handler = answering(verdict(Permission::Deny, &format!("{id} says no")));
    let mut hook = spec(EventKind::PreToolUse, id, handler);
    hook.phase = phase;
    engine.register(hook);
}

fn runs(journal: &MemoryJournal) -> Vec<RunRecord> {
    let runs = journal.take().into_iter().filter_map(|record| {
        if let JournalRecord::Run(run) = record {
            Some(run)
        } else {
            None
        }
    });
    runs.collect()
}

async fn decide(engine: &Engine) -> Decision {
    let hooks = engine.dispatcher(Origin::default());
    hooks.dispatch(shell_call("ls")).await.decision()
}

#[tokio::test]
async fn an_exception_lifts_a_denial_and_the_journal_names_both() {
    let memory = Memory::of(&["guard"], 1);
    let (engine, journal) = engine(&memory);
    let mut effect = verdict(Permission::Deny, "no");
    effect.context.push("a note".to_owned());
    let hook = spec(EventKind::PreToolUse, "guard", answering(effect));
    engine.register(hook);
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert_eq!(outcome.decision(), Decision::Proceed);
    assert!(!outcome.is_allowed());
    assert_eq!(outcome.context(), ["a note"]);
    let [run] = runs(&journal).try_into().unwrap();
    assert_eq!(
        (run.effect.as_str(), run.reason.as_deref()),
        ("deny", Some("no"))
    );
    assert_eq!(run.exception.as_deref(), Some("`allow guard`"));
    assert_eq!(run.context_bytes, 6);
    assert_eq!(memory.left(), 0);
    // It counted once.
    let decision = decide(&engine).await;
    let reason = "no\nIf this was wrong, the user can run `allow guard`.";
    assert_eq!(decision.reason(), Some(reason));
    let [run] = runs(&journal).try_into().unwrap();
    assert_eq!((run.exception, run.effect.as_str()), (None, "deny"));
}

#[tokio::test]
async fn a_block_is_lifted_and_an_approval_next_to_it_is_not_kept() {
    let memory = Memory::of(&["guard"], 1);
    let (engine, _) = engine(&memory);
    let effect = AnyEffect {
        block: Some("no".to_owned()),
        ..verdict(Permission::Allow, "yes")
    };
    let hook = spec(EventKind::PreToolUse, "guard", answering(effect));
    engine.register(hook);
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert_eq!(outcome.decision(), Decision::Proceed);
    assert!(!outcome.is_allowed());
}

#[tokio::test]
async fn another_hook_still_denies_and_the_exception_is_not_used_up() {
    for phase in [Phase::Transform, Phase::Main, Phase::Guard] {
        let memory = Memory::of(&["first"], 1);
        let (engine, journal) = engine(&memory);
        deny(&engine, "first", phase);
        deny(&engine, "second", phase);
        let decision = decide(&engine).await;
        let reason = "second says no\nIf this was wrong, the user can run `allow second`.";
        assert_eq!(decision.reason(), Some(reason), "{phase:?}");
        assert_eq!(decision.by().unwrap().as_str(), "second");
        assert_eq!(memory.left(), 1, "{phase:?}");
        assert_eq!(runs(&journal).len(), 2, "{phase:?}");
    }
}

#[tokio::test]
async fn the_remedy_is_for_the_denial_that_the_decision_names() {
    let memory = Memory::of(&[], 0);
    let (engine, _) = engine(&memory);
    deny(&engine, "first", Phase::Guard);
    deny(&engine, "second", Phase::Guard);
    let decision = decide(&engine).await;
    assert_eq!(decision.by().unwrap().as_str(), "first");
    assert!(decision.reason().unwrap().ends_with("run `allow first`."));
}

#[tokio::test]
async fn of_two_calls_at_the_same_time_exactly_one_uses_the_exception() {
    let memory = Memory::of(&["guard"], 1);
    let (engine, journal) = engine(&memory);
    deny(&engine, "guard", Phase::Main);
    let (one, other) = tokio::join!(decide(&engine), decide(&engine));
    let passed = [&one, &other].into_iter().filter(|it| it.is_proceed());
    assert_eq!(passed.count(), 1, "{one:?} {other:?}");
    let stopped = if one.is_proceed() { other } else { one };
    assert!(stopped.reason().unwrap().ends_with("run `allow guard`."));
    let lifted = runs(&journal);
    let lifted = lifted.iter().filter(|run| run.exception.is_some());
    assert_eq!(lifted.count(), 1);
}

#[tokio::test]
async fn a_failure_is_not_a_denial() {
    let memory = Memory::of(&["broken", "guard"], 9);
    let (engine, _) = engine(&memory);
    let broken = Handler::Async(Arc::new(Slow {
        turns: 1,
        answer: Err("broke".to_owned()),
    }));
    let hook = spec(EventKind::PreToolUse, "broken", broken);
    engine.register(on_error(hook, OnError::Block));
    let decision = decide(&engine).await;
    let Decision::Stop { kind, reason, .. } = decision else {
        panic!("a gate that fails denies");
    };
    assert_eq!(kind, StopKind::Failed);
    assert!(!reason.contains("If this was wrong"), "{reason}");
    assert!(memory.asked.lock().is_empty());
}

#[tokio::test]
async fn a_denial_next_to_an_invalid_answer_is_not_lifted() {
    let memory = Memory::of(&["guard"], 9);
    let (engine, _) = engine(&memory);
    let mut effect = verdict(Permission::Deny, "no");
    effect
        .rewrite
        .insert("tool_input".to_owned(), serde_json::json!({}));
    let mut hook = spec(EventKind::PreToolUse, "guard", answering(effect));
    // A guard may not rewrite.
    hook.phase = Phase::Guard;
    engine.register(hook);
    assert!(!decide(&engine).await.is_proceed());
    assert!(memory.asked.lock().is_empty());
}

#[tokio::test]
async fn the_exceptions_are_asked_only_about_denied_tool_calls() {
    let memory = Memory::of(&[], 0);
    let (engine, _) = engine(&memory);
    engine.on(|_: &PreToolUse| Effect::none());
    engine.on(|_: &UserPromptSubmit| Effect::block("no"));
    let hook = spec(
        EventKind::PreToolUse,
        "asks",
        answering(verdict(Permission::Ask, "sure?")),
    );
    engine.register(hook);
    let mut watcher = spec(
        EventKind::PreToolUse,
        "watcher",
        answering(verdict(Permission::Deny, "no")),
    );
    watcher.phase = Phase::Observe;
    engine.register(watcher);
    assert!(matches!(decide(&engine).await, Decision::Ask { .. }));
    let hooks = engine.dispatcher(Origin::default());
    let prompt = hooks.dispatch(UserPromptSubmit::new("hello".to_owned()));
    assert_eq!(prompt.await.decision().reason(), Some("no"));
    assert!(memory.asked.lock().is_empty());
}

#[tokio::test]
async fn a_function_that_denies_is_asked_about_without_a_journal_too() {
    let memory = Memory::of(&[], 0);
    let engine = Engine::builder()
        .exceptions(Arc::clone(&memory) as _)
        .build();
    engine.on(|_: &PreToolUse| Effect::deny("no"));
    let decision = decide(&engine).await;
    assert!(decision.reason().unwrap().contains("If this was wrong"));
    let asked = memory.asked.lock();
    assert_eq!(asked[0].input["cmd"], "ls");
    assert_eq!(
        (asked[0].tool.as_str(), asked[0].event.as_str()),
        ("shell", "pre_tool_use")
    );
}

#[tokio::test]
async fn the_exceptions_see_the_arguments_that_the_hook_saw() {
    let memory = Memory::of(&[], 0);
    let (engine, _) = engine(&memory);
    let mut effect = AnyEffect::default();
    effect
        .rewrite
        .insert("tool_input".to_owned(), serde_json::json!({"cmd": "ls -a"}));
    let hook = spec(EventKind::PreToolUse, "rewriter", answering(effect));
    engine.register(hook);
    deny(&engine, "guard", Phase::Guard);
    assert!(!decide(&engine).await.is_proceed());
    assert_eq!(memory.asked.lock()[0].input["cmd"], "ls -a");
}

#[tokio::test]
async fn the_user_sees_why_an_exception_is_not_in_force() {
    let memory = Arc::new(Memory {
        problem: Some("the file is damaged".to_owned()),
        ..Memory::default()
    });
    let (engine, _) = engine(&memory);
    deny(&engine, "guard", Phase::Main);
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(!outcome.decision().is_proceed());
    assert_eq!(outcome.notices(), ["the file is damaged"]);
}
