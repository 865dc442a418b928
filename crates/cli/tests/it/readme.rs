//! What the README promises: its first guard, the examples, and a test for every guarantee.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::stage::Test;

/// Attacks on the guard, each with whether it must be denied.
const LINES: &[(&str, bool)] = &[
    ("sudo reboot", true),
    (" sudo reboot", true),
    ("cd x && sudo reboot", true),
    ("/usr/bin/sudo reboot", true),
    ("git push -f", true),
    ("git push --force", true),
    ("git push origin main --force", true),
    ("git push origin +main", true),
    ("git difftool -x 'sudo reboot'", true),
    ("git difftool -y --extcmd='git push -f' main", true),
    ("git -c core.pager='sudo less' log", true),
    ("timeout 5 sudo reboot", true),
    ("nice -n 5 setsid sudo reboot", true),
    ("env A=1 sudo reboot", true),
    ("sh -c 'sudo reboot'", true),
    ("bash -lc 'cd x; git push --force'", true),
    ("echo reboot | xargs sudo", true),
    ("busybox sh -c 'sudo reboot'", true),
    (
        "timeout 5 sh -c \"nohup busybox sh -c 'sudo reboot'\"",
        true,
    ),
    ("git push origin main", false),
    ("timeout 5 git push origin main", false),
    ("ls", false),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assert_guards(event: &str, hooks: &str) {
    for (line, is_denied) in LINES {
        let call = json!({ "tool_name": "shell", "tool_input": { "cmd": line } });
        let ran = Test::new()
            .args(["fire", event, "--no-journal"])
            .event(&call.to_string())
            .hooks(hooks)
            .run();
        let expected = if *is_denied { 2 } else { 0 };
        assert_eq!(ran.status, expected, "{line}: {}", ran.stderr);
    }
}

#[test]
fn the_first_guard_of_the_readme_cannot_be_slipped_past() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let guard = readme.split("```yaml\n").nth(1).unwrap();
    assert_guards("tool_guard", guard.split("```").next().unwrap());
}

#[test]
fn the_guard_of_the_example_agent_cannot_be_slipped_past() {
    let text = fs::read_to_string(root().join("examples/agent.yaml")).unwrap();
    assert_guards("pre_tool_use", &text);
}

#[test]
fn the_rules_of_the_example_agent_allow_no_command_that_another_one_runs() {
    let text = fs::read_to_string(root().join("examples/agent.yaml")).unwrap();
    for (line, runs) in [
        ("git diff --stat", true),
        ("git status", true),
        ("git difftool -y -x ./evil", false),
        ("git diff --output=evil", false),
        ("git -c core.pager=./evil diff", false),
    ] {
        let script = format!(
            "turns:\n  - tool_calls: [{{name: shell, arguments: {{cmd: {line}}}}}]\n  - text: done\n"
        );
        let ran = Test::new()
            .args(["run", "go", "--no-journal"])
            .hooks(&text)
            .script(&script)
            .run();
        let is_denied = ran.stdout.contains("denied") || ran.stderr.contains("denied");
        assert_eq!(is_denied, !runs, "{line}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn the_guard_of_the_example_hooks_cannot_be_slipped_past() {
    let text = fs::read_to_string(root().join("examples/hooks.yaml")).unwrap();
    assert_guards("tool_guard", &text);
}

#[test]
fn every_guarantee_of_the_readme_names_tests_that_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let section = readme.split("## What it guarantees").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let guarantees: Vec<&str> = section.split("\n- **").skip(1).collect();
    assert!(guarantees.len() > 5, "{section}");
    for guarantee in guarantees {
        assert_names_tests(guarantee);
    }
}

#[test]
fn every_attack_of_the_threat_model_names_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let section = page.split("## What holds").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let attacks: Vec<&str> = rows
        .filter(|row| !row.starts_with("| attack |") && !row.starts_with("|---"))
        .collect();
    assert!(attacks.len() > 40, "{}", attacks.len());
    for attack in attacks {
        assert_names_tests(&attack.replace("](../", "]("));
    }
}

/// Checks that a passage links to at least one test, and that every test it links to exists.
fn assert_names_tests(passage: &str) {
    let links: Vec<(&str, &str)> = passage
        .split("[`")
        .skip(1)
        .map(|link| {
            let (name, rest) = link.split_once("`](").unwrap();
            (name, rest.split(')').next().unwrap())
        })
        .collect();
    assert!(!links.is_empty(), "no test: {passage}");
    for (name, path) in links {
        let file = root().join(path);
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
        // A compile-fail test is a file of its own.
        let is_there =
            text.contains(&format!("fn {name}(")) || path.ends_with(&format!("/{name}.rs"));
        assert!(is_there, "no test `{name}` in {path}");
    }
}
