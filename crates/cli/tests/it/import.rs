//! `tenterhook import`: hooks of a coding agent decide here as they decide there.

use std::fs;

use serde_json::Value;

use crate::stage::{Ran, Test};

/// A guard of pushes, which reads its rules from a file of its plugin.
const GUARD: &str = "#!/bin/sh
[ -r \"$CLAUDE_PLUGIN_ROOT/rules\" ] || exit 1
grep -q \"\\\"command\\\":\\\"$(cat \"$CLAUDE_PLUGIN_ROOT/rules\")\" || exit 0
echo \"no push, level ${SAFETY_LEVEL:-low}, mode ${CLAUDE_PLUGIN_OPTION_MODE:-none}\" >&2
exit 2
";

const HOOKS: &str = r#"{ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [
    { "type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/guard.sh\"" }
] }] } }"#;

const MANIFEST: &str = r#"{ "name": "guard", "version": "1.0.0", "userConfig": {
    "mode": { "type": "string", "title": "Mode", "description": "How strict", "default": "fast" },
    "account": { "type": "string", "title": "Account", "description": "Yours", "sensitive": true }
} }"#;

/// A plugin in the folder `folder` of the working directory.
fn plugin(folder: &str) -> Test {
    Test::new()
        .file(&format!("{folder}/hooks/hooks.json"), HOOKS)
        .file(&format!("{folder}/.claude-plugin/plugin.json"), MANIFEST)
        .file(&format!("{folder}/guard.sh"), GUARD)
        .file(&format!("{folder}/rules"), "git push")
}

fn import(test: Test, more: &[&str]) -> Ran {
    let args = ["import", "claude-code"].iter().chain(more);
    test.args(args.copied()).run()
}

/// Fires a call of the shell, and returns the exit status and the output.
fn shell(before: Ran, line: &str) -> Ran {
    let call = format!("cmd={line}");
    let args = [
        "fire",
        "pre_tool_use",
        "--no-journal",
        "--tool",
        "shell",
        "--arg",
        &call,
    ];
    before.again(args).run()
}

fn write_settings(test: &Test, settings: &str) {
    fs::create_dir_all(test.home().join(".claude")).unwrap();
    fs::write(test.home().join(".claude/settings.json"), settings).unwrap();
}

