//! What an observer of hook runs receives.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, pending};
use parking_lot::Mutex;
use tenterhook_engine::event::{PreToolUse, ToolGuard, TurnStart};
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{
    Answer, AnyEffect, AsyncHandler, Call, Decision, Effect, Engine, EventKind, EventRef, Handler,
    HandlerError, HookObserver, HookRun, HookSpec, HookVerdict, LeftOutHook, Matcher,
    MemoryJournal, Origin, Permission, Phase, RawExchange,
};

use crate::{Slow, shell_call, spec, verdict};

/// Records one line for each report.
#[derive(Debug, Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
}

impl Notes {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

impl HookObserver for Notes {
    fn hook_started(&self, run: &HookRun<'_>) {
        let call = run.tool_use_id().map_or("-", |id| id.as_str());
        let event = run.event.event().name();
        let line = format!(
            "{} > {} {} {event} {call}",
            run.number, run.hook, run.handler
        );
        self.lines.lock().push(line);
    }

    fn hook_ended(&self, run: &HookRun<'_>, _took: Duration, verdict: HookVerdict<'_>) {
        let verdict = match verdict {
            HookVerdict::Answered { effect, reason } => {
                reason.map_or(effect.to_owned(), |reason| format!("{effect} ({reason})"))
            }
            HookVerdict::Failed { cause } => format!("failed: {cause}"),
            HookVerdict::TimedOut { cause } => format!("late: {cause}"),
            HookVerdict::Cancelled => "cancelled".to_owned(),
            other => panic!("no test expects {other:?}"),
        };
        let line = format!("{} < {} {verdict}", run.number, run.hook);
        self.lines.lock().push(line);
    }
}

fn watched() -> (Engine, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let observer = Arc::clone(&notes) as Arc<dyn HookObserver>;
    (Engine::builder().observer(observer).build(), notes)
}

fn slow(turns: usize, answer: Result<AnyEffect, String>) -> Handler {
    Handler::Async(Arc::new(Slow { turns, answer }))
}

/// A slow handler that belongs to a sequence.
#[derive(Debug)]
struct InSequence {
    name: &'static str,
    slow: Slow,
}

impl AsyncHandler for InSequence {
    fn kind(&self) -> &'static str {
        self.slow.kind()
    }

    fn describe(&self) -> String {
        self.slow.describe()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        self.slow.handle(call)
    }

    fn sequence(&self) -> Option<&'static str> {
        Some(self.name)
    }
}

fn in_sequence(name: &'static str, turns: usize, answer: Result<AnyEffect, String>) -> Handler {
    let slow = Slow { turns, answer };
    Handler::Async(Arc::new(InSequence { name, slow }))
}

/// A handler that never answers.
#[derive(Debug)]
struct Endless {
    runs_on_own_task: bool,
}

impl AsyncHandler for Endless {
    fn kind(&self) -> &'static str {
        "endless"
    }

    fn describe(&self) -> String {
        "endless".to_owned()
    }

    fn handle<'a>(&'a self, _call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(pending())
    }

    fn runs_on_own_task(&self) -> bool {
        self.runs_on_own_task
    }
}

pub(crate) fn endless(runs_on_own_task: bool) -> Handler {
    Handler::Async(Arc::new(Endless { runs_on_own_task }))
}

#[tokio::test]
async fn hooks_of_a_series_start_and_end_one_after_another() {
    let (engine, notes) = watched();
    engine.hook("first").on(|_: &PreToolUse| ());
    let asks = verdict(Permission::Ask, "sure?");
    engine.register(spec(EventKind::PreToolUse, "second", slow(1, Ok(asks))));
    engine.hook("third").on(|_: &PreToolUse| Effect::deny("no"));
    engine.hook("skipped").on(|_: &PreToolUse| ());
    engine
        .hook("watcher")
        .phase(Phase::Observe)
        .on(|_: &PreToolUse| ());
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert_eq!(outcome.decision().reason(), Some("no"));
    let expected = [
        "1 > first function pre_tool_use call_1",
        "1 < first none",
        "2 > second slow pre_tool_use call_1",
        "2 < second ask (sure?)",
        "3 > third function pre_tool_use call_1",
        "3 < third deny (no)",
        "4 > watcher function pre_tool_use call_1",
        "4 < watcher none",
    ];
    assert_eq!(notes.lines(), expected);
}

#[tokio::test]
async fn parallel_hooks_overlap_and_each_end_is_reported_when_it_comes() {
    let (engine, notes) = watched();
    for (id, turns) in [("slow", 3), ("quick", 1)] {
        let handler = slow(turns, Ok(AnyEffect::default()));
        engine.register(spec(EventKind::TurnStart, id, handler));
    }
    let hooks = engine.dispatcher(Origin::default());
    let _outcome = hooks.dispatch(TurnStart::default()).await;
    let expected = [
        "1 > slow slow turn_start -",
        "2 > quick slow turn_start -",
        "2 < quick none",
        "1 < slow none",
    ];
    assert_eq!(notes.lines(), expected);
}

