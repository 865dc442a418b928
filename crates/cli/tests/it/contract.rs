//! docker-agent's contract for tool calls: an agent file, the real agent, real commands.

use serde_json::{Value, json};

use crate::stage::{Ran, Test};

const TOUCH: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]
  - text: done
";

fn sh(line: &str) -> Value {
    json!({"type": "command", "command": line})
}

/// A hook for every tool that prints a permission.
fn permits(permission: &str) -> Value {
    let answer = json!({"hook_specific_output": {
        "permission_decision": permission,
        "permission_decision_reason": "because",
    }});
    json!([{"hooks": [sh(&format!("touch asked; printf '%s' '{answer}'"))]}])
}

/// The same hook, with the key that lets it run before `--yes` counts.
fn preempts(permission: &str) -> Value {
    let mut entries = permits(permission);
    entries[0]["preempt_yolo"] = json!(true);
    entries
}

/// Runs the agent of an agent file with these hooks, and with hooks that log their events.
fn run(script: &str, hooks: &Value, args: &[&str]) -> Ran {
    let log = |event: &str| sh(&format!("cat >> {event}.log; echo >> {event}.log"));
    let mut all = json!({
        "post_tool_use": [{"hooks": [log("post")]}],
        "on_tool_approval_decision": [log("decision")],
        "turn_end": [log("turn")],
        "on_error": [log("error")],
        "notification": [log("notification")],
    });
    let all_hooks = all.as_object_mut().unwrap();
    all_hooks.extend(hooks.as_object().unwrap().clone());
    let file = json!({"agents": {"root": {"redact_secrets": false, "hooks": all}}});
    Test::new()
        .args(["run", "go", "--no-journal", "--hooks", "agent.json"])
        .args(args.iter().copied())
        .file("agent.json", &file.to_string())
        .script(script)
        .run()
}

/// Returns whether the tool ran, what decided the call, and the result for the model.
fn came_of(ran: &Ran) -> (bool, String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let made = ran.path("work").join("made").exists();
    let decision = &ran.lines("decision.log")[0];
    let post = &ran.lines("post.log")[0];
    (
        made,
        text(&decision["approval_source"]),
        text(&post["tool_response"]),
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "the table is the test")]
fn hooks_rules_and_yes_decide_as_the_table_says() {
    let denied =
        |event: &str| format!("The tool call was rejected by a {event} hook. Reason: because");
    let nobody = "The tool call was denied. Reason: it needs approval";
    for (case, event, hooks, args, made, source, response) in [
        (
            "D-95",
            "pre_tool_use",
            permits("allow"),
            &[][..],
            true,
            "pre_tool_use_hook_allow",
            String::new(),
        ),
        (
            "D-96",
            "pre_tool_use",
            permits("deny"),
            &[],
            false,
            "pre_tool_use_hook_deny",
            denied("pre_tool_use"),
        ),
        (
            "D-98",
            "pre_tool_use",
            permits("allow"),
            &["--deny", "shell"],
            false,
            "team_permissions_deny",
            "The tool call was denied. Reason: the permission rule".to_owned(),
        ),
        (
            "D-99: the hook runs all the same",
            "pre_tool_use",
            permits("deny"),
            &["--yes"],
            false,
            "pre_tool_use_hook_deny",
            denied("pre_tool_use"),
        ),
        (
            "D-99: the hook runs all the same",
            "pre_tool_use",
            permits("deny"),
            &["--allow", "shell"],
            false,
            "pre_tool_use_hook_deny",
            denied("pre_tool_use"),
        ),
        (
            "D-100, with nobody there",
            "pre_tool_use",
            preempts("ask"),
            &["--yes"],
            false,
            "non_interactive_deny",
            nobody.to_owned(),
        ),
        (
            "D-101",
            "pre_tool_use",
            preempts("deny"),
            &["--yes"],
            false,
            "tool_guard_deny",
            denied("tool_guard"),
        ),
        (
            "D-102",
            "pre_tool_use",
            preempts("allow"),
            &["--yes"],
            true,
            "yolo",
            String::new(),
        ),
        (
            "D-103",
            "pre_tool_use",
            json!([]),
            &[],
            false,
            "non_interactive_deny",
            nobody.to_owned(),
        ),
        (
            "D-65",
            "permission_request",
            permits("deny"),
            &[],
            false,
            "permission_request_hook_deny",
            denied("permission_request"),
        ),
        (
            "D-64",
            "permission_request",
            permits("allow"),
            &[],
            true,
            "permission_request_hook_allow",
            String::new(),
        ),
    ] {
        let ran = run(TOUCH, &json!({ event: hooks }), args);
        let (was_made, by, text) = came_of(&ran);
        assert_eq!((was_made, by.as_str()), (made, source), "{case}");
        assert!(text.starts_with(&response), "{case}: {text}");
        let was_asked = ran.path("work").join("asked").exists();
        assert_eq!(was_asked, !["D-98", "D-103"].contains(&case), "{case}");
    }
}

#[test]
fn a_hook_that_asks_about_a_harmless_tool_is_not_passed_over() {
    // D-97
    let script = "turns: [{tool_calls: [{name: list_directory}]}, {text: done}]";
    let hooks = json!({"pre_tool_use": permits("ask")});
    let (_, source, text) = came_of(&run(script, &hooks, &[]));
    assert_eq!(source, "non_interactive_deny");
    assert!(text.contains("it needs approval (because)"), "{text}");
}

