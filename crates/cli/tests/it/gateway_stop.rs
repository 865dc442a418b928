//! The end of a gateway while turns run.

use std::io::{BufRead as _, BufReader};

use crate::chat_client::{ChatClient, frames};
use crate::stage::{Test, eventually};

const SCRIPT: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo ran > ran}}]
  - text: Done.
";

#[test]
fn a_call_can_be_approved_while_the_gateway_waits_for_its_turns() {
    let call = Test::new().args("gateway run --no-journal --listen 127.0.0.1:0".split(' '));
    let (running, client) = ChatClient::start(call.script(SCRIPT));
    let stream = eventually(|| {
        let stream = client.open("GET /v1/chats/a/events", "accept: */*", "");
        let mut stream = BufReader::new(stream);
        let mut status = String::new();
        stream.read_line(&mut status).unwrap();
        status.contains(" 200 ").then_some(stream)
    });
    let mut events = frames(stream);
    let mut next_of = |word: &str| events.find(|frame| frame["type"] == word).unwrap();
    let (status, answer) = client.post("/v1/chats/a/messages", r#"{"text":"go"}"#);
    assert_eq!(status, "202", "{answer}");
    let nonce = next_of("approve")["nonce"].clone();
    running.signal("TERM");
    // It takes no messages any more.
    eventually(|| {
        let (status, _) = client.post("/v1/chats/b/messages", r#"{"text":"late"}"#);
        (status == "503").then_some(())
    });
    let path = format!("/v1/chats/a/approvals/{}", nonce.as_str().unwrap());
    let (status, answer) = client.post(&path, r#"{"choice":"allow"}"#);
    assert!(status.starts_with('2'), "{answer}");
    assert_eq!(next_of("done")["status"], "completed");
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("ran"), "ran\n");
}
