//! A docker-agent agent file with hooks for every event that docker-agent documents, in one run.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::stage::{Ran, Test};

/// Events whose hooks are nested under a matcher.
const MATCHED: [&str; 3] = ["pre_tool_use", "post_tool_use", "permission_request"];

const OTHERS: [&str; 16] = [
    "session_start",
    "user_prompt_submit",
    "turn_start",
    "turn_end",
    "before_llm_call",
    "after_llm_call",
    "session_end",
    "pre_compact",
    "subagent_stop",
    "on_user_input",
    "stop",
    "notification",
    "on_error",
    "on_max_iterations",
    "before_compaction",
    "after_compaction",
];

/// The main agent uses a tool that fills the context, so the context is compacted. It gives the helper a task that
/// succeeds and a task that fails. Then it reaches the limit of model calls.
const SCRIPT: &str = "\
turns:
  - text: I look first.
    tool_calls:
      - { name: shell, arguments: { cmd: echo hi } }
    usage: { input_tokens: 900, output_tokens: 50 }
  - summary: The user wants to go.
  - text: I ask for help.
    tool_calls:
      - { name: transfer_task, arguments: { agent: helper, task: look around } }
  - for: helper
    text: There is nothing.
  - text: I ask again.
    tool_calls:
      - { name: transfer_task, arguments: { agent: helper, task: look again } }
  - for: helper
    error: the service is gone
";

/// Writes an agent file in which each hook appends its event to a log that is named after the event.
fn agent_file() -> String {
    let mut text =
        "agents:\n  root:\n    model: scripted:script.yaml\n    sub_agents: [helper]\n    hooks:\n"
            .to_owned();
    let hook = |event: &str| {
        format!(
            "{{type: command, timeout: 30, command: \"cat >> {event}.log; echo >> {event}.log\"}}"
        )
    };
    for event in MATCHED {
        writeln!(
            text,
            "      {event}:\n        - matcher: \"*\"\n          hooks: [{}]",
            hook(event)
        )
        .unwrap();
    }
    for event in OTHERS {
        writeln!(text, "      {event}:\n        - {}", hook(event)).unwrap();
    }
    text.push_str("  helper:\n    description: looks around\n");
    text
}

fn run() -> Ran {
    let ran = Test::new()
        .args(["run", "go", "--hooks", "agent.yaml", "--no-journal"])
        .args(["--max-iterations", "3", "--compact-at", "500"])
        .file("agent.yaml", &agent_file())
        .file("script.yaml", SCRIPT)
        .run();
    assert_eq!(ran.status, 4, "{}{}", ran.stdout, ran.stderr);
    ran
}

fn of_each(events: &[Value], key: &str) -> Vec<Value> {
    events.iter().map(|event| event[key].clone()).collect()
}

#[test]
fn every_documented_event_reaches_its_hook_in_one_run() {
    let ran = run();
    for event in MATCHED.into_iter().chain(OTHERS) {
        let lines = ran.lines(&format!("{event}.log"));
        assert!(!lines.is_empty(), "{event}");
        for line in lines {
            assert!(line.is_object(), "{event}: {line}");
            assert_eq!(line["hook_event_name"], event, "{line}");
            assert!(line["session_id"].is_string(), "{event}: {line}");
            assert_eq!(line["cwd"], ran.path("work").to_str().unwrap(), "{event}");
        }
    }
}

#[test]
fn the_events_carry_what_docker_agent_documents() {
    let ran = run();
    let log = |event: &str| ran.lines(&format!("{event}.log"));
    assert_eq!(log("user_prompt_submit")[0]["prompt"], "go");
    assert_eq!(
        of_each(&log("session_start"), "agent_name"),
        ["root", "helper", "helper"]
    );
    assert_eq!(log("session_start")[0]["source"], "startup");
    assert_eq!(
        log("permission_request")[0]["tool_input"],
        json!({"cmd": "echo hi"})
    );
    assert_eq!(
        of_each(&log("pre_tool_use"), "tool_name"),
        ["shell", "transfer_task", "transfer_task"]
    );
    assert_eq!(
        of_each(&log("turn_end"), "reason"),
        ["continue", "normal", "continue", "error", "continue"]
    );
    assert_eq!(log("after_llm_call")[0]["stop_response"], "I look first.");
    assert_eq!(log("before_llm_call")[0]["iteration"], 1);
    assert_eq!(log("stop")[0]["stop_response"], "There is nothing.");
    assert_eq!(
        log("before_compaction")[0]["compaction_reason"],
        "threshold"
    );
    assert_eq!(
        log("after_compaction")[0]["summary"],
        "The user wants to go."
    );
    assert_eq!(log("after_compaction")[0]["input_tokens"], 900);
    assert_eq!(
        of_each(&log("notification"), "notification_level"),
        ["error", "warning"]
    );
    assert_eq!(
        log("on_error")[0]["notification_message"],
        "the service is gone"
    );
    assert_eq!(
        log("on_max_iterations")[0]["notification_message"],
        "Maximum iterations reached (3)"
    );
    let subagent = &log("subagent_stop")[0];
    assert_eq!(
        json!([
            subagent["agent_name"],
            subagent["stop_response"],
            subagent["parent_session_id"]
        ]),
        json!([
            "helper",
            "There is nothing.",
            log("user_prompt_submit")[0]["session_id"]
        ])
    );
}
