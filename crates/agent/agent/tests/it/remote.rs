//! Models of a service on loopback: streams, tool calls, retries and broken connections.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tenterhook_agent::{Agent, AgentConfig, CancellationToken, RetryPolicy, RunEnd};
use tenterhook_engine::event::MessageUpdate;
use tenterhook_providers::{
    Endpoint, ModelChoice, ModelEvent, ModelId, ModelRequest, Provider, ProviderError,
};
use tokio::net::TcpListener;

use crate::stage::{Stage, tool_texts};

/// How the service answers one request.
pub(crate) enum Act {
    Stream(Vec<String>),
    /// The connection breaks in the middle of the transfer, after these lines.
    Break(Vec<String>),
    /// The stream ends after these lines, although the answer is incomplete.
    Stop(Vec<String>),
    Status(StatusCode, &'static str, &'static str),
    /// A refusal with a cookie.
    Cookie,
    /// A redirect to another address.
    Elsewhere(String),
    /// The service never answers.
    Hang,
}

#[derive(Clone, Default)]
pub(crate) struct Service {
    acts: Arc<Mutex<VecDeque<Act>>>,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    keys: Arc<Mutex<Vec<String>>>,
    headers: Arc<Mutex<Vec<HeaderMap>>>,
    pub(crate) reached: CancellationToken,
    shown: CancellationToken,
}

