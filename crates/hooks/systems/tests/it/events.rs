//! The events that hooks receive: one golden line for each event that docker-agent documents.

use serde_json::{Value, json};
use tenterhook_engine::event::*;
use tenterhook_engine::{Event, Message, ToolCall, ToolResult, Usage};
use tenterhook_systems::docker_agent::{DockerAgent, EVENTS};
use tenterhook_systems::native::Native;

use crate::sent;

fn tool_input() -> tenterhook_engine::JsonObject {
    json!({ "cmd": "ls", "cwd": null })
        .as_object()
        .unwrap()
        .clone()
}

fn messages() -> Vec<Message> {
    let call = ToolCall::new("call_1", "shell", json!({ "cmd": "ls" }));
    vec![
        Message::user("hi"),
        Message::assistant("").with_tool_calls(vec![call]),
        Message::tool("call_1".into(), "a\nb\n", true),
    ]
}

/// Returns the name of the golden file and the text that is written for each event.
fn written() -> Vec<(&'static str, Value)> {
    fn write(event: impl Event) -> (&'static str, Value) {
        let name = EVENTS
            .iter()
            .find(|row| row.kind == event.info().kind)
            .unwrap()
            .name;
        let bytes = DockerAgent::agent_file().write(&sent(event)).unwrap();
        (name, serde_json::from_slice(&bytes).unwrap())
    }
    let error_result = ToolResult::error("exit status 1");
    vec![
        write(
            PreToolUse::new("shell")
                .with_tool_use_id("call_1")
                .with_tool_input(tool_input())
                .with_tool_category("shell"),
        ),
        write(
            PostToolUse::new("shell")
                .with_tool_use_id("call_1")
                .with_tool_input(tool_input())
                .with_result(error_result),
        ),
        write(PermissionRequest::new("shell").with_tool_input(tool_input())),
        write(SessionStart::default()),
        write(UserPromptSubmit::new("hi")),
        write(TurnStart::new().with_turn_index(3).with_started_at_ms(12)),
        write(TurnEnd::new().with_reason(TurnEndReason::Continue)),
        write(
            BeforeLlmCall::new()
                .with_model_id("openai/gpt-4o")
                .with_iteration(1)
                .with_messages(messages()),
        ),
        write(
            AfterLlmCall::new()
                .with_model_id("openai/gpt-4o")
                .with_response("hello")
                .with_last_user_message("hi")
                .with_usage(Usage::new(3, 2))
                .with_cost(0.0),
        ),
        write(SessionEnd::default()),
        write(PreCompact::new(CompactionSource::ToolOverflow)),
        write(SubagentStop::new("", "researcher", "child", "s1").with_result("done")),
        write(WaitingForUser::default()),
        write(Stop::new().with_response("hello")),
        write(Notification::new(NotificationLevel::Warning, "careful")),
        write(AgentError::new("broken")),
        write(MaxIterations::new(5)),
        write(
            BeforeCompaction::new(CompactionReason::Overflow)
                .with_input_tokens(120_000)
                .with_output_tokens(8000)
                .with_context_limit(200_000),
        ),
        write(AfterCompaction::new("short", CompactionReason::default()).with_input_tokens(9)),
    ]
}

#[test]
fn every_documented_event_is_written_as_its_golden_line_says() {
    let golden = include_str!("golden/agent_file.jsonl");
    let expected: Vec<Value> = golden
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let written = written();
    for ((name, value), expected) in written.iter().zip(&expected) {
        assert_eq!(value, expected, "{name}");
    }
    assert_eq!(written.len(), expected.len());
}

#[test]
fn the_golden_lines_cover_the_nineteen_documented_events_in_order() {
    let names: Vec<&str> = written().iter().map(|(name, _)| *name).collect();
    let documented: Vec<&str> = EVENTS.iter().take(19).map(|event| event.name).collect();
    assert_eq!(names, documented);
}

#[test]
fn an_empty_tool_response_is_written_and_an_absent_error_is_not() {
    let event = ToolResponseTransform::new("shell");
    let bytes = DockerAgent::agent_file().write(&sent(event)).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("tool_response"), Some(&json!("")));
    assert_eq!(value.get("tool_error"), None);
    assert_eq!(value.get("tool_input"), None);
}

