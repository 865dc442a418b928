//! A secret that a tool prints is not passed on.

use std::fs;

use crate::stage::Test;

/// A token in a service's format, assembled here so that no file of the repository contains one.
fn token() -> String {
    ["gh", "p_", "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoI"].concat()
}

const SCRIPT: &str = "\
turns:
  - tool_calls: [{ name: shell, arguments: { cmd: cat credentials } }]
  - text: done
";

const HOOKS: &str = "\
hooks:
  - event: [tool_input_transform, tool_response_transform, before_llm_call]
    builtin: redact_secrets
  - {event: before_llm_call, phase: observe, command: cat >> model.jsonl; echo >> model.jsonl}
  - {event: stop, phase: observe, command: cat >> session.jsonl}
  - {event: post_tool_use, phase: observe, command: 'cat credentials >&2; exit 1'}
";

#[test]
fn a_secret_in_a_result_reaches_neither_model_nor_session_nor_journal_nor_screen() {
    let ran = Test::new()
        .args([
            "run",
            "go",
            "--yes",
            "--timeline",
            "--journal",
            "journal.jsonl",
        ])
        .file("credentials", &format!("the token is {}\n", token()))
        .script(SCRIPT)
        .hooks(HOOKS)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let places = [
        ("model", ran.file("model.jsonl")),
        ("session", ran.file("session.jsonl")),
        ("journal", ran.file("journal.jsonl")),
        ("screen", ran.stdout.clone()),
        ("messages on the screen", ran.stderr.clone()),
    ];
    for (place, text) in &places {
        assert!(!text.contains(&token()), "{place}: {text}");
    }
    for (place, text) in places.iter().take(4) {
        assert!(text.contains("[REDACTED:github-pat]"), "{place}: {text}");
    }
    assert!(
        fs::read_to_string(ran.path("work").join("credentials"))
            .unwrap()
            .contains(&token())
    );
}

/// Returns whether a text contains a usefully long part of a secret.
fn has_part(text: &str, secret: &str) -> bool {
    let mut parts = secret.as_bytes().windows(10);
    parts.any(|part| text.contains(std::str::from_utf8(part).unwrap()))
}

/// Runs a session in which a tool prints a file. Returns the texts that the model, the journal and the screen got.
fn shown(credentials: &str, script: &str) -> Vec<(&'static str, String)> {
    let ran = Test::new()
        .args([
            "run",
            "go",
            "--yes",
            "--timeline",
            "--journal",
            "journal.jsonl",
        ])
        .file("credentials", credentials)
        .script(script)
        .hooks(HOOKS)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    vec![
        ("model", ran.file("model.jsonl")),
        ("journal", ran.file("journal.jsonl")),
        ("screen", ran.stdout.clone()),
        ("messages on the screen", ran.stderr.clone()),
    ]
}

#[test]
fn a_token_at_a_size_limit_is_not_shown_in_part() {
    // There is a token at every place where the text may be cut.
    let line = format!("the token is {}\n", token());
    for count in [2_000, 20_000] {
        for (place, text) in shown(&line.repeat(count), SCRIPT) {
            assert!(!has_part(&text, &token()), "{place} has a part of a token");
        }
    }
}

#[test]
fn a_private_key_without_its_end_is_not_shown() {
    let first = ["-----BEGIN PRIVATE", " KEY-----\n"].concat();
    let last = ["-----END PRIVATE", " KEY-----\n"].concat();
    let line = "q7Zk2WvR9xT4bN6mJ1cH8dL5sP3fG0yAuEoIqB7nXr0123456789abcdefghijkl";
    let key = format!("{line}\n").repeat(40);
    let long = format!("{line}\n").repeat(4_000);
    for text in [
        format!("before\n{first}{key}"),
        format!("{key}{last}behind\n"),
        format!("{first}{long}{last}"),
    ] {
        for (place, text) in shown(&text, SCRIPT) {
            assert!(!has_part(&text, line), "{place}: {text:.2000}");
        }
    }
}

#[test]
fn a_secret_in_the_name_of_a_tool_or_of_an_argument_is_not_shown() {
    let token = token();
    for call in [
        format!("{{name: {token}, arguments: {{cmd: ls}}}}"),
        format!("{{name: shell, arguments: {{cmd: ls, {token}: 1}}}}"),
        format!("{{name: shell, arguments: {{cmd: ls, timeout: {{{token}: 1}}}}}}"),
    ] {
        let script = format!("turns:\n  - tool_calls: [{call}]\n  - text: done\n");
        for (place, text) in shown("", &script) {
            assert!(!has_part(&text, &token), "{call}: {place}: {text}");
        }
    }
}

#[test]
fn a_secret_in_the_name_of_a_file_reaches_neither_model_nor_journal() {
    let token = token();
    for call in [
        format!("{{name: read_file, arguments: {{path: {token}}}}}"),
        format!("{{name: shell, arguments: {{cmd: touch {token}; ls}}}}"),
    ] {
        let script = format!("turns:\n  - tool_calls: [{call}]\n  - text: done\n");
        // The user sees the call exactly as the model made it.
        let places = shown("", &script).into_iter();
        for (place, text) in places.filter(|(place, _)| *place != "screen") {
            assert!(!has_part(&text, &token), "{call}: {place}: {text}");
        }
    }
}
