//! `tenterhook check`.

use serde_json::json;

use crate::stage::Test;

const GOOD: &str = "\
hooks:
  - {event: pre_tool_use, command: cat}
  - {event: [pre_tool_use, stop], command: cat > seen.json}
";

const BAD: &str = "\
hooks:
  - event: pre_tol_use
    command: cat
  - event: on_error
    command: cat
    timeout: soon
";

const PROBLEMS: &str = "\
error: unknown event `pre_tol_use`
 --> bad.yaml:2:12
  |
2 |   - event: pre_tol_use
  |            ^^^^^^^^^^^ did you mean `pre_tool_use`?
  |
  = note: allowed: an event of the catalogue, or `x-<vendor>.<name>`

error: unknown event `on_error`
 --> bad.yaml:4:12
  |
4 |   - event: on_error
  |            ^^^^^^^^ did you mean `agent_error`?
  |
  = note: allowed: an event of the catalogue, or `x-<vendor>.<name>`
  = help: `on_error` is docker-agent's name of the event

error: `timeout` cannot be the text `soon`
 --> bad.yaml:6:14
  |
6 |     timeout: soon
  |              ^^^^
  |
  = note: allowed: seconds (`10`, `0.5`) or a text with a unit (`500ms`, `2s`, `1m`), more than 0 and at most 10 minutes

error: 3 problems in `bad.yaml`
";

#[test]
fn good_files_are_counted() {
    let ran = Test::new()
        .args(["check", "good.yaml", "empty.toml"])
        .file("good.yaml", GOOD)
        .file("empty.toml", "version = 1\n")
        .run();
    let expected = "ok: `good.yaml`, `empty.toml`: 3 hooks for 2 events, no problems.\n";
    assert_eq!(ran.all(), (expected, "", 0));
}

#[test]
fn every_problem_of_a_bad_file_is_shown_with_its_line() {
    let ran = Test::new()
        .args(["check", "bad.yaml"])
        .file("bad.yaml", BAD)
        .run();
    assert_eq!(ran.refusal(), (PROBLEMS, 3));
}

#[test]
fn one_bad_file_among_good_ones_fails_the_check() {
    let ran = Test::new()
        .args(["check", "good.yaml", "bad.yaml"])
        .file("good.yaml", GOOD)
        .file("bad.yaml", BAD)
        .run();
    assert_eq!(ran.refusal(), (PROBLEMS, 3));
}

#[test]
fn problems_in_json_have_place_message_and_what_is_allowed() {
    let ran = Test::new()
        .args(["check", "bad.yaml", "--json"])
        .file(
            "bad.yaml",
            "hooks:\n  - {event: stop, comand: cat, command: cat}\n",
        )
        .run();
    let allowed = "`name`, `event`, `matcher`, `command`, `argv`, `builtin`, `http`, `model`, `args`, `prompt`, `schema`, `headers`, `allow_private`, `prewarm`, `answer`, `python`, `shell`, `timeout`, `working_dir`, \
                   `env`, `on_error`, `phase`, `priority`, `strict_output` or `agent`";
    let expected = json!({
        "ok": false,
        "hooks": 0,
        "events": 0,
        "problems": [{
            "severity": "error",
            "path": "bad.yaml",
            "line": 2,
            "column": 19,
            "span": {"start": 25, "end": 31},
            "message": "unknown key `comand`",
            "allowed": allowed,
            "suggestion": "command",
        }],
        "warnings": [],
        "never_fired": [],
    });
    let mut report = ran.json();
    let broken = report.as_object_mut().unwrap().remove("broken").unwrap();
    assert_eq!(report, expected);
    assert_eq!(broken[0]["path"], "bad.yaml");
    assert_eq!(broken[0]["problems"], expected["problems"]);
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 3));
}

#[test]
fn a_good_file_in_json_has_its_warnings_too() {
    let ran = Test::new()
        .args(["check", "warned.yaml", "--json"])
        .file(
            "warned.yaml",
            "hooks: [{event: stop, command: no-such-program | cat}]",
        )
        .run();
    let report = ran.json();
    assert_eq!(
        json!([report["ok"], report["hooks"], report["events"]]),
        json!([true, 1, 1])
    );
    assert_eq!(report["problems"][0]["severity"], "warning");
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0));
}

#[test]
fn warnings_are_counted_and_do_not_fail_the_check() {
    let ran = Test::new()
        .args(["check", "warned.yaml"])
        .file(
            "warned.yaml",
            "hooks: [{event: stop, command: no-such-program | cat}]",
        )
        .run();
    assert_eq!(
        ran.stdout,
        "ok: `warned.yaml`: 1 hook for 1 event, 1 warning.\n"
    );
    assert!(
        ran.stderr
            .starts_with("warning: program `no-such-program` was not found in `PATH`\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 0);
}

#[test]
fn an_agent_file_is_checked_with_the_names_of_its_own_events() {
    let ran = Test::new()
        .args(["check", "agent.yaml"])
        .file(
            "agent.yaml",
            "agents:\n  root:\n    hooks:\n      agent_error:\n        - {type: command, command: cat}\n",
        )
        .run();
    let expected = "\
error: unknown event `agent_error`
 --> agent.yaml:4:7
  |
4 |       agent_error:
  |       ^^^^^^^^^^^ did you mean `on_error`?
  |
  = note: allowed: an event of docker-agent
  = help: docker-agent's name of `agent_error`

error: 1 problem in `agent.yaml`
";
    assert_eq!(ran.refusal(), (expected, 3));
}

#[test]
fn an_event_that_the_agent_never_fires_is_worth_a_warning() {
    let test = |args: &[&str]| {
        Test::new()
            .args(["check", "hooks.yaml"])
            .args(args.iter().copied())
            .file(
                "hooks.yaml",
                "hooks: [{event: [file_change, stop], command: cat}, {event: file_change, command: ls}]",
            )
            .run()
    };
    assert_eq!(
        test(&[]).all(),
        (
            "ok: `hooks.yaml`: 3 hooks for 2 events, 1 warning.\n",
            "warning: `tenterhook run` never fires `file_change`; its hooks wait for a program that does\n",
            0
        )
    );
    assert_eq!(
        test(&["--json"]).json()["never_fired"],
        json!(["file_change"])
    );
}

#[test]
fn a_file_that_is_named_twice_is_loaded_once() {
    let ran = Test::new()
        .args(["check", "a.yaml", "./a.yaml"])
        .file("a.yaml", "hooks: [{event: stop, command: cat}]")
        .run();
    assert_eq!(
        ran.all(),
        (
            "ok: `a.yaml`, `./a.yaml`: 1 hook for 1 event, no problems.\n",
            "warning: `./a.yaml` is named more than once; it is loaded once\n",
            0
        )
    );
}

#[test]
fn the_examples_of_the_repository_load_without_a_warning() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["hooks.yaml", "agent.yaml"] {
        let text = std::fs::read_to_string(examples.join(name)).unwrap();
        let ran = Test::new().args(["check", name]).file(name, &text).run();
        assert_eq!((ran.stderr.as_str(), ran.status), ("", 0), "{name}");
        assert!(ran.stdout.ends_with("no problems.\n"), "{}", ran.stdout);
    }
}
