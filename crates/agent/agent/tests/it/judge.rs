//! Model hooks through the agent's providers: a service on loopback, and scripts.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenterhook_providers::{ModelClients, Provider, Scripted};
use tenterhook_runners::model::{ModelClient, ModelQuestion, ReplySchema};

use crate::remote::{Act, Service, finish, say};

fn question(model: &str) -> ModelQuestion {
    ModelQuestion {
        model: model.to_owned(),
        system: "Judge.".to_owned(),
        prompt: "May it?".to_owned(),
        schema: Some(ReplySchema {
            name: "pre_tool_use_decision".to_owned(),
            schema: json!({
                "type": "object",
                "properties": {"decision": {"type": "string", "enum": ["allow", "ask", "deny"]}, "reason": {"type": "string"}},
                "required": ["decision", "reason"],
                "additionalProperties": false,
            }),
        }),
        reply_limit: 64,
    }
}

fn judges(url: &str) -> ModelClients {
    let url = url.to_owned();
    ModelClients::new(Arc::default(), move |name| {
        let is_key = name.ends_with("_KEY");
        Some(if is_key { "canary" } else { &url }.to_owned())
    })
}

// D-90
#[tokio::test]
async fn the_schema_of_a_decision_reaches_the_service() {
    let (service, url) = Service::start([
        finish(say(&["{\"decision\":", "\"deny\"}"]), "stop"),
        finish(say(&["fine"]), "stop"),
    ])
    .await;
    let judges = judges(&url);
    let reply = judges.ask(question("openai/judge-model")).await.unwrap();
    assert_eq!(reply, r#"{"decision":"deny"}"#);
    let plain = ModelQuestion {
        schema: None,
        ..question("openai/judge-model")
    };
    assert_eq!(judges.ask(plain).await.unwrap(), "fine");

    let bodies = service.bodies();
    assert_eq!(bodies[0]["model"], "judge-model");
    let format = &bodies[0]["response_format"];
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["name"], "pre_tool_use_decision");
    assert_eq!(format["json_schema"]["strict"], true);
    let schema = &format["json_schema"]["schema"];
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["required"], json!(["decision", "reason"]));
    assert_eq!(
        schema["properties"]["decision"]["enum"],
        json!(["allow", "ask", "deny"])
    );
    let messages = bodies[0]["messages"].as_array().unwrap();
    let roles: Vec<_> = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user"]);
    assert!(messages[1]["content"].to_string().contains("May it?"));
    assert_eq!(bodies[0].get("tools"), None);
    // D-89
    assert_eq!(bodies[1].get("response_format"), None);
}

#[tokio::test]
async fn every_service_is_told_the_form_in_its_own_way() {
    for (model, pointer, expected) in [
        (
            "anthropic/m",
            "/output_config/format/type",
            json!("json_schema"),
        ),
        (
            "anthropic/m",
            "/output_config/format/schema/required",
            json!(["decision", "reason"]),
        ),
        (
            "gemini/m",
            "/generationConfig/responseMimeType",
            json!("application/json"),
        ),
        ("ollama/m", "/format", json!("json")),
    ] {
        let busy = Act::Status(axum::http::StatusCode::BAD_REQUEST, "1", "{}");
        let (service, url) = Service::start([busy]).await;
        let asked = judges(url.trim_end_matches("/v1"))
            .ask(question(model))
            .await;
        assert!(asked.is_err(), "{model}");
        let body = &service.bodies()[0];
        assert_eq!(body.pointer(pointer), Some(&expected), "{model}: {body}");
    }
}

#[tokio::test]
async fn a_reply_that_is_long_or_broken_or_refused_is_an_error() {
    let long = "x".repeat(65);
    let (_service, url) = Service::start([
        finish(say(&[&long]), "stop"),
        Act::Stop(say(&["{\"decision\":\"allow\"}"])),
        Act::Status(
            axum::http::StatusCode::TOO_MANY_REQUESTS,
            "1",
            r#"{"error":{"message":"slow down"}}"#,
        ),
    ])
    .await;
    let judges = judges(&url);
    for expected in ["longer than 64 bytes", "", "slow down"] {
        let error = judges
            .ask(question("openai/m"))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error = judges
        .ask(question("nothing"))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown model `nothing`"), "{error}");
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_any_more_ends_its_request() {
    let (service, url) = Service::start([Act::Hang]).await;
    let judges = Arc::new(judges(&url));
    let asking = tokio::spawn({
        let judges = Arc::clone(&judges);
        async move { judges.ask(question("openai/m")).await }
    });
    service.reached.cancelled().await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert_eq!(Arc::strong_count(&judges), 1);
}

#[tokio::test]
async fn another_base_url_is_for_its_service_only() {
    let (service, url) = Service::start([finish(say(&["yes"]), "stop")]).await;
    let judges = judges("http://127.0.0.1:1/v1");
    judges.reach("openai", &url);
    assert_eq!(judges.ask(question("openai/m")).await.unwrap(), "yes");
    assert_eq!(service.bodies().len(), 1);
    let elsewhere = judges.ask(question("anthropic/m"));
    let elsewhere = tokio::time::timeout(Duration::from_secs(20), elsewhere)
        .await
        .unwrap();
    assert!(elsewhere.is_err());
}

#[tokio::test]
async fn a_script_answers_hooks_that_name_it_and_all_hooks_of_its_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("judge.yaml");
    std::fs::write(&path, "turns: [{judge: one}, {judge: two}]").unwrap();
    let named = format!("scripted:{}", path.display());
    let judges = judges("http://127.0.0.1:1/v1");
    for reply in ["one", "two"] {
        assert_eq!(judges.ask(question(&named)).await.unwrap(), reply);
    }
    let error = judges.ask(question(&named)).await.unwrap_err().to_string();
    assert!(error.contains("no turn left for model hooks"), "{error}");

    let script = |text| Arc::new(Scripted::parse("session", text).unwrap()) as Arc<dyn Provider>;
    judges.attach(&script("turns: [{text: none of the hooks' business}]"));
    assert!(judges.ask(question(&named)).await.is_err());
    judges.attach(&script(
        "turns: [{text: hello}, {judge: three, repeat: true}]",
    ));
    assert_eq!(judges.ask(question("openai/m")).await.unwrap(), "three");
}