#[test]
fn the_guard_of_a_plugin_denies_after_its_import() {
    let test = plugin("plugins/guard");
    write_settings(
        &test,
        r#"{ "env": { "SAFETY_LEVEL": "strict", "API_TOKEN": "x" } }"#,
    );
    let ran = import(test, &["--file", "plugins/guard"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("`SAFETY_LEVEL`, `CLAUDE_PLUGIN_OPTION_MODE`"),
        "{}",
        ran.stdout
    );
    for note in [
        "`API_TOKEN`",
        "the option `account` of the plugin has no value",
    ] {
        assert!(ran.stderr.contains(note), "{note}: {}", ran.stderr);
    }
    let denied = shell(ran, "git push --force");
    assert_eq!(denied.status, 2, "{}", denied.stdout);
    assert!(
        denied.stdout.contains("no push, level strict, mode fast"),
        "{}",
        denied.stdout
    );
    let allowed = shell(denied, "git status");
    assert_eq!(allowed.status, 0, "{}", allowed.stdout);
    let again = allowed
        .again(["import", "claude-code", "--file", "plugins/guard", "--json"])
        .run();
    assert_eq!(again.json()["changed"], Value::Bool(false));
}

#[test]
fn the_plugin_of_a_project_denies_once_it_is_approved() {
    let test = plugin("plugins/guard");
    fs::create_dir(test.work().join(".git")).unwrap();
    let ran = import(
        test,
        &["--project", "--file", "plugins/guard/hooks/hooks.json"],
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let trusted = ran.again(["trust", "--all"]).run();
    assert_eq!(trusted.status, 0, "{}", trusted.stderr);
    let denied = shell(trusted, "git push");
    assert_eq!(denied.status, 2, "{}{}", denied.stdout, denied.stderr);
    assert!(denied.stdout.contains("no push"), "{}", denied.stdout);
}

#[test]
fn a_manifest_names_further_files_of_its_plugin() {
    let manifest = r#"{ "name": "p", "hooks": ["./config/more.json", "./hooks/hooks.json"] }"#;
    let test = plugin("p")
        .file("p/config/more.json", HOOKS)
        .file("p/.claude-plugin/plugin.json", manifest);
    let ran = import(test, &["--file", "p/.claude-plugin/plugin.json", "--json"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["files"].as_array().unwrap().len(), 2);
    assert_eq!(shell(ran, "git push").status, 2);
    for named in ["../outside.json", "./missing.json"] {
        let manifest = format!(r#"{{ "name": "p", "hooks": "{named}" }}"#);
        let test = plugin("p")
            .file("outside.json", HOOKS)
            .file("p/.claude-plugin/plugin.json", &manifest);
        let ran = import(test, &["--file", "p"]);
        assert_eq!(ran.status, 3, "{named}");
        assert!(
            ran.stderr.contains("not a file of the plugin"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn settings_are_imported_with_their_variables_and_say_what_is_elsewhere() {
    let test = Test::new();
    let hook = r#"[ \"$SAFETY_LEVEL\" = strict ] && echo strict >&2 && exit 2; exit 0"#;
    let settings = format!(
        r#"{{ "env": {{ "SAFETY_LEVEL": "strict" }}, "enabledPlugins": {{ "guard@market": true, "old@market": false }},
            "hooks": {{ "PreToolUse": [{{ "hooks": [{{ "type": "command", "command": "{hook}" }}] }}] }} }}"#
    );
    write_settings(&test, &settings);
    let ran = import(test, &[]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`guard@market`") && !ran.stderr.contains("old@market"),
        "{}",
        ran.stderr
    );
    assert_eq!(shell(ran, "git push --force").status, 2);
}

#[test]
fn an_import_refuses_and_check_names_a_matcher_that_never_matches() {
    let hooks = HOOKS.replace("\"Bash\"", "\"Bash(git *)\"");
    let test = plugin("p").file("p/hooks/hooks.json", &hooks);
    let ran = import(test, &["--file", "p"]);
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    let expected = "the matcher `Bash(git *)` has the form of a permission rule";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert!(!ran.path("config/hooks.yaml").exists());
    let ran = ran.again(["check", "p/hooks/hooks.json"]).run();
    assert_eq!(ran.status, 3);
    assert!(
        format!("{}{}", ran.stdout, ran.stderr).contains(expected),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_trial_runs_each_hook_once_in_a_copy_and_shows_which_fail() {
    let hooks = r#"{ "hooks": {
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [{ "type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/guard.sh\"" }] },
            { "matcher": "Write", "hooks": [{ "type": "command", "command": "node \"/no-such-guard.js\"" }] },
            { "matcher": "Bash", "hooks": [{ "type": "command", "command": "grep -q 'git push'", "if": "Bash(git push *)" }] },
            { "matcher": "mcp__x__y", "hooks": [{ "type": "command", "command": "true" }] }
        ],
        "Stop": [{ "hooks": [{ "type": "command", "command": "echo written > trace" }] }]
    } }"#;
    let test = plugin("p").file("p/hooks/hooks.json", hooks);
    let ran = import(test, &["--file", "p", "--try"]);
    assert_eq!(ran.status, 3, "{}{}", ran.stdout, ran.stderr);
    for line in [
        "ok       PreToolUse#1",
        "fails    PreToolUse#2: ",
        "ok       PreToolUse#3",
        "not run  PreToolUse#4: no known tool matches `mcp__x__y`",
        "ok       Stop#1",
    ] {
        assert!(ran.stdout.contains(line), "{line}\n{}", ran.stdout);
    }
    assert!(
        !ran.path("work/trace").exists(),
        "a hook wrote into the folder itself"
    );
    let good = plugin("p");
    let ran = import(good, &["--file", "p", "--try", "--json"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["tried"][0]["result"], "ok");
}

#[test]
fn hooks_of_a_project_are_tried_only_after_their_approval() {
    let args = ["--project", "--file", "p", "--try"];
    let test = plugin("p");
    fs::create_dir(test.work().join(".git")).unwrap();
    let ran = import(test, &args);
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    assert!(ran.stderr.contains("1 hook not approved"), "{}", ran.stderr);
    let ran = ran.again(["trust", "--all"]).run();
    let ran = import(ran.again([""; 0]), &args);
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("ok       PreToolUse#1"),
        "{}",
        ran.stdout
    );
}
