//! What hooks may answer, case by case.

use serde_json::json;
use tenterhook_engine::{AnyEffect, EventKind, Permission, ReadError, Reply, Verdict};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::native::Native;

/// The kind of hook that answers.
#[derive(Clone, Copy, Debug)]
enum By {
    Native,
    AgentFile,
    Strict,
}

fn read(
    by: By,
    kind: EventKind,
    status: i32,
    stdout: &str,
    stderr: &str,
) -> Result<AnyEffect, ReadError> {
    let dialect = if matches!(by, By::Native) {
        Native::new()
    } else {
        DockerAgent::agent_file()
    };
    let reply = Reply::Exited {
        status,
        stdout: stdout.as_bytes(),
        stderr: stderr.as_bytes(),
        stdout_omitted: 0,
    };
    dialect.read(kind.info(), &reply, matches!(by, By::Strict))
}

fn answers(by: By, kind: EventKind, stdout: &str) -> AnyEffect {
    read(by, kind, 0, stdout, "").unwrap()
}

fn fails(by: By, kind: EventKind, stdout: &str) -> String {
    read(by, kind, 0, stdout, "").unwrap_err().to_string()
}

fn verdict(permission: Permission, reason: Option<&str>) -> AnyEffect {
    let reason = reason.map(str::to_owned);
    AnyEffect {
        permission: Some(Verdict { permission, reason }),
        ..AnyEffect::default()
    }
}

fn blocked(reason: &str) -> AnyEffect {
    AnyEffect {
        block: Some(reason.to_owned()),
        ..AnyEffect::default()
    }
}

fn context(text: &str) -> AnyEffect {
    AnyEffect {
        context: vec![text.to_owned()],
        ..AnyEffect::default()
    }
}

