//! HTTP hooks of a file, with a service on loopback.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::stage::{Ran, Test};

/// Answers one request, and returns its header `Authorization` and its body.
fn answer_once(status: &'static str, body: &'static str) -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut key, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some(("authorization", value)) => value.clone_into(&mut key),
                Some(("content-length", value)) => length = value.parse().unwrap(),
                None if line.trim().is_empty() => break,
                Some(_) | None => {}
            }
        }
        let mut event = vec![0; length];
        reader.read_exact(&mut event).unwrap();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        (key, serde_json::from_slice(&event).unwrap())
    });
    (url, served)
}

fn hooks(url: &str) -> String {
    format!(
        "hooks:\n  - name: policy\n    event: pre_tool_use\n    http: {url}?key=canary-query\n    allow_private: true\n    \
         headers: {{ Authorization: \"Bearer ${{env.POLICY_TOKEN}}\", X-Literal: canary-literal }}\n"
    )
}

fn fire(url: &str) -> Ran {
    Test::new()
        .args(["fire", "pre_tool_use", "--json"])
        .variable("POLICY_TOKEN", "canary-token")
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .hooks(&hooks(url))
        .run()
}

/// Everything that a run wrote into its folders, except the hook file.
fn written(ran: &Ran) -> String {
    let mut text = format!("{}{}", ran.stdout, ran.stderr);
    let mut folders = vec![ran.path("state"), ran.path("home"), ran.path("tmp")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                text.push_str(&std::fs::read_to_string(path).unwrap());
                files += 1;
            }
        }
    }
    assert!(files > 0, "there is no journal");
    text
}

#[test]
fn a_service_denies_a_call_and_its_key_is_shown_nowhere() {
    let (url, served) = answer_once("200 OK", r#"{"decision":"deny","reason":"not here"}"#);
    let ran = fire(&url);
    assert_eq!(ran.json()["permission"], "deny");
    assert_eq!(ran.json()["reason"], "not here");
    assert_eq!(ran.json()["runs"][0]["handler"], "http");
    let (key, event) = served.join().unwrap();
    assert_eq!(key, "Bearer canary-token");
    assert_eq!(event["hook_event_name"], "pre_tool_use");
    assert_eq!(event["tool_input"]["cmd"], "ls");
    assert!(!written(&ran).contains("canary"), "{}", written(&ran));
}

#[test]
fn a_service_that_refuses_denies_and_what_it_echoes_is_redacted() {
    let (url, served) = answer_once(
        "401 Unauthorized",
        "unknown key canary-token or canary-literal",
    );
    let ran = fire(&url);
    served.join().unwrap();
    assert_eq!(ran.json()["permission"], "deny");
    let expected = "answered 401 Unauthorized: unknown key *** or ***";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    assert!(!written(&ran).contains("canary"), "{}", written(&ran));
}

#[test]
fn a_list_shows_where_an_http_hook_posts_and_no_secret() {
    let ran = Test::new()
        .args(["list"])
        .variable("POLICY_TOKEN", "canary-token")
        .hooks(&hooks("http://127.0.0.1:9/tool"))
        .run();
    assert!(
        ran.stdout.contains("http POST http://127.0.0.1:9/tool?…"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("canary"), "{}", ran.stdout);
}
