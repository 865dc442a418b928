//! The built-ins `http_post` and `unload`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_builtins::builtin::{BuiltinConfig, builtin};
use tenterhook_engine::event::{AgentModel, AgentSwitch, TurnEnd};
use tenterhook_engine::{AsyncHandler, EventKind, HookSpec};
use tenterhook_runners::Services;

use crate::server::{Script, Seen, Server, serve};
use crate::{engine, origin, shell_call, spec};

fn made(name: &str, arguments: &[&str]) -> Arc<dyn AsyncHandler> {
    let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
    let setup = BuiltinConfig {
        arguments: &arguments,
        env: &[],
        working_dir: None,
        services: &Services::default(),
        events: &[],
        dialect: &crate::native(),
    };
    builtin(name, &setup).unwrap()
}

fn webhook(kind: EventKind, arguments: &[&str]) -> HookSpec {
    spec(kind, "webhook", made("http_post", arguments))
}

#[tokio::test]
async fn http_post_sends_the_body_that_it_is_given_or_the_event() {
    let mut server = serve(Script::answer("202 Accepted", "text/html", "thanks")).await;
    let url = server.url();
    let given = [url.as_str(), r#"{"text":"done"}"#, "--allow-private"];
    let hooks = engine([
        webhook(EventKind::TurnEnd, &given),
        webhook(EventKind::PreToolUse, &["--allow-private", &url]),
    ])
    .dispatcher(origin());

    let outcome = hooks.dispatch(TurnEnd::default()).await;
    assert_eq!(outcome.failures(), []);
    let (head, body) = server.request().await;
    assert_eq!(String::from_utf8(body).unwrap(), r#"{"text":"done"}"#);
    assert!(
        head.to_ascii_lowercase()
            .contains("content-type: application/json")
    );

    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert_eq!(outcome.decision().reason(), None);
    let body: Value = serde_json::from_slice(&server.request().await.1).unwrap();
    assert_eq!(body.get("event"), Some(&json!("pre_tool_use")));
    assert_eq!(body.get("session_id"), Some(&json!("s1")));
    assert_eq!(body.get("tool_input"), Some(&json!({ "cmd": "ls" })));
}

#[tokio::test]
async fn http_post_takes_no_notice_of_what_it_is_answered() {
    let deny = Script::json(r#"{"decision":"deny","reason":"no"}"#);
    for script in [deny, Script::Flood(vec![b'x'; 4096])] {
        let server = serve(script).await;
        let arguments = [server.url(), "--allow-private".to_owned()];
        let hook = webhook(
            EventKind::PreToolUse,
            &arguments.each_ref().map(String::as_str),
        );
        let outcome = engine([hook])
            .dispatcher(origin())
            .dispatch(shell_call("ls"))
            .await;
        assert_eq!(outcome.decision().reason(), None);
        assert_eq!(outcome.failures(), []);
    }
}

#[tokio::test]
async fn http_post_that_fails_is_told_and_never_stops_an_observer() {
    let mut hold = serve(Script::Hold(Vec::new())).await;
    let failing = serve(Script::answer("500 No", "text/plain", "")).await;
    for (server, cause) in [
        (&mut hold, "timed out after 0.3s"),
        (&mut { failing }, "answered 500"),
    ] {
        let mut hook = webhook(
            EventKind::TurnEnd,
            &[&server.url(), "{}", "--allow-private"],
        );
        if cause.starts_with("timed") {
            hook.timeout = Duration::from_millis(300);
        }
        let outcome = engine([hook])
            .dispatcher(origin())
            .dispatch(TurnEnd::default())
            .await;
        let [failure] = outcome.failures() else {
            panic!("{cause}")
        };
        assert!(failure.cause.contains(cause), "{failure:?}");
        assert_eq!(outcome.notices().len(), 1);
    }
    hold.request().await;
    assert_eq!(hold.seen.recv().await, Some(Seen::Closed));
}

fn model(provider: &str, base_url: String, unload_api: Option<&str>) -> AgentModel {
    AgentModel {
        provider: provider.to_owned(),
        model: "ai/qwen3".to_owned(),
        base_url: Some(base_url),
        unload_api: unload_api.map(str::to_owned),
    }
}

fn switch(models: Vec<AgentModel>) -> AgentSwitch {
    AgentSwitch::new("root", "helper", "handoff").with_from_agent_models(models)
}

fn base_url(server: &Server) -> String {
    format!("http://127.0.0.1:{}/engines/v1", server.port)
}

#[tokio::test]
async fn unload_tells_each_local_server_of_the_agent_that_leaves() {
    let mut local = serve(Script::json("{}")).await;
    let mut told_elsewhere = serve(Script::json("{}")).await;
    let mut foreign = serve(Script::json("{}")).await;
    let hooks =
        engine([spec(EventKind::AgentSwitch, "unload", made("unload", &[]))]).dispatcher(origin());
    let event = switch(vec![
        model("dmr", base_url(&local), None),
        model("dmr", base_url(&told_elsewhere), Some("/free")),
        model("openai", base_url(&foreign), None),
    ]);
    let outcome = hooks.dispatch(event).await;
    assert_eq!(outcome.failures(), []);
    for (server, path) in [
        (&mut local, "/engines/_unload"),
        (&mut told_elsewhere, "/free"),
    ] {
        let (head, body) = server.request().await;
        assert!(
            head.starts_with(&format!("POST {path} HTTP/1.1\r\n")),
            "{head}"
        );
        assert_eq!(String::from_utf8(body).unwrap(), r#"{"model":"ai/qwen3"}"#);
    }
    assert_eq!(foreign.requests(), 0);
}

#[tokio::test]
async fn unload_has_nothing_to_do_where_no_agent_leaves() {
    let mut server = serve(Script::json("{}")).await;
    let hooks =
        engine([spec(EventKind::AgentSwitch, "unload", made("unload", &[]))]).dispatcher(origin());
    let models = vec![model("dmr", base_url(&server), None)];
    let mut to_same = switch(models.clone());
    to_same.to_agent = "root".to_owned();
    let mut from_none = switch(models);
    from_none.from_agent = String::new();
    for event in [to_same, from_none, switch(Vec::new())] {
        let outcome = hooks.dispatch(event).await;
        assert_eq!(outcome.failures(), []);
    }
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn a_server_that_refuses_does_not_keep_the_others_from_being_told() {
    let refusing = serve(Script::answer("500 Oh", "text/plain", "busy")).await;
    let mut willing = serve(Script::json("{}")).await;
    let hooks =
        engine([spec(EventKind::AgentSwitch, "unload", made("unload", &[]))]).dispatcher(origin());
    let nowhere = AgentModel {
        provider: "dmr".to_owned(),
        model: "ai/lost".to_owned(),
        ..AgentModel::default()
    };
    let event = switch(vec![
        model("dmr", base_url(&refusing), None),
        nowhere,
        model("dmr", base_url(&willing), None),
    ]);
    let outcome = hooks.dispatch(event).await;
    let [failure] = outcome.failures() else {
        panic!("{:?}", outcome.failures())
    };
    assert_eq!(
        failure.cause,
        "model `ai/qwen3`: `127.0.0.1` answered 500 Internal Server Error: busy; \
         model `ai/lost`: expected a `base_url` in its configuration, found none"
    );
    assert_eq!(willing.requests(), 1);
}
