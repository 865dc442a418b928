//! The contract of kodelet's extensions: what they are sent, and what is read of their answers.

use serde_json::{Value, json};
use tenterhook::event::{
    AgentStart, BeforeAgentStart, PostToolUse, PreToolUse, ResourcesDiscover, SessionEnd,
    SessionStart, Stop, ToolExecutionUpdate, TurnEnd, TurnStart, UserInput,
};
use tenterhook::{
    EventClass, EventKind, EventRef, InvokedBy, Message, OnError, Origin, Reply, ToolResult,
};
use tenterhook_dialects::kodelet_extension::{EVENTS, KodeletExtension};

use crate::sent;

fn input() -> tenterhook::JsonObject {
    json!({ "cmd": "ls" }).as_object().unwrap().clone()
}

fn start(system_prompt: &str) -> EventRef {
    sent(BeforeAgentStart {
        prompt: "do it".to_owned(),
        images: None,
        system_prompt: system_prompt.to_owned(),
    })
}

fn call() -> EventRef {
    sent(PreToolUse {
        tool_use_id: "call_1".into(),
        tool_name: "shell".to_owned(),
        tool_input: input(),
        ..PreToolUse::default()
    })
}

fn result() -> EventRef {
    sent(PostToolUse {
        tool_use_id: "call_1".into(),
        tool_name: "read_file".to_owned(),
        tool_input: input(),
        result: ToolResult::text("secret"),
        ..PostToolUse::default()
    })
}

fn update() -> EventRef {
    sent(ToolExecutionUpdate {
        tool_use_id: "call_1".into(),
        tool_name: "shell".to_owned(),
        partial_result: ToolResult::text("so far"),
    })
}

fn message(text: &str) -> EventRef {
    sent(UserInput {
        text: text.to_owned(),
        ..UserInput::default()
    })
}

fn turn(response: &str) -> EventRef {
    sent(TurnEnd {
        turn_index: 2,
        response: response.to_owned(),
        ..TurnEnd::default()
    })
}

fn stop() -> EventRef {
    sent(Stop {
        messages: vec![Message::user("hi")].into(),
        ..Stop::default()
    })
}

#[expect(clippy::too_many_lines, reason = "the table is the test")]
#[test]
fn every_event_is_written_with_its_payload() {
    let output = |text: &str| {
        json!({
            "toolName": "file_read",
            "success": true,
            "metadataType": "custom_tool",
            "metadata": { "executionTime": 0, "output": text },
            "timestamp": "1970-01-01T00:00:00Z",
        })
    };
    let mut so_far = output("so far");
    so_far["toolName"] = "bash".into();
    let turn_start = sent(TurnStart {
        turn_index: 1,
        ..TurnStart::default()
    });
    let cases = [
        ("session.start", sent(SessionStart::default()), json!({})),
        (
            "resources.discover",
            sent(ResourcesDiscover::default()),
            json!({}),
        ),
        ("user.message", message("hi"), json!({ "message": "hi" })),
        (
            "agent.init",
            start("Be good."),
            json!({ "systemPrompt": "Be good." }),
        ),
        ("agent.start", sent(AgentStart {}), json!({})),
        ("turn.start", turn_start, json!({ "turnNumber": 2 })),
        (
            "tool.call",
            call(),
            json!({ "tool": { "name": "bash", "callId": "call_1", "input": { "command": "ls" } } }),
        ),
        (
            "tool.update",
            update(),
            json!({ "tool": { "name": "bash", "callId": "call_1", "input": null, "output": so_far } }),
        ),
        (
            "tool.result",
            result(),
            json!({ "tool": {
                "name": "file_read", "callId": "call_1", "input": input(), "output": output("secret"),
            } }),
        ),
        (
            "turn.end",
            turn("done"),
            json!({ "response": "done", "turnNumber": 3 }),
        ),
        (
            "agent.end",
            stop(),
            json!({ "messages": [{ "role": "user", "content": "hi" }] }),
        ),
        ("session.end", sent(SessionEnd::default()), json!({})),
    ];
    let names: Vec<&str> = cases.iter().map(|(name, ..)| *name).collect();
    assert_eq!(
        names,
        EVENTS.iter().map(|event| event.name).collect::<Vec<_>>()
    );
    for (name, event, payload) in cases {
        let bytes = event.encoded(&*KodeletExtension::new()).unwrap();
        let written: Value = serde_json::from_slice(&bytes).unwrap();
        let expected = json!({
            "id": format!("evt_{}", event.envelope().event_id()),
            "event": name,
            "context": {
                "sessionId": "s1", "conversationId": "s1", "cwd": "/w", "invokedBy": "main",
            },
            "payload": payload,
        });
        assert_eq!(written, expected, "{name}");
        assert_eq!(
            event.info().kind,
            KodeletExtension::event(name).unwrap().kind
        );
    }
}

