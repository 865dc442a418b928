//! Gates whose hook breaks: they deny, unless their policy says otherwise.

use serde_json::{Value, json};

use crate::stage::{Ran, Test};

/// A way in which a hook can break.
struct Fault<'a> {
    /// The hook's handler, as YAML.
    action: &'a str,
    status: &'a str,
    cause: &'a str,
}

const FAULTS: [Fault<'static>; 5] = [
    Fault {
        action: "command: kill -KILL $$",
        status: "failed",
        cause: "killed by signal 9",
    },
    Fault {
        action: "command: sleep 60\n    timeout: 0.2",
        status: "timed_out",
        cause: "timed out after 0.2s",
    },
    Fault {
        action: "command: echo fine; echo broken >&2; exit 1",
        status: "failed",
        cause: "exited with status 1: broken",
    },
    Fault {
        action: r#"command: printf '{"decision":'"#,
        status: "failed",
        cause: "invalid hook output: EOF while parsing a value at line 1 column 12",
    },
    Fault {
        action: r#"command: echo '{"decision":"dney"}'"#,
        status: "failed",
        cause: "invalid hook output: `decision` is `dney`, expected `allow`, `ask`, `deny` or `block`",
    },
];

/// Sends a tool call through a guard that breaks.
fn fire(fault: &Fault<'_>, policy: &str, args: &[&str]) -> Ran {
    let Fault { action, .. } = fault;
    Test::new()
        .args(["fire", "tool_guard", "--journal", "journal.jsonl"])
        .args(args.iter().copied())
        .file("plain", "#!/bin/sh\n")
        .event(r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#)
        .hooks(&format!(
            "hooks:\n  - name: guard\n    event: tool_guard\n    {action}\n{policy}"
        ))
        .run()
}

/// Returns the journal record of the hook's run, without fields that differ from run to run.
fn run_record(ran: &Ran) -> Value {
    let mut record = ran.lines("journal.jsonl").remove(0);
    assert!(record["duration_ms"].as_f64().unwrap() > 0.0);
    let cause = record["cause"].as_str().unwrap();
    let folder = ran
        .path("")
        .to_str()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let cause = cause.replace(&folder, "[DIR]");
    record["cause"] = cause.into();
    json!([
        record["record"],
        record["hook"],
        record["status"],
        record["cause"],
        record["effect"],
        record["let_through"]
    ])
}

#[test]
fn a_guard_that_breaks_denies_and_the_message_names_hook_and_cause() {
    for fault in &FAULTS {
        let ran = fire(fault, "", &[]);
        let verdict = format!(
            "tool_guard: stopped by `guard`: tool_guard hook failed to execute: hook \"guard\": {}\n",
            fault.cause
        );
        assert!(ran.stderr.ends_with(&verdict), "{}", ran.stderr);
        assert_eq!(ran.status, 2, "{}", fault.action);
        assert_eq!(
            run_record(&ran),
            json!(["run", "guard", fault.status, fault.cause, "deny", null])
        );
    }
}

#[test]
fn a_guard_that_may_break_lets_through_and_the_journal_says_so() {
    for fault in &FAULTS {
        let ran = fire(fault, "    on_error: ignore\n", &[]);
        assert!(
            ran.stdout
                .ends_with("tool_guard: not stopped (1 hook ran)\n"),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("let through"), "{}", ran.stdout);
        assert_eq!(ran.status, 0, "{}", fault.action);
        assert_eq!(
            run_record(&ran),
            json!(["run", "guard", fault.status, fault.cause, "none", true])
        );
        let dispatch = &ran.lines("journal.jsonl")[1];
        assert_eq!(dispatch["failures"][0]["let_through"], true);
        assert_eq!(dispatch["stopped"], false);
    }
}

#[test]
fn strict_overrides_a_policy_that_lets_through() {
    for fault in &FAULTS {
        for policy in ["    on_error: ignore\n", "    on_error: warn\n"] {
            let ran = fire(fault, policy, &["--strict"]);
            assert_eq!(ran.status, 2, "{}: {}", fault.action, ran.stdout);
            assert_eq!(
                run_record(&ran),
                json!(["run", "guard", fault.status, fault.cause, "deny", null])
            );
        }
    }
}

#[test]
fn a_guard_whose_program_cannot_start_refuses_before_the_event() {
    for (program, problem) in [
        ("missing", "does not exist"),
        ("plain", "is not executable"),
    ] {
        for policy in ["", "    on_error: ignore\n"] {
            let fault = Fault {
                action: &format!("argv: [./{program}]"),
                status: "",
                cause: "",
            };
            let ran = fire(&fault, policy, &[]);
            let error =
                format!("error: program `[DIR]/work/{program}` {problem}\n --> hooks.yaml:4:11\n");
            assert!(ran.stderr.starts_with(&error), "{}", ran.stderr);
            assert_eq!(ran.status, 2, "{program}");
        }
    }
}

#[test]
fn an_observer_that_breaks_stops_nothing() {
    let ran = Test::new()
        .args(["fire", "session_end", "--no-journal", "--json"])
        .stdin(r#"{"reason": "quit"}"#)
        .args(["--input", "-"])
        .hooks("hooks: [{name: watch, event: session_end, command: exit 1}]")
        .run();
    let report = ran.json();
    assert_eq!(report["blocked"], false);
    assert_eq!(
        report["failures"],
        json!([{"hook": "watch", "cause": "exited with status 1", "let_through": false}])
    );
    assert_eq!(ran.status, 0);
}
