//! Tools that are retried after a failure: the events of each attempt, and who may deny it.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{self};
use serde_json::{Value, json};
use tenterhook_agent::frontend::Approval;
use tenterhook_agent::{AgentConfig, CancellationToken, Permissions, RunEnd, Tool, Toolbox};
use tenterhook_engine::event::{
    PermissionRequest, PostToolUse, PreToolUse, ToolError, ToolGuard, ToolInputTransform,
};
use tenterhook_engine::{Effect, ToolResult};
use tenterhook_tools::{ToolFailure, ToolRetry};

use crate::stage::{Stage, tool_texts};
use crate::test_tool::TestTool;

const CALL: &str = "turns: [{tool_calls: [{name: flaky, arguments: {n: 1}}]}, {text: done}]";

/// The result of one run of the tool.
#[derive(Debug, Clone, Copy)]
enum Run {
    Raises(&'static str),
    FailsForGood(&'static str),
    Reports(&'static str),
    Succeeds,
}

/// A tool with a prepared result for each run.
#[derive(Debug, Clone)]
struct Flaky {
    runs: &'static [Run],
    seen: Arc<Mutex<Vec<Value>>>,
    count: Arc<AtomicUsize>,
    retry: ToolRetry,
}

impl Flaky {
    fn new(runs: &'static [Run]) -> Self {
        Self {
            runs,
            seen: Arc::default(),
            count: Arc::default(),
            retry: quick(3),
        }
    }

    fn runs(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn tool(&self) -> impl Tool + use<> {
        let flaky = self.clone();
        let tool = TestTool::new("flaky", move |input, _| {
            flaky.seen.lock().unwrap().push(Value::Object(input));
            let run = flaky.runs[flaky.count.fetch_add(1, Ordering::Relaxed)];
            Box::pin(future::ready(match run {
                Run::Raises(text) => Err(ToolFailure::new(text)),
                Run::FailsForGood(text) => Err(ToolFailure::permanent(text)),
                Run::Reports(text) => Ok(ToolResult::error(text)),
                Run::Succeeds => Ok(ToolResult::text("made")),
            }))
        });
        tool.read_only(false).retry(self.retry)
    }
}

fn quick(attempts: u32) -> ToolRetry {
    ToolRetry {
        attempts,
        ..ToolRetry::once()
    }
}

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

fn toolbox(tool: &Flaky) -> Toolbox {
    Toolbox::empty().with(tool.tool())
}

/// The result of all runs of one call.
struct Case {
    name: &'static str,
    runs: &'static [Run],
    /// For each failure, whether another attempt follows.
    will_retry: &'static [bool],
    /// The last attempt, and whether it failed.
    last: (u32, bool),
}

const fn case(
    name: &'static str,
    runs: &'static [Run],
    will_retry: &'static [bool],
    last: (u32, bool),
) -> Case {
    Case {
        name,
        runs,
        will_retry,
        last,
    }
}

#[rustfmt::skip]
const CASES: [Case; 7] = [
    case("raises twice", &[Run::Raises("busy"), Run::Raises("busy"), Run::Succeeds], &[true, true], (3, false)),
    case("fails for good", &[Run::FailsForGood("no such issue")], &[false], (1, true)),
    case("has words of no meaning", &[Run::Raises("host not found"), Run::Reports("syntax error"), Run::Succeeds], &[true, true], (3, false)),
    case("reports a failure", &[Run::Reports("busy"), Run::Succeeds], &[true], (2, false)),
    case("never succeeds", &[Run::Reports("a"), Run::Raises("b"), Run::Reports("c")], &[true, true, false], (3, true)),
    case("fails for good at last", &[Run::Raises("busy"), Run::FailsForGood("busy")], &[true, false], (2, true)),
    case("succeeds", &[Run::Succeeds], &[], (1, false)),
];

// M13, M14, M15, M16
#[tokio::test]
async fn each_attempt_is_judged_and_each_failure_told() {
    for case in CASES {
        let (name, (last, is_error)) = (case.name, case.last);
        let stage = Stage::empty();
        let tool = Flaky::new(case.runs);
        let (agent, _) = stage
            .play_with(CALL, |config| AgentConfig {
                toolbox: toolbox(&tool),
                permissions: yes(),
                ..config
            })
            .await;
        let judged = stage.all::<PreToolUse>();
        let judged: Vec<u32> = judged.iter().map(|event| event.attempt).collect();
        assert_eq!(judged, (1..=last).collect::<Vec<_>>(), "{name}");
        let guarded = stage.all::<ToolGuard>().len();
        assert_eq!(
            (guarded, tool.runs()),
            (judged.len(), judged.len()),
            "{name}"
        );
        let errors = stage.all::<ToolError>();
        let told: Vec<bool> = errors.iter().map(|event| event.will_retry).collect();
        assert_eq!(told, case.will_retry, "{name}");
        let numbers: Vec<u32> = errors.iter().map(|event| event.attempt).collect();
        assert_eq!(
            numbers,
            (1..).take(errors.len()).collect::<Vec<_>>(),
            "{name}"
        );
        let post = stage.only::<PostToolUse>();
        assert_eq!(
            (post.attempt, post.result.is_error),
            (last, is_error),
            "{name}"
        );
        assert!(
            post.duration_ms <= post.total_duration_ms && !post.blocked,
            "{name}"
        );
        assert_eq!(tool_texts(&agent).len(), 1, "{name}");
        assert_eq!(stage.all::<ToolInputTransform>().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_tool_that_says_nothing_is_run_once_and_a_toolbox_may_say_otherwise() {
    for (retry, set, runs) in [
        (ToolRetry::default(), None, 1),
        (ToolRetry::default(), Some(quick(2)), 2),
        (quick(2), Some(ToolRetry::once()), 1),
    ] {
        let stage = Stage::empty();
        let tool = Flaky {
            retry,
            ..Flaky::new(&[Run::Raises("busy"), Run::Succeeds])
        };
        let mut toolbox = toolbox(&tool);
        if let Some(set) = set {
            toolbox = toolbox.retry("flaky", set);
        }
        stage
            .play_with(CALL, |config| AgentConfig {
                toolbox,
                permissions: yes(),
                ..config
            })
            .await;
        assert_eq!(tool.runs(), runs);
    }
}

#[tokio::test]
async fn the_user_is_asked_once_for_the_same_arguments() {
    const RUNS: &[Run] = &[Run::Raises("busy"), Run::Raises("busy"), Run::Succeeds];
    let stage = Stage::attended([Approval::AllowOnce]);
    let tool = Flaky::new(RUNS);
    // A guard that asks at every attempt gets an answer each time.
    stage
        .engine
        .on(|_: &ToolGuard| Effect::<ToolGuard>::ask("sure?"));
    stage
        .play_with(CALL, |config| AgentConfig {
            toolbox: toolbox(&tool),
            ..config
        })
        .await;
    assert_eq!((stage.human.asked().len(), tool.runs()), (1, 3));
    assert_eq!(stage.all::<PermissionRequest>().len(), 1);

    let stage = Stage::attended([Approval::AllowOnce, Approval::AllowOnce]);
    let tool = Flaky::new(RUNS);
    stage.engine.on(|event: &PreToolUse| {
        let number = if event.attempt == 1 { 1 } else { 2 };
        Effect::<PreToolUse>::none().patch_input(json!({"n": number}).as_object().unwrap().clone())
    });
    stage
        .play_with(CALL, |config| AgentConfig {
            toolbox: toolbox(&tool),
            ..config
        })
        .await;
    assert_eq!(
        stage.human.asked(),
        ["flaky {\"n\":1} -", "flaky {\"n\":2} -"]
    );
    let seen = tool.seen.lock().unwrap().clone();
    assert_eq!(seen, [json!({"n": 1}), json!({"n": 2}), json!({"n": 2})]);
}

#[tokio::test]
async fn a_gate_may_refuse_a_later_attempt_and_the_model_knows_that_the_tool_ran() {
    let stage = Stage::empty();
    let tool = Flaky::new(&[Run::Raises("busy"), Run::Succeeds]);
    stage.engine.on(|event: &PreToolUse| {
        if event.attempt > 1 {
            Effect::deny("once is enough")
        } else {
            Effect::none()
        }
    });
    let (agent, _) = stage
        .play_with(CALL, |config| AgentConfig {
            toolbox: toolbox(&tool),
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(tool.runs(), 1);
    assert_eq!(
        tool_texts(&agent),
        [
            "The tool call was rejected by a pre_tool_use hook. Reason: once is enough\nThe tool has already run: attempt 1 failed: busy"
        ]
    );
    let post = stage.only::<PostToolUse>();
    assert_eq!((post.attempt, post.blocked, post.duration_ms), (2, true, 0));
}

#[tokio::test]
async fn a_hook_that_ends_the_run_ends_the_attempts() {
    let stage = Stage::empty();
    let tool = Flaky::new(&[Run::Raises("busy"), Run::Succeeds]);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::none().stop_run("enough"));
    stage
        .play_with(CALL, |config| AgentConfig {
            toolbox: toolbox(&tool),
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(tool.runs(), 1);
    assert!(!stage.only::<ToolError>().will_retry);
}

#[tokio::test]
async fn a_cancellation_ends_the_pause_at_once() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage.engine.on(move |_: &ToolError| token.cancel());
    let tool = Flaky {
        retry: ToolRetry {
            attempts: 2,
            first_pause: Duration::from_hours(1),
            longest_pause: Duration::from_hours(1),
            jitter: Duration::ZERO,
        },
        ..Flaky::new(&[Run::Raises("busy"), Run::Succeeds])
    };
    let mut agent = AgentConfig {
        toolbox: toolbox(&tool),
        permissions: yes(),
        ..stage.config(CALL)
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert_eq!(
        (tool.runs(), tool_texts(&agent)),
        (1, vec!["busy".to_owned()])
    );
    let post = stage.only::<PostToolUse>();
    assert_eq!((post.attempt, post.blocked), (1, false));
}

#[tokio::test]
async fn a_cancellation_at_the_gates_of_a_later_attempt_does_not_hide_that_the_tool_ran() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage.engine.on(move |event: &ToolGuard| {
        if event.attempt > 1 {
            token.cancel();
        }
        Effect::none()
    });
    let tool = Flaky::new(&[Run::Raises("busy"), Run::Succeeds]);
    let mut agent = AgentConfig {
        toolbox: toolbox(&tool),
        permissions: yes(),
        ..stage.config(CALL)
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert_eq!(tool.runs(), 1);
    assert_eq!(
        tool_texts(&agent),
        ["The tool call was cancelled.\nThe tool has already run: attempt 1 failed: busy"]
    );
    let post = stage.only::<PostToolUse>();
    assert_eq!((post.attempt, post.blocked), (2, true));
}