impl Service {
    pub(crate) async fn start(acts: impl IntoIterator<Item = Act>) -> (Self, String) {
        let service = Self {
            acts: Arc::new(Mutex::new(acts.into_iter().collect())),
            ..Self::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (service, format!("http://{address}/v1"))
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.requests
            .lock()
            .unwrap()
            .iter()
            .map(|(_, body)| body.clone())
            .collect()
    }

    /// Returns the values of a header, one for each request that has it.
    pub(crate) fn headers(&self, name: &str) -> Vec<String> {
        let requests = self.headers.lock().unwrap();
        let values = requests.iter().filter_map(|headers| headers.get(name));
        values
            .map(|value| value.to_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(path, _)| path.clone()).collect()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        self.keys.lock().unwrap().clone()
    }
}

async fn answer(
    State(service): State<Service>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let key = headers
        .get("authorization")
        .or_else(|| headers.get("x-api-key"));
    service.keys.lock().unwrap().push(
        key.map(|key| key.to_str().unwrap().to_owned())
            .unwrap_or_default(),
    );
    service.headers.lock().unwrap().push(headers.clone());
    let request = (
        uri.path().to_owned(),
        serde_json::from_slice(&body).unwrap(),
    );
    service.requests.lock().unwrap().push(request);
    service.reached.cancel();
    let act = service.acts.lock().unwrap().pop_front().unwrap();
    let response = Response::builder().header("content-type", "text/event-stream");
    match act {
        Act::Stream(lines) | Act::Stop(lines) => response
            .body(Body::from_stream(stream::iter(
                lines.into_iter().map(Ok::<_, std::io::Error>),
            )))
            .unwrap(),
        Act::Break(lines) => {
            let must_wait = !lines.is_empty();
            let broken = async move {
                if must_wait {
                    service.shown.cancelled().await;
                }
                Err(std::io::Error::other("cut"))
            };
            let lines = stream::iter(lines.into_iter().map(Ok));
            response
                .body(Body::from_stream(lines.chain(stream::once(broken))))
                .unwrap()
        }
        Act::Status(status, wait, body) => {
            let response = Response::builder()
                .status(status)
                .header("content-type", "application/json");
            response
                .header("retry-after-ms", wait)
                .body(Body::from(body))
                .unwrap()
        }
        Act::Cookie => Response::builder()
            .status(StatusCode::BAD_REQUEST)
            .header("set-cookie", "session=canary")
            .body(Body::from("no"))
            .unwrap(),
        Act::Elsewhere(url) => Response::builder()
            .status(StatusCode::TEMPORARY_REDIRECT)
            .header("location", url)
            .body(Body::empty())
            .unwrap(),
        Act::Hang => response
            .body(Body::from_stream(stream::pending::<
                Result<String, std::io::Error>,
            >()))
            .unwrap(),
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn delta(delta: impl Into<Value>) -> String {
    let delta = delta.into();
    data(
        &json!({"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
    )
}

pub(crate) fn say(texts: &[&str]) -> Vec<String> {
    texts
        .iter()
        .map(|text| delta(json!({"content": text})))
        .collect()
}

pub(crate) fn finish(mut lines: Vec<String>, reason: &str) -> Act {
    lines.push(data(
        &json!({"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
    ));
    lines.push(data(&json!({"id": "1", "choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}})));
    lines.push("data: [DONE]\n\n".to_owned());
    Act::Stream(lines)
}

pub(crate) async fn open(
    stage: &Stage,
    model: &str,
    acts: impl IntoIterator<Item = Act>,
) -> (Service, Agent) {
    let (service, url) = Service::start(acts).await;
    let choice: ModelChoice = model.parse().unwrap();
    let endpoint = Endpoint {
        base_url: Some(url),
        api_key: Some("canary".to_owned()),
        ..Endpoint::default()
    };
    let retry = RetryPolicy {
        first_pause: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let provider = choice.open(endpoint).unwrap();
    let agent = AgentConfig {
        model: Some(provider),
        cwd: stage.path().into(),
        retry,
        frontend: Arc::clone(&stage.human) as Arc<dyn tenterhook_agent::Frontend>,
        ..AgentConfig::default()
    }
    .build(stage.engine.clone())
    .unwrap();
    (service, agent)
}

async fn prompt(agent: &mut Agent) -> tenterhook_agent::RunReport {
    agent.prompt("go", &CancellationToken::new()).await
}

#[tokio::test]
async fn text_streams_to_the_screen_and_usage_is_counted() {
    let stage = Stage::empty();
    let (service, mut agent) = open(
        &stage,
        "openai:test-model",
        [finish(say(&["Hel", "lo"]), "stop")],
    )
    .await;
    let report = prompt(&mut agent).await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "Hello")
    );
    assert_eq!(
        (report.usage.input_tokens, report.usage.output_tokens),
        (11, 7)
    );
    assert_eq!(stage.human.screen(), ["text Hel", "text lo"]);
    assert_eq!(service.keys.lock().unwrap()[..], ["Bearer canary"]);
    let body = &service.bodies()[0];
    assert_eq!(
        (body["model"].as_str(), body["stream"].as_bool()),
        (Some("test-model"), Some(true))
    );
    assert_eq!(
        body["messages"][1],
        json!({"role": "user", "content": "go"})
    );
    assert_eq!(
        service.requests.lock().unwrap()[0].0,
        "/v1/chat/completions"
    );
    assert_eq!(body["tools"][0]["function"]["name"], "shell");
}

#[tokio::test]
async fn tool_calls_arrive_in_pieces_and_results_go_back() {
    let stage = Stage::empty();
    let calls = vec![
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "list_directory", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"pa"}}]})),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "th\": \".\"}"}}]})),
        delta(
            json!({"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "list_directory", "arguments": "{bad"}}]}),
        ),
    ];
    let acts = [finish(calls, "tool_calls"), finish(say(&["done"]), "stop")];
    let (service, mut agent) = open(&stage, "openai/test-model", acts).await;
    let report = prompt(&mut agent).await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "done")
    );
    assert_eq!(
        tool_texts(&agent),
        [
            "[empty]",
            "The arguments of `list_directory` are not a JSON object."
        ]
    );
    let messages = service.bodies()[1]["messages"].clone();
    assert_eq!(
        messages[2]["tool_calls"][0]["function"]["name"],
        "list_directory"
    );
    assert_eq!(
        messages[3],
        json!({"role": "tool", "tool_call_id": "a", "content": "[empty]"})
    );
    assert_eq!(messages[4]["tool_call_id"], "b");
}