#[test]
fn agent_files_get_html_escapes_and_native_hooks_do_not() {
    let event = UserPromptSubmit::new("a && b > c");
    let agent_file = DockerAgent::agent_file()
        .write(&sent(event.clone()))
        .unwrap();
    let native = Native::new().write(&sent(event)).unwrap();
    assert!(
        String::from_utf8(agent_file)
            .unwrap()
            .contains(r"a \u0026\u0026 b \u003e c")
    );
    assert!(String::from_utf8(native).unwrap().contains("a && b > c"));
}

#[test]
fn native_hooks_are_told_the_canonical_name_and_the_envelope() {
    let bytes = Native::new().write(&sent(MaxIterations::new(5))).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("hook_event_name"), Some(&json!("max_iterations")));
    assert_eq!(
        value.get("notification_message"),
        Some(&json!("Maximum iterations reached (5)"))
    );
    assert_eq!(value.get("sequence"), Some(&json!(7)));
    assert_eq!(value.get("invoked_by"), Some(&json!("main")));
}

#[test]
fn native_hooks_get_events_that_docker_agent_does_not_have() {
    let event = ToolExecutionStart::new("shell");
    let bytes = Native::new().write(&sent(event.clone())).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("tool_name"), Some(&json!("shell")));
    let refused = DockerAgent::agent_file().write(&sent(event)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the docker-agent dialect has no event `tool_execution_start`"
    );
}

#[test]
fn escapes_survive_the_echo_of_every_shell() {
    let event = UserPromptSubmit::new("a\n\t\"b\" \\ c\r");
    for dialect in [DockerAgent::agent_file(), Native::new()] {
        let bytes = dialect.write(&sent(event.clone())).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains(r"a\u000a\u0009\u0022b\u0022 \u005c c\u000d"),
            "{text}"
        );
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            value.get("prompt").and_then(Value::as_str),
            Some(event.prompt.as_str())
        );
    }
}

#[test]
fn native_hooks_get_the_whole_payload_of_the_catalogue() {
    let event = PostToolUse::new("shell")
        .with_blocked(true)
        .with_duration_ms(7);
    let bytes = Native::new().write(&sent(event.clone())).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("blocked"), Some(&json!(true)));
    assert_eq!(value.get("duration_ms"), Some(&json!(7)));
    let bytes = DockerAgent::agent_file().write(&sent(event)).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("blocked"), None);
}

#[test]
fn the_preempt_lane_is_told_its_public_name() {
    let event = ToolGuard::new("shell").with_tool_input(tool_input());
    let dialect = DockerAgent::preempt();
    let value: Value = serde_json::from_slice(&dialect.write(&sent(event)).unwrap()).unwrap();
    assert_eq!(value.get("hook_event_name"), Some(&json!("pre_tool_use")));
    let stdout = br#"{"hook_event_name":"pre_tool_use","permission_decision":"ask"}"#;
    let reply = tenterhook_engine::Reply::Exited {
        status: 0,
        stdout,
        stderr: b"",
        stdout_omitted: 0,
    };
    assert!(
        dialect
            .read(tenterhook_engine::EventKind::ToolGuard.info(), &reply, true)
            .is_ok()
    );
}

#[test]
fn a_switch_tells_the_models_of_the_leaving_agent_where_it_has_any() {
    // D-117
    let written = |event: AgentSwitch| -> Value {
        let bytes = DockerAgent::agent_file().write(&sent(event)).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    let switch = AgentSwitch::new("root", "helper", "handoff");
    let without = written(switch.clone());
    assert_eq!(without.get("from_agent"), Some(&json!("root")));
    assert_eq!(without.get("to_agent"), Some(&json!("helper")));
    assert_eq!(without.get("agent_switch_kind"), Some(&json!("handoff")));
    assert_eq!(without.get("from_agent_models"), None);
    let with = written(switch.with_from_agent_models(vec![
        AgentModel {
            provider: "dmr".to_owned(),
            model: "ai/qwen3".to_owned(),
            base_url: Some("http://localhost:12434/engines/v1".to_owned()),
            unload_api: None,
        },
        AgentModel {
            provider: "openai".to_owned(),
            model: "gpt-4o".to_owned(),
            ..AgentModel::default()
        },
    ]));
    let expected = json!([
        {"provider": "dmr", "model": "ai/qwen3", "base_url": "http://localhost:12434/engines/v1"},
        {"provider": "openai", "model": "gpt-4o"},
    ]);
    assert_eq!(with.get("from_agent_models"), Some(&expected));
    let from_nowhere = written(AgentSwitch::default());
    assert_eq!(from_nowhere.get("from_agent"), None);
    assert_eq!(from_nowhere.get("from_agent_models"), None);
}
