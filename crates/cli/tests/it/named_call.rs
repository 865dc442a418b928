//! Tool calls under the names of other hook systems, in `fire` and `test`.

use serde_json::json;

use crate::stage::Test;

/// Denies `sudo` in our `shell`, and files outside of `src` in our `read_file`.
const GUARD: &str = r#"
hooks:
  - name: no-sudo
    event: tool_guard
    matcher: shell
    builtin: deny_commands
    args: [sudo]
  - name: no-deletes
    event: tool_guard
    matcher: delete_file
    command: echo '{"decision":"deny","reason":"nothing is deleted"}'
"#;

#[test]
fn a_guard_for_our_shell_judges_the_shells_of_all_systems() {
    for (args, note) in [
        (
            &["--tool", "bash", "--arg", "command=sudo ls"][..],
            "`bash` is the name of `shell` in kodelet, pi and copilot",
        ),
        (
            &["--from", "pi", "--tool", "bash", "--arg", "command=sudo ls"],
            "`bash` is the name of `shell` in pi",
        ),
        (
            &["--tool", "terminal", "--arg", "cmd=sudo ls"],
            "`terminal` is the name of `shell` in operator",
        ),
        (
            &["--tool", "bash_manager", "--arg", "command=sudo ls"],
            "in morphix",
        ),
        (
            &["--tool", "shell", "--arg", "command=sudo ls"],
            "the arguments that `shell` has in docker-agent",
        ),
    ] {
        let ran = Test::new()
            .args(["fire", "tool_guard", "--json"])
            .args(args.iter().copied())
            .hooks(GUARD)
            .run();
        assert!(ran.stderr.starts_with("note: "), "{}", ran.stderr);
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        let (report, status) = (ran.json(), ran.status);
        assert_eq!((&report["by"], status), (&json!("no-sudo"), 2), "{args:?}");
        assert_eq!(report["event"]["tool_name"], "shell");
        assert_eq!(report["event"]["tool_input"], json!({ "cmd": "sudo ls" }));
    }
}

#[test]
fn every_operation_of_a_patch_is_judged() {
    let patch = "input=*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: b\n*** End Patch";
    let ran = Test::new()
        .args([
            "fire",
            "tool_guard",
            "--tool",
            "apply_patch",
            "--arg",
            patch,
        ])
        .hooks(GUARD)
        .run();
    assert_eq!(ran.status, 2, "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("stopped by `no-deletes`: nothing is deleted"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .contains("note: this `apply_patch` of kodelet consists of 2 operations"),
        "{}",
        ran.stderr
    );
}

#[test]
fn an_example_of_a_foreign_call_is_written_in_the_form_that_the_caller_names() {
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--example", "--from", "operator"])
        .args(["--tool", "bash", "--arg", "command=ls"])
        .run();
    let example = ran.json();
    assert_eq!(example["tool_name"], "terminal", "{example}");
}

#[test]
fn an_unknown_tool_is_sent_as_it_is_and_a_misspelt_one_with_a_warning() {
    for (tool, warning) in [
        ("deploy", None),
        (
            "shel",
            Some("warning: unknown tool `shel`; did you mean `shell`?"),
        ),
    ] {
        let ran = Test::new()
            .args([
                "fire",
                "tool_guard",
                "--tool",
                tool,
                "--arg",
                "text=sudo ls",
            ])
            .hooks(GUARD)
            .run();
        assert_eq!(ran.status, 0);
        assert_eq!(ran.stderr.trim_end(), warning.unwrap_or_default());
    }
}

#[test]
fn a_hook_for_another_agent_does_not_run() {
    let hooks = "hooks: [{name: guard, event: stop, agent: reviewer, command: exit 2}]";
    for (agent, ran_hooks) in [("reviewer", 1), ("root", 0)] {
        let ran = Test::new()
            .args(["fire", "agent_start", "--json", "--agent", agent])
            .hooks(&hooks.replace("stop", "agent_start"))
            .run();
        assert_eq!(
            ran.json()["runs"].as_array().unwrap().len(),
            ran_hooks,
            "{agent}"
        );
    }
}

const CASES: &str = r#"
cases:
  - {name: bash, tool: bash, input: {command: sudo ls}, expect: {decision: stop, reason: sudo}}
  - {name: pi, from: pi, tool: bash, input: {command: sudo ls}, expect: {decision: stop}}
  - {name: event, event: tool_guard, tool: terminal, input: {cmd: sudo ls}, expect: {decision: stop}}
  - {name: patch, tool: apply_patch, input: {input: "*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: b\n*** End Patch"}, expect: {decision: stop}}
  - {name: patch of an event, event: tool_guard, tool: apply_patch, input: {input: "*** Begin Patch\n*** Add File: a\n+1\n*** Delete File: b\n*** End Patch"}, expect: {decision: stop}}
  - {name: minutes, timeout: 1m, tool: shell, input: {cmd: ls}, expect: {decision: proceed}}
"#;

