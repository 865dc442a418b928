//! `tenterhook doctor` without real agents.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::stage::{Ran, Test};

/// Runs `doctor` on a machine with these programs only.
fn doctor(programs: &[&str], args: &[&str]) -> Ran {
    let test = Test::new().args(args.iter().copied());
    let bin = test.home().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let file = bin.join(program);
        fs::write(&file, "#!/bin/sh\nexit 1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = bin.display().to_string();
    test.variable("PATH", &path).run()
}

#[test]
fn without_an_agent_it_says_which_it_knows() {
    let ran = doctor(&[], &["doctor", "--prove"]);
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr
            .contains("error: found no coding agent on this machine\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("hint: install one of Claude Code, "));
}

#[test]
fn an_unknown_name_lists_the_names() {
    let ran = doctor(&["claude"], &["doctor", "claud"]);
    assert_eq!(ran.status, 64);
    assert!(ran.stderr.contains("error: unknown agent `claud`"));
    assert!(ran.stderr.contains("hint: available: claude-code, "));
}

#[test]
fn an_agent_that_is_not_there_is_named() {
    let ran = doctor(&["claude"], &["doctor", "--prove", "codex"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("error: Codex is not on this machine"));
}

#[test]
fn the_agents_on_the_machine_are_listed() {
    let ran = doctor(&["claude", "qwen"], &["doctor", "--json"]);
    // Tenterhook is in the configuration of neither.
    assert_eq!(ran.status, 3);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["problems"][0]["problem"], "not_installed");
    let hosts = value["hosts"].as_array().unwrap();
    let names: Vec<&str> = hosts.iter().filter_map(|it| it["host"].as_str()).collect();
    assert_eq!(names, ["claude-code", "qwen"]);
}

#[test]
fn an_agent_that_does_not_work_is_not_proven() {
    let ran = doctor(&["claude"], &["doctor", "--prove", "--json"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["ok"], false);
    let cases = value["hosts"][0]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 1, "{cases:?}");
    assert_eq!(cases[0]["case"], "events");
    assert_eq!(cases[0]["result"], "fails");
}
