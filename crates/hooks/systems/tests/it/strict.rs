//! The parts of an answer that each event accepts, with and without `strict_output`.

use serde_json::{Value, json};
use tenterhook_engine::event::{
    AfterLlmCall, ApprovalDecision, DecisionSource, ToolApprovalDecision, TurnEnd, TurnEndReason,
};
use tenterhook_engine::{AnyEffect, Dialect, EventKind, ReadError, Reply};
use tenterhook_systems::docker_agent::{DockerAgent, EVENTS};
use tenterhook_systems::native::Native;

use crate::sent;

fn read(kind: EventKind, stdout: &str, strict: bool) -> Result<AnyEffect, ReadError> {
    let reply = Reply::Exited {
        status: 0,
        stdout: stdout.as_bytes(),
        stderr: b"",
        stdout_omitted: 0,
    };
    DockerAgent::agent_file().read(kind.info(), &reply, strict)
}

/// An answer with a single part, and the events that accept it according to docker-agent's contract.
const PARTS: &[(&str, &str, &[&str])] = &[
    (
        "block",
        r#"{"decision":"block"}"#,
        &[
            "pre_tool_use",
            "tool_input_transform",
            "tool_guard",
            "post_tool_use",
            "permission_request",
            "user_prompt_submit",
            "user_steering_messages_submit",
            "user_followup_submit",
            "before_llm_call",
            "pre_compact",
            "before_compaction",
            "worktree_create",
        ],
    ),
    (
        "permission",
        r#"{"permission_decision":"allow"}"#,
        &["pre_tool_use", "tool_guard", "permission_request"],
    ),
    (
        "updated_input",
        r#"{"updated_input":{}}"#,
        &["pre_tool_use", "tool_input_transform"],
    ),
    (
        "updated_messages",
        r#"{"updated_messages":[{"role":"user","content":"x"}]}"#,
        &["before_llm_call"],
    ),
    (
        "updated_tool_response",
        r#"{"updated_tool_response":""}"#,
        &["tool_response_transform"],
    ),
    (
        "additional_context",
        r#"{"additional_context":"x"}"#,
        &[
            "session_start",
            "turn_start",
            "user_prompt_submit",
            "user_steering_messages_submit",
            "user_followup_submit",
            "pre_compact",
            "worktree_create",
        ],
    ),
    (
        "instruction_context",
        r#"{"instruction_context":[]}"#,
        &["session_start", "turn_start"],
    ),
    (
        "metadata",
        r#"{"metadata":{}}"#,
        &["tool_guard", "permission_request"],
    ),
    ("summary", r#"{"summary":"x"}"#, &["before_compaction"]),
];

/// The parts that events accept in addition to this contract, because our catalogue honours them.
const MORE: &[(&str, &str)] = &[
    ("updated_input", "permission_request"),
    ("additional_context", "pre_tool_use"),
    ("additional_context", "post_tool_use"),
];

#[test]
fn a_strict_hook_may_say_on_each_event_what_the_contract_says_and_what_the_catalogue_adds() {
    // D-47
    for (part, answer, events) in PARTS {
        for event in EVENTS {
            let is_taken = events.contains(&event.name) || MORE.contains(&(*part, event.name));
            let found = read(event.kind, answer, true);
            assert_eq!(found.is_ok(), is_taken, "{part} on {}", event.name);
            if let Err(error) = found {
                let error = error.to_string();
                assert!(error.contains("does not support"), "{part}: {error}");
                assert!(
                    read(event.kind, answer, false).is_ok(),
                    "lenient: {part} on {}",
                    event.name
                );
            }
        }
    }
}

#[test]
fn instructions_are_context_of_the_sources_that_are_there() {
    let answer = r#"{"instruction_context":[
        {"key":"a","group":"g","label":"A","content":"one","changed_content":"ONE","complete_group":true,"set_marker":true},
        {"key":"b","content":"two","removed":true,"removed_content":"gone"},
        {"key":"c","content":"three","unavailable":true},
        {"key":"d","content":"four","removed":false}
    ]}"#;
    for kind in [EventKind::SessionStart, EventKind::TurnStart] {
        for strict in [true, false] {
            assert_eq!(read(kind, answer, strict).unwrap().context, ["one", "four"]);
        }
    }
    let elsewhere = read(EventKind::UserPromptSubmit, answer, false).unwrap();
    assert!(elsewhere.context.is_empty());
    assert_eq!(
        elsewhere.notices,
        ["user_prompt_submit does not support instruction_context; it was ignored"]
    );
}

