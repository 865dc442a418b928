//! `tenterhook fire` with the input of other systems' hooks, with examples, and with payloads made from arguments.

use serde_json::{Value, json};
use tenterhook_engine::events;

use crate::stage::Test;

/// Stops a push, in whichever system's form the call arrives.
const GUARD: &str = r#"
hooks:
  - name: no-push
    event: pre_tool_use
    matcher: shell
    command: |
      grep -q '"cmd":"git push"' && { echo no pushes >&2; exit 2; } || exit 0
"#;

fn fire(input: &Value, args: &[&str]) -> Test {
    Test::new()
        .args(["fire", "pre_tool_use", "--no-journal"])
        .args(args.iter().copied())
        .event(&input.to_string())
        .hooks(GUARD)
}

/// The input of each system's hook before a push.
fn captured() -> [(&'static str, Value); 7] {
    let input = json!({"cmd": "git push"});
    [
        (
            "tenterhook",
            json!({"tool_name": "shell", "tool_input": input, "session_id": "s1"}),
        ),
        (
            "native",
            json!({"hook_event_name": "pre_tool_use", "event_id": "e", "sequence": 3, "session_id": "s1", "cwd": "/",
                "invoked_by": "main", "attempt": 1, "tool_name": "shell", "tool_input": input}),
        ),
        (
            "docker-agent",
            json!({"hook_event_name": "pre_tool_use", "session_id": "s1", "cwd": "/", "agent_name": "root",
                "tool_name": "shell", "tool_use_id": "call_1", "tool_input": input}),
        ),
        (
            "kodelet",
            json!({"event": "before_tool_call", "conv_id": "s1", "cwd": "/", "invoked_by": "main",
                "tool_name": "shell", "tool_input": input, "tool_user_id": "call_1"}),
        ),
        (
            "operator",
            json!({"type": "tool_call", "tool_call_id": "call_1", "tool_name": "shell", "input": input}),
        ),
        (
            "morphix",
            json!({"hook_point": "on_before_tool", "tool_name": "shell", "parameters": input, "role": "agent",
                "attempt": 1, "workspace": "main", "session_id": "s1"}),
        ),
        (
            "pi",
            json!({"type": "tool_call", "toolCallId": "call_1", "toolName": "bash",
                "input": {"command": "git push"}}),
        ),
    ]
}

#[test]
fn what_a_hook_of_any_system_read_can_be_fired() {
    for (system, input) in captured() {
        for args in [&[][..], &["--from", system]] {
            let ran = fire(&input, args).run();
            assert_eq!(
                (ran.stderr.as_str(), ran.status),
                ("pre_tool_use: stopped by `no-push`: no pushes\n", 2),
                "{system} {args:?}: {}",
                ran.stdout
            );
        }
    }
}

#[test]
fn an_input_that_may_be_of_two_systems_is_refused_with_the_keys_that_decide() {
    let ran = fire(&json!({"type": "tool_call"}), &[]).run();
    let (message, status) = ran.refusal();
    assert!(
        message.starts_with("error: the input may be in the form of `operator` or `pi`\nhint: name the form with `--from`"),
        "{message}"
    );
    assert!(message.contains("morphix (`hook_point`)"), "{message}");
    assert_eq!(status, 2);
}

#[test]
fn an_input_that_names_another_event_is_refused_with_both_names() {
    let ran = fire(
        &json!({"hook_event_name": "post_tool_use", "tool_name": "shell"}),
        &[],
    )
    .run();
    let (message, status) = ran.refusal();
    assert!(
        message.starts_with(
            "error: `hook_event_name` of the input is `post_tool_use`, but the event is `pre_tool_use`\n"
        ),
        "{message}"
    );
    assert_eq!(status, 2);
}

#[test]
fn an_event_that_the_named_system_does_not_have_is_refused_with_those_it_has() {
    let ran = Test::new()
        .args(["fire", "turn_start", "--no-journal", "--from", "morphix"])
        .event("{}")
        .run();
    let (message, status) = ran.refusal();
    assert_eq!(
        message,
        "error: morphix has no event that corresponds to `turn_start`\nhint: available: `tools_disabled`, `pre_tool_use`, \
         `permission_denied`, `token_budget_exceeded`, `post_tool_use`, `tool_error`\n"
    );
    assert_eq!(status, 3);
}

#[test]
fn every_event_has_an_example_that_can_be_fired() {
    let names = events().map(|info| info.name).chain(["x-acme.deploy"]);
    // One process for each event would take too long. These events have every kind of field.
    for name in names
        .step_by(9)
        .chain(["pre_tool_use", "session_before_tree", "x-acme.deploy"])
    {
        let example = Test::new().args(["fire", name, "--example"]).run();
        assert_eq!((example.stderr.as_str(), example.status), ("", 0), "{name}");
        let example = example.json();
        let ran = Test::new()
            .args(["fire", name, "--no-journal", "--json"])
            .event(&example.to_string())
            .run();
        assert_eq!(ran.status, 0, "{name}: {}", ran.stderr);
        for (key, value) in example.as_object().unwrap() {
            if key != "agent" {
                assert_eq!(&ran.json()["event"][key], value, "{name} {key}");
            }
        }
    }
}

#[test]
fn an_example_in_the_form_of_a_system_is_what_its_hooks_read() {
    for (system, _) in captured() {
        let example = Test::new()
            .args(["fire", "pre_tool_use", "--example", "--from", system])
            .args(["--tool", "shell", "--arg", "cmd=git push"])
            .run();
        assert_eq!(
            (example.stderr.as_str(), example.status),
            ("", 0),
            "{system}"
        );
        let ran = fire(&example.json(), &["--from", system]).run();
        assert_eq!(ran.status, 2, "{system}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("no pushes"), "{system}: {}", ran.stderr);
    }
}

#[test]
fn an_example_in_the_form_of_a_system_without_the_event_is_refused() {
    let ran = Test::new()
        .args(["fire", "gateway_start", "--example", "--from", "kodelet"])
        .run();
    let (message, status) = ran.refusal();
    assert!(
        message.starts_with(
            "error: kodelet has no event that corresponds to `gateway_start`\nhint: available: "
        ),
        "{message}"
    );
    assert_eq!(status, 3);
}

#[test]
fn a_call_of_a_tool_is_put_together_from_arguments() {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--tool", "shell"])
        .args(["--arg", "cmd=git push"])
        .hooks(GUARD)
        .run();
    assert_eq!(ran.status, 2, "{}{}", ran.stdout, ran.stderr);
    let ran = Test::new()
        .args([
            "fire",
            "pre_tool_use",
            "--no-journal",
            "--json",
            "--tool",
            "deploy",
        ])
        .args([
            "--arg",
            "limit=5",
            "--arg",
            "list=[1, \"a\"]",
            "--arg",
            "text=\"5\"",
            "--arg",
            "all=true",
        ])
        .args(["--arg", "words=a=b, c", "--arg", "none="])
        .run();
    let event = ran.json()["event"].clone();
    assert_eq!(event["tool_name"], "deploy");
    let expected = json!({
        "limit": 5, "list": [1, "a"], "text": "5", "all": true, "words": "a=b, c", "none": "",
    });
    assert_eq!(event["tool_input"], expected);
    assert_eq!(ran.status, 0);
}

#[test]
fn arguments_that_make_no_call_are_refused() {
    for (args, part) in [
        (
            &["session_end", "--tool", "shell"][..],
            "`session_end` is not a tool event",
        ),
        (&["pre_tool_use", "--arg", "cmd=ls"], "--tool <NAME>"),
        (
            &["pre_tool_use", "--tool", "shell", "--arg", "cmd"],
            "expected `NAME=VALUE`",
        ),
        (
            &[
                "pre_tool_use",
                "--tool",
                "shell",
                "--arg",
                "a=1",
                "--arg",
                "a=2",
            ],
            "`--arg a=` appears twice",
        ),
        (
            &["pre_tool_use", "--tool", "shell", "--input", "-"],
            "cannot be used with",
        ),
        (
            &["tool_execution_end", "--tool", "shell", "--arg", "a=1"],
            "`tool_execution_end` has no tool arguments",
        ),
        (
            &["pre_tool_use", "--from", "kodelet"],
            "`--from` needs `--input`, `--tool` or `--example`",
        ),
        (
            &[
                "pre_tool_use",
                "--tool",
                "read",
                "--arg",
                "path=a",
                "--arg",
                "offset=3",
            ],
            "choose the system: `--from operator`, `--from pi`",
        ),
        (
            &["pre_tool_use", "--tool", "apply_patch", "--arg", "input=x"],
            "`tenterhook tools apply_patch` shows the arguments",
        ),
    ] {
        let ran = Test::new().args(["fire"]).args(args.iter().copied()).run();
        let (message, status) = ran.refusal();
        assert!(message.contains(part), "`{part}` in {message}");
        let expected = if args[0] == "pre_tool_use" { 2 } else { 64 };
        assert_eq!(status, expected, "{message}");
    }
}
