//! A client of the gateway's channel `http`.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{Running, Test};

/// A client of the channel `http`, with a token of its own.
pub(crate) struct ChatClient {
    address: String,
    token: String,
}

impl ChatClient {
    /// Starts a gateway whose only channel is `http`, on a free port. Returns it with a client that may approve.
    pub(crate) fn start(test: Test) -> (Running, Self) {
        Self::start_with(test, "channels: { http: {} }")
    }

    /// Does the same with the text of the settings.
    pub(crate) fn start_with(test: Test, settings: &str) -> (Running, Self) {
        let (running, address) = listening(test.file("../config/gateway.yaml", settings));
        let args = [
            "gateway", "token", "create", "owner", "--scope", "chat", "--scope", "approve",
        ];
        let created = running.beside(args);
        let client = Self {
            address,
            token: String::from_utf8(created.stdout).unwrap().trim().to_owned(),
        };
        (running, client)
    }

    /// Starts the gateway again, with the same folders. Returns it with a client that has the same token.
    pub(crate) fn start_again(self, test: Test) -> (Running, Self) {
        let (running, address) = listening(test);
        (running, Self { address, ..self })
    }

    /// Returns a client with another token.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self {
            address: self.address.clone(),
            token: token.to_owned(),
        }
    }

    /// Returns a client that may only write.
    pub(crate) fn member(&self, running: &Running) -> Self {
        self.confirmed(running, &["chat", "--scope", "chat"])
    }

    /// Returns a client of another user, who may only write. The token has the name of the user.
    pub(crate) fn of_user(&self, running: &Running, user: &str) -> Self {
        self.confirmed(running, &[user, "--user", user, "--scope", "chat"])
    }

    /// Returns a client with another token, which this one confirms as the owner.
    fn confirmed(&self, running: &Running, args: &[&str]) -> Self {
        let (token, stderr) = self.create_token(running, args, |number, _| number.to_owned());
        assert!(token.starts_with("thg_"), "{stderr}");
        self.with_token(&token)
    }

    /// Creates a token on the command line, and answers the question about its number with one of the options. Returns
    /// what the command prints.
    pub(crate) fn create_token(
        &self,
        running: &Running,
        args: &[&str],
        choose: impl FnOnce(&str, &Value) -> String,
    ) -> (String, String) {
        let request = "GET /v1/chats/confirm/events";
        let mut events = BufReader::new(self.open(request, "accept: text/event-stream", ""));
        // After the head of the answer, the chat is watched.
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            events.read_line(&mut line).unwrap();
        }
        let mut command = running.command_beside([&["gateway", "token", "create"], args].concat());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut shown = String::new();
        stderr.read_line(&mut shown).unwrap();
        let number: String = shown.chars().filter(char::is_ascii_digit).take(2).collect();
        let is_question = |frame: &Value| frame["type"] == "question";
        let asked = frames(events).find(is_question).unwrap();
        let text = choose(&number, &asked["question"]);
        let nonce = asked["nonce"].as_str().unwrap();
        let path = format!("/v1/chats/confirm/approvals/{nonce}");
        let (status, answer) = self.post(&path, &json!({ "text": text }).to_string());
        assert_eq!(status, "200", "{answer}");
        stderr.read_to_string(&mut shown).unwrap();
        let output = child.wait_with_output().unwrap();
        (
            String::from_utf8(output.stdout).unwrap().trim().to_owned(),
            shown,
        )
    }

    /// Sends a request, with lines of its head.
    pub(crate) fn open(&self, request: &str, head: &str, body: &str) -> TcpStream {
        let Self { address, token } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{head}\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }

    /// Returns the status and the rest of the answer, without waiting for a turn.
    pub(crate) fn post(&self, path: &str, body: &str) -> (String, String) {
        let mut answer = String::new();
        let mut stream = self.open(&format!("POST {path}"), "prefer: respond-async", body);
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        (status, answer)
    }

    /// Sends a message. Returns the frames of its answer as they arrive.
    pub(crate) fn say(&self, chat: &str, text: &str) -> impl Iterator<Item = Value> + use<> {
        let request = format!("POST /v1/chats/{chat}/messages");
        let body = json!({ "text": text }).to_string();
        let stream = self.open(&request, "accept: text/event-stream", &body);
        frames(BufReader::new(stream))
    }

    /// Sends a message. Returns the texts of its answer: notices, errors and what the agent says.
    pub(crate) fn ask(&self, chat: &str, text: &str) -> Vec<String> {
        let is_shown = |frame: &Value| {
            let kind = frame["type"].as_str().unwrap_or_default();
            ["notice", "error", "end", "message"].contains(&kind)
        };
        let shown = self.say(chat, text).filter(is_shown);
        shown
            .map(|frame| frame["text"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

/// Starts a gateway. Returns it with its address.
fn listening(test: Test) -> (Running, String) {
    let mut running = test.start();
    let line = running.stdout().lines().next().unwrap().unwrap();
    let address = line.strip_prefix("Listening on http://").unwrap();
    (running, address.to_owned())
}

/// Returns the frames of a stream of events.
pub(crate) fn frames(stream: impl BufRead) -> impl Iterator<Item = Value> {
    stream.lines().map_while(Result::ok).filter_map(|line| {
        let frame: Value = serde_json::from_str(line.strip_prefix("data: ")?).ok()?;
        frame.is_object().then_some(frame)
    })
}
