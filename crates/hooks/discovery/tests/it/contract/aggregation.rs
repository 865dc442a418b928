//! How the answers of several hooks of one event are combined.

use serde_json::{Value, json};
use tenterhook_engine::Permission;

use super::{Stage, says, sh, with};

fn permits(permission: &str, reason: &str) -> Value {
    says(&json!({"hook_specific_output": {
        "permission_decision": permission,
        "permission_decision_reason": reason,
    }}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_strongest_permission_wins_with_its_first_reason() {
    // D-60, D-62
    use Permission::{Allow, Ask, Deny, None};
    for event in ["pre_tool_use", "tool_guard"] {
        for (words, expected, reason) in [
            (&[][..], None, Option::None),
            (&["allow"], Allow, Some("0")),
            (&["", "ask"], Ask, Some("1")),
            (&["allow", "ask"], Ask, Some("1")),
            (&["allow", "ask", "deny"], Deny, Some("2")),
            (&["ask", "deny", "allow"], Deny, Some("1")),
            (&["ask", "ask"], Ask, Some("0")),
        ] {
            let silent = sh("true");
            let hooks: Vec<Value> = words
                .iter()
                .enumerate()
                .map(|(at, word)| permits(word, &at.to_string()))
                .chain([silent])
                .collect();
            let said = Stage::new(event, &hooks).fire(event).await;
            assert_eq!(said.permission(), expected, "{event}: {words:?}");
            let found = said.any.permission_reason.as_deref();
            assert_eq!(found, reason, "{event}: {words:?}");
            assert_eq!(said.stopped().is_some(), expected == Deny, "{words:?}");
            assert!(said.any.rewritten.is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_where_there_is_nothing_to_permit_is_none() {
    // D-61
    let said = Stage::new("turn_start", &[permits("deny", "no")])
        .fire("turn_start")
        .await;
    assert_eq!(said.permission(), Permission::None);
    assert_eq!(said.stopped(), None);
    assert_eq!(
        said.notices(),
        "turn_start: permission_decision has no effect because the event cannot block"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_that_fails_outweighs_one_that_allows_whatever_on_error_says() {
    // D-63
    for on_error in ["warn", "ignore", "block"] {
        let broken = with(sh("exit 1"), &json!({"on_error": on_error}));
        let said = Stage::new("tool_guard", &[broken, permits("allow", "fine")])
            .fire("tool_guard")
            .await;
        assert!(said.stopped().unwrap().contains("exited with status 1"));
        assert_eq!(said.permission(), Permission::Deny, "{on_error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_request_is_answered_unless_somebody_denies() {
    // D-64, D-65, D-66
    let event = "permission_request";
    let said = Stage::new(event, &[permits("allow", "ok")])
        .fire(event)
        .await;
    assert_eq!(said.permission(), Permission::Allow);
    assert_eq!(said.stopped(), None);
    for hooks in [
        vec![permits("deny", "policy violation")],
        vec![permits("allow", "ok"), permits("deny", "policy violation")],
    ] {
        let said = Stage::new(event, &hooks).fire(event).await;
        assert_eq!(said.permission(), Permission::Deny);
        assert_eq!(said.stopped(), Some("policy violation"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_is_merged_where_a_question_may_follow_and_dropped_elsewhere() {
    // D-67
    let hooks = [
        says(&json!({"hook_specific_output": {"metadata": {"a": "1", "shared": "1"}}})),
        says(&json!({"hook_specific_output": {"metadata": {"b": "2", "shared": "2"}}})),
    ];
    let merged = json!({"a": "1", "b": "2", "shared": "2"});
    for event in ["permission_request", "tool_guard"] {
        let said = Stage::new(event, &hooks).fire(event).await;
        assert_eq!(Value::Object(said.any.metadata), merged, "{event}");
    }
    let entry = json!({"preempt_yolo": true, "hooks": hooks});
    let preempt = Stage::of(&json!({"pre_tool_use": [entry]}));
    let said = preempt.fire("tool_guard").await;
    assert_eq!(Value::Object(said.any.metadata), merged, "the preempt lane");
    for event in ["pre_tool_use", "turn_start", "stop"] {
        let said = Stage::new(event, &hooks).fire(event).await;
        assert!(said.any.metadata.is_empty(), "{event}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_summary_in_configured_order_is_the_one() {
    // D-68
    let slow = sh(r#"sleep 0.2; printf '%s' '{"hook_specific_output":{"summary":"first"}}'"#);
    let fast = says(&json!({"hook_specific_output": {"summary": "second"}}));
    let event = "before_compaction";
    let said = Stage::new(event, &[slow, fast]).fire(event).await;
    assert_eq!(said.any.supply, Some(json!("first")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn context_is_joined_in_configured_order() {
    // D-69
    let hooks = [sh("sleep 0.2; echo first"), sh("echo second")];
    let said = Stage::new("turn_start", &hooks).fire("turn_start").await;
    assert_eq!(said.context(), "first\nsecond");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hook_below_two_matchers_runs_once_and_again_the_next_time() {
    // D-11, D-12, D-15
    let hook = |line: &str| sh(&format!("echo {line} >> log"));
    let named = with(hook("a"), &json!({"name": "other"}));
    let stage = Stage::of(&json!({"pre_tool_use": [
        {"matcher": "shell", "hooks": [hook("a"), hook("b")]},
        {"matcher": "s.*", "hooks": [hook("b"), hook("a"), named]},
        {"matcher": "edit_file", "hooks": [hook("never")]},
    ]}));
    stage.fire("pre_tool_use").await.assert_goes_on();
    assert_eq!(stage.file("log"), "a\nb\na\n");
    stage.fire("pre_tool_use").await.assert_goes_on();
    assert_eq!(stage.file("log"), "a\nb\na\na\nb\na\n");
}