#[test]
fn cases_may_use_the_names_of_other_systems() {
    let ran = Test::new()
        .args(["test", "guard.yaml"])
        .file("guard.yaml", GUARD)
        .file("guard.cases.yaml", CASES)
        .run();
    assert_eq!((ran.stderr.as_str(), ran.status), ("", 0), "{}", ran.stdout);
    assert!(ran.stdout.contains("6 passed."), "{}", ran.stdout);
    assert!(!ran.stdout.contains("note"), "{}", ran.stdout);
}

#[test]
fn a_failed_case_says_what_was_translated_and_which_hooks_were_loaded() {
    let cases = "cases:\n  - name: wrong\n    tool: file_read\n    input: {file_path: a}\n    expect: {decision: stop}\n  \
        - name: misspelt\n    tool: shel\n    input: {cmd: sudo ls}\n    expect: {decision: proceed}\n";
    let ran = Test::new()
        .args(["test", "guard.yaml"])
        .file("guard.yaml", GUARD)
        .file("guard.cases.yaml", cases)
        .run();
    assert_eq!(ran.status, 1);
    let warning = "warning: guard.cases.yaml:6: unknown tool `shel`; did you mean `shell`?\n";
    assert_eq!(ran.stderr, warning);
    for line in [
        "note: `file_read` is the name of `read_file` in kodelet; sending `read_file` with `path`",
        "got       proceed; no hook matched the call of `read_file`",
        "hooks that were loaded",
        "  `no-sudo` on `tool_guard`, for `shell`",
        "  `no-deletes` on `tool_guard`, for `delete_file`",
    ] {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
}

#[test]
fn a_case_that_cannot_be_read_says_what_was_found_and_what_to_do() {
    for (case, expected) in [
        (
            "tool: read, input: {path: a, offset: 3}",
            "add `from:` with `operator` or `pi`",
        ),
        (
            "tool: apply_patch, input: {input: x}",
            "`tenterhook tools apply_patch` shows the arguments",
        ),
        (
            "tool: shell, timeout: soon",
            "`timeout` cannot be the string `soon`",
        ),
        (
            "tool: shell, timeout: soon",
            "seconds (`10`, `0.5`) or a number with a unit (`500ms`, `2s`, `1m`)",
        ),
        ("from: pi", "`from` needs `event` or `tool`"),
        ("event: before_toolcall", "did you mean `before_tool_call`?"),
    ] {
        let cases = format!("cases: [{{name: a, {case}, expect: {{decision: stop}}}}]\n");
        let ran = Test::new()
            .args(["test", "guard.yaml"])
            .file("guard.yaml", GUARD)
            .file("guard.cases.yaml", &cases)
            .run();
        assert_eq!(ran.status, 3, "{case}");
        assert!(ran.stderr.contains(expected), "{expected}\n{}", ran.stderr);
    }
}

#[test]
fn no_jobs_at_all_are_refused_with_what_is_expected() {
    for jobs in ["0", "-1", "many"] {
        let ran = Test::new().args(["test", &format!("--jobs={jobs}")]).run();
        assert_eq!(ran.status, 64);
        assert!(
            ran.stderr.contains("expected a whole number from 1 on"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn test_cases_are_not_hooks() {
    for args in [
        &[
            "fire",
            "tool_guard",
            "--tool",
            "shell",
            "--hooks",
            "guard.cases.yaml",
        ][..],
        &[
            "fire",
            "tool_guard",
            "--tool",
            "shell",
            "--script",
            "guard.cases.yaml",
        ],
        &["explain", "tool_guard", "--script", "guard.cases.yaml"],
        &["check", "guard.cases.yaml"],
    ] {
        let ran = Test::new()
            .args(args.iter().copied())
            .file("guard.cases.yaml", CASES)
            .run();
        let expected = if args[0] == "fire" { 2 } else { 3 };
        assert_eq!(ran.status, expected, "{args:?}");
        let output = format!("{}{}", ran.stdout, ran.stderr);
        for part in [
            "this file contains test cases, not hooks",
            "run `tenterhook test guard.cases.yaml`",
        ] {
            assert!(output.contains(part), "{part}\n{output}");
        }
    }
}

#[test]
fn explain_reads_one_file_for_one_agent_and_counts_the_hooks_of_other_events() {
    let hooks = "hooks:\n  - {name: one, event: stop, agent: reviewer, command: cat}\n  \
        - {name: two, event: turn_end, command: cat}\n  - {name: three, event: turn_end, command: cat}\n";
    let explain = |args: &[&str]| {
        Test::new()
            .args(["explain", "stop", "--script", "guard.yaml"])
            .args(args.iter().copied())
            .file("guard.yaml", hooks)
            .run()
    };
    let ran = explain(&["--agent", "root"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for part in [
        "it is for the agent `reviewer`",
        "stop: 0 hooks would run, 1 would not.\n2 more hooks for other events: `turn_end`.\n",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    let report = explain(&["--json", "--agent", "reviewer"]).json();
    assert_eq!(report["hooks"][0]["runs"], true);
    assert_eq!(report["hooks_of_other_events"], 2);
}