#[expect(clippy::too_many_lines, reason = "the table is the test")]
#[test]
fn an_answer_of_exit_status_zero_is_read_as_the_table_says() {
    use EventKind::{
        BeforeLlmCall, PostToolUse, PreToolUse, SessionStart, ToolGuard, TurnStart,
        UserPromptSubmit,
    };
    let none = AnyEffect::default;
    let stop_run = |reason: &str| AnyEffect {
        stop_run: Some(reason.to_owned()),
        ..none()
    };
    for (case, kind, stdout, expected) in [
        ("D-18", PreToolUse, "test", none()),
        (
            "D-25",
            PreToolUse,
            r#"{"decision":"block","reason":"Tool not allowed"}"#,
            blocked("Tool not allowed"),
        ),
        (
            "D-26",
            PostToolUse,
            r#"{"continue":false,"stop_reason":"b"}"#,
            stop_run("b"),
        ),
        ("D-33", SessionStart, "  text \n", context("text")),
        ("D-33", TurnStart, "text", context("text")),
        ("D-33", UserPromptSubmit, "text", context("text")),
        ("D-33", EventKind::PreCompact, "text", context("text")),
        ("D-34", PostToolUse, "text", none()),
        ("D-35", BeforeLlmCall, "text", none()),
        ("D-36", SessionStart, "[]", context("[]")),
        ("D-36", SessionStart, "null", context("null")),
        ("D-38", PreToolUse, r#"{"CONTINUE":false}"#, blocked("")),
        ("D-44", PreToolUse, " \n", none()),
        ("D-44", PreToolUse, "{}", none()),
        (
            "D-62",
            ToolGuard,
            r#"{"permission_decision":"allow"}"#,
            verdict(Permission::Allow, None),
        ),
        (
            "nested and camelCase",
            PreToolUse,
            r#"{"hookSpecificOutput":{"hookEventName":"x","permissionDecision":"deny","permissionDecisionReason":"no"}}"#,
            verdict(Permission::Deny, Some("no")),
        ),
        (
            "short form",
            PreToolUse,
            r#"{"decision":"ask","reason":"sure?"}"#,
            verdict(Permission::Ask, Some("sure?")),
        ),
        (
            "deny on a gate that blocks",
            UserPromptSubmit,
            r#"{"decision":"deny","reason":"no"}"#,
            blocked("no"),
        ),
        (
            "ask is not rounded down",
            UserPromptSubmit,
            r#"{"decision":"ask","reason":"?"}"#,
            blocked("?"),
        ),
        (
            "allow says nothing there",
            UserPromptSubmit,
            r#"{"decision":"allow"}"#,
            none(),
        ),
        (
            "null is absent",
            PreToolUse,
            r#"{"decision":null,"continue":null,"reason":null}"#,
            none(),
        ),
        (
            "top-level context",
            SessionStart,
            r#"{"additional_context":"c"}"#,
            context("c"),
        ),
        (
            "veto by permission",
            EventKind::BeforeCompaction,
            r#"{"permission_decision":"deny"}"#,
            blocked(""),
        ),
        (
            "no model call",
            BeforeLlmCall,
            r#"{"decision":"block","reason":"budget"}"#,
            stop_run("budget"),
        ),
        (
            "both reasons",
            PreToolUse,
            r#"{"continue":false,"stop_reason":"a","decision":"block","reason":"b"}"#,
            blocked("a\nb"),
        ),
    ] {
        assert_eq!(
            answers(By::AgentFile, kind, stdout),
            expected,
            "{case}: {stdout} on {kind:?}"
        );
        if !["D-18", "D-35"].contains(&case) {
            assert_eq!(
                answers(By::Native, kind, stdout),
                expected,
                "native, {case}: {stdout} on {kind:?}"
            );
        }
    }
}

#[test]
fn an_answer_in_no_known_form_is_a_failure() {
    for (case, stdout, message) in [
        (
            "D-27",
            r#"{"decision":"#,
            "invalid hook output: EOF while parsing a value at line 1 column 12",
        ),
        (
            "D-29",
            "{} {}",
            "invalid hook output: hook output must contain a single JSON object",
        ),
        (
            "D-29",
            "{} done",
            "invalid hook output: hook output must contain a single JSON object",
        ),
        (
            "D-30",
            r#"{"decision":"approve"}"#,
            "invalid hook output: `decision` is `approve`, expected `allow`, `ask`, `deny` or `block`",
        ),
        (
            "D-31",
            r#"{"hook_specific_output":{"permission_decision":"alow"}}"#,
            "invalid hook output: `permission_decision` is `alow`, expected `allow`, `ask` or `deny`",
        ),
        (
            "D-32",
            r#"{"continue":"false"}"#,
            "invalid hook output: `continue`: invalid type: string \"false\", expected a boolean",
        ),
        (
            "a number in metadata",
            r#"{"metadata":{"a":1}}"#,
            "invalid hook output: `metadata.a` is not a string",
        ),
    ] {
        for kind in [EventKind::PreToolUse, EventKind::SessionStart] {
            assert_eq!(fails(By::AgentFile, kind, stdout), message, "{case}");
            assert_eq!(fails(By::Native, kind, stdout), message, "{case}");
        }
    }
}

#[test]
fn a_gate_refuses_an_answer_without_one_known_key_from_native_hooks() {
    let typo = r#"{"decison":"deny"}"#;
    let message = fails(By::Native, EventKind::PreToolUse, typo);
    assert_eq!(
        message,
        "invalid hook output: the answer contains no decision; unknown: `decison`"
    );
    assert_eq!(
        answers(By::AgentFile, EventKind::PreToolUse, typo),
        AnyEffect::default()
    );
    assert_eq!(
        answers(By::Native, EventKind::TurnStart, typo),
        AnyEffect::default()
    );
}

#[test]
fn exit_status_two_stops_with_stderr_and_ignores_stdout() {
    use EventKind::{PostToolUse, PreToolUse, SessionEnd, Stop, UserPromptSubmit};
    let json = r#"{"decision":"block","reason":"R"}"#;
    // D-19, D-20, D-21
    assert_eq!(
        read(By::AgentFile, PreToolUse, 2, "", "").unwrap(),
        blocked("")
    );
    assert_eq!(
        read(By::AgentFile, PreToolUse, 2, "", " no\n").unwrap(),
        blocked("no")
    );
    assert_eq!(
        read(By::AgentFile, PreToolUse, 2, json, "").unwrap(),
        blocked("")
    );
    assert_eq!(
        read(By::AgentFile, UserPromptSubmit, 2, "", "no").unwrap(),
        blocked("no")
    );
    assert_eq!(
        read(By::AgentFile, PostToolUse, 2, "", "enough")
            .unwrap()
            .stop_run
            .as_deref(),
        Some("enough")
    );
    let notice = read(By::AgentFile, SessionEnd, 2, "", "no").unwrap();
    assert_eq!(
        notice.notices,
        ["session_end: exit status 2 has no effect because the event cannot block"]
    );
    // D-40: on `stop`, a hook of an agent file can only observe. A native hook can keep the agent running.
    assert_eq!(
        read(By::AgentFile, Stop, 2, "", "go on").unwrap().follow_up,
        Vec::<String>::new()
    );
    assert_eq!(
        read(By::Native, Stop, 2, "", "go on").unwrap().follow_up,
        ["go on"]
    );
}

#[test]
fn any_other_exit_status_is_a_failure() {
    // D-22
    for status in [1, 3, 126, 127, 255] {
        let error = read(By::AgentFile, EventKind::PreToolUse, status, "{}", "").unwrap_err();
        assert_eq!(error.to_string(), format!("exited with status {status}"));
    }
    let error = read(By::Native, EventKind::PreToolUse, 1, "", "line one\nboom\n").unwrap_err();
    assert_eq!(error.to_string(), "exited with status 1: line one\nboom");
}

#[test]
fn rewrites_go_to_the_field_that_the_event_has() {
    let input = answers(
        By::AgentFile,
        EventKind::PreToolUse,
        r#"{"updated_input":{"cmd":"ls -h"}}"#,
    );
    assert_eq!(
        input.rewrite.get("tool_input"),
        Some(&json!({"cmd": "ls -h"}))
    );
    // D-39
    let cleared = answers(
        By::AgentFile,
        EventKind::ToolResponseTransform,
        r#"{"updated_tool_response":""}"#,
    );
    assert_eq!(cleared.rewrite.get("tool_response"), Some(&json!("")));
    let untouched = answers(
        By::AgentFile,
        EventKind::ToolResponseTransform,
        r#"{"updated_tool_response":null}"#,
    );
    assert!(untouched.rewrite.is_empty());
    // D-73
    let empty = answers(
        By::AgentFile,
        EventKind::BeforeLlmCall,
        r#"{"updated_messages":[]}"#,
    );
    assert!(empty.rewrite.is_empty());
    // D-78
    let guard = answers(
        By::AgentFile,
        EventKind::ToolGuard,
        r#"{"updated_input":{}}"#,
    );
    assert!(guard.rewrite.is_empty());
    assert_eq!(
        guard.notices,
        ["tool_guard does not support updated_input; it was ignored"]
    );
}

#[test]
fn messages_come_back_as_they_were_sent() {
    let sent = r#"{"updated_messages":[
        {"role":"user","content":"hi"},
        {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"shell","arguments":"{\"cmd\":\"ls\"}"}}]},
        {"role":"tool","content":"a","tool_call_id":"c","is_error":true}
    ]}"#;
    let effect = answers(By::AgentFile, EventKind::BeforeLlmCall, sent);
    let messages: Vec<tenterhook_engine::Message> =
        serde_json::from_value(effect.rewrite.get("messages").unwrap().clone()).unwrap();
    assert_eq!(messages[0], tenterhook_engine::Message::user("hi"));
    assert_eq!(messages[1].tool_calls[0].arguments, json!({"cmd": "ls"}));
    assert_eq!(
        messages[2],
        tenterhook_engine::Message::tool("c".into(), "a", true)
    );
}

