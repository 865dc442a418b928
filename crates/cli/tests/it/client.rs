//! A program that controls the conversation over JSON-RPC.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};

use serde::Serialize;
use serde_json::{Value, json};

use crate::stage::{Ran, Running, Test};

/// A client of the program.
pub(crate) struct Client {
    pub(crate) running: Running,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Client {
    pub(crate) fn start(test: Test) -> Self {
        let (mut running, stdin) = test.args(["--mode", "rpc"]).start_with_open_stdin();
        Self {
            stdout: running.stdout(),
            stdin: Some(stdin),
            running,
        }
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.write(&format!("{message}\n"));
    }

    pub(crate) fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub(crate) fn ask(&mut self, id: u64, method: &str, params: impl Serialize) {
        let params = json!(params);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// Reads messages until one matches.
    pub(crate) fn until(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended: {}", self.running.stderr());
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            if is_meant(&message) {
                return message;
            }
        }
    }

    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    pub(crate) fn event(&mut self, name: &str) -> Value {
        let is_event = |it: &Value| it["method"] == "event" && it["params"]["event"] == name;
        self.until(is_event)["params"].clone()
    }

    /// Closes stdin and waits for the program to end.
    pub(crate) fn end(self) -> Ran {
        self.end_after(|_| {})
    }

    /// Closes stdin, passes on the remaining messages, and waits for the program to end.
    pub(crate) fn end_after(mut self, mut show: impl FnMut(Value)) -> Ran {
        drop(self.stdin.take());
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            show(serde_json::from_str(&line).unwrap());
            line.clear();
        }
        self.running.finish()
    }
}
