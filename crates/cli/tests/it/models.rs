//! Models with the user's own names, keys that are not leaked, and switching between models in a conversation.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::service::{Service, stream};
use crate::stage::Test;

/// The user's file, relative to the working directory.
const FILE: &str = "../config/models.yaml";

fn corp(service: &Service, key: &str) -> String {
    let url = &service.url;
    format!(
        "providers:
  corp: {{ service: openai, base_url: '{url}', {key} }}
models:
  fast: corp/small
facts:
  corp/small: {{ context_window: 32000, price: {{ input: 1000, output: 2000 }} }}
"
    )
}

fn answer() -> String {
    stream(&[json!({"content": "hello"})], "stop")
}

/// Returns every text that the program wrote into its folders and streams.
fn left(ran: &crate::stage::Ran) -> String {
    fn read(folder: &std::path::Path, texts: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, texts);
            } else if path.file_name().unwrap() != "key" {
                texts.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
            }
        }
    }
    let mut texts = format!("{}{}", ran.stdout, ran.stderr);
    for folder in ["work", "home", "state", "config", "tmp"] {
        read(&ran.path(folder), &mut texts);
    }
    texts
}

#[test]
fn a_name_of_the_file_stands_for_a_service_its_key_and_its_price() {
    for name in ["fast", "corp/small", "corp:small"] {
        let service = Service::start([answer()]);
        let ran = Test::new()
            .args(["run", "hi", "--json", "--model", name])
            .args(["--journal", "journal.jsonl"])
            .hooks("hooks: [{event: provider_request, command: cat >> seen.json}, {event: provider_response, command: cat >> seen.json}]")
            .file(FILE, &corp(&service, "key_env: CORP_KEY"))
            .variable("CORP_KEY", "canary")
            .run();
        let report = ran.json();
        assert_eq!(report["response"], "hello");
        // 11 tokens sent and 7 received.
        assert_eq!(report["cost"].to_string(), "0.025");
        assert_eq!(report["runs"][0]["cost"], report["cost"]);
        let (_, key, body) = &service.seen()[0];
        assert_eq!(
            (key.as_str(), &body["model"]),
            ("Bearer canary", &json!("small"))
        );
        let left = left(&ran);
        assert!(
            left.contains("corp/small") && !left.contains("canary"),
            "{left}"
        );
    }
}

#[test]
fn a_key_is_read_from_a_file_that_is_the_users_alone() {
    for (mode, is_taken) in [(0o600, true), (0o644, false)] {
        let service = Service::start([answer()]);
        let test = Test::new()
            .args(["run", "hi", "--no-journal", "--model", "fast"])
            .file(FILE, &corp(&service, "key_file: key"))
            .file("../config/key", "canary\n");
        let key = test.work().join("../config/key");
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let ran = test.run();
        assert!(!left(&ran).contains("canary"));
        if is_taken {
            assert_eq!(ran.all(), ("hello\n", "", 0));
            assert_eq!(service.seen()[0].1, "Bearer canary");
        } else {
            let (message, _) = ran.refusal();
            assert!(message.contains("has mode 644, expected 600"), "{message}");
            assert!(service.seen().is_empty());
        }
    }
}

#[test]
fn a_key_in_the_file_is_refused_with_the_way_out_by_every_command() {
    let text = "providers: {corp: {service: openai, api_key: canary}}";
    for args in [
        &["run", "hi", "--model", "corp/small"][..],
        &["list"],
        &["fire", "stop", "--no-journal"],
    ] {
        let ran = Test::new()
            .args(args.iter().copied())
            .file(FILE, text)
            .run();
        let (message, status) = ran.refusal();
        assert_eq!(status, 3, "{message}");
        assert!(
            message.contains("key of the provider `corp` is in the file")
                && message.contains("`key_env` or `key_file`")
                && !message.contains("canary"),
            "{message}"
        );
    }
}

#[test]
fn model_hooks_know_the_names_too() {
    let judge = "hooks: [{name: judge, event: pre_tool_use, matcher: shell, model: fast, schema: decision, prompt: 'May it?'}]";
    let service = Service::start([stream(
        &[json!({"content": "{\"decision\":\"deny\",\"reason\":\"no\"}"})],
        "stop",
    )]);
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--json"])
        .hooks(judge)
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .file(FILE, &corp(&service, "key_env: CORP_KEY"))
        .variable("CORP_KEY", "canary")
        .run();
    assert_eq!(ran.json()["permission"], "deny");
    assert_eq!(service.seen()[0].2["model"], "small");
}

const NAMES: &str = "models: {one: 'scripted:one.yaml', two: 'scripted:two.yaml'}";

fn conversation(stdin: &str) -> Test {
    Test::new()
        .args(["run", "--no-journal", "--model", "one"])
        .file(FILE, NAMES)
        .file("one.yaml", "turns: [{text: I am one, repeat: true}]")
        .file("two.yaml", "turns: [{text: I am two, repeat: true}]")
        .stdin(stdin)
}

#[test]
fn the_model_is_shown_chosen_and_gone_through_in_a_conversation() {
    let ran = conversation("/model\nhi\n/model two\nhi\n/model two\n/model next\nhi\n")
        .hooks("hooks: [{event: model_select, command: cat >> seen.json}]")
        .run();
    let expected = "The model is scripted/one. Available: `one`, `two`.\nI am one\nThe model is now scripted/two.\nI am two\nThe model is already scripted/two.\nThe model is now scripted/one.\nI am one\n";
    assert_eq!(ran.all(), (expected, "", 0));
    let seen = ran.file("seen.json");
    let events = serde_json::Deserializer::from_str(&seen).into_iter::<Value>();
    let sources: Vec<Value> = events
        .map(|event| event.unwrap()["source"].clone())
        .collect();
    assert_eq!(sources, ["set", "cycle"]);
}

#[test]
fn the_thinking_level_is_shown_and_chosen_in_a_conversation() {
    let ran = conversation("/thinking\n/thinking high\n/thinking\n/thinking much\n").run();
    let levels = "Available: off, minimal, low, medium, high, xhigh.";
    let expected = format!(
        "The thinking level is the model service's default. {levels}\nThe thinking level is now high.\nThe thinking level is high. {levels}\n"
    );
    assert_eq!(ran.stdout, expected);
    assert!(
        ran.stderr.contains("unknown thinking level `much`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_model_that_there_is_not_is_refused_and_the_conversation_goes_on() {
    let ran = conversation("/model nine\nhi\n").run();
    assert_eq!(ran.stdout, "I am one\n");
    assert!(
        ran.stderr
            .contains("The model was not changed: unknown model `nine`")
            && ran.stderr.contains("or `two`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_session_goes_on_with_its_model_unless_the_call_names_another() {
    let ran = conversation("/model two\nhi\n").run();
    assert_eq!(ran.status, 0, "{ran:?}");
    let ran = ran
        .again(["run", "--no-journal", "--resume"])
        .stdin("hi\n")
        .run();
    assert_eq!(ran.stdout, "I am two\n", "{ran:?}");
    let ran = ran
        .again(["run", "--no-journal", "--model", "one", "--resume"])
        .stdin("hi\n/tree\n")
        .run();
    assert!(ran.stdout.starts_with("I am one\n"), "{ran:?}");
    assert_eq!(ran.stdout.matches("model_change").count(), 2, "{ran:?}");
}