#[tokio::test]
async fn hooks_of_a_sequence_run_one_after_another_next_to_other_hooks() {
    let (engine, notes) = watched();
    let note = |text: &str| {
        let mut effect = AnyEffect::default();
        effect.notices.push(text.to_owned());
        Ok(effect)
    };
    for (id, sequence, turns) in [
        ("a1", Some("a"), 6),
        ("b1", Some("b"), 3),
        ("alone", None, 4),
        ("a2", Some("a"), 0),
        ("a3", Some("a"), 0),
        ("b2", Some("b"), 0),
    ] {
        let handler = match sequence {
            Some(name) => in_sequence(name, turns, note(id)),
            None => slow(turns, note(id)),
        };
        engine.register(spec(EventKind::TurnStart, id, handler));
    }
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(TurnStart::default()).await;
    let lines = notes.lines();
    let position = |word: &str, id: &str| {
        let is_it = |line: &String| line.contains(&format!(" {word} {id} "));
        lines.iter().position(is_it).unwrap()
    };
    for (first, next) in [("a1", "a2"), ("a2", "a3"), ("b1", "b2")] {
        assert!(position("<", first) < position(">", next), "{lines:#?}");
    }
    assert!(position(">", "alone") < position("<", "b1"), "{lines:#?}");
    assert!(position("<", "alone") < position("<", "a1"), "{lines:#?}");
    // The answers apply in running order, as they do without sequences.
    assert_eq!(outcome.notices(), ["a1", "b1", "alone", "a2", "a3", "b2"]);
}

#[tokio::test]
async fn a_failure_a_late_answer_and_an_answer_that_is_not_honoured_are_told_apart() {
    let (engine, notes) = watched();
    let broken = slow(0, Err("broke".to_owned()));
    engine.register(spec(EventKind::ToolGuard, "broken", broken));
    let mut late = spec(EventKind::ToolGuard, "late", endless(false));
    late.timeout = Duration::ZERO;
    engine.register(late);
    let mut greedy = AnyEffect::default();
    greedy.context.push("text".to_owned());
    engine.register(spec(EventKind::ToolGuard, "greedy", slow(0, Ok(greedy))));
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(ToolGuard::default()).await;
    assert!(matches!(outcome.decision(), Decision::Stop { .. }));
    let mut ends = notes.lines();
    ends.retain(|line| line.contains('<'));
    ends.sort();
    assert_eq!(ends[0], "1 < broken failed: broke");
    assert_eq!(ends[1], "2 < late late: timed out after 0s");
    assert!(ends[2].starts_with("3 < greedy failed: "), "{}", ends[2]);
    assert_eq!(outcome.failures().len(), 3);
}

#[tokio::test]
async fn a_rewrite_that_does_not_fit_is_a_failed_run() {
    let (engine, notes) = watched();
    let mut effect = AnyEffect::default();
    effect.rewrite.insert("tool_input".to_owned(), 7.into());
    engine.register(spec(EventKind::PreToolUse, "unfit", slow(0, Ok(effect))));
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(!outcome.decision().is_proceed());
    let end = notes.lines().pop().unwrap();
    assert!(end.starts_with("1 < unfit failed: "), "{end}");
}

#[tokio::test]
async fn a_dropped_dispatch_ends_every_run_that_had_started() {
    let (engine, notes) = watched();
    engine.register(spec(EventKind::ToolGuard, "here", endless(false)));
    for id in ["task 1", "task 2"] {
        engine.register(spec(EventKind::ToolGuard, id, endless(true)));
    }
    let hooks = engine.dispatcher(Origin::default());
    let mut running = Box::pin(hooks.dispatch(ToolGuard::default()));
    assert!(futures_util::poll!(&mut running).is_pending());
    assert!(notes.lines().iter().all(|line| line.contains('>')));
    drop(running);
    let mut ends = notes.lines().split_off(3);
    ends.sort();
    let names: Vec<&str> = ends
        .iter()
        .map(|line| line.split_once("< ").unwrap().1)
        .collect();
    assert_eq!(
        names,
        ["task 1 cancelled", "task 2 cancelled", "here cancelled"]
    );
}

#[tokio::test]
async fn a_cancelled_dispatch_says_so() {
    let (engine, notes) = watched();
    engine.register(spec(EventKind::PreToolUse, "endless", endless(false)));
    let cancel = tokio_util::sync::CancellationToken::new();
    let hooks = engine
        .dispatcher(Origin::default())
        .with_cancel(cancel.clone());
    let mut running = Box::pin(hooks.dispatch(shell_call("ls")));
    assert!(futures_util::poll!(&mut running).is_pending());
    cancel.cancel();
    assert!(!running.await.decision().is_proceed());
    assert_eq!(notes.lines().pop().unwrap(), "1 < endless cancelled");
}

