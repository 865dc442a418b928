//! `tenterhook fire`: what it prints and how it exits.

use serde_json::{Value, json};

use crate::stage::{Ran, Test};

const CALL: &str = r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}, "session_id": "s1", "cwd": "/srv", "agent": {"name": "root", "id": "a1"}}"#;

fn fire(event: &str, input: &str, hooks: &str) -> Ran {
    Test::new()
        .args(["fire", event, "--no-journal"])
        .event(input)
        .hooks(hooks)
        .run()
}

fn fire_json(event: &str, input: &str, hooks: &str) -> (Value, i32) {
    let ran = Test::new()
        .args(["fire", event, "--no-journal", "--json"])
        .event(input)
        .hooks(hooks)
        .run();
    (ran.json(), ran.status)
}

const REWRITE_AND_ASK: &str = r#"
hooks:
  - name: readable
    event: pre_tool_use
    matcher: shell
    command: echo '{"updated_input":{"cmd":"ls -h"},"system_message":"made it readable"}'
  - name: elsewhere
    event: pre_tool_use
    matcher: read_file
    command: exit 1
  - name: careful
    event: pre_tool_use
    command: echo '{"decision":"ask","reason":"look first"}'
"#;

#[test]
fn the_json_report_has_every_key_and_the_final_event() {
    let (mut report, status) = fire_json("pre_tool_use", CALL, REWRITE_AND_ASK);
    for run in report["runs"].as_array_mut().unwrap() {
        assert!(run["duration_ms"].as_f64().unwrap() > 0.0);
        run["duration_ms"] = "[TIME]".into();
    }
    for stamp in ["event_id", "timestamp"] {
        assert!(report["event"][stamp].is_string());
        report["event"][stamp] = "[STAMP]".into();
    }
    let run = |hook: &str, line: u32, effect: &str, reason: Value| {
        json!({
            "hook": hook, "handler": "command", "source": format!("hooks.yaml:{line}"), "status": "completed",
            "effect": effect, "reason": reason, "cause": null, "let_through": false, "exception": null,
            "duration_ms": "[TIME]",
        })
    };
    let expected = json!({
        "decision": "ask",
        "reason": "look first",
        "by": "careful",
        "kind": null,
        "error": null,
        "permission": "ask",
        "blocked": false,
        "remedy": null,
        "event": {
            "event": "pre_tool_use", "event_id": "[STAMP]", "sequence": 1, "timestamp": "[STAMP]",
            "session_id": "s1", "cwd": "/srv", "agent": {"name": "root", "id": "a1"}, "invoked_by": "main",
            "tool_use_id": "", "tool_name": "shell", "tool_input": {"cmd": "ls -h"}, "attempt": 1,
        },
        "rewritten": ["tool_input"],
        "context": [],
        "inject": [],
        "follow_up": [],
        "handled": false,
        "supply": null,
        "collect": {},
        "notices": ["made it readable"],
        "metadata": {},
        "failures": [],
        "runs": [run("readable", 3, "rewrite", Value::Null), run("careful", 11, "ask", "look first".into())],
        "diverged": [],
    });
    assert_eq!((report, status), (expected, 2));
}

