//! A model service on loopback that is compatible with OpenAI's.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::stage::Test;

/// One request: path, key, body.
pub(crate) type Request = (String, String, Value);

/// A service that sends prepared answers. Dropping it ends it.
pub(crate) struct Service {
    _runtime: Runtime,
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone)]
struct ServiceState {
    answers: Arc<Mutex<VecDeque<String>>>,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Service {
    pub(crate) fn start(answers: impl IntoIterator<Item = String>) -> Self {
        let runtime = Runtime::new().unwrap();
        let seen = Arc::default();
        let state = ServiceState {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            seen: Arc::clone(&seen),
        };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/v1/", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(state);
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            _runtime: runtime,
            url,
            seen,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer(
    State(state): State<ServiceState>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let key = headers["authorization"].to_str().unwrap().to_owned();
    let body = serde_json::from_str(&body).unwrap();
    state
        .seen
        .lock()
        .unwrap()
        .push((uri.path().to_owned(), key, body));
    let text = state.answers.lock().unwrap().pop_front().unwrap();
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from(text))
        .unwrap()
}

/// Writes an answer as a stream of events.
pub(crate) fn stream(deltas: &[Value], finish: &str) -> String {
    let chunk = |delta: &Value, finish: Option<&str>| {
        json!({"id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut chunks: Vec<Value> = deltas.iter().map(|delta| chunk(delta, None)).collect();
    chunks.push(chunk(&json!({}), Some(finish)));
    chunks.push(json!({"id": "1", "choices": [],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}));
    let mut text = String::new();
    for chunk in chunks {
        writeln!(text, "data: {chunk}\n").unwrap();
    }
    text.push_str("data: [DONE]\n\n");
    text
}

fn tool_then_text() -> [String; 2] {
    let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
    let begin = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
        "function": {"name": "shell", "arguments": ""}}]});
    [
        stream(
            &[begin, call("{\"cmd\":"), call("\"echo hello\"}")],
            "tool_calls",
        ),
        stream(
            &[json!({"content": "It said "}), json!({"content": "hello."})],
            "stop",
        ),
    ]
}

#[test]
fn a_served_model_calls_a_tool_and_answers() {
    let service = Service::start(tool_then_text());
    let ran = Test::new()
        .args(["run", "say hello", "--no-journal", "--yes"])
        .args(["--model", "openai:gpt-4o", "--base-url", &service.url])
        .variable("OPENAI_API_KEY", "test")
        .hooks("hooks: [{event: post_tool_use, command: cat > seen.json}]")
        .run();
    let expected = "● shell echo hello\n    hello\nIt said hello.\n";
    assert_eq!(ran.all(), (expected, "", 0));
    let seen: Value = serde_json::from_str(&ran.file("seen.json")).unwrap();
    assert_eq!(seen["hook_event_name"], "post_tool_use");
    assert_eq!(seen["tool_use_id"], "c1");

    let requests = service.seen();
    assert_eq!(requests.len(), 2);
    for (path, key, body) in &requests {
        assert_eq!(
            (path.as_str(), key.as_str()),
            ("/v1/chat/completions", "Bearer test")
        );
        assert_eq!(
            (&body["model"], &body["stream"]),
            (&json!("gpt-4o"), &json!(true))
        );
    }
    let messages = requests[1].2["messages"].as_array().unwrap();
    let result = messages.last().unwrap();
    assert_eq!(
        (&result["role"], &result["tool_call_id"]),
        (&json!("tool"), &json!("c1"))
    );
    assert!(result["content"].to_string().contains("hello"), "{result}");
}

#[test]
fn the_usage_of_a_served_model_is_counted() {
    let service = Service::start(tool_then_text());
    let ran = Test::new()
        .args(["run", "say hello", "--no-journal", "--yes", "--json"])
        .args(["--model", "openai:gpt-4o", "--base-url", &service.url])
        .variable("OPENAI_API_KEY", "test")
        .run();
    let report = ran.json();
    assert_eq!(report["response"], "It said hello.");
    assert_eq!(
        json!([
            report["usage"]["input_tokens"],
            report["usage"]["output_tokens"]
        ]),
        json!([22, 14])
    );
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}