/// Panics on every report.
#[derive(Debug)]
struct Panicking;

impl HookObserver for Panicking {
    fn hook_started(&self, _run: &HookRun<'_>) {
        panic!("a broken screen");
    }

    fn hook_ended(&self, _run: &HookRun<'_>, _took: Duration, _verdict: HookVerdict<'_>) {
        panic!("a broken screen");
    }

    fn event_ended(&self, _event: &EventRef, _left_out: &[LeftOutHook<'_>]) {
        panic!("a broken screen");
    }

    fn requests_details(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_panicking_observer_changes_no_decision() {
    for (waits, allows) in [(false, false), (false, true), (true, false), (true, true)] {
        let engine = Engine::builder().observer(Arc::new(Panicking)).build();
        engine.on(move |_: &PreToolUse| {
            if allows {
                Effect::allow()
            } else {
                Effect::deny("no")
            }
        });
        if waits {
            let none = slow(1, Ok(AnyEffect::default()));
            engine.register(spec(EventKind::PreToolUse, "waits", none));
        }
        let hooks = engine.dispatcher(Origin::default());
        let outcome = hooks.dispatch(shell_call("ls")).await;
        assert_eq!(outcome.decision().is_proceed(), allows);
        assert_eq!(outcome.is_allowed(), allows);
        assert!(outcome.failures().is_empty());
    }
}

#[tokio::test]
async fn a_panicking_observer_of_a_dropped_dispatch_is_caught_too() {
    let engine = Engine::builder().observer(Arc::new(Panicking)).build();
    engine.register(spec(EventKind::PreToolUse, "endless", endless(false)));
    let hooks = engine.dispatcher(Origin::default());
    let mut running = Box::pin(hooks.dispatch(shell_call("ls")));
    assert!(futures_util::poll!(&mut running).is_pending());
    drop(running);
}

#[tokio::test]
async fn an_observer_changes_no_outcome() {
    let outcome = |observed: bool| async move {
        let engine = if observed { watched().0 } else { Engine::new() };
        engine.on(|_: &PreToolUse| -> Result<(), HandlerError> { Err(HandlerError::Cancelled) });
        engine.on(|_: &PreToolUse| Effect::allow());
        let hooks = engine.dispatcher(Origin::default());
        hooks.dispatch(shell_call("ls")).await.into_any()
    };
    assert_eq!(outcome(true).await, outcome(false).await);
}

/// A handler that tells observers what it exchanged.
#[derive(Debug)]
struct Exchanging;

impl AsyncHandler for Exchanging {
    fn kind(&self) -> &'static str {
        "exchanging"
    }

    fn describe(&self) -> String {
        "exchanging".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        call.exchange
            .fill(|| RawExchange::new(3, b"answer").of_process("exit status 0", b"note", false));
        call.exchange.fill(|| panic!("only the first one counts"));
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Records payloads and raw exchanges.
#[derive(Debug, Default)]
struct Payloads {
    lines: Mutex<Vec<String>>,
}

fn command_of(event: &EventRef) -> String {
    let payload = event.payload().unwrap();
    let command = payload.get("tool_input").and_then(|input| input.get("cmd"));
    command.unwrap().to_string()
}

impl HookObserver for Payloads {
    fn hook_ended(&self, run: &HookRun<'_>, _took: Duration, _verdict: HookVerdict<'_>) {
        let after = run.rewritten.map(command_of);
        let raw = run.exchange.map(|raw| raw.stdout.clone());
        let (hook, phase, before) = (run.hook, run.phase.as_str(), command_of(run.event));
        let line = format!("{hook} {phase} {before} {after:?} {raw:?}");
        self.lines.lock().push(line);
    }

    fn event_ended(&self, event: &EventRef, _left_out: &[LeftOutHook<'_>]) {
        let line = format!("end {}", command_of(event));
        self.lines.lock().push(line);
    }

    fn requests_details(&self) -> bool {
        true
    }
}

fn rewriting(engine: &Engine, name: &str, command: &'static str) {
    let rewrite = AnyEffect {
        rewrite: [(
            "tool_input".to_owned(),
            serde_json::json!({ "cmd": command }),
        )]
        .into_iter()
        .collect(),
        ..AnyEffect::default()
    };
    let mut hook = spec(EventKind::PreToolUse, name, slow(1, Ok(rewrite)));
    hook.phase = Phase::Transform;
    engine.register(hook);
}

// I2
#[tokio::test]
async fn an_observer_sees_each_version_of_an_event_and_what_hooks_exchanged() {
    let payloads = Arc::new(Payloads::default());
    let observer = Arc::clone(&payloads) as Arc<dyn HookObserver>;
    let engine = Engine::builder().observer(observer).build();
    rewriting(&engine, "first", "one");
    rewriting(&engine, "second", "two");
    let handler = Handler::Async(Arc::new(Exchanging));
    engine.register(spec(EventKind::PreToolUse, "last", handler));
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(outcome.decision().is_proceed());
    let expected = [
        r#"first transform "ls" Some("\"one\"") None"#,
        r#"second transform "one" Some("\"two\"") None"#,
        r#"last main "two" None Some(b"answer")"#,
        r#"end "two""#,
    ];
    assert_eq!(*payloads.lines.lock(), expected);
}

/// Records which matcher selected a hook, and which hooks did not take part.
#[derive(Debug, Default)]
struct Selection {
    lines: Mutex<Vec<String>>,
}

impl HookObserver for Selection {
    fn hook_ended(&self, run: &HookRun<'_>, _took: Duration, _verdict: HookVerdict<'_>) {
        let line = format!("{} ran on {}", run.hook, run.matcher);
        self.lines.lock().push(line);
    }

    fn event_ended(&self, _event: &EventRef, left_out: &[LeftOutHook<'_>]) {
        let lines = left_out
            .iter()
            .map(|left| format!("{} {} {}", left.hook, left.matcher, left.reason.as_str()));
        self.lines.lock().extend(lines);
    }

    fn requests_details(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn an_observer_learns_which_matcher_selected_a_hook_and_why_others_were_left_out() {
    let selection = Arc::new(Selection::default());
    let observer = Arc::clone(&selection) as Arc<dyn HookObserver>;
    let engine = Engine::builder().observer(observer).build();
    let add = |name: &str, matcher: &str, change: &dyn Fn(&mut HookSpec)| {
        let mut hook = spec(
            EventKind::PreToolUse,
            name,
            slow(1, Ok(AnyEffect::default())),
        );
        hook.matcher = Matcher::parse(matcher).unwrap();
        change(&mut hook);
        engine.register(hook);
    };
    let defined = |hook: &mut HookSpec| hook.definition = Some("same".to_owned());
    add("guard", "shell|task", &defined);
    add("copy", "shell", &defined);
    add("reader", "read_file", &|_| ());
    add("other agent", "*", &|hook| {
        hook.agent = Some("planner".to_owned());
    });
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(outcome.decision().is_proceed());
    let expected = [
        "guard ran on shell|task",
        "copy shell duplicate",
        "reader read_file matcher",
        "other agent * scope",
    ];
    assert_eq!(*selection.lines.lock(), expected);
}

/// A handler whose exchange must not be built.
#[derive(Debug)]
struct Unobserved;

impl AsyncHandler for Unobserved {
    fn kind(&self) -> &'static str {
        "unobserved"
    }

    fn describe(&self) -> String {
        "unobserved".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        call.exchange.fill(|| panic!("no observer requests it"));
        Box::pin(std::future::ready(Ok(None)))
    }
}

#[tokio::test]
async fn an_exchange_that_no_observer_requests_is_not_built() {
    let (watched, _notes) = watched();
    for engine in [Engine::new(), watched] {
        let handler = Handler::Async(Arc::new(Unobserved));
        engine.register(spec(EventKind::PreToolUse, "unobserved", handler));
        let hooks = engine.dispatcher(Origin::default());
        let outcome = hooks.dispatch(shell_call("ls")).await;
        assert!(outcome.failures().is_empty());
    }
}

#[tokio::test]
async fn an_event_without_hooks_is_not_built_for_an_observer() {
    let engine = Engine::builder()
        .observer(Arc::new(Payloads::default()))
        .build();
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch_with(|| -> PreToolUse { panic!("it is built") });
    assert!(outcome.await.decision().is_proceed());
}

#[tokio::test]
async fn a_record_has_the_phase_and_the_start_of_its_run() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    rewriting(&engine, "first", "one");
    engine.on(|_: &PreToolUse| Effect::deny("no"));
    let late = slow(1, Ok(AnyEffect::default()));
    engine.register(spec(EventKind::PreToolUse, "late", late));
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(!outcome.decision().is_proceed());
    let records = journal.take();
    let runs = records.iter().filter_map(|record| {
        let JournalRecord::Run(run) = record else {
            return None;
        };
        Some(run)
    });
    let runs: Vec<_> = runs
        .map(|run| (run.phase.as_deref().unwrap(), run.started_ms.is_some()))
        .collect();
    assert_eq!(runs[..2], [("transform", true), ("main", true)]);
    assert_eq!(runs.len(), 3);
}
