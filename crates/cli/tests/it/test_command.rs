//! `tenterhook test`: the test cases of hooks.

use std::fs;

use serde_json::json;

use crate::stage::{Ran, Test};

/// A hook file whose guard denies `sudo`.
const GUARD: &str = "\
hooks:
  - {name: guard, event: tool_guard, matcher: shell, builtin: deny_commands, args: [sudo]}
";

/// One case: a call of the shell tool, and the decision that is expected.
fn case(name: &str, cmd: &str, decision: &str) -> String {
    format!(
        "  - {{name: {name}, tool: shell, input: {{cmd: '{cmd}'}}, expect: {{decision: {decision}}}}}\n"
    )
}

fn cases(all: &[(&str, &str, &str)]) -> String {
    let all = all
        .iter()
        .map(|(name, cmd, decision)| case(name, cmd, decision));
    format!("cases:\n{}", all.collect::<String>())
}

fn sudo_cases() -> String {
    cases(&[
        ("denies sudo", "sudo ls", "stop"),
        ("lets ls through", "ls", "proceed"),
    ])
}

/// Runs the cases of one hook.
fn test_hook(name: &str, hook: &str, cases: &str) -> Ran {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    Test::new()
        .args(["test", name])
        .file(name, hook)
        .file(&format!("{stem}.cases.yaml"), cases)
        .run()
}

