//! Gemini CLI's own hooks, run here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::event::{
    BeforeLlmCall, PostToolUse, PreToolUse, SessionEnd, SessionEndReason, SessionSource,
    SessionStart, Stop, UserPromptSubmit,
};
use tenterhook_engine::{AnyEffect, AnyEvent, Dialect, Message, ReadError, Reply, ToolResult};
use tenterhook_systems::SYSTEMS;
use tenterhook_systems::settings_file::{HookSettings, SettingsEvent};

use crate::sent_any;

fn settings() -> &'static HookSettings {
    let system = SYSTEMS.iter().find(|system| system.name == "gemini");
    system.unwrap().settings.unwrap()
}

fn event(name: &str) -> &'static SettingsEvent {
    settings().event(name).unwrap()
}

fn dialect(name: &str) -> Arc<dyn Dialect> {
    (settings().dialect)(event(name), None)
}

fn written(name: &str, event: Arc<dyn AnyEvent>) -> Value {
    let bytes = dialect(name).write(&sent_any(event)).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Returns an event as the real agent sent it.
fn recorded(name: &str) -> Value {
    let path = format!("tests/it/hosts/gemini/{name}.json");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let recorded: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    recorded.get("input").unwrap().clone()
}

fn read(name: &str, status: i32, stdout: &str, stderr: &str) -> Result<AnyEffect, ReadError> {
    let reply = Reply::Exited {
        status,
        stdout: stdout.as_bytes(),
        stderr: stderr.as_bytes(),
        stdout_omitted: 0,
    };
    dialect(name).read(event(name).kind.info(), &reply, false)
}

#[test]
fn events_are_written_as_gemini_cli_writes_them() {
    let input = json!({ "command": "echo hello > out.txt" });
    let input = input.as_object().unwrap();
    let response =
        "<untrusted_context>\nOutput: (empty)\nProcess Group PGID: 7248\n</untrusted_context>";
    let events: [(&str, Arc<dyn AnyEvent>); 6] = [
        (
            "SessionStart",
            Arc::new(SessionStart::new(SessionSource::Startup)),
        ),
        ("BeforeAgent", Arc::new(UserPromptSubmit::new("do it"))),
        (
            "BeforeTool",
            Arc::new(PreToolUse::new("run_shell_command").with_tool_input(input.clone())),
        ),
        (
            "AfterTool",
            Arc::new(
                PostToolUse::new("run_shell_command")
                    .with_tool_input(input.clone())
                    .with_result(ToolResult::text(response)),
            ),
        ),
        (
            "AfterAgent",
            Arc::new(
                Stop::new()
                    .with_last_user_message("do it".to_owned())
                    .with_response("I will run it.\nAll done."),
            ),
        ),
        (
            "SessionEnd",
            Arc::new(SessionEnd::new(SessionEndReason::Quit)),
        ),
    ];
    for (name, event) in events {
        let mut expected = recorded(name);
        let mut found = written(name, event);
        let keys = |value: &Value| -> BTreeSet<String> {
            value.as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(keys(&found), keys(&expected), "{name}");
        // The person sees another text than the model.
        for pointer in [
            "/session_id",
            "/transcript_path",
            "/cwd",
            "/timestamp",
            "/tool_response/returnDisplay",
        ] {
            for value in [&mut expected, &mut found] {
                value.pointer_mut(pointer).map(Value::take);
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_request_to_the_model_has_its_messages() {
    let messages = vec![Message::system("be brief"), Message::user("do it")];
    let event = BeforeLlmCall::new()
        .with_model_id("google/gemini-2.5-pro")
        .with_messages(messages);
    let found = written("BeforeModel", Arc::new(event));
    let request = found.get("llm_request").unwrap();
    let expected = json!({
        "model": "google/gemini-2.5-pro",
        "messages": [
            { "role": "system", "content": "be brief" },
            { "role": "user", "content": "do it" },
        ],
        "config": {},
    });
    assert_eq!(*request, expected);
}

/// An event, an exit status, standard output, standard error, and the effect.
const EFFECTS: &str = r#"[
["BeforeTool", 0, "", "", {}],
["BeforeTool", 0, "{}", "", {}],
["BeforeTool", 0, "{\"decision\":\"allow\"}", "", {"permission": "allow"}],
["BeforeTool", 0, "{\"decision\":\"deny\",\"reason\":\"no\"}", "", {"permission": "deny"}],
["BeforeTool", 0, "{\"decision\":\"block\",\"reason\":\"no\"}", "", {"permission": "deny"}],
["BeforeTool", 0, "{\"decision\":\"ask\",\"reason\":\"sure?\"}", "", {"permission": "ask"}],
["BeforeTool", 1, "{\"decision\":\"deny\",\"reason\":\"no\"}", "", {"permission": "deny"}],
["BeforeTool", 3, "{\"decision\":\"deny\",\"reason\":\"no\"}", "", {"permission": "deny"}],
["BeforeTool", 0, "", "{\"decision\":\"deny\",\"reason\":\"no\"}", {"permission": "deny"}],
["BeforeTool", 2, "", "no", {"permission": "deny"}],
["BeforeTool", 2, "", "", {"permission": "deny"}],
["BeforeTool", 3, "", "no", {"permission": "deny"}],
["BeforeTool", 127, "", "not found", {"permission": "deny"}],
["BeforeTool", 0, "all is well", "", {"notices": ["all is well"]}],
["BeforeTool", 0, "", "a log line", {}],
["BeforeTool", 0, "{\"systemMessage\":\"look\"}", "", {"notices": ["look"]}],
["BeforeTool", 0, "{\"hookSpecificOutput\":{\"tool_input\":{\"command\":\"ls\"}}}", "", {"rewrite": {"tool_input": {"command": "ls"}}}],
["BeforeTool", 0, "{\"hookSpecificOutput\":{\"hookEventName\":\"BeforeTool\",\"tool_input\":{\"command\":\"ls\"}}}", "", {"rewrite": {"tool_input": {"command": "ls"}}}],
["BeforeTool", 0, "{\"continue\":false,\"stopReason\":\"enough\"}", "", {"stop_run": "enough"}],
["AfterTool", 0, "{\"decision\":\"deny\",\"reason\":\"hidden\"}", "", {"rewrite": {"content": [{"type": "text", "text": "hidden"}]}}],
["AfterTool", 2, "", "hidden", {"rewrite": {"content": [{"type": "text", "text": "hidden"}]}}],
["AfterTool", 0, "{\"hookSpecificOutput\":{\"additionalContext\":\"lint: ok\"}}", "", {"context": ["lint: ok"]}],
["AfterTool", 0, "{\"hookSpecificOutput\":{\"tailToolCallRequest\":{\"name\":\"x\"}}}", "", {"notices": ["`tailToolCallRequest` of a hook has no effect here"]}],
["BeforeAgent", 0, "{\"decision\":\"deny\",\"reason\":\"no\"}", "", {"block": "no"}],
["BeforeAgent", 0, "{\"hookSpecificOutput\":{\"hookEventName\":\"BeforeAgent\",\"additionalContext\":\"be brief\"}}", "", {"context": ["be brief"]}],
["AfterAgent", 0, "{\"decision\":\"deny\",\"reason\":\"run the tests\"}", "", {"follow_up": ["run the tests"]}],
["AfterAgent", 2, "", "run the tests", {"follow_up": ["run the tests"]}],
["SessionStart", 0, "{\"hookSpecificOutput\":{\"additionalContext\":\"hello\"}}", "", {"context": ["hello"]}],
["BeforeModel", 0, "{\"decision\":\"deny\",\"reason\":\"too expensive\"}", "", {"stop_run": "too expensive"}],
["BeforeToolSelection", 0, "{\"hookSpecificOutput\":{\"toolConfig\":{\"mode\":\"NONE\"}}}", "", {"rewrite": {"tools": []}}],
["BeforeToolSelection", 0, "{\"hookSpecificOutput\":{\"toolConfig\":{\"mode\":\"ANY\",\"allowedFunctionNames\":[\"run_shell_command\",\"mcp_x\"]}}}", "", {"rewrite": {"tools": ["shell", "mcp_x"]}}]
]"#;

#[test]
fn answers_are_read_as_gemini_cli_documents_them() {
    let table: Vec<(String, i32, String, String, Value)> = serde_json::from_str(EFFECTS).unwrap();
    for (name, status, stdout, stderr, expected) in table {
        let effect = read(&name, status, &stdout, &stderr);
        let effect = effect.unwrap_or_else(|error| unreachable!("{name} {stdout}: {error}"));
        let mut found = json!({});
        let mut set = |key: &str, value: Value| {
            let is_set = !matches!(&value, Value::Null) && value != json!([]) && value != json!({});
            if let (true, Some(found)) = (is_set, found.as_object_mut()) {
                found.insert(key.to_owned(), value);
            }
        };
        let permission = effect.permission.as_ref();
        set(
            "permission",
            json!(permission.map(|verdict| verdict.permission)),
        );
        set("block", json!(effect.block));
        set("stop_run", json!(effect.stop_run));
        set("context", json!(effect.context));
        set("follow_up", json!(effect.follow_up));
        set("notices", json!(effect.notices));
        set("rewrite", json!(effect.rewrite));
        assert_eq!(found, expected, "{name} {status} {stdout} {stderr}");
    }
}

#[test]
fn exit_status_1_is_a_documented_warning() {
    for (stdout, stderr) in [("", "oops"), ("oops", ""), ("", "")] {
        let error = read("BeforeTool", 1, stdout, stderr).unwrap_err();
        assert!(matches!(error, ReadError::Documented { status: 1, .. }));
    }
}

#[test]
fn answers_that_cannot_be_followed_are_failures() {
    for (name, status, stdout, problem) in [
        ("BeforeTool", 0, r#"{"decision":"deny""#, "EOF"),
        (
            "BeforeTool",
            0,
            r#"{"decision":"denied"}"#,
            "`decision` is `denied`",
        ),
        (
            "BeforeTool",
            0,
            r#"{"decison":"deny"}"#,
            "unknown key `decison`",
        ),
        (
            "BeforeTool",
            0,
            r#"{"decision":"deny","decision":"allow"}"#,
            "appears twice",
        ),
        (
            "BeforeTool",
            0,
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","tool_input":{}}}"#,
            "expected \"BeforeTool\"",
        ),
        ("BeforeTool", 3, "", "status 3"),
        (
            "BeforeModel",
            0,
            r#"{"hookSpecificOutput":{"llm_request":{"config":{"temperature":0}}}}"#,
            "`llm_request` is not supported here",
        ),
        (
            "AfterModel",
            0,
            r#"{"hookSpecificOutput":{"llm_response":{"candidates":[]}}}"#,
            "`llm_response` is not supported here",
        ),
    ] {
        let error = read(name, status, stdout, "").unwrap_err().to_string();
        assert!(error.contains(problem), "{stdout}: {error}");
    }
}
