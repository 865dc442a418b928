//! What hooks see and change in the exchange between a model's provider and its service.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use tenterhook_agent::{Agent, AgentConfig, CancellationToken, RunEnd};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{ProviderRequest, ProviderResponse, RetryStart};
use tenterhook_providers::{Endpoint, ModelChoice, Scripted};

use crate::remote::{Act, finish, open, say};
use crate::stage::Stage;

fn busy() -> Act {
    Act::Status(
        StatusCode::TOO_MANY_REQUESTS,
        "3",
        r#"{"error":{"message":"slow down"}}"#,
    )
}

async fn prompt(agent: &mut Agent) -> tenterhook_agent::RunReport {
    agent.prompt("go", &CancellationToken::new()).await
}

#[tokio::test]
async fn hooks_see_the_body_that_goes_out_and_the_response_to_it() {
    let stage = Stage::empty();
    let (service, mut agent) = open(&stage, "openai:m", [finish(say(&["hi"]), "stop")]).await;
    prompt(&mut agent).await;
    let payload = stage.only::<ProviderRequest>().payload;
    assert_eq!(payload, service.bodies()[0]);
    assert_eq!(payload["stream"], true);
    let response = stage.only::<ProviderResponse>();
    assert_eq!(response.status, 200);
    assert_eq!(response.headers["content-type"], "text/event-stream");
    let names = stage.names();
    let at = |name: &str| names.iter().position(|other| other == name).unwrap();
    let order = [
        "before_llm_call",
        "tool_selection",
        "provider_request",
        "provider_response",
        "after_llm_call",
    ];
    assert!(order.map(at).is_sorted(), "{names:?}");
}

#[tokio::test]
async fn every_hook_sees_the_body_as_the_one_before_it_left_it_and_the_last_one_goes_out() {
    let stage = Stage::empty();
    for word in ["one", "two"] {
        stage.engine.on(move |event: &ProviderRequest| {
            let mut payload = event.payload.clone();
            let seen = payload["metadata"]["seen"].as_str().unwrap_or_default();
            payload["metadata"] = json!({"seen": format!("{seen}{word}")});
            Effect::<ProviderRequest>::none().replace_payload(payload)
        });
    }
    let (service, mut agent) = open(&stage, "openai:m", [finish(say(&["hi"]), "stop")]).await;
    assert_eq!(prompt(&mut agent).await.response, "hi");
    assert_eq!(service.bodies()[0]["metadata"]["seen"], "onetwo");
}

#[tokio::test]
async fn a_body_of_null_goes_out_as_null() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &ProviderRequest| Effect::<ProviderRequest>::none().replace_payload(Value::Null));
    let (service, mut agent) = open(&stage, "openai:m", [finish(say(&["hi"]), "stop")]).await;
    prompt(&mut agent).await;
    assert_eq!(service.bodies(), [Value::Null]);
}

#[tokio::test]
async fn every_try_has_its_request_and_its_response() {
    let stage = Stage::empty();
    let acts = [busy(), finish(say(&["hi"]), "stop")];
    let (_service, mut agent) = open(&stage, "openai:m", acts).await;
    prompt(&mut agent).await;
    let statuses: Vec<u16> = stage
        .all::<ProviderResponse>()
        .iter()
        .map(|response| response.status)
        .collect();
    assert_eq!(statuses, [429, 200]);
    assert_eq!(stage.all::<ProviderRequest>().len(), 2);
    assert_eq!(stage.all::<RetryStart>().len(), 1);
    let first = &stage.all::<ProviderResponse>()[0];
    assert_eq!(first.headers["retry-after-ms"], "3");
}

