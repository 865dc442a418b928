//! Reloading the settings of a gateway that runs.

use std::fs;

use serde_json::Value;

use crate::stage::{Running, Test, eventually};

const SETTINGS: &str = "../config/gateway.yaml";
const PAGE: &str = include_str!("../../../../docs/reference/channel-protocol.md");

/// Starts a gateway with the channel `notes`, and waits until it is connected.
fn start() -> (Running, impl Fn(&str)) {
    let (_, code) = PAGE.split_once("```python\n").unwrap();
    let example = code.split_once("```").unwrap().0;
    let test = Test::new()
        .args(["gateway", "run", "--no-journal", "--listen", "off"])
        .script("turns: [{text: Hello., repeat: true}]")
        .file("channel.py", example)
        .file("inbox/none", "")
        .file("outbox/none", "")
        .file(SETTINGS, &settings(""));
    let file = test.work().join(SETTINGS);
    let write = move |text: &str| fs::write(&file, text).unwrap();
    let running = test.start();
    wait_until_up(&running, "notes");
    (running, write)
}

/// Returns settings with the channel `notes`, and more.
fn settings(more: &str) -> String {
    format!("channels:\n  notes: {{ kind: command, argv: [python3, channel.py, .] }}\n{more}")
}

fn beside(running: &Running, args: &[&str]) -> (Value, String, Option<i32>) {
    let output = running.beside(["gateway"].into_iter().chain(args.iter().copied()));
    let json = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let stderr = String::from_utf8(output.stderr).unwrap();
    (json, stderr, output.status.code())
}

fn wait_until_up(running: &Running, id: &str) {
    eventually(|| channel(running, id).filter(|channel| channel["state"] == "up"));
}

fn channel(running: &Running, id: &str) -> Option<Value> {
    let (listed, ..) = beside(running, &["channels", "--json"]);
    let mut channels = listed["channels"].as_array()?.iter();
    channels.find(|channel| channel["id"] == id).cloned()
}

#[test]
fn a_reload_changes_channels_and_keeps_the_connections_of_others() {
    let (running, write) = start();
    let since = channel(&running, "notes").unwrap()["since"].clone();
    let second = "  second: { kind: command, argv: [python3, channel.py, .] }\n";
    write(&settings(second));
    running.signal("HUP");
    wait_until_up(&running, "second");
    assert_eq!(channel(&running, "notes").unwrap()["since"], since);

    write(&format!("turns: {{ max: 1 }}\n{}", settings("")));
    let (changes, stderr, status) = beside(&running, &["reload", "--json"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(changes["stopped"], serde_json::json!(["second"]));
    assert_eq!(changes["needs_restart"], serde_json::json!(["turns"]));
    assert_eq!(channel(&running, "second"), None);
    assert_eq!(channel(&running, "notes").unwrap()["since"], since);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn invalid_settings_change_nothing_and_stand_in_the_status() {
    let (running, write) = start();
    let before = channel(&running, "notes");
    write(&settings("  second: { kind: comand }\nbusy: off\n"));
    let (_, stderr, status) = beside(&running, &["reload"]);
    assert_eq!(status, Some(1), "{stderr}");
    for place in ["gateway.yaml:3:19", "gateway.yaml:4:7"] {
        assert!(stderr.contains(place), "{place} is not in {stderr}");
    }
    assert_eq!(channel(&running, "notes"), before);
    let (status, ..) = beside(&running, &["status", "--json"]);
    let error = status["reload"]["error"].as_str().unwrap();
    assert!(error.contains("gateway.yaml:3:19"), "{error}");

    write(&settings(""));
    let (_, stderr, status) = beside(&running, &["reload"]);
    assert_eq!(status, Some(0), "{stderr}");
    let (status, ..) = beside(&running, &["status", "--json"]);
    assert!(status["reload"]["error"].is_null(), "{status}");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 0);
    assert!(
        ran.stderr
            .contains("the old settings and hooks stay in force"),
        "{}",
        ran.stderr
    );
}
