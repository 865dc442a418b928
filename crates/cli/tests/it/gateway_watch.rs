//! What an operator sees of a gateway, and what an upgrade keeps.

use std::io::Read as _;

use crate::chat_client::ChatClient;
use crate::gateway_backup::{ANSWER, HOLD, prepare};
use crate::stage::{Test, eventually};

const SETTINGS: &str = "turns: { drain: 1s }\nchannels: { http: {} }";

/// Returns the status and the body of an answer.
fn get(client: &ChatClient, path: &str, head: &str) -> (String, String) {
    let mut answer = String::new();
    let mut stream = client.open(&format!("GET {path}"), head, "");
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().to_owned();
    (status, body.to_owned())
}

/// Checks the form of the text format of Prometheus: each sample belongs to the metric that was described before it.
fn check_format(text: &str) {
    let mut metric = "";
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            metric = described.split_once(' ').unwrap().0;
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap();
            assert_eq!(name, metric);
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(sample.split('{').next(), Some(metric));
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}

#[test]
fn metrics_count_messages_and_show_channels_and_what_waits() {
    let (running, client) = ChatClient::start_with(prepare(Test::new()).hooks(HOLD), SETTINGS);
    assert_eq!(get(&client, "/readyz", "accept: */*").1, "ok");
    client.ask("a", "one");
    client.post("/v1/chats/b/messages", r#"{"text":"held"}"#);
    let work = running.work();
    eventually(|| work.join("held").exists().then_some(()));
    let args = ["prometheus", "--scope", "inspect"];
    let (token, stderr) = client.create_token(&running, &args, |number, _| number.to_owned());
    assert!(token.starts_with("thg_"), "{stderr}");
    let (status, text) = get(&client.with_token(&token), "/metrics", "accept: */*");
    assert_eq!(status, "200", "{text}");
    check_format(&text);
    for line in [
        "tenterhook_gateway_messages_total{result=\"recorded\"} 2",
        "tenterhook_gateway_messages_total{result=\"failed\"} 0",
        "tenterhook_gateway_channel_up{channel=\"http\",kind=\"http\"} 1",
        "tenterhook_gateway_store_writable 1",
        "tenterhook_gateway_waiting{queue=\"inbox\"} 1",
        "tenterhook_gateway_waiting{queue=\"outbox\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert_eq!(get(&client, "/metrics", "accept: */*").0, "403");
    running.signal("KILL");
    assert_eq!(running.finish().status, -1);
}

#[test]
fn an_upgrade_keeps_chats_tokens_and_waiting_messages_however_the_old_process_ends() {
    for (signal, status) in [("TERM", 0), ("KILL", -1)] {
        let (running, client) = ChatClient::start_with(prepare(Test::new()).hooks(HOLD), SETTINGS);
        assert_eq!(client.ask("a", "before")[0], ANSWER);
        client.post("/v1/chats/b/messages", r#"{"text":"held"}"#);
        let work = running.work();
        eventually(|| work.join("held").exists().then_some(()));
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, status, "{signal}: {}", ran.stderr);
        let (running, client) = client.start_again(prepare(ran.again([])));
        eventually(|| {
            let (_, history) = get(&client, "/v1/chats/b/history", "accept: */*");
            history.contains(ANSWER).then_some(())
        });
        let (_, history) = get(&client, "/v1/chats/a/history", "accept: */*");
        assert!(history.contains("before"), "{signal}: {history}");
        assert_eq!(client.ask("a", "after")[0], ANSWER);
        running.signal("KILL");
        assert_eq!(running.finish().status, -1);
    }
}
