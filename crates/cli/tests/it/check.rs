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
  = help: `on_error` is docker-agent's name for the event

error: `timeout` cannot be the string `soon`
 --> bad.yaml:6:14
  |
6 |     timeout: soon
  |              ^^^^
  |
  = note: allowed: seconds (`10`, `0.5`) or a number with a unit (`500ms`, `2s`, `1m`), more than 0 and at most 10 minutes

error: 3 problems in `bad.yaml`
";

#[test]
fn a_file_that_does_not_exist_has_a_next_step() {
    let ran = Test::new().args(["check", "missing.yaml"]).run();
    let expected = "\
error: cannot read the hook file `missing.yaml`
  caused by: No such file or directory (os error 2)
hint: correct the path; without one, the hook files of this folder are used, and `tenterhook list` prints them
";
    assert_eq!(ran.refusal(), (expected, 3));
}

#[test]
fn good_files_are_counted() {
    let ran = Test::new()
        .args(["check", "good.yaml"])
        .file("good.yaml", GOOD)
        .run();
    let expected = "ok: `good.yaml`: 3 hooks for 2 events, no problems.\n";
    assert_eq!(ran.all(), (expected, "", 0));
}

#[test]
fn a_file_without_hooks_is_worth_a_warning() {
    for text in ["", "version: 1\n", "hooks: []\n", "# later\n"] {
        let test = Test::new().file("good.yaml", GOOD).file("empty.yaml", text);
        let ran = test.args(["check", "good.yaml", "empty.yaml"]).run();
        let expected = "ok: `good.yaml`, `empty.yaml`: 3 hooks for 2 events, 1 warning.\n";
        let warning = "warning: `empty.yaml` has no hooks\n";
        assert_eq!(ran.all(), (expected, warning, 0), "{text:?}");
    }
}

const SCRIPT: &str = "\
from tenterhook import deny, on
@on('pre_tool_use', matcher='shell')
def guard(event):
    return deny('not today')
";

const MODULE: &str = "import {on} from 'tenterhook'\non('stop', () => {})\n";

#[test]
fn a_named_script_is_checked_as_a_script() {
    let ran = Test::new()
        .args(["check", "guard.py", "stop.mjs", "good.yaml"])
        .file("guard.py", SCRIPT)
        .file("stop.mjs", MODULE)
        .file("good.yaml", GOOD)
        .run();
    let expected = "ok: `guard.py`, `stop.mjs`, `good.yaml`: 5 hooks for 2 events, no problems.\n";
    assert_eq!(ran.all(), (expected, "", 0));
    let ran = Test::new()
        .args(["check", "guard.py", "gone.ts"])
        .file("guard.py", "import no_such_module\n")
        .run();
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    for expected in [
        "No module named 'no_such_module'",
        "guard.py:1:1",
        "the file does not exist",
        "gone.ts",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
}

#[test]
fn a_script_that_is_named_with_the_option_for_hook_files_guards() {
    let call = ["--tool", "shell", "--arg", "cmd=ls", "--no-journal"];
    let fire = ["fire", "pre_tool_use", "--hooks", "guard.py"];
    let args = || fire.iter().chain(&call).copied();
    let ran = Test::new().args(args()).file("guard.py", SCRIPT).run();
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("not today"), "{}", ran.stderr);
    // A script that is named and in a folder of the project is loaded once, and needs no approval.
    let path = ".tenterhook/hooks/guard.py";
    let ran = Test::new()
        .args(["list", "--hooks", path])
        .file(path, SCRIPT)
        .run();
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with("1 hook for 1 event.\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_working_directory_can_be_checked_by_name_and_another_folder_names_the_next_step() {
    let test = Test::new().file(".tenterhook/hooks.yaml", "hooks: []\n");
    std::fs::create_dir(test.work().join("sub")).unwrap();
    let ran = test.args(["check", "."]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("hooks.yaml`: 0 hooks"),
        "{}",
        ran.stdout
    );
    let ran = ran.again(["check", "sub"]).run();
    let expected = "\
error: `sub` is a folder, expected a hook file or a script
hint: to check all hooks that are in force there, run `cd 'sub' && tenterhook check`
";
    assert_eq!(ran.refusal(), (expected, 64));
}

#[test]
fn unapproved_scripts_are_counted_because_they_are_not_checked() {
    let test = Test::new().file(".tenterhook/hooks/guard.py", "import no_such_module\n");
    let ran = test.args(["check"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let expected = "no problems; 1 file was not checked, because it is not approved.\n";
    assert!(ran.stdout.ends_with(expected), "{}", ran.stdout);
    let unchecked = &ran.again(["check", "--json"]).run().json()["unchecked"];
    let path = unchecked[0].as_str().unwrap();
    assert!(path.ends_with(".tenterhook/hooks/guard.py"), "{unchecked}");
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
    let allowed = "`name`, `event`, `matcher`, `command`, `argv`, `builtin`, `http`, `model`, `args`, `prompt`, `schema`, `headers`, `allow_private`, `prewarm`, `shell`, `timeout`, `working_dir`, \
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
        "coverage": [],
        "unchecked": [],
    });
    let mut report = ran.json();
    let broken = report.as_object_mut().unwrap().remove("broken").unwrap();
    let untrusted = report.as_object_mut().unwrap().remove("untrusted");
    assert_eq!(untrusted, Some(json!([])));
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
  = help: docker-agent's name for `agent_error`
";
    assert_eq!(ran.refusal(), (expected, 3));
}

#[test]
fn an_event_that_no_command_fires_is_worth_a_warning() {
    let test = |args: &[&str]| {
        Test::new()
            .args(["check", "hooks.yaml"])
            .args(args.iter().copied())
            .file(
                "hooks.yaml",
                "hooks: [{event: [file_change, stop, message_send], command: cat}, {event: file_change, command: ls}]",
            )
            .run()
    };
    assert_eq!(
        test(&[]).all(),
        (
            "ok: `hooks.yaml`: 4 hooks for 3 events, 1 warning.\n",
            "warning: Tenterhook never fires `file_change`; its hooks run only in a program that does\n",
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
            "warning: `./a.yaml` is given more than once; it is loaded once\n",
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
