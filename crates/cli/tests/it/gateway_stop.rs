//! The end of a gateway while turns run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::stage::{Test, eventually};

const SCRIPT: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo ran > ran}}]
  - text: Done.
";

/// A client of the channel `http`.
struct Client {
    address: String,
    token: String,
}

impl Client {
    fn open(&self, request: &str, body: &str) -> TcpStream {
        let Self { address, token } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\nprefer: respond-async\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }

    /// Returns the status and the rest of the answer.
    fn post(&self, path: &str, body: &str) -> (String, String) {
        let mut answer = String::new();
        let mut stream = self.open(&format!("POST {path}"), body);
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        (status, answer)
    }
}

/// Reads events of a stream until one of a type comes.
fn next_of(events: &mut impl BufRead, word: &str) -> Value {
    loop {
        let mut line = String::new();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "no `{word}`");
        let data = line.strip_prefix("data: ").map(serde_json::from_str);
        if let Some(Ok(frame)) = data
            && let frame @ Value::Object(_) = frame
            && frame["type"] == word
        {
            return frame;
        }
    }
}

#[test]
fn a_call_can_be_approved_while_the_gateway_waits_for_its_turns() {
    let call = Test::new().args("gateway run --no-journal --listen 127.0.0.1:0".split(' '));
    let mut running = call
        .script(SCRIPT)
        .file("../config/gateway.yaml", "channels: { http: {} }")
        .start();
    let line = running.stdout().lines().next().unwrap().unwrap();
    let address = line.strip_prefix("Listening on http://").unwrap();
    let created =
        running.beside("gateway token create laptop --scope chat --scope approve".split(' '));
    let client = Client {
        address: address.to_owned(),
        token: String::from_utf8(created.stdout).unwrap().trim().to_owned(),
    };
    let stream = eventually(|| {
        let mut stream = BufReader::new(client.open("GET /v1/chats/a/events", ""));
        let mut status = String::new();
        stream.read_line(&mut status).unwrap();
        status.contains(" 200 ").then_some(stream)
    });
    let mut events = stream;
    let (status, answer) = client.post("/v1/chats/a/messages", r#"{"text":"go"}"#);
    assert_eq!(status, "202", "{answer}");
    let nonce = next_of(&mut events, "approve")["nonce"].clone();
    running.signal("TERM");
    // It takes no messages any more.
    eventually(|| {
        let (status, _) = client.post("/v1/chats/b/messages", r#"{"text":"late"}"#);
        (status == "503").then_some(())
    });
    let path = format!("/v1/chats/a/approvals/{}", nonce.as_str().unwrap());
    let (status, answer) = client.post(&path, r#"{"choice":"allow"}"#);
    assert!(status.starts_with('2'), "{answer}");
    assert_eq!(next_of(&mut events, "done")["status"], "completed");
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.file("ran"), "ran\n");
}