#[test]
fn what_is_not_known_of_a_call_is_left_out() {
    let origin = Origin {
        invoked_by: InvokedBy::Subagent,
        recipe: Some("tidy".to_owned()),
        ..Origin::default()
    };
    let context = Value::Object(KodeletExtension::context(&origin));
    assert_eq!(context["recipeName"], "tidy");
    assert_eq!(context["invokedBy"], "subagent");
    assert_eq!(context.get("cwd"), None);
}

#[test]
fn a_turn_whose_answer_is_blank_is_none_of_kodelets() {
    let dialect = KodeletExtension::new();
    assert!(!dialect.has_event(&turn(" \n")));
    assert!(dialect.has_event(&turn("x")));
}

#[test]
fn an_event_that_kodelet_does_not_have_cannot_be_written() {
    let event = sent(tenterhook::event::AgentEnd::default());
    let error = KodeletExtension::new().write(&event).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kodelet-extension dialect has no event `agent_end`"
    );
}

/// Says what an answer came to: the effect as JSON, or the failure.
fn came_to(event: &EventRef, answer: &str, strict: bool) -> Value {
    let reply = Reply {
        status: 0,
        stdout: answer.as_bytes(),
        stderr: b"",
        stdout_omitted: 0,
    };
    match KodeletExtension::new().read_answer(event, &reply, strict) {
        Ok(effect) => serde_json::to_value(effect).unwrap(),
        Err(error) => error.to_string().into(),
    }
}