#[test]
fn cases_that_pass_and_cases_that_fail_have_a_line_each() {
    let ran = test_hook("guard.yaml", GUARD, &sudo_cases());
    let expected = "\
guard.cases.yaml
  ok    denies sudo
  ok    lets ls through

2 passed.
";
    assert_eq!(ran.all(), (expected, "", 0));
    // A broken guard: the word is misspelt.
    let ran = test_hook(
        "guard.yaml",
        &GUARD.replace("[sudo]", "[sodu]"),
        &sudo_cases(),
    );
    let expected = "\
guard.cases.yaml
  FAIL  denies sudo (line 2)
        decision
          expected  stop
          got       proceed
        hooks that ran
          tool_guard      guard           no opinion [TIME]
  ok    lets ls through

1 passed, 1 failed.
";
    assert_eq!(ran.all(), (expected, "", 1));
    // The guard matches no tool.
    let ran = test_hook(
        "guard.yaml",
        &GUARD.replace("matcher: shell", "matcher: shll"),
        &sudo_cases(),
    );
    assert_eq!(ran.status, 1);
    assert!(
        ran.stdout
            .contains("got       proceed; no hook matched the call of `shell`"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_failed_case_says_which_hook_decided_and_why() {
    let ran = test_hook(
        "guard.yaml",
        GUARD,
        &cases(&[("lets sudo through", "sudo ls", "allow")]),
    );
    assert_eq!(ran.status, 1);
    let expected =
        "got       stop by `guard` of guard.yaml:2 on tool_guard: `sudo` is not allowed here";
    let stdout = ran.stdout.replace("[DIR]/work/", "");
    assert!(stdout.contains(expected), "{stdout}");
}

#[test]
fn every_expectation_is_checked() {
    let hooks = "\
hooks:
  - name: rewrite
    event: pre_tool_use
    command: |
      echo '{\"updated_input\":{\"cmd\":\"ls -h\"},\"additional_context\":\"sizes are readable\"}'
  - name: fails
    event: tool_guard
    matcher: read_file
    command: exit 3
";
    let cases = "\
cases:
  - {name: rewrite, tool: shell, input: {cmd: ls}, expect: {rewritten: {cmd: ls -h}}}
  - {name: path, event: pre_tool_use, tool: shell, input: {cmd: ls}, expect: {rewritten: {tool_input.cmd: ls -h}}}
  - {name: other value, tool: shell, input: {cmd: ls}, expect: {rewritten: {cmd: ls -a}}}
  - {name: nothing, tool: shell, input: {cmd: ls}, expect: {rewritten: {}}}
  - {name: context, event: pre_tool_use, payload: {tool_name: shell}, expect: {context: /sizes are/}}
  - {name: other context, event: pre_tool_use, payload: {tool_name: shell}, expect: {context: colours}}
  - {name: failure, tool: read_file, expect: {failure: true, decision: stop}}
  - {name: a crash is not a pass, tool: read_file, expect: {decision: stop}}
  - {name: no failure, tool: shell, expect: {failure: true}}
  - {name: reason, event: tool_guard, tool: read_file, expect: {failure: true, reason: /status 3/}}
";
    let ran = Test::new()
        .args(["test", "hooks.cases.yaml", "--json"])
        .file("hooks.yaml", hooks)
        .file("hooks.cases.yaml", cases)
        .run();
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let report = ran.json();
    let cases = report["files"][0]["cases"].as_array().unwrap();
    let results: Vec<(&str, bool)> = cases
        .iter()
        .map(|case| {
            (
                case["name"].as_str().unwrap(),
                case["ok"].as_bool().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("rewrite", true),
        ("path", true),
        ("other value", false),
        ("nothing", false),
        ("context", true),
        ("other context", false),
        ("failure", true),
        ("a crash is not a pass", false),
        ("no failure", false),
        ("reason", true),
    ];
    assert_eq!(results, expected, "{report:#}");
    let mismatch = json!({ "what": "cmd", "expected": "\"ls -a\"", "got": "\"ls -h\"" });
    assert_eq!(cases[2]["mismatches"], json!([mismatch]));
    assert_eq!(cases[7]["mismatches"][0]["what"], "failure");
    assert_eq!(
        (&report["ok"], &report["passed"], &report["failed"]),
        (&json!(false), &json!(5), &json!(5))
    );
}

#[test]
fn hooks_of_every_system_are_tested() {
    let operator = "\
from operator_use.program.hooks.types import ToolCallEvent, ToolCallEventResult

async def guard(event: ToolCallEvent):
    if event.input.get('cmd', '').startswith('sudo'):
        return ToolCallEventResult(block=True, reason='no')

hooks = [('tool_call', guard)]
";
    let pi = "\
export default function (pi) {
  pi.on('tool_call', async (event) => {
    if (event.input.command.startsWith('sudo')) return { block: true, reason: 'no' };
  });
}
";
    let kodelet = "#!/bin/sh
if [ \"$1\" = hook ]; then echo before_tool_call; exit; fi
case \"$(cat)\" in *'\"sudo '*) echo '{\"blocked\":true,\"reason\":\"no\"}' ;; esac
";
    let agent = "\
agents:
  root:
    model: openai/gpt-4o
    hooks:
      pre_tool_use:
        - matcher: shell
          hooks: [{type: command, command: 'grep -q sudo && { echo no >&2; exit 2; }; exit 0'}]
";
    let morphix = "\
from core.hooks_registry import HookContext, hooks_registry

@hooks_registry.register('on_before_tool')
def note(ctx: HookContext) -> None:
    ctx.parameters['command'] = 'true'
";
    let rewritten = r#"{"cases": [{"name": "rewrites", "tool": "shell", "input": {"cmd": "ls"}, "expect": {"rewritten": {"cmd": "true"}}}]}"#;
    let ran = Test::new()
        .args(["test"])
        .file(".operator/hooks/guard.py", operator)
        .file(".operator/hooks/guard.cases.yaml", &sudo_cases())
        .file(".pi/extensions/guard.ts", pi)
        .file(".pi/extensions/guard.cases.yaml", &sudo_cases())
        .executable(".kodelet/hooks/guard", kodelet)
        .file(".kodelet/hooks/guard.cases.yaml", &sudo_cases())
        .file(".tenterhook/hooks.d/agent.yaml", agent)
        .file(".tenterhook/hooks.d/agent.cases.yaml", &sudo_cases())
        .file("core/hooks/note.py", morphix)
        .file("core/hooks/note.cases.json", rewritten)
        .run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.ends_with("\n9 passed.\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("approved or not"), "{}", ran.stderr);
}

#[test]
fn test_files_are_never_loaded_as_hooks() {
    let hook = "{cases: [], hooks: [{event: session_start, command: touch loaded}]}";
    let folders = [
        ".tenterhook",
        ".tenterhook/hooks",
        ".tenterhook/hooks.d",
        ".operator/hooks",
        ".pi/extensions",
        ".kodelet/hooks",
        ".kodelet/plugins/a@b/hooks",
        ".kodelet/extensions",
        "core/hooks",
        "workspaces/main/hooks",
        "../config",
        "../config/hooks",
        "../config/hooks.d",
        "../home/.kodelet/hooks",
        "../home/.kodelet/extensions",
        "../home/.pi/agent/extensions",
        "../home/.operator/profiles/default/hooks",
    ];
    for is_executable in [false, true] {
        let mut test = Test::new().args(["check", "--json"]);
        for folder in folders {
            for name in [
                "hooks.cases.yaml",
                "g.cases.YAML",
                "g.cases.json",
                "kodelet-extension-g.cases.toml",
            ] {
                let path = format!("{folder}/{name}");
                test = if is_executable {
                    test.executable(&path, hook)
                } else {
                    test.file(&path, hook)
                };
            }
        }
        let ran = test.run();
        assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr, "");
        let report = ran.json();
        assert_eq!(
            (&report["hooks"], &report["problems"], &report["warnings"]),
            (&json!(0), &json!([]), &json!([])),
            "{report:#}"
        );
    }
}

#[test]
fn a_test_file_changes_no_approval() {
    let test = Test::new().args(["trust", "--all"]).file(
        ".tenterhook/hooks/guard.py",
        "from tenterhook import on\non('stop', lambda event: None)\n",
    );
    let ran = test.run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran
        .again(["list"])
        .file(".tenterhook/hooks/guard.cases.yaml", &sudo_cases())
        .run();
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("approved"), "{}", ran.stdout);
}

#[test]
fn an_invalid_test_file_is_an_error_with_its_line() {
    for (cases, expected) in [
        ("caes: []\n", "did you mean `cases`?"),
        ("cases: []\n", "the file has no cases"),
        ("", "the file has no cases"),
        (
            "cases: [{name: a, event: pre_tool_us, expect: {decision: stop}}]\n",
            "did you mean `pre_tool_use`?",
        ),
        (
            "cases: [{name: a, event: pre_tool_use, payload: {tool: shell}, expect: {decision: stop}}]\n",
            "`tenterhook fire pre_tool_use --example` prints a payload",
        ),
        (
            "cases: [{name: a, tool: x, expect: {decision: stop}}, {name: a, tool: x, expect: {decision: stop}}]\n",
            "two cases are named `a`, the first on line 1",
        ),
        (
            "cases: [{name: a, tool: x, expects: {decision: stop}}]\n",
            "did you mean `expect`?",
        ),
    ] {
        let ran = test_hook("guard.yaml", GUARD, cases);
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 3, "{cases}: {stderr}");
        assert!(stderr.contains(expected), "{cases}: {stderr}");
        assert!(stderr.contains("--> guard.cases.yaml"), "{cases}: {stderr}");
    }
}

#[test]
fn a_call_without_cases_says_where_it_looked() {
    let (args, files): (&[&str], &[&str]) = (&["test"], &[]);
    let run = |args: &[&str], files: &[&str]| {
        let test = Test::new().args(args.iter().copied());
        files
            .iter()
            .fold(test, |test, file| test.file(file, GUARD))
            .run()
    };
    for (args, files, expected) in [
        (args, files, "no file `*.cases.yaml` in `[DIR]/config`"),
        (
            &["test"],
            &[".tenterhook/hooks.yaml", ".pi/x"],
            "no file `*.cases.yaml` in `.tenterhook`, `.pi`",
        ),
        (
            &["test", "guard.yaml"],
            &["guard.yaml"],
            "write them into `guard.cases.yaml` next to it",
        ),
        (&["test", "gone.yaml"], &[], "`gone.yaml` does not exist"),
        (
            &["test", "."],
            &["guard.yaml"],
            "no file `*.cases.yaml` in `.`",
        ),
    ] {
        let ran = run(args, files);
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 64, "{stderr}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    let ran = Test::new()
        .args(["test", "guard.yaml", "--filter", "weather"])
        .file("guard.yaml", GUARD)
        .file("guard.cases.yaml", &sudo_cases())
        .run();
    assert_eq!(ran.status, 64);
    assert!(
        ran.stderr
            .contains("no case has a name that contains `weather`"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hooks_that_cannot_be_loaded_fail_their_cases_with_the_problem() {
    let ran = test_hook(
        "guard.yaml",
        &GUARD.replace("matcher", "macher"),
        &sudo_cases(),
    );
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("did you mean `matcher`?"),
        "{}",
        ran.stderr
    );
    // All cases of a file have the same problem, which is shown once.
    assert_eq!(
        ran.stderr.matches("unknown key").count(),
        1,
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.ends_with("\n0 passed, 2 failed.\n"),
        "{}",
        ran.stdout
    );
    let ran = test_hook("guard.py", "def guard(:\n", &sudo_cases());
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("SyntaxError"), "{}", ran.stderr);
}

#[test]
fn a_script_that_crashes_does_not_pass_as_a_denial() {
    let script = "\
from tenterhook import on

@on('tool_guard')
def guard(event):
    print('about to crash')
    return 1 / 0
";
    let ran = test_hook("guard.py", script, &cases(&[("denies", "sudo ls", "deny")]));
    assert_eq!(ran.status, 1);
    for part in [
        "no hook fails",
        "division by zero",
        "printed: ",
        "about to crash",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[test]
fn parallel_cases_share_nothing() {
    // A script that counts its calls, and prints a variable that differs from case to case.
    let script = "\
import os, time
from tenterhook import deny, on

calls = 0

@on('tool_guard')
def guard(event):
    global calls
    calls += 1
    time.sleep(0.05)
    return deny(f\"{calls} {os.environ['NUMBER']} {event.tool_input['cmd']}\")
";
    let cases = (0..24).map(|number| {
        format!(
            "  - {{name: case {number}, tool: shell, input: {{cmd: cmd {number}}}, env: {{NUMBER: {number}}}, \
             expect: {{reason: /^1 {number} cmd {number}$/}}}}\n"
        )
    });
    let cases = format!("cases:\n{}", cases.collect::<String>());
    for jobs in ["1", "8"] {
        let ran = Test::new()
            .args(["test", "guard.py", "--jobs", jobs])
            .file("guard.py", script)
            .file("guard.cases.yaml", &cases)
            .run();
        assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
        let names: Vec<String> = (0..24)
            .map(|number| format!("  ok    case {number}"))
            .collect();
        let expected = format!("guard.cases.yaml\n{}\n\n24 passed.\n", names.join("\n"));
        assert_eq!(ran.stdout, expected);
    }
}

#[test]
fn a_hook_that_hangs_ends_with_its_case() {
    let hook = "hooks: [{event: tool_guard, command: \"sleep 60; true\"}]";
    let cases = "cases: [{name: slow, tool: shell, timeout: 0.5, expect: {decision: stop}}]";
    let ran = test_hook("guard.yaml", hook, cases);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("the case did not end within 0.5 s"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_filter_selects_cases_and_a_file_may_test_several_hooks() {
    let test = Test::new()
        .file("guards/a.yaml", GUARD)
        .file("guards/b.yaml", &GUARD.replace("[sudo]", "[rm]"))
        .file(
            "guards/both.cases.yaml",
            &format!(
                "hooks: [a.yaml, ./b.yaml]\n{}",
                cases(&[
                    ("sudo", "sudo ls", "stop"),
                    ("rm", "rm x", "stop"),
                    ("ls", "ls", "allow")
                ])
            ),
        );
    let ran = test.args(["test", "guards"]).run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = ran.again(["test", "guards", "--filter", "rm"]).run();
    assert_eq!(
        ran.all(),
        ("guards/both.cases.yaml\n  ok    rm\n\n1 passed.\n", "", 0)
    );
    // Whoever names one hook does not run the other.
    let ran = ran
        .again(["test", "guards/a.yaml"])
        .file(
            "guards/a.cases.yaml",
            &format!("hooks: [a.yaml, b.yaml]\n{}", sudo_cases()),
        )
        .run();
    assert_eq!(ran.status, 64);
    assert!(
        ran.stderr.contains("its key `hooks` names others"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_test_file_runs_no_hook_outside_of_its_project_and_approves_nothing() {
    let evil = "hooks: [{event: tool_guard, command: touch ../../ran}]";
    let of_hooks = |hooks: &str| format!("hooks: {hooks}\n{}", sudo_cases());
    let test = Test::new().file("../home/evil.yaml", evil);
    let home = test.home().display().to_string();
    let project = test.work().join("p");
    fs::create_dir_all(project.join(".git")).unwrap();
    std::os::unix::fs::symlink(test.home().join("evil.yaml"), project.join("link.yaml")).unwrap();
    let mut ran = test.args(["list"]).run();
    for hooks in [
        "../../home/evil.yaml",
        &format!("{home}/evil.yaml"),
        "link.yaml",
    ] {
        ran = ran
            .again(["test", "p/guard.cases.yaml"])
            .file("p/guard.cases.yaml", &of_hooks(hooks))
            .run();
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 3, "{stderr}");
        assert!(stderr.contains("which is outside of"), "{stderr}");
    }
    // An approval that a hook under test gives itself is refused, and other hooks of the project do not run.
    let program = env!("CARGO_BIN_EXE_tenterhook");
    let approves = format!(
        "hooks: [{{event: tool_guard, command: \"env -u TENTERHOOK_AGENT {program} trust --all > out 2>&1; true\"}}]"
    );
    let ran = ran
        .again(["test", "p/guard.cases.yaml"])
        .file(
            "p/.tenterhook/hooks.yaml",
            "hooks: [{event: tool_guard, command: touch ran}]",
        )
        .file("p/guard.yaml", &approves)
        .file(
            "p/guard.cases.yaml",
            &cases(&[("approves", "ls", "proceed")]),
        )
        .run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.file("p/out")
            .contains("a program that Tenterhook runs cannot approve hooks"),
        "{}",
        ran.file("p/out")
    );
    assert!(!ran.path("work/p/ran").exists());
    assert!(
        !ran.path("home/.local/share/tenterhook/trust/trust.json")
            .exists()
    );
}

#[test]
fn an_agent_cannot_test_the_hooks_of_a_project_and_can_test_a_file() {
    let test = |args: &[&str], hooks: &str| {
        Test::new()
            .args(args.iter().copied())
            .variable("TENTERHOOK_AGENT", "1")
            .file(".tenterhook/hooks.yaml", GUARD)
            .file(
                ".tenterhook/hooks.cases.yaml",
                &format!("{hooks}{}", sudo_cases()),
            )
            .run()
    };
    for (args, hooks) in [
        (&["test"][..], ""),
        (
            &["test", ".tenterhook/hooks.cases.yaml"],
            "hooks: project\n",
        ),
    ] {
        let ran = test(args, hooks);
        let (stderr, status) = ran.refusal();
        assert_eq!(status, 64, "{stderr}");
        assert!(
            stderr.contains("a program that Tenterhook runs cannot test the hooks of a project"),
            "{stderr}"
        );
    }
    let ran = test(&["test", ".tenterhook/hooks.yaml"], "");
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn all_hooks_of_the_project_can_be_tested_together() {
    let cases = format!(
        "hooks: project\n{}",
        cases(&[
            ("sudo", "sudo ls", "stop"),
            ("rm", "rm x", "stop"),
            ("ls", "ls", "proceed")
        ])
    );
    let ran = Test::new()
        .args(["test"])
        .file(".tenterhook/hooks.yaml", GUARD)
        .file(
            ".tenterhook/hooks.d/b.yaml",
            &GUARD.replace("[sudo]", "[rm]"),
        )
        .file(".tenterhook/all.cases.yaml", &cases)
        .run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("approved or not"), "{}", ran.stderr);
}

/// The page of test files: its files are written, its command is run, its output is compared.
#[test]
fn the_page_of_test_files_is_true() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/test-files.md"
    );
    let page = fs::read_to_string(page).unwrap();
    let block = |start: &str| {
        let block = page.split(&format!("```{start}\n")).nth(1).unwrap();
        block.split("```").next().unwrap().to_owned()
    };
    let test = Test::new()
        .file("guard.py", &block("python guard.py"))
        .file("guard.cases.yaml", &block("yaml guard.cases.yaml"))
        .file("captured.cases.yaml", &block("yaml captured.cases.yaml"));
    let console = block("console");
    let (command, output) = console.split_once('\n').unwrap();
    let words = command.strip_prefix("$ tenterhook ").unwrap().split(' ');
    let ran = test.args(words).run();
    // The page shows a time as a user sees it.
    let output = output.replace("    3.2 ms", " [TIME]");
    assert_eq!(ran.all(), (output.as_str(), "", 1));
    let ran = ran.again(["test", "captured.cases.yaml"]).run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
}
