//! The effects of failing hooks.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_engine::event::{PreToolUse, SessionDirectoryResolve};
use tenterhook_engine::{
    Answer, AsyncHandler, Call, EventKind, Handler, HandlerError, HookId, HookSpec, Matcher,
    Origin, Phase, Source, native_policy,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Stage, entries, send, sh, with};
use crate::load;

/// Every way to fail: a name, and the hook.
fn failing() -> Vec<(&'static str, Value)> {
    vec![
        (
            "cannot start",
            with(sh("true"), &json!({"working_dir": "/missing/folder"})),
        ),
        ("times out", with(sh("sleep 30"), &json!({"timeout": 1}))),
        ("exits 1", sh("exit 1")),
        ("exits 127", sh("exit 127")),
        ("prints bad JSON", sh("echo '{\"continue\":'")),
        ("decides badly", sh("echo '{\"decision\":\"maybe\"}'")),
        (
            "permits badly",
            sh("echo '{\"permission_decision\":\"maybe\"}'"),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_does_what_event_and_on_error_say() {
    // D-50
    let events = [
        ("pre_tool_use", true),
        ("tool_guard", true),
        ("tool_input_transform", false),
        ("before_llm_call", false),
    ];
    let mut cases = JoinSet::new();
    for (event, fails_closed) in events {
        for on_error in ["", "warn", "ignore", "block"] {
            for (how, hook) in failing() {
                cases.spawn(fails(event, fails_closed, on_error, how, hook));
            }
        }
    }
    while let Some(case) = cases.join_next().await {
        case.unwrap();
    }
}

async fn fails(
    event: &'static str,
    fails_closed: bool,
    on_error: &'static str,
    how: &'static str,
    hook: Value,
) {
    let case = format!("{event}, on_error {on_error:?}: a hook that {how}");
    let mut hook = with(hook, &json!({"name": "mine"}));
    if !on_error.is_empty() {
        hook["on_error"] = json!(on_error);
    }
    let said = Stage::new(event, &[hook]).fire(event).await;
    let line = format!("{event} hook failed to execute: hook \"mine\": ");
    if fails_closed || on_error == "block" {
        let reason = said.stopped().unwrap_or_else(|| panic!("{case}"));
        assert!(reason.starts_with(&line), "{case}: {reason}");
    } else {
        assert_eq!(said.stopped(), None, "{case}");
        let is_told = said.notices().starts_with(&line);
        assert_eq!(is_told, on_error != "ignore", "{case}");
        assert!(said.any.failures[0].let_through, "{case}");
    }
}

#[test]
fn what_cannot_run_is_refused_when_it_is_loaded() {
    // D-51, D-54
    for (event, hook, message) in [
        (
            "pre_tool_use",
            json!({"type": "webhook", "command": "x"}),
            "`type` cannot be `webhook`",
        ),
        (
            "pre_tool_use",
            json!({"type": "builtin", "command": "no_such_builtin"}),
            "unknown built-in `no_such_builtin`",
        ),
        (
            "pre_tool_use",
            json!({"type": "builtin", "command": ""}),
            "`command` is empty",
        ),
        (
            "pre_tool_use",
            json!({"type": "builtin"}),
            "the builtin hook has no `command`, which should name the built-in",
        ),
        (
            "post_tool_use",
            json!({"type": "builtin", "command": "no_such_builtin", "on_error": "block"}),
            "unknown built-in `no_such_builtin`",
        ),
    ] {
        let hooks = json!({ event: entries(event, &[hook]) });
        let text = json!({"agents": {"root": {"hooks": hooks}}}).to_string();
        let error = load("agent.json", &text).unwrap_err();
        let messages: Vec<_> = error.problems.iter().map(|p| p.message.as_str()).collect();
        assert_eq!(messages, [message], "{event}");
    }
}

/// A handler that fails.
#[derive(Debug)]
struct Broken;

impl AsyncHandler for Broken {
    fn kind(&self) -> &'static str {
        "builtin"
    }

    fn describe(&self) -> String {
        "broken".to_owned()
    }

    fn handle<'a>(
        &'a self,
        _call: &'a Call,
    ) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        Box::pin(std::future::ready(Err(HandlerError::Other {
            problem: "the disk is full".to_owned(),
        })))
    }
}

