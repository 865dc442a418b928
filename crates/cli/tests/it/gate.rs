//! `tenterhook fire` on gate events: other agents run the tool on any exit status except 2, so every failure must
//! exit with 2.

use serde_json::Value;

use crate::stage::{Ran, Test};

const CALL: &str = r#"{"tool_name": "shell", "tool_input": {"cmd": "git push"}}"#;

fn hook(command: &str) -> String {
    let command = serde_json::to_string(command).unwrap();
    format!("hooks: [{{name: one, event: pre_tool_use, command: {command}}}]")
}

fn gate(args: &[&str]) -> Test {
    Test::new()
        .args(["fire", "pre_tool_use", "--no-journal"])
        .args(args.iter().copied())
}

/// Asserts that the exit status tells the host not to run the tool, and that stderr says why.
fn assert_stops(ran: &Ran, reason: &str) {
    assert_eq!(ran.status, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(reason), "`{reason}` in {}", ran.stderr);
}

/// Runs a call again with `--json`, and asserts that its report says that the call failed.
fn assert_reports(test: Test, message: &str) {
    let ran = test.args(["--json"]).run();
    assert_stops(&ran, message);
    let report = ran.json();
    assert_eq!(report["decision"], "stop", "{report}");
    assert_eq!(report["kind"], "failed", "{report}");
    assert_eq!(report["by"], Value::Null, "{report}");
    let reason = report["reason"].as_str().unwrap();
    assert!(reason.contains(message), "`{message}` in {reason}");
    assert!(report["error"]["message"].is_string(), "{report}");
}

#[test]
fn fire_of_a_gate_exits_0_when_no_hook_objects() {
    for command in ["cat > /dev/null", r#"echo '{"decision":"allow"}'"#] {
        let ran = gate(&[]).event(CALL).hooks(&hook(command)).run();
        assert_eq!((ran.stderr.as_str(), ran.status), ("", 0), "{}", ran.stdout);
        let ran = gate(&["--json"]).event(CALL).hooks(&hook(command)).run();
        let report = ran.json();
        assert_eq!(report["decision"], "proceed");
        assert_eq!(
            (&report["kind"], &report["error"]),
            (&Value::Null, &Value::Null)
        );
    }
}

#[test]
fn fire_of_a_gate_exits_2_when_a_hook_stops_it() {
    let ran = gate(&["--json"])
        .event(CALL)
        .hooks(&hook("echo never >&2; exit 2"))
        .run();
    assert_stops(&ran, "pre_tool_use: stopped by `one`: never\n");
    let report = ran.json();
    assert_eq!(report["decision"], "stop");
    assert_eq!(
        (&report["by"], &report["kind"]),
        (&"one".into(), &"blocked".into())
    );
    assert_eq!(report["reason"], "never");
}