#[tokio::test]
async fn a_busy_service_is_asked_again_after_the_wait_that_it_wants() {
    let stage = Stage::empty();
    let busy = Act::Status(
        StatusCode::TOO_MANY_REQUESTS,
        "3",
        r#"{"error":{"message":"slow down"}}"#,
    );
    let (service, mut agent) =
        open(&stage, "openai:m", [busy, finish(say(&["here"]), "stop")]).await;
    assert_eq!(prompt(&mut agent).await.response, "here");
    assert_eq!(service.bodies().len(), 2);
    let warning = "warning the model call failed (the model service answered with status 429: slow down); retry 1 of 2 in 0.0 s";
    assert_eq!(stage.human.screen()[0], warning);
    assert_eq!(stage.all::<tenterhook_engine::event::RetryEnd>().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_final_and_shows_no_key() {
    let stage = Stage::empty();
    let refusal = Act::Status(
        StatusCode::UNAUTHORIZED,
        "0",
        r#"{"error":{"message":"wrong key: canary"}}"#,
    );
    let (service, mut agent) = open(&stage, "openai:m", [refusal]).await;
    let message = "the model service answered with status 401: wrong key: [the key]".to_owned();
    assert_eq!(prompt(&mut agent).await.end, RunEnd::Error { message });
    assert_eq!(service.bodies().len(), 1);
    assert!(!format!("{:?}", stage.heard()).contains("canary"));
}

#[tokio::test]
async fn a_service_that_sends_the_request_to_another_one_gives_away_no_key() {
    for (model, is_hooked) in [
        ("openai:m", false),
        ("anthropic:m", false),
        ("anthropic:m", true),
        ("gemini:m", true),
    ] {
        let stage = if is_hooked {
            Stage::empty()
        } else {
            Stage::silent()
        };
        let (other, url) = Service::start([]).await;
        let (service, mut agent) = open(&stage, model, [Act::Elsewhere(url)]).await;
        let RunEnd::Error { message } = prompt(&mut agent).await.end else {
            panic!("the run should have failed");
        };
        assert!(message.contains("status 307"), "{model}: {message}");
        assert_eq!(
            (service.keys().len(), other.keys().len()),
            (1, 0),
            "{model}"
        );
    }
}

#[tokio::test]
async fn a_long_refusal_is_cut_behind_the_key_that_it_names() {
    let stage = Stage::empty();
    let body: &'static str = Box::leak(format!("{}canary", "x".repeat(552)).into_boxed_str());
    let (_, mut agent) = open(
        &stage,
        "openai:m",
        [Act::Status(StatusCode::UNAUTHORIZED, "0", body)],
    )
    .await;
    let RunEnd::Error { message } = prompt(&mut agent).await.end else {
        panic!("the run should have failed");
    };
    assert!(!message.contains("can"), "{message}");
    assert!(message.chars().count() <= 601, "{message}");
}

#[tokio::test]
async fn a_stream_that_breaks_before_anything_was_shown_is_tried_again() {
    for broken in [Act::Break(Vec::new()), Act::Stop(Vec::new())] {
        let stage = Stage::empty();
        let (service, mut agent) =
            open(&stage, "openai:m", [broken, finish(say(&["here"]), "stop")]).await;
        assert_eq!(prompt(&mut agent).await.response, "here");
        assert_eq!(service.bodies().len(), 2);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_in_the_middle_is_an_error_and_leaves_nothing() {
    for broken in [Act::Break(say(&["half of"])), Act::Stop(say(&["half of"]))] {
        let stage = Stage::empty();
        let (service, mut agent) = open(&stage, "openai:m", [broken]).await;
        let shown = service.shown.clone();
        stage.engine.on(move |_: &MessageUpdate| shown.cancel());
        let report = prompt(&mut agent).await;
        assert!(matches!(report.end, RunEnd::Error { .. }), "{report:?}");
        assert_eq!(stage.field("turn_end", "reason"), ["error"]);
        assert_eq!(
            (agent.session().messages().len(), service.bodies().len()),
            (1, 1)
        );
    }
}

#[tokio::test]
async fn a_context_that_is_too_long_is_compacted() {
    let stage = Stage::empty();
    let overflow = Act::Status(
        StatusCode::BAD_REQUEST,
        "0",
        r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
    );
    let acts = [
        finish(say(&["one"]), "stop"),
        overflow,
        finish(say(&["a summary"]), "stop"),
        finish(say(&["two"]), "stop"),
    ];
    let (service, mut agent) = open(&stage, "openai:m", acts).await;
    prompt(&mut agent).await;
    assert_eq!(prompt(&mut agent).await.response, "two");
    assert_eq!(stage.field("after_compaction", "summary"), ["a summary"]);
    assert_eq!(service.bodies().len(), 4);
}

#[tokio::test]
async fn a_silent_service_is_left_when_the_run_is_cancelled() {
    let stage = Stage::empty();
    let (service, mut agent) = open(&stage, "openai:m", [Act::Hang]).await;
    let cancel = CancellationToken::new();
    let (report, ()) = tokio::join!(agent.prompt("go", &cancel), async {
        service.reached.cancelled().await;
        cancel.cancel();
    });
    assert_eq!(report.end, RunEnd::Cancelled);
    assert_eq!(stage.field("turn_end", "reason"), ["cancelled"]);
}

#[tokio::test]
async fn a_service_that_is_not_there_is_an_error_that_names_it() {
    let stage = Stage::empty();
    let choice: ModelChoice = "openai:m".parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let provider = choice
        .open(Endpoint {
            base_url: Some(url.clone()),
            ..Endpoint::default()
        })
        .unwrap();
    let retry = RetryPolicy {
        attempts: 1,
        ..RetryPolicy::default()
    };
    let mut agent = AgentConfig {
        model: Some(provider),
        retry,
        ..AgentConfig::default()
    }
    .build(stage.engine.clone())
    .unwrap();
    let RunEnd::Error { message } = prompt(&mut agent).await.end else {
        panic!("no error")
    };
    assert!(message.contains(&url), "{message}");
}

#[tokio::test]
async fn anthropic_is_spoken_to_in_its_own_way() {
    let event = |name: &str, value: Value| format!("event: {name}\ndata: {value}\n\n");
    let lines = vec![
        event(
            "message_start",
            json!({"type": "message_start", "message": {"id": "1", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        ),
        event(
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "list_directory", "input": {}}}),
        ),
        event(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":\".\"}"}}),
        ),
        event(
            "content_block_stop",
            json!({"type": "content_block_stop", "index": 0}),
        ),
        event(
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}),
        ),
        event("message_stop", json!({"type": "message_stop"})),
    ];
    let text = vec![
        event(
            "message_start",
            json!({"type": "message_start", "message": {"id": "2", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        ),
        event(
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        event(
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "nothing there"}}),
        ),
        event(
            "content_block_stop",
            json!({"type": "content_block_stop", "index": 0}),
        ),
        event("message_stop", json!({"type": "message_stop"})),
    ];
    let stage = Stage::empty();
    let (service, mut agent) = open(
        &stage,
        "anthropic:test-model",
        [Act::Stream(lines), Act::Stream(text)],
    )
    .await;
    let report = prompt(&mut agent).await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "nothing there")
    );
    assert_eq!(tool_texts(&agent), ["[empty]"]);
    let requests = service.requests.lock().unwrap();
    assert_eq!(requests[0].0, "/v1/messages");
    assert_eq!(
        requests[1].1["messages"][2]["content"][0]["tool_use_id"],
        "t1"
    );
    assert_eq!(service.keys.lock().unwrap()[0], "canary");
}