#[test]
fn instructions_of_the_wrong_form_fail_the_answer() {
    for (source, message) in [
        (
            r#"{"content":5}"#,
            "invalid hook output: `instruction_context[0].content`: invalid type: integer `5`, expected a string",
        ),
        (
            r#"{"removed":"yes"}"#,
            "invalid hook output: `instruction_context[0].removed`: invalid type: string \"yes\", expected a boolean",
        ),
    ] {
        let answer = format!(r#"{{"instruction_context":[{source}]}}"#);
        let error = read(EventKind::TurnStart, &answer, false).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let unknown = r#"{"instruction_context":[{"contents":"x"}]}"#;
    let error = read(EventKind::TurnStart, unknown, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid hook output: unknown key `instruction_context[0].contents`"
    );
}

fn written(event: impl tenterhook_engine::Event) -> Value {
    written_in(&*DockerAgent::agent_file(), event)
}

fn written_in(dialect: &dyn Dialect, event: impl tenterhook_engine::Event) -> Value {
    let bytes = dialect.write(&sent(event)).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_decision_is_written_in_docker_agents_words() {
    for (source, word) in [
        ("rule_allow", "team_permissions_allow"),
        ("rule_deny", "team_permissions_deny"),
        ("session_allow", "session_permissions_allow"),
        ("mode_yes", "yolo"),
        ("user_approved_session", "user_approved_tool"),
        ("user_approved", "user_approved"),
        ("user_rejected", "user_rejected"),
        ("readonly_hint", "readonly_hint"),
        ("pre_tool_use_hook_allow", "pre_tool_use_hook_allow"),
        ("pre_tool_use_hook_deny", "pre_tool_use_hook_deny"),
        ("tool_input_transform_deny", "tool_input_transform_deny"),
        ("tool_guard_deny", "tool_guard_deny"),
        (
            "permission_request_hook_allow",
            "permission_request_hook_allow",
        ),
        (
            "permission_request_hook_deny",
            "permission_request_hook_deny",
        ),
        ("context_cancelled", "context_canceled"),
        ("non_interactive_deny", "non_interactive_deny"),
    ] {
        let value = written(
            ToolApprovalDecision::new("shell").with_source(DecisionSource::from(source.to_owned())),
        );
        assert_eq!(value["approval_source"], word);
        assert_eq!(value["hook_event_name"], "on_tool_approval_decision");
    }
}

#[test]
fn docker_agent_spells_cancelled_as_its_document_does_and_native_hooks_see_our_spelling() {
    let turn_end = TurnEnd::new().with_reason(TurnEndReason::Cancelled);
    let decision = ToolApprovalDecision::new("shell")
        .with_decision(ApprovalDecision::Cancelled)
        .with_source(DecisionSource::Cancelled);
    assert_eq!(written(turn_end.clone())["reason"], "canceled");
    let theirs = written(decision.clone());
    assert_eq!(theirs["approval_decision"], "canceled");
    assert_eq!(theirs["approval_source"], "context_canceled");

    assert_eq!(written_in(&*Native::new(), turn_end)["reason"], "cancelled");
    let ours = written_in(&*Native::new(), decision);
    assert_eq!(ours["decision"], "cancelled");
    assert_eq!(ours["source"], "context_cancelled");
    // A hook that was written for docker-agent sees docker-agent's words.
    assert_eq!(ours["approval_decision"], "canceled");
}

#[test]
fn a_cost_of_nothing_is_written_and_an_unknown_one_is_not() {
    // D-114
    let priced = |cost| {
        written(
            AfterLlmCall::new()
                .with_model_id("openai/gpt-4o")
                .with_cost(cost),
        )
    };
    assert_eq!(priced(None).get("cost"), None);
    assert_eq!(priced(Some(0.0)).get("cost"), Some(&json!(0.0)));
    assert_eq!(priced(Some(0.25))["cost"], 0.25);
    assert_eq!(priced(None)["model_id"], "openai/gpt-4o");
}