#[test]
fn fire_of_a_gate_exits_2_when_a_hook_asks() {
    let ask = hook(r#"echo '{"decision":"ask","reason":"look first"}'"#);
    let ran = gate(&["--json"]).event(CALL).hooks(&ask).run();
    assert_stops(&ran, "pre_tool_use: `one` asks: look first\n");
    let report = ran.json();
    assert_eq!(
        (&report["decision"], &report["by"]),
        (&"ask".into(), &"one".into())
    );
    assert_eq!(report["blocked"], false);
}

#[test]
fn fire_of_a_gate_exits_2_when_a_hook_fails() {
    let ran = gate(&["--json"]).event(CALL).hooks(&hook("exit 1")).run();
    assert_stops(&ran, "exited with status 1");
    assert_eq!(ran.json()["kind"], "failed");
}

#[test]
fn fire_of_a_gate_exits_2_when_a_hook_ends_the_run() {
    let end = hook(r#"echo '{"effect":{"stop_run":"enough"}}'"#);
    let ran = gate(&["--json"]).event(CALL).hooks(&end).run();
    assert_stops(&ran, "enough");
    assert_eq!(ran.json()["decision"], "stop");
}

#[test]
fn fire_of_a_gate_exits_2_when_the_input_is_invalid() {
    for (input, reason) in [
        ("{", "not a JSON object"),
        ("[]", "not a JSON object"),
        ("{}", "missing field `tool_name`"),
        (
            r#"{"tool_name": "shell", "tool_input": {"cmd": "sudo x", "cmd": "ls"}}"#,
            "the key `cmd` appears twice",
        ),
        (
            r#"{"tool_name": "shell", "tool_name": "read_file", "tool_input": {}}"#,
            "the key `tool_name` appears twice",
        ),
        (r#"{"tool_nme": "shell"}"#, "unknown field `tool_nme`"),
        (r#"{"tool_name": "shell", "tool_input": 5}"#, "`tool_input`"),
        (
            r#"{"event": "stop", "tool_name": "shell"}"#,
            "the event is `pre_tool_use`",
        ),
    ] {
        let test = || gate(&[]).event(input).hooks("hooks: []");
        assert_stops(&test().run(), reason);
        assert_reports(test(), reason);
    }
}

#[test]
fn fire_of_a_gate_exits_2_when_the_input_cannot_be_read() {
    assert_stops(
        &gate(&["--input", "missing.json"]).run(),
        "cannot read `missing.json`",
    );
    assert_reports(
        gate(&["--input", "missing.json"]),
        "cannot read `missing.json`",
    );
    let no_text = gate(&["--input", "-"]).stdin_bytes(b"\xff\xfe");
    assert_stops(&no_text.run(), "cannot read stdin");
}

#[test]
fn fire_of_a_gate_exits_2_when_a_source_is_broken() {
    for broken in [
        "hooks: [{event: pre_tol_use, command: 'true'}]",
        "hooks: {",
        "hoks: []",
    ] {
        let test = || gate(&[]).event(CALL).hooks(broken);
        assert_stops(&test().run(), "hooks.yaml");
        let ran = test().args(["--json"]).run();
        assert_eq!(ran.status, 2, "{broken}");
        let report = ran.json();
        assert_eq!(report["decision"], "stop");
        let problems = report["error"]["problems"].as_array().unwrap();
        assert!(!problems.is_empty(), "{report}");
        assert!(
            problems[0]["path"]
                .as_str()
                .unwrap()
                .ends_with("hooks.yaml"),
            "{report}"
        );
    }
    assert_stops(
        &gate(&["--hooks", "missing.yaml"]).event(CALL).run(),
        "missing.yaml",
    );
}

#[test]
fn fire_of_a_gate_exits_2_on_an_unknown_option() {
    for args in [
        &["--bogus"][..],
        &["--from", "bogus"],
        &["--arg", "a=b"],
        &["two", "events"],
    ] {
        assert_stops(&gate(args).event(CALL).run(), "error: ");
        let ran = gate(args).event(CALL).args(["--json"]).run();
        assert_eq!(ran.status, 2, "{args:?}");
        assert_eq!(ran.json()["decision"], "stop", "{args:?}");
        assert_eq!(ran.json()["kind"], "failed", "{args:?}");
    }
    let before = Test::new().args(["--bogus", "fire", "pre_tool_use"]).run();
    assert_stops(&before, "unexpected argument '--bogus'");
}

#[test]
fn fire_exits_2_when_the_event_is_unknown_or_missing() {
    for args in [
        &["fire", "pre_tol_use"][..],
        &["fire", "x-acme"],
        &["fire"],
        &["fire", "--input", "-"],
    ] {
        assert_stops(&Test::new().args(args.iter().copied()).run(), "error: ");
    }
    assert_reports(
        Test::new().args(["fire", "pre_tol_use"]),
        "unknown event `pre_tol_use`",
    );
}

#[test]
fn fire_of_a_gate_exits_2_when_the_journal_cannot_be_written() {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--journal", "taken/journal.jsonl"])
        .file("taken", "not a folder")
        .event(CALL)
        .hooks("hooks: []")
        .run();
    assert_stops(&ran, "error: ");
}

#[cfg(target_os = "linux")]
#[test]
fn fire_of_a_gate_exits_2_when_its_answer_cannot_be_written() {
    let ran = gate(&[])
        .event(CALL)
        .hooks("hooks: []")
        .run_into("/dev/full");
    assert_stops(&ran, "cannot write to standard output");
}

#[test]
fn fire_of_a_gate_exits_2_when_it_is_interrupted() {
    for signal in ["INT", "TERM", "HUP"] {
        let running = gate(&[])
            .event(CALL)
            .hooks(&hook("echo $$ > hook.pid; sleep 300"))
            .start();
        let _pid = running.line_of("hook.pid");
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, 2, "{signal}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn fire_of_a_user_defined_event_is_a_gate() {
    let test = |args: &[&str]| {
        Test::new()
            .args(["fire", "x-acme.deploy", "--no-journal"])
            .args(args.iter().copied())
            .event(r#"{"target": "production"}"#)
    };
    let ask = "hooks: [{event: x-acme.deploy, command: \"echo '{\\\"decision\\\":\\\"ask\\\"}'\"}]";
    assert_stops(&test(&[]).hooks(ask).run(), "asks");
    assert_stops(&test(&["--bogus"]).run(), "--bogus");
}

#[test]
fn fire_of_an_observer_keeps_the_statuses_of_other_commands() {
    let observer = |args: &[&str]| {
        Test::new()
            .args(["fire", "session_end", "--no-journal"])
            .args(args.iter().copied())
    };
    assert_eq!(observer(&["--bogus"]).run().status, 64);
    assert_eq!(observer(&["--input", "missing.json"]).run().status, 1);
    assert_eq!(observer(&[]).event("{").run().status, 3);
    assert_eq!(
        observer(&["--hooks", "missing.yaml"])
            .event(r#"{"reason": "quit"}"#)
            .run()
            .status,
        3
    );
    let ran = observer(&["--json"]).event("{").run();
    assert_eq!(ran.json()["decision"], Value::Null);
    assert_eq!(
        ran.json()["error"]["message"],
        "`event.json` is not a JSON object"
    );
}

#[test]
fn the_event_is_checked_before_any_hook_is_loaded() {
    let ran = gate(&["--hooks", "missing.yaml"]).event("{}").run();
    assert_stops(&ran, "missing field `tool_name`");
}
