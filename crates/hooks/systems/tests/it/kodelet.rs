//! kodelet's contract: the events that its executables receive, and the effects of their answers.

mod process;

use serde_json::{Value, json};
use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop, TurnEnd, UserPromptSubmit};
use tenterhook_engine::{
    AnyEffect, Envelope, EventClass, EventId, EventKind, EventRef, InvokedBy, Message, OnError,
    Origin, Permission, ReadError, Reply, ToolResult,
};
use tenterhook_systems::kodelet::{EVENTS, Kodelet};

use crate::sent;

fn tool_input() -> tenterhook_engine::JsonObject {
    json!({ "cmd": "ls < a && echo \"x\"" })
        .as_object()
        .unwrap()
        .clone()
}

fn written(event: &EventRef) -> Value {
    let bytes = event.encoded(&*Kodelet::new()).unwrap();
    assert!(!bytes.ends_with(b"\n"));
    serde_json::from_slice(&bytes).unwrap()
}

fn used(result: ToolResult, blocked: bool) -> PostToolUse {
    PostToolUse::new("shell")
        .with_tool_use_id("call_1")
        .with_tool_input(tool_input())
        .with_tool_category("shell")
        .with_result(result)
        .with_duration_ms(3)
        .with_blocked(blocked)
}

// K-P8, K-P9, K-P10: every key of each event, and nothing else.
#[test]
fn every_event_is_written_with_its_keys() {
    let base = |name: &str, own: Value| {
        let mut object = json!({"event": name, "conv_id": "s1", "cwd": "/w", "invoked_by": "main"});
        let own = own.as_object().unwrap().clone();
        object.as_object_mut().unwrap().extend(own);
        object
    };
    let call = json!({
        "tool_name": "bash",
        "tool_input": { "command": "ls < a && echo \"x\"" },
        "tool_user_id": "call_1",
    });
    let pre = PreToolUse::new("shell")
        .with_tool_use_id("call_1")
        .with_tool_input(tool_input());
    assert_eq!(written(&sent(pre)), base("before_tool_call", call.clone()));
    let result =
        ToolResult::text("a\nb").with_details(json!({"exit_status": 0}).as_object().cloned());
    let mut after = base("after_tool_call", call);
    after["tool_output"] = json!({
        "toolName": "bash",
        "success": true,
        "metadataType": "bash",
        "metadata": {
            "command": "ls < a && echo \"x\"",
            "output": "a\nb",
            "executionTime": 3_000_000,
            "workingDir": "/w",
            "exitCode": 0,
        },
        "timestamp": "1970-01-01T00:00:00Z",
    });
    assert_eq!(written(&sent(used(result, false))), after);
    let prompt = UserPromptSubmit::new("hi");
    assert_eq!(
        written(&sent(prompt)),
        base("user_message_send", json!({"message": "hi"}))
    );
    let stop = Stop::new().with_messages(vec![Message::user("hi"), Message::assistant("done")]);
    let messages = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "done"},
    ]);
    assert_eq!(
        written(&sent(stop)),
        base("agent_stop", json!({ "messages": messages }))
    );
    let turn = TurnEnd::new()
        .with_turn_index(2)
        .with_turn_number(9)
        .with_response("done");
    assert_eq!(
        written(&sent(turn)),
        base("turn_end", json!({"response": "done", "turn_number": 3}))
    );
}

// K-P12: without messages, the list is empty.
#[test]
fn no_messages_are_an_empty_list() {
    assert_eq!(written(&sent(Stop::default()))["messages"], json!([]));
}

// K-H12: events of a subagent and of a recipe are marked.
#[test]
fn a_subagent_and_a_recipe_are_named() {
    let origin = Origin::default()
        .with_invoked_by(InvokedBy::Subagent)
        .with_recipe("compact");
    let envelope = Envelope::stamped(
        origin.into(),
        1,
        EventId::generate(),
        jiff::Timestamp::UNIX_EPOCH,
    );
    let event = EventRef::new(
        std::sync::Arc::new(UserPromptSubmit::default()),
        envelope.into(),
    );
    let written = written(&event);
    assert_eq!(written["invoked_by"], "subagent");
    assert_eq!(written["recipe_name"], "compact");
}

#[test]
fn a_text_survives_every_echo_and_is_escaped_as_kodelet_does() {
    let prompt = UserPromptSubmit::new("a\n\"<&>\u{2028}\\");
    let bytes = Kodelet::new().write(&sent(prompt)).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.contains(r"a\u000a\u0022\u003c\u0026\u003e\u2028\u005c"),
        "{text}"
    );
}

