//! Model hooks: a session whose calls a model judges.

use crate::service::{Service, stream};
use crate::stage::Test;
use serde_json::json;

const JUDGE: &str = "hooks:
  - name: judge
    event: pre_tool_use
    matcher: shell
    model: openai/gpt-4o-mini
    schema: decision
    prompt: 'May this run? {{ tool_input.cmd }}'
";

#[test]
fn a_scripted_judge_denies_a_call_and_the_model_and_the_human_hear_why() {
    let ran = Test::new()
        .args(["run", "clean up", "--yes", "--journal", "journal.jsonl"])
        .hooks(JUDGE)
        .script(
            "turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]
  - judge: '{\"decision\":\"deny\",\"reason\":\"it changes files\"}'
  - text: I may not.
",
        )
        .run();
    assert!(
        ran.stderr
            .contains("🤖 model judge: deny — it changes files")
            || ran
                .stdout
                .contains("🤖 model judge: deny — it changes files"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("it changes files"), "{ran:?}");
    assert!(ran.stdout.ends_with("I may not.\n"), "{ran:?}");
    assert!(!ran.path("work").join("ran").exists());
    let runs = ran.lines("journal.jsonl");
    let run = runs.iter().find(|run| run["hook"] == "judge").unwrap();
    assert_eq!(
        (&run["handler"], &run["effect"]),
        (&json!("model"), &json!("deny")),
        "{run}"
    );
}

#[test]
fn a_judge_that_cannot_be_read_denies() {
    let ran = Test::new()
        .args(["run", "clean up", "--yes", "--no-journal"])
        .hooks(JUDGE)
        .script(
            "turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch ran}}]
  - judge: I would allow it.
  - text: I may not.
",
        )
        .run();
    assert!(
        ran.stdout.contains("there is no JSON object in it"),
        "{ran:?}"
    );
    assert!(!ran.path("work").join("ran").exists());
}

#[test]
fn fire_asks_the_model_that_the_hook_names() {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--json"])
        .hooks(&JUDGE.replace("openai/gpt-4o-mini", "scripted:judge.yaml"))
        .file("judge.yaml", "turns: [{judge: '{\"decision\":\"ask\"}'}]")
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .run();
    let report = ran.json();
    assert_eq!(report["permission"], "ask");
    assert_eq!(report["reason"], "no reason provided");
    assert_eq!(
        report["notices"],
        json!(["🤖 model judge: ask — no reason provided"])
    );
}

#[test]
fn a_served_judge_gets_the_schema_and_its_tokens_are_not_those_of_the_session() {
    let text = r#"{"decision":"deny","reason":"no"}"#;
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
        "function": {"name": "shell", "arguments": "{\"cmd\":\"ls\"}"}}]});
    let service = Service::start([
        stream(&[call], "tool_calls"),
        stream(&[json!({ "content": text })], "stop"),
        stream(&[json!({"content": "Denied."})], "stop"),
    ]);
    let ran = Test::new()
        .args(["run", "look", "--no-journal", "--yes", "--json"])
        .args(["--model", "openai:gpt-4o", "--base-url", &service.url])
        .variable("OPENAI_API_KEY", "test")
        .hooks(&format!(
            "{JUDGE}  - {{name: calls, event: before_llm_call, command: echo x >> calls}}\n"
        ))
        .run();
    let report = ran.json();
    assert_eq!(report["response"], "Denied.", "{ran:?}");
    assert_eq!(report["usage"]["output_tokens"], 14);
    let requests = service.seen();
    assert_eq!(requests.len(), 3);
    let asked = &requests[1].2;
    assert_eq!(asked["model"], "gpt-4o-mini");
    assert_eq!(
        asked["response_format"]["json_schema"]["name"],
        "pre_tool_use_decision"
    );
    assert!(asked["messages"].to_string().contains("May this run? ls"));
    // The agent's two calls, without the judge's.
    assert_eq!(ran.file("calls"), "x\nx\n");
}

#[test]
fn list_and_check_need_no_model() {
    let ran = Test::new().args(["list"]).hooks(JUDGE).run();
    assert_eq!(ran.status, 0);
    assert!(
        ran.stdout.contains("model openai/gpt-4o-mini (decision)"),
        "{}",
        ran.stdout
    );
    let ran = Test::new()
        .args(["check", "hooks.yaml"])
        .file(
            "hooks.yaml",
            &JUDGE.replace("tool_input.cmd", "tool_imput.cmd"),
        )
        .run();
    assert_eq!(ran.status, 3);
    assert!(
        ran.stderr.contains("hooks.yaml:7:31")
            && ran.stderr.contains(
                "unknown field `tool_imput` of `pre_tool_use`, did you mean `tool_input`?"
            ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_name_that_is_no_model_is_warned_of() {
    let hooks = JUDGE.replace("openai/gpt-4o-mini", "gpt-4o-mini");
    let ran = Test::new()
        .args(["check", "hooks.yaml"])
        .file("hooks.yaml", &hooks)
        .run();
    assert_eq!(ran.status, 0);
    assert!(
        ran.stderr
            .contains("warning: unknown model `gpt-4o-mini`: expected `scripted:FILE` or one of"),
        "{}",
        ran.stderr
    );
}