#[tokio::test]
async fn no_key_and_no_cookie_is_shown() {
    let stage = Stage::empty();
    let acts = [Act::Cookie, finish(say(&["hi"]), "stop")];
    let (service, mut agent) = open(&stage, "openai:m", acts).await;
    prompt(&mut agent).await;
    prompt(&mut agent).await;
    assert_eq!(service.keys(), ["Bearer canary", "Bearer canary"]);
    assert_eq!(stage.all::<ProviderResponse>()[0].status, 400);
    assert!(!format!("{:?}", stage.heard()).contains("canary"));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_told_as_without_hooks() {
    for is_hooked in [true, false] {
        let stage = Stage::silent();
        if is_hooked {
            stage.engine.on(|_: &ProviderResponse| ());
        }
        // No program listens on a port that was just released.
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = Some(format!("http://{}/v1", taken.local_addr().unwrap()));
        drop(taken);
        let choice: ModelChoice = "openai:m".parse().unwrap();
        let endpoint = Endpoint {
            base_url,
            ..Endpoint::default()
        };
        let mut agent = AgentConfig {
            model: Some(choice.open(endpoint).unwrap()),
            retry: tenterhook_agent::RetryPolicy {
                attempts: 1,
                ..tenterhook_agent::RetryPolicy::default()
            },
            ..AgentConfig::default()
        }
        .build(stage.engine.clone())
        .unwrap();
        let end = prompt(&mut agent).await.end;
        let RunEnd::Error { message } = end else {
            panic!("{end:?}");
        };
        assert!(
            message.contains("Connection refused") || message.contains("tcp connect error"),
            "{is_hooked}: {message}"
        );
    }
}

#[tokio::test]
async fn without_hooks_the_service_is_reached_without_a_detour() {
    let stage = Stage::silent();
    let (service, mut agent) = open(&stage, "openai:m", [finish(say(&["hi"]), "stop")]).await;
    assert_eq!(prompt(&mut agent).await.response, "hi");
    assert_eq!(service.bodies().len(), 1);
}

#[tokio::test]
async fn a_hook_that_is_at_work_when_the_run_is_cancelled_ends_with_it() {
    let stage = Stage::empty();
    let (service, mut agent) = open(&stage, "openai:m", []).await;
    let cancel = CancellationToken::new();
    let interrupt = cancel.clone();
    stage.engine.on_async(move |_: &ProviderRequest| {
        interrupt.cancel();
        Box::pin(std::future::pending::<Effect<ProviderRequest>>())
    });
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert!(service.bodies().is_empty());
}

#[tokio::test]
async fn the_services_of_every_protocol_get_the_body_that_hooks_made() {
    for (model, field) in [
        ("openai:m", "messages"),
        ("anthropic:m", "messages"),
        ("gemini:m", "contents"),
        ("ollama:m", "messages"),
    ] {
        let stage = Stage::empty();
        stage.engine.on(|event: &ProviderRequest| {
            let mut payload = event.payload.clone();
            payload["mark"] = true.into();
            Effect::<ProviderRequest>::none().replace_payload(payload)
        });
        let refusal = Act::Status(StatusCode::BAD_REQUEST, "0", "no");
        let (service, mut agent) = open(&stage, model, [refusal]).await;
        prompt(&mut agent).await;
        let body = &service.bodies()[0];
        assert!(body[field].is_array() && body["mark"] == true, "{model}");
    }
}

#[tokio::test]
async fn summaries_are_model_calls_too() {
    let stage = Stage::empty();
    let script = "turns: [{text: one}, {summary: short}]";
    let (mut agent, _) = stage.play(script).await;
    agent
        .compact(None, &CancellationToken::new())
        .await
        .unwrap();
    let purposes: Vec<Value> = stage
        .all::<ProviderRequest>()
        .into_iter()
        .map(|event| event.payload["purpose"].clone())
        .collect();
    assert_eq!(purposes, ["turn", "summary"]);
}

#[tokio::test]
async fn a_scripted_model_reads_what_hooks_made_of_its_request() {
    let stage = Stage::empty();
    stage.engine.on(|event: &ProviderRequest| {
        let mut payload = event.payload.clone();
        payload["subagent"] = "helper".into();
        payload["messages"] = json!([{"role": "user", "content": "other"}]);
        Effect::<ProviderRequest>::none().replace_payload(payload)
    });
    let script = "turns: [{text: of main}, {for: helper, text: of helper}]";
    let script = Arc::new(Scripted::parse("play", script).unwrap());
    let mut agent = AgentConfig {
        model: Some(Arc::clone(&script) as _),
        ..AgentConfig::default()
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(prompt(&mut agent).await.response, "of helper");
    let seen = script.last_request().unwrap();
    assert_eq!(seen["messages"][0]["content"], "other");
    let response = stage.only::<ProviderResponse>();
    assert_eq!((response.status, response.headers.len()), (200, 0));
}

#[tokio::test]
async fn a_scripted_model_refuses_what_is_no_request() {
    let stage = Stage::empty();
    stage.engine.on(|_: &ProviderRequest| {
        Effect::<ProviderRequest>::none().replace_payload(json!({"a": 1}))
    });
    let (_, report) = stage.play("turns: [{text: one}]").await;
    let RunEnd::Error { message } = report.end else {
        panic!("{report:?}");
    };
    assert!(message.contains("cannot read its request"), "{message}");
    assert_eq!(stage.only::<ProviderResponse>().status, 400);
}
