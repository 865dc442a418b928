//! Rewrites that chain, and hooks that run at once.

use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_engine::Permission;

use super::{Stage, entries, says, sh, with};

/// Appends to the argument `cmd` of what the hook reads.
fn appends(text: &str) -> Value {
    sh(&format!(
        r#"sed 's/.*"cmd":"\([^"]*\)".*/{{"hook_specific_output":{{"updated_input":{{"cmd":"\1{text}"}}}}}}/'"#
    ))
}

/// Appends to the text of the one message that the hook reads.
fn appends_to_message(text: &str) -> Value {
    let answer =
        r#"{"hook_specific_output":{"updated_messages":[{"role":"user","content":"\1TEXT"}]}}"#;
    let answer = answer.replace("TEXT", text);
    sh(&format!(r#"sed 's/.*"content":"\([^"]*\)".*/{answer}/'"#))
}

fn input(patch: &Value) -> Value {
    says(&json!({"hook_specific_output": {"updated_input": patch}}))
}

fn response(text: &str) -> Value {
    says(&json!({"hook_specific_output": {"updated_tool_response": text}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_chain_over_matchers_and_keep_the_other_arguments() {
    // D-70
    for event in ["pre_tool_use", "tool_input_transform"] {
        let stage = Stage::of(&json!({ event: [
            {"matcher": "shell", "hooks": [appends(" -l")]},
            {"matcher": "edit_file", "hooks": [sh("exit 2")]},
            {"matcher": "*", "hooks": [appends(" -h")]},
        ]}));
        let said = stage.fire(event).await;
        assert_eq!(said.stopped(), None);
        assert_eq!(
            said.event["tool_input"],
            json!({"cmd": "ls -l -h", "cwd": "src"}),
            "{event}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_patch_is_a_rewrite_that_changes_nothing() {
    // D-71, D-72
    let said = Stage::new("pre_tool_use", &[input(&json!({}))])
        .fire("pre_tool_use")
        .await;
    assert_eq!(said.any.rewritten, ["tool_input"]);
    assert_eq!(said.event["tool_input"], json!({"cmd": "ls", "cwd": "src"}));
    for event in ["pre_tool_use", "before_llm_call", "tool_response_transform"] {
        let said = Stage::new(event, &[sh("true")]).fire(event).await;
        assert!(said.any.rewritten.is_empty(), "{event}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_chain_and_an_empty_list_is_no_rewrite() {
    // D-73
    let empty = says(&json!({"hook_specific_output": {"updated_messages": []}}));
    let hooks = [
        appends_to_message("-a"),
        sh("true"),
        appends_to_message("-b"),
        empty,
    ];
    let event = "before_llm_call";
    let said = Stage::new(event, &hooks).fire(event).await;
    assert_eq!(said.any.failures, []);
    assert_eq!(said.event["messages"][0]["content"], "m-a-b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_chain_and_a_cleared_one_stays_clear() {
    // D-74
    let event = "tool_response_transform";
    let appends = sh(
        r#"sed 's/.*"tool_response":"\([^"]*\)".*/{"hook_specific_output":{"updated_tool_response":"\1, second"}}/'"#,
    );
    let observer = sh(r#"sed 's/.*"tool_response":"\([^"]*\)".*/\1/' >> seen"#);
    let stage = Stage::new(event, &[response("first"), appends, observer.clone()]);
    let said = stage.fire(event).await;
    assert_eq!(said.event["tool_response"], "first, second");
    assert_eq!(stage.file("seen"), "first, second");
    let stage = Stage::new(event, &[response(""), observer]);
    let said = stage.fire(event).await;
    assert_eq!(said.event["tool_response"], "");
    assert!(stage.dir.path().join("seen").exists());
    assert_eq!(stage.file("seen"), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_keeps_the_rewrites_before_it_and_later_hooks_run() {
    // D-75: after a deny, the last hook hears of the event with the earlier rewrite, but changes nothing.
    for failing in [
        sh("exit 1"),
        sh("exit 2"),
        with(sh("true"), &json!({"working_dir": "/missing/folder"})),
    ] {
        let last = sh(r#"cat > seen; printf '%s' '{"updated_input":{"cmd":"last"}}'"#);
        let hooks = [appends(" -a"), failing.clone(), last];
        let stage = Stage::new("pre_tool_use", &hooks);
        let said = stage.fire("pre_tool_use").await;
        assert!(said.stopped().is_some());
        assert_eq!(said.event["tool_input"]["cmd"], "ls -a");
        let seen: Value = serde_json::from_str(&stage.file("seen")).unwrap();
        assert_eq!(seen["tool_input"]["cmd"], "ls -a");

        let event = "tool_response_transform";
        let hooks = [response("one"), failing, sh("cat > seen")];
        let stage = Stage::new(event, &hooks);
        let said = stage.fire(event).await;
        assert_eq!(said.stopped(), None);
        assert_eq!(said.event["tool_response"], "one");
        let seen: Value = serde_json::from_str(&stage.file("seen")).unwrap();
        assert_eq!(seen["tool_response"], "one");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deny_keeps_its_own_rewrite_and_later_hooks_only_hear_of_it() {
    // D-76: the hooks after a deny are called, and change nothing.
    let deny = says(&json!({"hook_specific_output": {
        "permission_decision": "deny",
        "permission_decision_reason": "no",
        "updated_input": {"cmd": "first"},
    }}));
    let allow = sh(
        r#"touch asked; printf '%s' '{"permission_decision":"allow","updated_input":{"cmd":"last"}}'"#,
    );
    let stage = Stage::new("pre_tool_use", &[deny, allow]);
    let said = stage.fire("pre_tool_use").await;
    assert_eq!(said.permission(), Permission::Deny);
    assert_eq!(said.stopped(), Some("no"));
    assert_eq!(said.event["tool_input"]["cmd"], "first");
    assert!(stage.dir.path().join("asked").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_hook_after_a_deny_is_reported_and_the_reason_stays() {
    let deny = says(&json!({"decision": "block", "reason": "no"}));
    let stage = Stage::new("pre_tool_use", &[deny, sh("exit 1"), sh("cat > seen")]);
    let said = stage.fire("pre_tool_use").await;
    assert_eq!(said.stopped(), Some("no"));
    assert_eq!(said.any.failures.len(), 1);
    assert!(stage.file("seen").contains("tool_input"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_hook_of_a_series_has_a_deadline_of_its_own() {
    // D-77
    let slow = with(sh("sleep 30"), &json!({"timeout": 1}));
    let event = "before_llm_call";
    let stage = Stage::new(event, &[slow.clone(), appends_to_message("-b")]);
    let said = stage.fire(event).await;
    assert_eq!(said.stopped(), None);
    assert_eq!(said.event["messages"][0]["content"], "m-b");
    assert!(said.any.failures[0].cause.contains("timed out after 1s"));
    // On a gate that fails closed the timeout is a deny. The second hook has its own deadline to hear of it.
    let stage = Stage::new("pre_tool_use", &[slow, sh("cat > seen")]);
    let said = stage.fire("pre_tool_use").await;
    assert!(said.stopped().unwrap().contains("timed out after 1s"));
    assert_eq!(said.event["tool_input"]["cmd"], "ls");
    assert!(stage.file("seen").contains("\"ls\""));
}

/// Two hooks, each of which waits for the other to begin.
fn meeting() -> [Value; 2] {
    let waits = |own: &str, other: &str| {
        let line = format!(
            r#"touch {own}; while [ ! -e {other} ]; do sleep 0.01; done; printf '%s' '{{"updated_input":{{"cmd":"x"}}}}'"#
        );
        with(sh(&line), &json!({"timeout": 20}))
    };
    [waits("a", "b"), waits("b", "a")]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_that_may_not_rewrite_run_at_once() {
    // D-78
    let preempt = json!({"pre_tool_use": [{"preempt_yolo": true, "hooks": meeting()}]});
    for (event, hooks) in [
        (
            "session_start",
            json!({"session_start": entries("session_start", &meeting())}),
        ),
        (
            "tool_guard",
            json!({"tool_guard": entries("tool_guard", &meeting())}),
        ),
        ("tool_guard", preempt),
    ] {
        let stage = Stage::of(&hooks);
        let said = tokio::time::timeout(Duration::from_mins(1), stage.fire(event)).await;
        let said = said.unwrap();
        assert_eq!(said.any.failures, [], "{event}");
        assert_eq!(said.stopped(), None, "{event}");
        assert!(said.any.rewritten.is_empty(), "{event}");
        assert!(said.notices().contains("does not support updated_input"));
    }
}