#[test]
fn a_person_gets_a_line_for_each_hook_the_verdict_and_what_changed() {
    let ran = fire("pre_tool_use", CALL, REWRITE_AND_ASK);
    let expected = "  \
  pre_tool_use    readable        rewrite [TIME]
  pre_tool_use    careful         ask [TIME]  look first
rewritten `tool_input`: {\"cmd\":\"ls -h\"}
notice: made it readable
";
    let reason = "pre_tool_use: `careful` asks: look first\n";
    assert_eq!(ran.all(), (expected, reason, 2));
}

/// | event | input | the hook runs | verdict | exit status |
const VERDICTS: [(&str, &str, &str, &str, i32); 10] = [
    (
        "tool_guard",
        CALL,
        r#"echo '{"decision":"deny","reason":"no"}'"#,
        "tool_guard: stopped by `one`: no",
        2,
    ),
    (
        "pre_tool_use",
        CALL,
        "echo never >&2; exit 2",
        "pre_tool_use: stopped by `one`: never",
        2,
    ),
    (
        "pre_tool_use",
        CALL,
        r#"echo '{"decision":"allow"}'"#,
        "pre_tool_use: allowed",
        0,
    ),
    (
        "pre_tool_use",
        CALL,
        "cat > /dev/null",
        "pre_tool_use: not stopped",
        0,
    ),
    (
        "permission_request",
        CALL,
        r#"echo '{"decision":"ask"}'"#,
        "permission_request: `one` asks: no reason was given",
        2,
    ),
    (
        "user_prompt_submit",
        r#"{"prompt": "hi"}"#,
        "echo not this >&2; exit 2",
        "user_prompt_submit: stopped by `one`: not this",
        2,
    ),
    (
        "post_tool_use",
        r#"{"tool_name": "shell", "tool_input": {}, "result": {"content": []}}"#,
        r#"echo '{"continue":false,"stop_reason":"enough"}'"#,
        "post_tool_use: the run ends: enough",
        2,
    ),
    (
        "pre_compact",
        r#"{"source": "manual"}"#,
        "exit 2",
        "pre_compact: stopped by `one`: no reason was given",
        2,
    ),
    (
        "session_end",
        r#"{"reason": "quit"}"#,
        "exit 2",
        "session_end: not stopped",
        0,
    ),
    (
        "x-acme.deploy",
        r#"{"target": "production"}"#,
        "true",
        "x-acme.deploy: not stopped",
        0,
    ),
];

#[test]
fn the_exit_status_says_whether_a_hook_stopped_the_operation() {
    for (event, input, command, verdict, status) in VERDICTS {
        let command = serde_json::to_string(command).unwrap();
        let hooks = format!("hooks: [{{name: one, event: {event}, command: {command}}}]");
        let ran = fire(event, input, &hooks);
        assert!(
            format!("{}{}", ran.stdout, ran.stderr).contains(&format!("\n{verdict}")),
            "{verdict}: {}{}",
            ran.stdout,
            ran.stderr
        );
        assert_eq!(ran.status, status, "{verdict}");
        let (report, status_of_json) = fire_json(event, input, &hooks);
        let is_ask = report["decision"] == "ask";
        assert_eq!(report["blocked"], status == 2 && !is_ask, "{verdict}");
        assert_eq!(status_of_json, status, "{verdict}");
    }
}

#[test]
fn context_reaches_the_report_in_the_order_of_the_hooks() {
    let (report, status) = fire_json(
        "user_prompt_submit",
        r#"{"prompt": "hi"}"#,
        r#"
hooks:
  - event: user_prompt_submit
    command: echo plain
  - event: user_prompt_submit
    command: echo '{"hook_specific_output":{"additional_context":"structured"}}'
"#,
    );
    assert_eq!(report["context"], json!(["plain", "structured"]));
    assert_eq!(status, 0);
}

#[test]
fn an_event_that_a_coding_agent_sent_to_a_hook_is_replayed() {
    let captured = r#"{"session_id": "s1", "cwd": "/tmp", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "sudo ls"}, "tool_use_id": "toolu_1"}"#;
    for event in ["pre_tool_use", "tool_guard"] {
        let ran = Test::new()
            .args([
                "fire",
                event,
                "--no-journal",
                "--from",
                "claude-code",
                "--input",
                "-",
            ])
            .stdin(captured)
            .hooks(&format!(
                "hooks: [{{event: {event}, builtin: deny_commands, args: [sudo]}}]"
            ))
            .run();
        assert_eq!(ran.status, 2, "{}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.contains("sudo") || ran.stdout.contains("sudo"),
            "{}",
            ran.stderr
        );
    }
    let args = ["fire", "pre_tool_use", "--from", "claude-code", "--example"];
    let ran = Test::new().args(args).run();
    let expected = "error: `--from claude-code` needs `--input`\n";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
}

#[test]
fn the_input_comes_from_a_file_or_from_stdin_and_reaches_the_hook() {
    let hooks = "hooks: [{event: pre_tool_use, command: cat > seen.json}]";
    let from_file = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal"])
        .event(r#"{"tool_name": "shell"}"#)
        .hooks(hooks)
        .run();
    let from_stdin = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--input", "-"])
        .stdin(r#"{"tool_name": "shell"}"#)
        .hooks(hooks)
        .run();
    for ran in [from_file, from_stdin] {
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        let seen: Value = serde_json::from_str(&ran.file("seen.json")).unwrap();
        assert_eq!(seen["hook_event_name"], "pre_tool_use");
        assert_eq!(seen["tool_name"], "shell");
        assert_eq!(seen["cwd"], ran.path("work").to_str().unwrap());
    }
}

#[test]
fn a_recorded_event_can_be_fired_again() {
    let (report, _) = fire_json("pre_tool_use", CALL, "hooks: []");
    let (again, status) = fire_json("pre_tool_use", &report["event"].to_string(), "hooks: []");
    assert_eq!(again["event"]["tool_input"], json!({"cmd": "ls"}));
    assert_eq!(again["event"]["session_id"], "s1");
    assert_eq!(status, 0);
}

#[test]
fn without_input_and_hooks_nothing_happens() {
    let ran = Test::new()
        .args(["fire", "agent_start", "--no-journal"])
        .run();
    let expected =
        "agent_start: not stopped; no hook matched (`tenterhook explain agent_start` shows why)\n";
    assert_eq!(ran.all(), (expected, "", 0));
}