#[tokio::test]
async fn gemini_gets_its_signatures_back_and_calls_have_ids_of_their_own() {
    let chunk = |parts: Value, reason: Option<&str>| {
        let mut candidate = json!({"content": {"role": "model", "parts": parts}});
        if let Some(reason) = reason {
            candidate["finishReason"] = reason.into();
        }
        data(
            &json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2}}),
        )
    };
    let call = |signature: &str| {
        let parts = json!([{"functionCall": {"name": "list_directory", "args": {}}, "thoughtSignature": signature}]);
        Act::Stream(vec![chunk(parts, Some("STOP"))])
    };
    let cut = Act::Stop(vec![chunk(
        json!([{"functionCall": {"name": "list_directory", "args": {}}}]),
        None,
    )]);
    let text = Act::Stream(vec![chunk(json!([{"text": "empty"}]), Some("STOP"))]);
    let stage = Stage::empty();
    let (service, mut agent) = open(
        &stage,
        "gemini:test-model",
        [call("one"), cut, call("two"), text],
    )
    .await;
    let report = prompt(&mut agent).await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "empty")
    );
    assert_eq!(tool_texts(&agent), ["[empty]", "[empty]"]);
    let ids = stage.field("tool_execution_start", "tool_use_id");
    assert_ne!(ids[0], ids[1]);
    let requests = service.requests.lock().unwrap();
    assert_eq!(requests[0].0, "/v1/models/test-model:streamGenerateContent");
    let last = requests[3].1["contents"].to_string();
    assert!(
        last.contains("\"one\"") && last.contains("\"two\""),
        "{last}"
    );
}

