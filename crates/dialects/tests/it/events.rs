//! What hooks are sent: one golden line for each event that docker-agent documents.

use serde_json::{Value, json};
use tenterhook::event::*;
use tenterhook::{Event, Message, ToolCall, ToolResult, Usage};
use tenterhook_dialects::docker_agent::{DockerAgent, EVENTS};

use crate::sent;

fn tool_input() -> tenterhook::JsonObject {
    json!({ "cmd": "ls", "cwd": null })
        .as_object()
        .unwrap()
        .clone()
}

fn messages() -> Vec<Message> {
    let call = ToolCall {
        id: "call_1".into(),
        name: "shell".to_owned(),
        arguments: json!({ "cmd": "ls" }),
    };
    vec![
        Message::user("hi"),
        Message {
            tool_calls: vec![call],
            ..Message::assistant("")
        },
        Message::tool("call_1".into(), "a\nb\n", true),
    ]
}

#[expect(clippy::too_many_lines, reason = "the table is the test")]
/// Returns the golden file's name and what is written for each event.
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
    let (tool_use_id, tool_name) = (|| "call_1".into(), || "shell".to_owned());
    let error_result = ToolResult::error("exit status 1");
    vec![
        write(PreToolUse {
            tool_use_id: tool_use_id(),
            tool_name: tool_name(),
            tool_input: tool_input(),
            tool_category: Some("shell".to_owned()),
            ..PreToolUse::default()
        }),
        write(PostToolUse {
            tool_use_id: tool_use_id(),
            tool_name: tool_name(),
            tool_input: tool_input(),
            result: error_result,
            ..PostToolUse::default()
        }),
        write(PermissionRequest {
            tool_name: tool_name(),
            tool_input: tool_input(),
            ..PermissionRequest::default()
        }),
        write(SessionStart::default()),
        write(UserPromptSubmit {
            prompt: "hi".to_owned(),
        }),
        write(TurnStart {
            turn_index: 3,
            started_at_ms: 12,
        }),
        write(TurnEnd {
            reason: TurnEndReason::Continue,
            ..TurnEnd::default()
        }),
        write(BeforeLlmCall {
            model_id: "openai/gpt-4o".to_owned(),
            iteration: 1,
            messages: messages().into(),
        }),
        write(AfterLlmCall {
            model_id: "openai/gpt-4o".to_owned(),
            response: "hello".to_owned(),
            last_user_message: Some("hi".to_owned()),
            usage: Some(Usage {
                input_tokens: 3,
                output_tokens: 2,
                ..Usage::default()
            }),
            cost: Some(0.0),
        }),
        write(SessionEnd::default()),
        write(PreCompact {
            source: CompactionSource::ToolOverflow,
            custom_instructions: None,
        }),
        write(SubagentStop {
            label: "researcher".to_owned(),
            result: "done".to_owned(),
            child_session_id: "child".into(),
            parent_session_id: "s1".into(),
            ..SubagentStop::default()
        }),
        write(WaitingForUser::default()),
        write(Stop {
            response: "hello".to_owned(),
            ..Stop::default()
        }),
        write(Notification {
            level: NotificationLevel::Warning,
            message: "careful".to_owned(),
            ..Notification::default()
        }),
        write(AgentError {
            error: "broken".to_owned(),
            retryable: false,
        }),
        write(MaxIterations { limit: 5 }),
        write(BeforeCompaction {
            input_tokens: 120_000,
            output_tokens: 8000,
            context_limit: Some(200_000),
            reason: CompactionReason::Overflow,
            ..BeforeCompaction::default()
        }),
        write(AfterCompaction {
            summary: "short".to_owned(),
            input_tokens: 9,
            ..AfterCompaction::default()
        }),
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
    let event = ToolResponseTransform {
        tool_name: "shell".to_owned(),
        ..ToolResponseTransform::default()
    };
    let bytes = DockerAgent::agent_file().write(&sent(event)).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("tool_response"), Some(&json!("")));
    assert_eq!(value.get("tool_error"), None);
    assert_eq!(value.get("tool_input"), None);
}

#[test]
fn agent_files_get_html_escapes_and_native_hooks_do_not() {
    let event = UserPromptSubmit {
        prompt: "a && b > c".to_owned(),
    };
    let agent_file = DockerAgent::agent_file()
        .write(&sent(event.clone()))
        .unwrap();
    let native = DockerAgent::native().write(&sent(event)).unwrap();
    assert!(
        String::from_utf8(agent_file)
            .unwrap()
            .contains(r"a \u0026\u0026 b \u003e c")
    );
    assert!(String::from_utf8(native).unwrap().contains("a && b > c"));
}

#[test]
fn native_hooks_are_told_the_canonical_name_and_the_envelope() {
    let bytes = DockerAgent::native()
        .write(&sent(MaxIterations { limit: 5 }))
        .unwrap();
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
    let event = ToolExecutionStart {
        tool_name: "shell".to_owned(),
        ..ToolExecutionStart::default()
    };
    let bytes = DockerAgent::native().write(&sent(event.clone())).unwrap();
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
    let event = UserPromptSubmit {
        prompt: "a\n\t\"b\" \\ c\r".to_owned(),
    };
    for dialect in [DockerAgent::agent_file(), DockerAgent::native()] {
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
    let event = PostToolUse {
        tool_name: "shell".to_owned(),
        blocked: true,
        duration_ms: 7,
        ..PostToolUse::default()
    };
    let bytes = DockerAgent::native().write(&sent(event.clone())).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("blocked"), Some(&json!(true)));
    assert_eq!(value.get("duration_ms"), Some(&json!(7)));
    let bytes = DockerAgent::agent_file().write(&sent(event)).unwrap();
    let value: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(value.get("blocked"), None);
}

#[test]
fn the_preempt_lane_is_told_its_public_name() {
    let event = ToolGuard {
        tool_name: "shell".to_owned(),
        tool_input: tool_input(),
        ..ToolGuard::default()
    };
    let dialect = DockerAgent::preempt();
    let value: Value = serde_json::from_slice(&dialect.write(&sent(event)).unwrap()).unwrap();
    assert_eq!(value.get("hook_event_name"), Some(&json!("pre_tool_use")));
    let stdout = br#"{"hook_event_name":"pre_tool_use","permission_decision":"ask"}"#;
    let reply = tenterhook::Reply {
        status: 0,
        stdout,
        stderr: b"",
        stdout_omitted: 0,
    };
    assert!(
        dialect
            .read(tenterhook::EventKind::ToolGuard.info(), &reply, true)
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
    let switch = AgentSwitch {
        from_agent: "root".to_owned(),
        to_agent: "helper".to_owned(),
        kind: "handoff".to_owned(),
        from_agent_models: Vec::new(),
    };
    let without = written(switch.clone());
    assert_eq!(without.get("from_agent"), Some(&json!("root")));
    assert_eq!(without.get("to_agent"), Some(&json!("helper")));
    assert_eq!(without.get("agent_switch_kind"), Some(&json!("handoff")));
    assert_eq!(without.get("from_agent_models"), None);
    let with = written(AgentSwitch {
        from_agent_models: vec![
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
        ],
        ..switch
    });
    let expected = json!([
        {"provider": "dmr", "model": "ai/qwen3", "base_url": "http://localhost:12434/engines/v1"},
        {"provider": "openai", "model": "gpt-4o"},
    ]);
    assert_eq!(with.get("from_agent_models"), Some(&expected));
    let from_nowhere = written(AgentSwitch::default());
    assert_eq!(from_nowhere.get("from_agent"), None);
    assert_eq!(from_nowhere.get("from_agent_models"), None);
}