#[tokio::test]
async fn a_builtin_that_fails_denies_on_a_gate() {
    // D-52
    let engine = tenterhook_engine::Engine::new();
    let kind = EventKind::PreToolUse;
    engine.register(HookSpec {
        event: Some(kind.into()),
        id: HookId::new("broken"),
        matcher: Matcher::everything(),
        agent: None,
        includes_unnamed: false,
        handling: Handler::Async(std::sync::Arc::new(Broken)),
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout: Duration::from_secs(20),
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    });
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks.dispatch(PreToolUse::default()).await;
    assert_eq!(
        outcome.decision().reason(),
        Some("pre_tool_use hook failed to execute: hook \"broken\": the disk is full")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_failing_hook_says_on_stderr_is_part_of_the_cause() {
    // D-53
    let stage = Stage::new("post_tool_use", &[sh("echo out of luck >&2; exit 3")]);
    let said = stage.fire("post_tool_use").await;
    assert_eq!(
        said.any.failures[0].cause,
        "exited with status 3: out of luck"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_error_block_ends_the_run_behind_a_tool() {
    // D-54
    let hook = with(sh("exit 1"), &json!({"on_error": "block"}));
    let said = Stage::new("post_tool_use", &[hook])
        .fire("post_tool_use")
        .await;
    let reason = said.stopped().unwrap();
    assert!(reason.contains("exited with status 1"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_gives_up_denies_on_a_gate_and_nowhere_else() {
    // D-55, D-56
    for (event, is_stopped) in [("pre_tool_use", true), ("post_tool_use", false)] {
        let stage = Stage::new(event, &[sh("touch started; sleep 10")]);
        let cancel = CancellationToken::new();
        let dispatcher = stage.dispatcher().with_cancel(cancel.clone());
        let started = stage.dir.path().join("started");
        let give_up = async {
            while !started.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        let nothing = json!({});
        let (said, ()) = tokio::join!(send(&dispatcher, event, &nothing), give_up);
        assert_eq!(said.stopped().is_some(), is_stopped, "{event}");
        let line = format!("{event} hook failed to execute: hook \"{event}#1\": cancelled");
        let told = said.stopped().map(str::to_owned);
        assert_eq!(told.unwrap_or_else(|| said.notices()), line);
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_written_fails_its_hooks() {
    // D-57: the input of tool events is already JSON, so another event is needed to test this.
    use std::os::unix::ffi::OsStrExt as _;
    let text = "hooks: [{event: session_directory_resolve, command: 'true'}]";
    let engine = tenterhook_engine::Engine::new();
    engine
        .scope(tenterhook_engine::Scope::Global)
        .replace(load("hooks.yaml", text).unwrap().specs);
    let hooks = engine.dispatcher(Origin::default());
    let outcome = hooks
        .dispatch(SessionDirectoryResolve::new(
            Path::new(std::ffi::OsStr::from_bytes(b"/w/\xff")).to_owned(),
        ))
        .await;
    let cause = &outcome.failures()[0].cause;
    assert!(
        cause.starts_with("failed to serialize hook input: "),
        "{cause}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_holds_stdout_past_the_timeout_is_a_timeout() {
    // D-59
    let hook = with(sh("sleep 30 & exit 0"), &json!({"timeout": 1}));
    let stage = Stage::new("pre_tool_use", &[hook]);
    let said = stage.fire("pre_tool_use").await;
    let reason = said.stopped().unwrap();
    assert!(reason.ends_with("timed out after 1s"), "{reason}");
}