#[test]
fn a_response_is_rewritten_whether_the_tool_ran_or_not() {
    // D-105
    let answer = r#"{"hook_specific_output":{"updated_tool_response":"[gone]"}}"#;
    let transform = json!([{"hooks": [sh(&format!("printf '%s' '{answer}'"))]}]);
    for (args, error) in [(&["--yes"][..], Value::Null), (&[], json!(true))] {
        let hooks = json!({"tool_response_transform": transform});
        let ran = run(TOUCH, &hooks, args);
        let post = &ran.lines("post.log")[0];
        assert_eq!(post["tool_response"], "[gone]");
        assert_eq!(post["tool_error"], error);
    }
}

#[test]
fn a_hook_before_the_model_ends_the_run_and_everybody_hears_of_it() {
    // D-107
    let hooks = json!({"before_llm_call": [sh("echo too dear >&2; exit 2")]});
    let ran = run("turns: [{text: never}]", &hooks, &[]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert_eq!(ran.lines("turn.log")[0]["reason"], "hook_blocked");
    let text = "a before_llm_call hook ended the run: too dear";
    assert_eq!(ran.lines("error.log")[0]["notification_message"], text);
    assert_eq!(
        ran.lines("notification.log")[0]["notification_message"],
        text
    );
    assert!(!ran.stdout.contains("never"));
}

#[test]
fn a_model_that_fails_ends_the_turn_with_an_error() {
    // D-108
    let ran = run("turns: [{error: wrong key}]", &json!({}), &[]);
    assert_eq!(ran.status, 4);
    assert_eq!(ran.lines("turn.log")[0]["reason"], "error");
    assert_eq!(
        ran.lines("error.log")[0]["notification_message"],
        "wrong key"
    );
}

#[test]
fn a_turn_with_tools_and_the_last_one_end_each_with_their_reason() {
    // D-110
    let ran = run(TOUCH, &json!({}), &["--yes"]);
    let reasons: Vec<Value> = ran
        .lines("turn.log")
        .iter()
        .map(|event| event["reason"].clone())
        .collect();
    assert_eq!(reasons, ["continue", "normal"]);
}

#[test]
fn the_builtin_that_caps_model_calls_ends_the_run_at_the_next_one() {
    // D-113
    let script = "turns: [{tool_calls: [{name: list_directory}], repeat: true}]";
    let cap = json!({"type": "builtin", "command": "max_iterations", "args": ["2"]});
    let ran = run(script, &json!({"before_llm_call": [cap]}), &[]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    let reasons: Vec<Value> = ran
        .lines("turn.log")
        .iter()
        .map(|event| event["reason"].clone())
        .collect();
    assert_eq!(reasons, ["continue", "continue", "hook_blocked"]);
}

#[test]
fn the_cap_of_an_agent_file_is_that_of_the_run_unless_the_call_has_one() {
    let script = "turns: [{tool_calls: [{name: list_directory}], repeat: true}]";
    for (args, turns) in [(&[][..], 2), (&["--max-iterations", "3"], 3)] {
        let ran = Test::new()
            .args([
                "run",
                "go",
                "--no-journal",
                "--json",
                "--hooks",
                "agent.yaml",
            ])
            .args(args.iter().copied())
            .file("agent.yaml", "agents: {root: {max_iterations: 2}}")
            .script(script)
            .run();
        let json = ran.json();
        assert_eq!(json["end"], "max_iterations");
        assert_eq!(json["turns"], turns);
    }
}

#[test]
fn events_of_a_tool_call_name_the_agent_and_the_model() {
    // D-114, D-117, D-119
    let log = |event: &str| sh(&format!("cat >> {event}.log; echo >> {event}.log"));
    let hooks = json!({
        "pre_tool_use": [{"hooks": [log("pre")]}],
        "after_llm_call": [log("after")],
        "on_agent_switch": [log("switch")],
        "subagent_stop": [log("child")],
    });
    let script = "\
name: tiny
turns:
  - text: I ask.
    tool_calls: [{name: transfer_task, arguments: {agent: helper, task: look}}]
    usage: { input_tokens: 3, output_tokens: 2 }
  - {for: helper, text: seen}
  - text: done
";
    let ran = run(script, &hooks, &["--yes"]);
    assert_eq!(ran.lines("pre.log")[0]["agent_name"], "root");
    let after = &ran.lines("after.log")[0];
    assert_eq!(after["model_id"], "scripted/tiny");
    assert_eq!(after["usage"]["input_tokens"], 3);
    assert_eq!(after["stop_response"], "I ask.");
    assert!(after.get("cost").is_none());
    let switches: Vec<Value> = ran
        .lines("switch.log")
        .iter()
        .map(|event| {
            json!([
                event["from_agent"],
                event["to_agent"],
                event["agent_switch_kind"]
            ])
        })
        .collect();
    assert_eq!(
        switches,
        [
            json!(["root", "helper", "transfer_task"]),
            json!(["helper", "root", "transfer_task_return"])
        ]
    );
    // D-116
    let child = &ran.lines("child.log")[0];
    assert_eq!(child["agent_name"], "helper");
    assert_eq!(child["stop_response"], "seen");
    assert_eq!(child["parent_session_id"], after["session_id"]);
    assert_ne!(child["session_id"], after["session_id"]);
}
