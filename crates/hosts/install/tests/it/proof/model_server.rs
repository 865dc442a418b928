//! The scripted model service over HTTP, in the form of each API.

use serde_json::{Value, json};
use tenterhook_install::proof::model_server::{
    ModelScript, ModelServer, ScriptedAction, ScriptedTurn,
};
use tenterhook_systems::host::headless::{HeadlessRun, McpRun, ModelTool};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

static RUN: HeadlessRun = HeadlessRun {
    arguments: &[],
    variables: &[],
    files: &[],
    preparations: &[],
    plugin_package: None,
    shell: ModelTool {
        name: "Shell",
        arguments: r#"{"line": "{command}"}"#,
    },
    write: ModelTool {
        name: "patch",
        arguments: r#""add {path}: {content}""#,
    },
    mcp: Some(McpRun {
        entry: "",
        tool: ModelTool {
            name: "space/runner",
            arguments: r#"{"command": "{command}"}"#,
        },
    }),
    subagent: None,
};

async fn server(actions: Vec<ScriptedAction>) -> ModelServer {
    let turn = ScriptedTurn {
        text: "First.".to_owned(),
        actions,
    };
    let script = ModelScript {
        turns: vec![turn],
        final_text: "Last.".to_owned(),
        ..ModelScript::default()
    };
    ModelServer::start(script, &RUN).await.unwrap()
}

fn shell() -> Vec<ScriptedAction> {
    vec![ScriptedAction::Shell {
        command: "ls \"a b\"".to_owned(),
    }]
}