#[test]
fn a_summary_is_supplied_before_compaction_only() {
    // D-37: docker-agent reads only the snake_case key. Its document shows this spelling, so Tenterhook
    // accepts it.
    let camel = r#"{"hookSpecificOutput":{"hookEventName":"before_compaction","summary":"short"}}"#;
    assert_eq!(
        answers(By::AgentFile, EventKind::BeforeCompaction, camel).supply,
        Some(json!("short"))
    );
    let elsewhere = answers(
        By::AgentFile,
        EventKind::PreCompact,
        r#"{"summary":"short"}"#,
    );
    assert_eq!(
        elsewhere.notices,
        ["pre_compact does not support summary; it was ignored"]
    );
}

#[test]
fn strict_output_refuses_what_a_lenient_reader_passes_over() {
    for (case, kind, stdout) in [
        ("D-43", EventKind::SessionStart, "text"),
        ("D-43", EventKind::SessionStart, "[]"),
        ("D-43", EventKind::SessionStart, "null"),
        ("D-45", EventKind::PreToolUse, r#"{"colour":"red"}"#),
        (
            "D-45",
            EventKind::PreToolUse,
            r#"{"hook_specific_output":{"colour":"red"}}"#,
        ),
        (
            "D-46",
            EventKind::PreToolUse,
            r#"{"hook_event_name":"stop"}"#,
        ),
        ("D-47", EventKind::TurnStart, r#"{"decision":"block"}"#),
        (
            "D-47",
            EventKind::TurnStart,
            r#"{"permission_decision":"deny"}"#,
        ),
        ("D-47", EventKind::TurnStart, r#"{"updated_input":{}}"#),
        ("D-47", EventKind::TurnEnd, r#"{"additional_context":"x"}"#),
        ("D-47", EventKind::PreToolUse, r#"{"metadata":{}}"#),
        ("D-47", EventKind::PreToolUse, r#"{"summary":"x"}"#),
        ("D-48", EventKind::ToolGuard, r#"{"updated_input":{}}"#),
        ("D-49", EventKind::PreToolUse, r#"{"suppress_output":true}"#),
    ] {
        assert!(
            read(By::Strict, kind, 0, stdout, "").is_err(),
            "{case}: {stdout} on {kind:?}"
        );
        assert!(
            read(By::AgentFile, kind, 0, stdout, "").is_ok(),
            "lenient, {case}: {stdout} on {kind:?}"
        );
    }
    assert_eq!(
        answers(By::Strict, EventKind::SessionStart, ""),
        AnyEffect::default()
    );
    assert_eq!(
        answers(By::Strict, EventKind::SessionStart, "{}"),
        AnyEffect::default()
    );
}

#[test]
fn native_hooks_may_answer_with_a_whole_effect() {
    let answer = r#"{"effect":{"rewrite":{"text":"better"},"notices":["done"]}}"#;
    let effect = answers(By::Native, EventKind::UserInput, answer);
    assert_eq!(effect.rewrite.get("text"), Some(&json!("better")));
    assert_eq!(effect.notices, ["done"]);
    let unknown = fails(
        By::Native,
        EventKind::UserInput,
        r#"{"effect":{"rewrit":{}}}"#,
    );
    assert!(unknown.contains("rewrit"), "{unknown}");
}

#[test]
fn an_answer_that_was_cut_is_a_failure() {
    let reply = Reply::Exited {
        status: 0,
        stdout: b"{\"decision\":\"bl",
        stderr: b"",
        stdout_omitted: 9,
    };
    let error = Native::new()
        .read(EventKind::PreToolUse.info(), &reply, false)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid hook output: the answer is too long: 9 bytes were dropped"
    );
}

#[test]
fn a_native_gate_takes_a_slip_of_the_pen_for_a_failure() {
    let text = "invalid hook output: the answer is plain text, but a gate expects one JSON object or no output";
    for (stdout, message) in [
        ("ok", text),
        ("checking\n{\"decision\":\"deny\"}", text),
        ("[{\"decision\":\"deny\"}]", text),
        (
            r#"{"decison":"deny","reason":"no"}"#,
            "invalid hook output: `reason` is given without `decision`; unknown: `decison`",
        ),
        (
            r#"{"permissionDecisionReason":"no"}"#,
            "invalid hook output: `permission_decision_reason` is given without `permission_decision`",
        ),
    ] {
        assert_eq!(
            fails(By::Native, EventKind::PreToolUse, stdout),
            message,
            "{stdout}"
        );
        assert!(
            read(By::AgentFile, EventKind::PreToolUse, 0, stdout, "").is_ok(),
            "{stdout}"
        );
    }
    // A byte order mark before the answer is ignored.
    let marked = "\u{feff}{\"decision\":\"deny\"}";
    assert!(answers(By::Native, EventKind::PreToolUse, marked).is_stop());
}

#[test]
fn a_key_in_two_spellings_does_not_say_two_things() {
    for stdout in [
        r#"{"permissionDecision":"deny","permission_decision":"allow"}"#,
        r#"{"continue":false,"hook_specific_output":{"continue":true}}"#,
    ] {
        for by in [By::Native, By::AgentFile] {
            assert!(
                fails(by, EventKind::PreToolUse, stdout)
                    .ends_with("is given twice with different values"),
                "{stdout}"
            );
        }
    }
    let same = r#"{"decision":"deny","hook_specific_output":{"decision":"deny"}}"#;
    assert!(answers(By::Native, EventKind::PreToolUse, same).is_stop());
    let null = r#"{"permissionDecision":"deny","permission_decision":null}"#;
    assert!(answers(By::Native, EventKind::PreToolUse, null).is_stop());
}

#[test]
fn strict_output_never_turns_a_veto_into_consent() {
    let deny = r#"{"permission_decision":"deny"}"#;
    for by in [By::AgentFile, By::Strict, By::Native] {
        for kind in [
            EventKind::BeforeCompaction,
            EventKind::UserPromptSubmit,
            EventKind::ToolInputTransform,
        ] {
            assert!(answers(by, kind, deny).is_stop(), "{by:?} {kind:?}");
        }
    }
}