// E3, E13, E14, E20: what each key comes to.
#[expect(clippy::too_many_lines, reason = "the table is the test")]
#[test]
fn an_answer_does_what_its_keys_say() {
    let redacted = r#"{"output":{"toolName":"read_file","success":true,"metadataType":"custom_tool","metadata":{"output":"***"}}}"#;
    let deny = |reason: &str| json!({ "permission": { "permission": "deny", "reason": reason } });
    let prompt = |text: &str| json!({ "rewrite": { "system_prompt": text } });
    let cases = [
        (call(), "null", json!({})),
        (call(), "{}", json!({})),
        (call(), r#"{"block":{"reason":"no"}}"#, deny("no")),
        (call(), r#"{"block":{}}"#, deny("")),
        (call(), r#"{"block":null}"#, json!({})),
        (
            call(),
            r#"{"block":{"reason":"no"},"input":{"cmd":"x"}}"#,
            deny("no"),
        ),
        (
            call(),
            r#"{"input":{"cmd":"ls -h"}}"#,
            json!({ "rewrite": { "whole_input": { "cmd": "ls -h" } } }),
        ),
        (call(), r#"{"input":null}"#, json!({})),
        (
            message("hi"),
            r#"{"block":{"reason":"no"}}"#,
            json!({ "block": "no" }),
        ),
        (
            message("hi"),
            r#"{"message":"ho"}"#,
            json!({ "rewrite": { "text": "ho" } }),
        ),
        (
            message("hi"),
            r#"{"message":""}"#,
            json!({ "rewrite": { "text": "" } }),
        ),
        (message("hi"), r#"{"message":null}"#, json!({})),
        (
            start("old"),
            r#"{"systemPrompt":{"replace":"new"}}"#,
            prompt("new"),
        ),
        (
            start("old"),
            r#"{"systemPrompt":{"replace":""}}"#,
            prompt(""),
        ),
        (
            start("old"),
            r#"{"systemPrompt":{"prepend":"A"}}"#,
            prompt("A\nold"),
        ),
        (
            start("old"),
            r#"{"systemPrompt":{"append":"Z"}}"#,
            prompt("old\nZ"),
        ),
        (start(""), r#"{"systemPrompt":{"append":"Z"}}"#, prompt("Z")),
        (
            start("old"),
            r#"{"systemPrompt":{"append":"Z","prepend":"A","replace":"new"}}"#,
            prompt("A\nnew\nZ"),
        ),
        (
            start("old"),
            r#"{"systemPrompt":{"prepend":null}}"#,
            json!({}),
        ),
        (
            start("old"),
            r#"{"tools":{"disable":[" bash ","b","bash",""],"enable":["c","a","c"]}}"#,
            json!({ "collect": { "disabled_tools": ["shell", "b"], "enabled_tools": ["c", "a"] } }),
        ),
        (
            result(),
            redacted,
            json!({ "rewrite": { "content": [{ "type": "text", "text": "***" }], "is_error": false } }),
        ),
        (result(), r#"{"output":null}"#, json!({})),
        (
            stop(),
            r#"{"followUpMessages":["go on"," ","and on"]}"#,
            json!({ "follow_up": ["go on", "and on"] }),
        ),
        (turn("x"), r#"{"message":"x","anything":1}"#, json!({})),
    ];
    for (event, answer, expected) in cases {
        let expected: Value = expected;
        assert_eq!(came_to(&event, answer, false), expected, "{answer}");
    }
}

// E12: among them what `tool.update` is answered.
#[test]
fn an_answer_that_cannot_be_meant_so_is_a_failure() {
    let cases = [
        (call(), "[]", "expected one JSON object or nothing"),
        (
            call(),
            r#"{"block":true}"#,
            "`block`: invalid type: boolean",
        ),
        (
            call(),
            r#"{"Block":{}}"#,
            "unknown key `Block`: did you mean `block`?",
        ),
        (
            call(),
            r#"{"block":{},"block":null}"#,
            "the key `block` is there twice",
        ),
        (call(), r#"{"input":"ls"}"#, "`input` is not a JSON object"),
        (message("hi"), r#"{"message":1}"#, "`message`: invalid type"),
        (
            result(),
            r#"{"output":{}}"#,
            "`output`: missing field `toolName`",
        ),
        (
            update(),
            r#"{"output":{"toolName":"x","success":true}}"#,
            "answer it to `tool.result`",
        ),
    ];
    for (event, answer, problem) in cases {
        let came_to = came_to(&event, answer, false);
        assert!(
            came_to.as_str().unwrap().contains(problem),
            "{answer}: {came_to}"
        );
    }
    let strict = came_to(&call(), r#"{"output":{}}"#, true);
    assert_eq!(
        strict,
        "invalid hook output: unknown key `output`, expected some of `block`, `input`"
    );
}

#[test]
fn a_gate_that_fails_blocks_unless_it_is_configured_otherwise() {
    let dialect = KodeletExtension::new();
    for event in EVENTS {
        let info = event.kind.info();
        let expected = match info.class {
            EventClass::Gate => OnError::Block,
            EventClass::Observer => OnError::Warn,
        };
        assert_eq!(
            dialect.policy(info, None).on_error,
            expected,
            "{}",
            event.name
        );
        assert_eq!(
            dialect.policy(info, Some(OnError::Warn)).on_error,
            OnError::Warn
        );
    }
    let gates = [EventKind::UserInput, EventKind::PreToolUse];
    let are_gates = gates
        .iter()
        .all(|kind| kind.info().class == EventClass::Gate);
    assert!(are_gates);
}