/// Sends a request and returns the body of the answer.
async fn post(server: &ModelServer, path: &str, body: &Value) -> String {
    let url = server.url();
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

async fn post_json(server: &ModelServer, path: &str, body: &Value) -> Value {
    serde_json::from_str(&post(server, path, body).await).unwrap()
}

/// Returns the data of the server-sent events in an answer.
fn events(answer: &str) -> Vec<Value> {
    let data = answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

fn has(events: &[Value], pointer: &str, value: &Value) -> bool {
    events
        .iter()
        .any(|event| event.pointer(pointer) == Some(value))
}

#[tokio::test]
async fn anthropic_requests_get_the_call_plain_and_streamed() {
    let offered = json!({ "tools": [{ "name": "Shell", "input_schema": {} }] });
    let plain = server(shell()).await;
    let answer = post_json(&plain, "/v1/messages", &offered).await;
    assert_eq!(answer["stop_reason"], "tool_use");
    assert_eq!(
        answer["content"][0],
        json!({ "type": "text", "text": "First." })
    );
    assert_eq!(
        answer["content"][1]["input"],
        json!({ "line": "ls \"a b\"" })
    );

    let streamed = server(shell()).await;
    let body = json!({ "stream": true, "tools": offered["tools"] });
    let events = events(&post(&streamed, "/v1/messages", &body).await);
    assert!(has(&events, "/type", &json!("message_start")));
    assert!(has(
        &events,
        "/delta/partial_json",
        &json!(r#"{"line":"ls \"a b\""}"#)
    ));
    assert!(has(&events, "/delta/stop_reason", &json!("tool_use")));
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[tokio::test]
async fn chat_requests_get_the_call_plain_and_streamed() {
    let offered = json!([{ "type": "function", "function": { "name": "Shell" } }]);
    let plain = server(shell()).await;
    let answer = post_json(&plain, "/v1/chat/completions", &json!({ "tools": offered })).await;
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let function = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "Shell");
    assert_eq!(function["arguments"], r#"{"line":"ls \"a b\""}"#);

    let streamed = server(shell()).await;
    let body = json!({ "stream": true, "tools": offered });
    let answer = post(&streamed, "/x/chat/completions", &body).await;
    assert!(answer.ends_with("data: [DONE]\n\n"));
    let events = events(&answer);
    let name = "/choices/0/delta/tool_calls/0/function/name";
    assert!(has(&events, name, &json!("Shell")));
    assert!(has(
        &events,
        "/choices/0/finish_reason",
        &json!("tool_calls")
    ));
}

#[tokio::test]
async fn responses_requests_get_calls_of_both_kinds() {
    let mut actions = shell();
    actions.push(ScriptedAction::Write {
        path: "/a".to_owned(),
        content: "b".to_owned(),
    });
    let server = server(actions).await;
    let tools =
        json!([{ "type": "function", "name": "Shell" }, { "type": "custom", "name": "patch" }]);
    let body = json!({ "stream": true, "tools": tools });
    let events = events(&post(&server, "/v1/responses", &body).await);
    let output = &events.last().unwrap()["response"]["output"];
    assert_eq!(output[0]["content"][0]["text"], "First.");
    assert_eq!(output[1]["type"], "function_call");
    assert_eq!(output[1]["arguments"], r#"{"line":"ls \"a b\""}"#);
    assert_eq!(output[2]["type"], "custom_tool_call");
    assert_eq!(output[2]["input"], "add /a: b");
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
    }
}

#[tokio::test]
async fn gemini_requests_get_the_call_in_each_form() {
    let body = json!({ "tools": [{ "functionDeclarations": [{ "name": "Shell" }] }] });
    let call = "/candidates/0/content/parts/1/functionCall/args/line";
    let line = json!("ls \"a b\"");

    let plain = post_json(
        &server(shell()).await,
        "/v1beta/models/m:generateContent",
        &body,
    )
    .await;
    assert_eq!(plain.pointer(call), Some(&line));
    let path = "/v1beta/models/m:streamGenerateContent";
    let list = post_json(&server(shell()).await, path, &body).await;
    assert_eq!(list[0].pointer(call), Some(&line));
    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let streamed = events(&post(&server(shell()).await, path, &body).await);
    assert!(has(&streamed, call, &line));
}

#[tokio::test]
async fn a_request_without_tools_uses_up_no_turn() {
    let server = server(shell()).await;
    let title = post_json(&server, "/v1/messages", &json!({ "messages": [] })).await;
    assert_eq!(title["content"][0]["text"], "ok");
    let other = json!({ "tools": [{ "name": "Read" }] });
    let side = post_json(&server, "/v1/messages", &other).await;
    assert_eq!(side["stop_reason"], "end_turn");
    assert_eq!(server.turns(), 0);

    let tools = json!({ "tools": [{ "name": "Shell" }] });
    post(&server, "/v1/messages", &tools).await;
    let last = post_json(&server, "/v1/messages", &tools).await;
    assert_eq!(last["content"][0]["text"], "Last.");
    assert_eq!(server.turns(), 2);
}

#[tokio::test]
async fn an_agent_that_never_ends_gets_an_error() {
    let server = server(shell()).await;
    let body = json!({ "tools": [{ "name": "Shell" }] });
    for _ in 0..100 {
        let answer = post_json(&server, "/v1/messages", &body).await;
        assert_eq!(answer["type"], "message");
    }
    let answer = post_json(&server, "/v1/messages", &body).await;
    assert_eq!(answer["type"], "error");
    assert_eq!(server.requests().len(), 100);
}

#[tokio::test]
async fn the_requests_show_what_the_model_saw() {
    let server = server(shell()).await;
    let body = json!({
        "tools": [{ "name": "Shell" }],
        "messages": [{ "role": "tool", "content": "denied: no secrets" }],
    });
    post(&server, "/v1/chat/completions", &body).await;
    assert!(server.was_shown("no secrets"));
    assert!(!server.was_shown("Shell"));
    assert_eq!(server.requests()[0].path, "/v1/chat/completions");
}

#[tokio::test]
async fn a_subagent_follows_turns_of_its_own_and_a_deferred_tool_is_called_in_its_namespace() {
    let turn = |action| ScriptedTurn {
        text: String::new(),
        actions: vec![action],
    };
    let script = ModelScript {
        turns: vec![turn(ScriptedAction::Mcp {
            command: "touch a".to_owned(),
        })],
        subagent_turns: vec![turn(ScriptedAction::Shell {
            command: "ls".to_owned(),
        })],
        prompt: "the main prompt".to_owned(),
        final_text: "Last.".to_owned(),
    };
    let server = ModelServer::start(script, &RUN).await.unwrap();
    let ask = async |prompt: &str| {
        let body = json!({ "input": prompt, "tools": [{ "type": "function", "name": "Shell" }] });
        let answer = post_json(&server, "/v1/responses", &body).await;
        answer["output"][0].clone()
    };
    assert_eq!(ask("a task").await["name"], "Shell");
    let call = ask("the main prompt").await;
    assert_eq!(
        (&call["namespace"], &call["name"]),
        (&json!("space"), &json!("runner"))
    );
    assert_eq!(
        ask("the main prompt, again").await["content"][0]["text"],
        "Last."
    );
    assert_eq!(server.turns(), 2);
}
