//! The contract of kodelet's extensions: the events that they receive, and the effects of their answers.

use serde_json::{Value, json};
use tenterhook_engine::event::{
    AgentStart, BeforeAgentStart, PostToolUse, PreToolUse, ResourcesDiscover, SessionEnd,
    SessionStart, Stop, ToolExecutionUpdate, TurnEnd, TurnStart, UserInput,
};
use tenterhook_engine::{
    EventClass, EventKind, EventRef, InvokedBy, Message, OnError, Origin, Reply, ToolResult,
};
use tenterhook_systems::kodelet::extension::{EVENTS, KodeletExtension};

use crate::sent;

fn input() -> tenterhook_engine::JsonObject {
    json!({ "cmd": "ls" }).as_object().unwrap().clone()
}

fn start(system_prompt: &str) -> EventRef {
    sent(BeforeAgentStart::new("do it").with_system_prompt(system_prompt.to_owned()))
}

fn call() -> EventRef {
    sent(
        PreToolUse::new("shell")
            .with_tool_use_id("call_1")
            .with_tool_input(input()),
    )
}

fn result() -> EventRef {
    sent(
        PostToolUse::new("read_file")
            .with_tool_use_id("call_1")
            .with_tool_input(input())
            .with_result(ToolResult::text("secret")),
    )
}

fn update() -> EventRef {
    sent(ToolExecutionUpdate::new("shell", ToolResult::text("so far")).with_tool_use_id("call_1"))
}

fn message(text: &str) -> EventRef {
    sent(UserInput::new(text.to_owned()))
}

fn turn(response: &str) -> EventRef {
    sent(
        TurnEnd::new()
            .with_turn_index(2)
            .with_response(response.to_owned()),
    )
}

fn stop() -> EventRef {
    sent(Stop::new().with_messages(vec![Message::user("hi")]))
}

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
    let turn_start = sent(TurnStart::new().with_turn_index(1));
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
        ("agent.start", sent(AgentStart::new()), json!({})),
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
    let origin = Origin::default()
        .with_invoked_by(InvokedBy::Subagent)
        .with_recipe("tidy");
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
    let event = sent(tenterhook_engine::event::AgentEnd::default());
    let error = KodeletExtension::new().write(&event).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the kodelet-extension dialect has no event `agent_end`"
    );
}

/// Returns the result of an answer: the effect as JSON, or the failure.
fn came_to(event: &EventRef, answer: &str, strict: bool) -> Value {
    let reply = Reply::Returned {
        json: answer.as_bytes(),
    };
    match KodeletExtension::new().read_answer(event, &reply, strict) {
        Ok(effect) => serde_json::to_value(effect).unwrap(),
        Err(error) => error.to_string().into(),
    }
}

// E3, E13, E14, E20: the effect of each key.
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

// E12: these include answers to `tool.update`.
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
            "the key `block` appears twice",
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
            "answer `tool.result` with it",
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
        "invalid hook output: unknown key `output`, expected one of `block`, `input`"
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