#[tokio::test]
async fn ollama_is_spoken_to_in_its_own_way() {
    let line = |value: Value| format!("{value}\n");
    let acts = [
        Act::Stream(vec![
            line(
                json!({"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "list_directory", "arguments": {}}}]}, "done": false}),
            ),
            line(
                json!({"message": {"role": "assistant", "content": ""}, "done": true, "prompt_eval_count": 3, "eval_count": 2}),
            ),
        ]),
        Act::Stream(vec![
            line(json!({"message": {"role": "assistant", "content": "emp"}, "done": false})),
            line(
                json!({"message": {"role": "assistant", "content": "ty"}, "done": true, "done_reason": "stop"}),
            ),
        ]),
    ];
    let stage = Stage::empty();
    let (service, mut agent) = open(&stage, "ollama:qwen3:8b", acts).await;
    let report = prompt(&mut agent).await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "empty")
    );
    assert_eq!(
        (report.usage.input_tokens, report.usage.output_tokens),
        (3, 2)
    );
    let requests = service.requests.lock().unwrap();
    assert_eq!(
        (requests[0].0.as_str(), requests[0].1["model"].as_str()),
        ("/api/chat", Some("qwen3:8b"))
    );
}

#[tokio::test]
async fn a_service_that_accepts_and_never_answers_is_given_up() {
    let stage = Stage::empty();
    let choice: ModelChoice = "openai:m".parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let provider = choice
        .open(Endpoint {
            base_url: Some(format!("http://{}/v1", listener.local_addr().unwrap())),
            header_timeout: Some(Duration::from_millis(50)),
            ..Endpoint::default()
        })
        .unwrap();
    let retry = RetryPolicy {
        attempts: 2,
        first_pause: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let mut agent = AgentConfig {
        model: Some(provider),
        cwd: stage.path().into(),
        retry,
        ..AgentConfig::default()
    }
    .build(stage.engine.clone())
    .unwrap();
    let accept = async {
        let mut held = Vec::new();
        loop {
            held.push(listener.accept().await.unwrap());
        }
    };
    let report = tokio::select! {
        report = prompt(&mut agent) => report,
        () = accept => panic!("the listener ended"),
    };
    let RunEnd::Error { message } = report.end else {
        panic!("no error")
    };
    assert!(message.contains("timed out"), "{message}");
    assert_eq!(stage.field("retry_end", "error").len(), 1);
}

/// A service whose answer never ends.
#[derive(Debug)]
struct Endless(ModelId);

impl Provider for Endless {
    fn id(&self) -> &ModelId {
        &self.0
    }

    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        let text = "x".repeat(1024 * 1024);
        stream::repeat_with(move || Ok(ModelEvent::Text(text.clone()))).boxed()
    }
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_given_up() {
    let stage = Stage::silent();
    let mut agent = AgentConfig {
        model: Some(Arc::new(Endless(ModelId::new("endless", "m")))),
        cwd: stage.path().into(),
        ..AgentConfig::default()
    }
    .build(stage.engine.clone())
    .unwrap();
    let RunEnd::Error { message } = prompt(&mut agent).await.end else {
        panic!("the run should have failed");
    };
    assert_eq!(message, "the answer is longer than 16777216 bytes");
}