// K-H16: a blocked call is marked as blocked. A failed call has its error.
#[test]
fn a_blocked_and_a_failed_call_say_so() {
    let blocked =
        ToolResult::error("The tool call was rejected by a pre_tool_use hook. Reason: no sudo");
    let output = &written(&sent(used(blocked, true)))["tool_output"];
    assert_eq!(output["success"], false);
    assert_eq!(output["error"], "blocked by hook: no sudo");
    assert_eq!(output["metadataType"], "blocked");
    assert_eq!(
        output["metadata"],
        json!({"tool_name": "bash", "reason": "no sudo"})
    );
    let failed = used(ToolResult::error("no such file"), false).with_tool_category(None);
    let output = &written(&sent(failed))["tool_output"];
    assert_eq!(
        (&output["success"], &output["error"]),
        (&json!(false), &json!("no such file"))
    );
    assert_eq!(
        (&output["metadataType"], &output["metadata"]["output"]),
        (&json!("custom_tool"), &json!("no such file"))
    );
}

// K-H20: kodelet has no event for a turn without text.
#[test]
fn a_turn_without_text_is_no_turn_of_kodelet() {
    let has = |response: &str| {
        let turn = TurnEnd::new().with_response(response.to_owned());
        Kodelet::new().has_event(&sent(turn))
    };
    assert!(has("done") && !has(""));
    assert!(Kodelet::new().has_event(&sent(Stop::default())));
}

#[test]
fn an_event_of_another_system_cannot_be_written() {
    let event = sent(tenterhook_engine::event::SessionStart::default());
    assert!(Kodelet::new().write(&event).is_err());
}

#[test]
fn every_event_has_a_name_of_its_own() {
    for event in EVENTS {
        assert_eq!(Kodelet::event(event.name), Some(event));
    }
    assert_eq!(Kodelet::event("Turn_End"), None);
}

fn read(kind: EventKind, status: i32, stdout: &str, strict: bool) -> Result<AnyEffect, ReadError> {
    let reply = Reply::Exited {
        status,
        stdout: stdout.as_bytes(),
        stderr: b"broken\n",
        stdout_omitted: 0,
    };
    Kodelet::new().read(kind.info(), &reply, strict)
}

/// Describes the effect of an answer in a few words.
fn word(read: Result<AnyEffect, ReadError>) -> String {
    let effect = match read {
        Ok(effect) => effect,
        Err(error) => return format!("failure: {error}"),
    };
    if effect.is_empty() {
        return "nothing".to_owned();
    }
    if let Some(verdict) = &effect.permission {
        assert_eq!(verdict.permission, Permission::Deny);
        assert!(effect.rewrite.is_empty());
        return format!("blocked: {}", verdict.reason.as_deref().unwrap_or_default());
    }
    if let Some(reason) = &effect.block {
        return format!("blocked: {reason}");
    }
    if !effect.follow_up.is_empty() {
        return format!("follow-ups: {:?}", effect.follow_up);
    }
    Value::Object(effect.rewrite).to_string()
}

