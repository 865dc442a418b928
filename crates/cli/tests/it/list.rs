//! `tenterhook list`.

use serde_json::{Value, json};

use crate::stage::Test;

const FIRST: &str = "\
hooks:
  - name: watch
    event: pre_tool_use
    command: cat
    phase: observe
    on_error: ignore
  - name: format
    event: pre_tool_use
    matcher: edit_file|write_file
    command: echo a line that is much too long to be shown as a whole
    timeout: 5
  - name: rewrite
    event: pre_tool_use
    argv: [sed, s/a/b/]
    phase: transform
";

const SECOND: &str = "\
hooks:
  - name: first
    event: pre_tool_use
    command: cat
    priority: 5
    agent: helper
  - name: date
    event: turn_start
    builtin: add_date
";

fn list(args: &[&str]) -> Test {
    Test::new()
        .args(["list"])
        .args(args.iter().copied())
        .file("first.yaml", FIRST)
        .file("second.yaml", SECOND)
}

#[test]
fn hooks_stand_below_their_event_in_the_order_in_which_they_run() {
    let ran = list(&["--hooks", "first.yaml", "--hooks", "second.yaml"]).run();
    let expected = "\
turn_start
  1  date  builtin add_date  on_error: warn  60 s  second.yaml:7

pre_tool_use
  1  rewrite  command sed s/a/b/         transform                 on_error: block                 60 s  first.yaml:12
  2  first    command cat                priority 5, agent helper  on_error: block                 60 s  second.yaml:2
  3  format   command echo a line that…  on edit_file|write_file   on_error: block                 5 s   first.yaml:7
  4  watch    command cat                observe                   on_error: ignore  (configured)  60 s  first.yaml:2

5 hooks for 2 events.
";
    assert_eq!(ran.all(), (expected, "", 0));
}

#[test]
fn the_list_in_json_has_order_source_and_policy() {
    let ran = list(&["--hooks", "first.yaml", "--hooks", "second.yaml", "--json"]).run();
    let report = ran.json();
    let hooks = report["hooks"].as_array().unwrap();
    let short: Vec<Value> = hooks
        .iter()
        .map(|hook| {
            json!([
                hook["event"],
                hook["id"],
                hook["phase"],
                hook["policy"]["on_error"]
            ])
        })
        .collect();
    let expected = [
        json!(["turn_start", "date", "main", "warn"]),
        json!(["pre_tool_use", "rewrite", "transform", "block"]),
        json!(["pre_tool_use", "first", "main", "block"]),
        json!(["pre_tool_use", "format", "main", "block"]),
        json!(["pre_tool_use", "watch", "observe", "ignore"]),
    ];
    assert_eq!(short, expected);
    let format = json!({
        "event": "pre_tool_use",
        "id": "format",
        "matcher": "edit_file|write_file",
        "kind": "command",
        "handler": "echo a line that is much too long to be shown as a whole",
        "phase": "main",
        "priority": 0,
        "timeout_seconds": 5.0,
        "policy": {"on_error": "block", "because": "a gate that fails denies"},
        "source": {"layer": "explicit", "path": "first.yaml", "line": 7},
        "trust": "explicit",
    });
    assert_eq!(hooks[3], format);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn strict_is_the_policy_of_every_gate() {
    let ran = list(&["--hooks", "first.yaml", "--strict", "--json"]).run();
    let report = ran.json();
    let hooks = report["hooks"].as_array().unwrap();
    let policies: Vec<&Value> = hooks
        .iter()
        .map(|hook| &hook["policy"]["on_error"])
        .collect();
    assert_eq!(policies, ["block", "block", "block"]);
    assert_eq!(ran.status, 0);
}

#[test]
fn without_hooks_the_list_says_how_to_name_a_file() {
    let ran = Test::new().args(["list"]).run();
    assert_eq!(
        ran.all(),
        (
            "No hooks.\n",
            "hint: write a first guard with `tenterhook init`, or name a hook file with `--hooks FILE`\n",
            0
        )
    );
    let ran = Test::new().args(["list", "--json"]).run();
    let none = json!({
        "hooks": [], "withheld": [], "diverged": [], "broken": [], "untrusted": [], "disabled": [], "extensions": [],
    });
    assert_eq!(ran.json(), none);
    assert_eq!(ran.status, 0);
}

#[test]
fn a_bad_file_ends_a_list_with_status_3_unless_the_call_is_lenient() {
    let list = |args: &[&str]| {
        list(args)
            .args(["--hooks", "bad.yaml", "--hooks", "second.yaml"])
            .file("bad.yaml", "hooks: [{event: stopp, command: cat}]")
            .run()
    };
    let ran = list(&[]);
    assert!(
        ran.stderr.contains("unknown event `stopp`"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        ran.status, 3,
        "what is broken is shown, and the status says so"
    );
    let ran = list(&["--lenient"]);
    assert!(
        ran.stderr.contains("unknown event `stopp`"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .ends_with("warning: the hooks of `bad.yaml` are not in force\n"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.ends_with("2 hooks for 2 events.\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.status, 0);
}
