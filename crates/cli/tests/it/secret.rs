//! A secret that a tool prints goes no further.

use std::fs;

use crate::stage::Test;

/// A token of the form that a service gives out, put together so that no file of the repository holds one.
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