#[expect(clippy::too_many_lines, reason = "the table is the test")]
#[test]
fn an_answer_is_what_its_keys_say() {
    const PRE: EventKind = EventKind::PreToolUse;
    let cases: &[(&str, EventKind, i32, &str, &str)] = &[
        ("K-R1", PRE, 0, "", "nothing"),
        (
            "K-R2",
            PRE,
            0,
            r#"{"blocked":true,"reason":"r"}"#,
            "blocked: r",
        ),
        (
            "K-R2",
            EventKind::UserPromptSubmit,
            0,
            r#" {"blocked":true,"reason":"r"} "#,
            "blocked: r",
        ),
        (
            "K-R3",
            PRE,
            1,
            r#"{"blocked":true,"reason":"r"}"#,
            "failure: exited with status 1: broken",
        ),
        (
            "K-R3",
            PRE,
            2,
            r#"{"blocked":true,"reason":"r"}"#,
            "failure: exited with status 2: broken",
        ),
        (
            "K-R4",
            PRE,
            0,
            "{\"blocked\":true}\ndone",
            "failure: invalid hook output: trailing characters at line 2 column 1",
        ),
        (
            "K-R4",
            PRE,
            0,
            "log\n{\"blocked\":true}",
            "failure: invalid hook output: expected value at line 1 column 1",
        ),
        (
            "K-R4",
            PRE,
            0,
            "\u{feff}{\"blocked\":true}",
            "failure: invalid hook output: expected value at line 1 column 1",
        ),
        ("K-R5", PRE, 0, "\n", "nothing"),
        (
            "K-R6",
            PRE,
            0,
            r#"{"blocked":"true"}"#,
            "failure: invalid hook output: `blocked`: invalid type: string \"true\", expected a boolean",
        ),
        (
            "K-R6",
            PRE,
            0,
            "[]",
            "failure: invalid hook output: invalid type: sequence, expected one JSON object or nothing at line 1 column 0",
        ),
        (
            "K-R6",
            PRE,
            0,
            "\"x\"",
            "failure: invalid hook output: invalid type: string \"x\", expected one JSON object or nothing at line 1 column 3",
        ),
        ("K-R7", PRE, 0, "null", "nothing"),
        ("K-R7", PRE, 0, "{}", "nothing"),
        (
            "K-R8",
            PRE,
            0,
            r#"{"BLOCKED":true}"#,
            "failure: invalid hook output: unknown key `BLOCKED`: did you mean `blocked`?",
        ),
        ("K-R9", PRE, 0, r#"{"colour":"red","output":{}}"#, "nothing"),
        (
            "K-R10",
            PRE,
            0,
            r#"{"blocked":true,"blocked":false}"#,
            "failure: invalid hook output: the key `blocked` appears twice",
        ),
        ("K-R11", PRE, 0, r#"{"blocked":true}"#, "blocked: "),
        (
            "K-R12",
            PRE,
            0,
            r#"{"blocked":true,"input":{"x":1}}"#,
            "blocked: ",
        ),
        (
            "K-R13",
            PRE,
            0,
            r#"{"input":{"x":1}}"#,
            r#"{"whole_input":{"x":1}}"#,
        ),
        (
            "K-R14",
            PRE,
            0,
            r#"{"input":null,"blocked":false}"#,
            "nothing",
        ),
        (
            "",
            PRE,
            0,
            r#"{"input":"text"}"#,
            "failure: invalid hook output: `input` is not a JSON object",
        ),
        (
            "K-R15",
            EventKind::PostToolUse,
            0,
            r#"{"output":null}"#,
            "nothing",
        ),
        (
            "K-R16",
            EventKind::PostToolUse,
            0,
            r#"{"output":{"toolName":"shell","success":true,"metadataType":"bash","metadata":{"output":"safe"},"timestamp":"2026-01-01T00:00:00Z"}}"#,
            r#"{"content":[{"type":"text","text":"safe"}],"is_error":false}"#,
        ),
        (
            "K-R16",
            EventKind::PostToolUse,
            0,
            r#"{"output":{"toolName":"shell","success":true,"metadata":{"output":"safe"}}}"#,
            "failure: invalid hook output: `output.metadataType` is ``",
        ),
        (
            "",
            EventKind::PostToolUse,
            0,
            r#"{"output":{"toolName":"read","success":true,"metadataType":"file_read","metadata":{"lines":["a","b"]}}}"#,
            r#"{"content":[{"type":"text","text":"a\nb"}],"is_error":false}"#,
        ),
        (
            "",
            EventKind::PostToolUse,
            0,
            r#"{"output":{"toolName":"read","success":false,"error":"gone"}}"#,
            r#"{"content":[{"type":"text","text":"gone"}],"is_error":true}"#,
        ),
        (
            "K-R17",
            EventKind::PostToolUse,
            0,
            r#"{"output":{}}"#,
            "failure: invalid hook output: `output`: missing field `toolName`",
        ),
        (
            "K-R18",
            EventKind::PostToolUse,
            0,
            r#"{"output":{"toolName":"a","success":true,"timestamp":"noon"}}"#,
            "failure: invalid hook output: `output.timestamp` is `noon`",
        ),
        (
            "K-M13",
            EventKind::Stop,
            0,
            r#"{"follow_up_messages":["b",""," "]}"#,
            "follow-ups: [\"b\"]",
        ),
        (
            "",
            EventKind::Stop,
            0,
            r#"{"follow_up_messages":"b"}"#,
            "failure: invalid hook output: `follow_up_messages`: invalid type",
        ),
        ("", EventKind::TurnEnd, 0, r#"{"anything":1}"#, "nothing"),
        (
            "",
            EventKind::TurnEnd,
            0,
            "text",
            "failure: invalid hook output: expected",
        ),
    ];
    for (number, kind, status, stdout, expected) in cases {
        let found = word(read(*kind, *status, stdout, false));
        let is_expected =
            found == *expected || (expected.starts_with("failure") && found.starts_with(expected));
        assert!(is_expected, "{number} {stdout}: {found}");
    }
}

#[test]
fn strict_output_takes_the_keys_of_the_event_only() {
    let strict = |stdout: &str| word(read(EventKind::PreToolUse, 0, stdout, true));
    assert_eq!(strict(r#"{"blocked":true}"#), "blocked: ");
    for key in ["colour", "output"] {
        let found = strict(&json!({ key: 1 }).to_string());
        assert!(
            found.contains("expected one of `blocked`, `reason`, `input`"),
            "{found}"
        );
    }
}

#[test]
fn a_failing_gate_blocks_and_a_failing_observer_warns() {
    for event in EVENTS {
        let info = event.kind.info();
        let expected = match info.class {
            EventClass::Gate => OnError::Block,
            EventClass::Observer => OnError::Warn,
        };
        assert_eq!(
            Kodelet::new().policy(info, None).on_error,
            expected,
            "{}",
            event.name
        );
        let configured = Kodelet::new().policy(info, Some(OnError::Ignore));
        assert_eq!(configured.on_error, OnError::Ignore);
    }
}
