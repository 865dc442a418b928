//! `status`, `doctor` and other commands say what keeps a guard from being in force.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::search_path::search_path;
use crate::shim_stage::{HostStage, ShimOutput};
use crate::stage::eventually;

const GUARD: &str =
    "hooks: [{event: pre_tool_use, name: guard, command: \"echo old rule >&2; exit 2\"}]";
const BROKEN: &str = "hooks: [{event: pre_tool_us, name: guard, command: exit 2}]";
const OWN_FILE: &str = "config/hooks.d/hooks.yaml";
const PROJECT_FILE: &str = "work/.tenterhook/hooks.yaml";

/// Creates a machine with the program of one agent, of the version that was measured, and without hooks.
fn machine(program: &str) -> HostStage {
    let stage = HostStage::new();
    let bin = stage.path("home/bin");
    let path = format!("{}:{}", bin.display(), search_path().to_str().unwrap());
    stage.write(&format!("home/bin/{program}"), "#!/bin/sh\nexit 1\n");
    stage.variable("PATH", &path)
}

/// Creates a machine on which an agent calls Tenterhook.
fn installed(program: &str, host: &str) -> HostStage {
    let stage = machine(program);
    done(&stage, &["install", host, "--trust"]);
    stage
}

fn done(stage: &HostStage, args: &[&str]) -> ShimOutput {
    let ran = stage.tenterhook(args);
    assert_eq!(ran.status, 0, "{args:?}: {ran:?}");
    ran
}

fn json_of(stage: &HostStage, command: &str) -> (i32, Value) {
    let ran = stage.tenterhook(&[command, "--json"]);
    let value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (ran.status, value)
}

/// Checks that `status` and `doctor` name a problem first, with one next step.
fn check_worst(stage: &HostStage, kind: &str, next_step: &str) {
    for command in ["status", "doctor"] {
        let (status, report) = json_of(stage, command);
        let worst = &report["problems"][0];
        assert_eq!(
            (status, &report["ok"], &worst["problem"]),
            (3, &json!(false), &json!(kind)),
            "{command}: {report:#}"
        );
        let step = worst["next_step"].as_str().unwrap();
        assert!(step.contains(next_step), "{command}: {step}");
        let shown = stage.tenterhook(&[command]);
        let text = worst["text"].as_str().unwrap();
        assert!(
            shown
                .stdout
                .starts_with(&format!("problem: {text}\nnext: "))
                && shown.status == 3,
            "{command}: {shown:?}"
        );
        assert_eq!(shown.stdout.matches("\nnext: ").count(), 1, "{shown:?}");
    }
}

fn check_ok(stage: &HostStage) {
    for command in ["status", "doctor"] {
        let (status, report) = json_of(stage, command);
        assert_eq!(
            (status, &report["ok"], &report["problems"]),
            (0, &json!(true), &json!([])),
            "{command}: {report:#}"
        );
        let shown = stage.tenterhook(&[command]).stdout;
        assert!(shown.starts_with("ok: 1 guard is in force in "), "{shown}");
    }
}

#[test]
fn a_guard_in_force_in_an_installed_agent_is_ok_and_nothing_less_is() {
    let stage = machine("claude");
    check_worst(&stage, "not_installed", "tenterhook install claude-code");
    done(&stage, &["install", "claude-code"]);
    check_worst(&stage, "no_guard", "tenterhook init --user");
    let stage = stage.hooks("hooks: [{event: post_tool_use, name: log, command: cat}]");
    check_worst(&stage, "no_guard", "tenterhook init --user");
    let stage = stage.hooks(GUARD);
    check_ok(&stage);
}

#[test]
fn an_unapproved_hook_of_the_project_is_named() {
    let stage = installed("claude", "claude-code");
    stage.write(PROJECT_FILE, GUARD);
    check_worst(&stage, "no_guard", "tenterhook trust");
    let stage = stage.hooks(GUARD);
    check_worst(&stage, "not_approved", "tenterhook trust");
    done(&stage, &["trust", "--all"]);
    fs::remove_file(stage.path(OWN_FILE)).unwrap();
    check_ok(&stage);
}

#[test]
fn a_hook_for_a_misspelt_tool_is_named_and_one_for_an_unknown_tool_is_not() {
    let stage =
        installed("claude", "claude-code").hooks(&GUARD.replace("name:", "matcher: shel, name:"));
    check_worst(&stage, "never_runs", "tenterhook tools");
    let stage = stage.hooks(&GUARD.replace("name:", "matcher: zzz, name:"));
    check_ok(&stage);
}

#[test]
fn hooks_of_an_agent_that_does_not_call_are_not_said_to_be_there() {
    let stage = machine("claude").hooks(GUARD);
    let shown = stage.tenterhook(&["status"]).stdout;
    let line = "A session of Claude Code in this folder would have 1 hook";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn entries_that_someone_removed_or_changed_are_named() {
    let stage = installed("claude", "claude-code").hooks(GUARD);
    let path = stage.path("home/.claude/settings.json");
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, "{}").unwrap();
    check_worst(&stage, "entries", "tenterhook install claude-code");
    fs::write(&path, whole.replacen("claude-code PreToolUse", "x", 1)).unwrap();
    check_worst(&stage, "entries", "tenterhook install claude-code");
    fs::write(
        &path,
        whole.replacen("\"timeout\": 60", "\"timeout\": 1", 1),
    )
    .unwrap();
    check_worst(&stage, "entries", "tenterhook uninstall claude-code");
    fs::write(&path, whole).unwrap();
    check_ok(&stage);
}

#[test]
fn a_repository_that_switches_the_hooks_of_an_agent_off_is_named() {
    for (program, host, path, off) in [
        (
            "qwen",
            "qwen",
            ".qwen/settings.json",
            "{\"disableAllHooks\": true}",
        ),
        (
            "codex",
            "codex",
            ".codex/config.toml",
            "[features]\nhooks = false\n",
        ),
        (
            "codex",
            "codex",
            ".codex/config.toml",
            "features.codex_hooks = false\n",
        ),
        (
            "droid",
            "droid",
            ".factory/settings.json",
            "{\"hooksDisabled\": true}",
        ),
    ] {
        let stage = installed(program, host).hooks(GUARD);
        check_ok(&stage);
        let written = stage.write(&format!("work/{path}"), off);
        check_worst(&stage, "switched_off", path);
        fs::remove_file(written).unwrap();
        check_ok(&stage);
    }
}

#[test]
fn an_agent_that_is_newer_than_the_tested_version_is_named_until_it_is_proven() {
    let stage = installed("claude", "claude-code").hooks(GUARD);
    stage.write("home/bin/package.json", "{\"version\": \"99.0.1\"}");
    check_worst(
        &stage,
        "newer_version",
        "tenterhook doctor --prove claude-code",
    );
    let proven = "home/.local/share/tenterhook/proven.json";
    stage.write(proven, "{\"claude-code\": \"99.0.1\"}");
    fs::set_permissions(stage.path(proven), PermissionsExt::from_mode(0o600)).unwrap();
    check_ok(&stage);
    stage.write("home/bin/package.json", "{\"version\": \"1.0.0\"}");
    check_ok(&stage);
}

#[test]
fn a_broken_and_unapproved_file_of_the_project_fails_check_and_trust() {
    let stage = HostStage::new();
    stage.write(PROJECT_FILE, BROKEN);
    let ran = stage.tenterhook(&["check"]);
    assert_eq!(ran.status, 3, "{ran:?}");
    for part in [
        "unknown event `pre_tool_us`",
        "did you mean `pre_tool_use`?",
        "is not approved, so it is not in force",
    ] {
        assert!(ran.stderr.contains(part), "`{part}` in {ran:?}");
    }
    let (status, report) = json_of(&stage, "check");
    assert_eq!((status, &report["ok"]), (3, &json!(false)), "{report:#}");
    assert_eq!(report["untrusted"].as_array().unwrap().len(), 1);
    stage.write(PROJECT_FILE, "hooks: [");
    let ran = stage.tenterhook(&["trust", "--show"]);
    assert!(
        ran.status == 3 && ran.stderr.contains("unclosed bracket"),
        "{ran:?}"
    );
}

#[test]
fn fire_says_that_a_hook_did_not_run_and_keeps_the_verdict() {
    let stage = HostStage::new();
    stage.write(PROJECT_FILE, GUARD);
    let fire = ["fire", "pre_tool_use", "--tool", "shell", "--arg", "cmd=ls"];
    let line =
        "warning: 1 hook is not approved and did not run: `guard of .tenterhook/hooks.yaml`\n";
    let ran = stage.tenterhook(&fire);
    assert!(ran.status == 0 && ran.stderr.contains(line), "{ran:?}");
    let stage = stage.hooks(GUARD);
    let ran = stage.tenterhook(&fire);
    assert!(ran.status == 2 && ran.stderr.contains(line), "{ran:?}");
}

#[test]
fn a_session_is_told_once_that_it_has_an_earlier_version_of_an_edited_guard() {
    let stage = installed("claude", "claude-code").hooks(GUARD);
    let start = stage.claude_start("s1");
    assert!(
        stage
            .send("claude-code", "SessionStart", &start)
            .is_silent()
    );
    let notice = |printed: &ShimOutput| -> Option<String> {
        let answer: Value = serde_json::from_str(&printed.stdout).ok()?;
        Some(answer["systemMessage"].as_str()?.to_owned())
    };
    assert_eq!(notice(&stage.claude("s1", "ls")), None);
    let stage = stage.hooks(&GUARD.replace("old rule", "new rule"));
    let (told, printed) = eventually(|| {
        let printed = stage.claude("s1", "ls");
        Some((notice(&printed)?, printed))
    });
    assert!(
        told.contains("hooks.yaml has changed; its previous version stays in force")
            && told.contains("`tenterhook reload`"),
        "{told}"
    );
    assert!(printed.claude_denial().unwrap().contains("old rule"));
    assert_eq!(notice(&stage.claude("s1", "ls")), None, "told once");
    check_worst(&stage, "outdated", "tenterhook reload");
    done(&stage, &["reload"]);
    let printed = stage.claude("s1", "ls");
    assert_eq!(notice(&printed), None);
    assert!(printed.claude_denial().unwrap().contains("new rule"));
    check_ok(&stage);
}

#[test]
fn status_notices_an_edited_guard_of_a_session_without_another_event() {
    let stage = installed("claude", "claude-code").hooks(GUARD);
    assert!(stage.claude("s1", "ls").claude_denial().is_some());
    fs::remove_file(stage.path(OWN_FILE)).unwrap();
    let (_, report) = json_of(&stage, "status");
    let problems = report["problems"].as_array().unwrap();
    let outdated = problems.iter().find(|it| it["problem"] == "outdated");
    let text = outdated.unwrap_or_else(|| panic!("{report:#}"))["text"].to_string();
    assert!(
        text.contains("its hooks stay in force until you reload"),
        "{text}"
    );
    assert!(stage.claude("s1", "ls").claude_denial().is_some());
}

#[test]
fn a_denial_names_the_hook_its_file_and_what_to_do_next_in_every_agent() {
    let stage = HostStage::new().hooks(GUARD);
    let file = stage.path(OWN_FILE);
    let expected = [
        "old rule".to_owned(),
        format!("Stopped by the hook `guard` in {}:1. ", file.display()),
        "Only the user can change this: edit the file, then run `tenterhook reload`.".to_owned(),
    ];
    let work = stage.path("work");
    let call = |event: &str, tool: &str| {
        json!({
            "session_id": "s1", "cwd": work, "hook_event_name": event, "tool_name": tool,
            "tool_input": {"command": "ls"}, "permission_mode": "default", "turn_id": "t1", "tool_use_id": "c1",
            "model": "m", "transcript_path": null, "timestamp": "2026-11-22T00:27:05.580Z",
        })
    };
    for (host, event, tool) in [
        ("claude-code", "PreToolUse", "Bash"),
        ("codex", "PreToolUse", "Bash"),
        ("gemini", "BeforeTool", "run_shell_command"),
        ("qwen", "PreToolUse", "run_shell_command"),
        ("droid", "PreToolUse", "Execute"),
        ("kimi", "PreToolUse", "Bash"),
    ] {
        let printed = stage.send(host, event, &call(event, tool));
        let shown = format!("{}{}", printed.stdout, printed.stderr);
        for part in &expected {
            assert!(
                shown.contains(part.as_str()),
                "`{part}` in {host}: {printed:?}"
            );
        }
    }
    let asks = "hooks: [{event: pre_tool_use, name: guard, command: \"echo '{\\\"decision\\\": \\\"ask\\\", \
                \\\"reason\\\": \\\"is this wanted?\\\"}'\"}]";
    let stage = HostStage::new().hooks(asks);
    let printed = stage.send("codex", "PreToolUse", &call("PreToolUse", "Bash"));
    assert!(
        printed
            .stdout
            .contains("is this wanted? (Codex cannot ask you from a hook")
            && printed.stdout.contains("Stopped by the hook `guard`")
            && !printed.stdout.contains("no one can be asked"),
        "{printed:?}"
    );
}

/// Brings a guard into the situation of a row of the page, with an agent that calls Tenterhook.
fn situation(row: &str) -> HostStage {
    let approved = || {
        let stage = installed("claude", "claude-code");
        stage.write(PROJECT_FILE, GUARD);
        done(&stage, &["trust", "--all"]);
        stage
    };
    let own = || installed("claude", "claude-code").hooks(GUARD);
    match row {
        "of the project, not approved" => {
            let stage = installed("claude", "claude-code");
            stage.write(PROJECT_FILE, GUARD);
            stage
        }
        "of the project, not approved and broken" => {
            let stage = installed("claude", "claude-code");
            stage.write(PROJECT_FILE, BROKEN);
            stage
        }
        "of the project, edited after its approval" => {
            let stage = approved();
            stage.write(PROJECT_FILE, &GUARD.replace("exit 2", "exit 0"));
            stage
        }
        "of the project, removed after its approval" => {
            let stage = approved();
            fs::remove_file(stage.path(PROJECT_FILE)).unwrap();
            stage
        }
        "yours, broken" => own().hooks(BROKEN),
        "yours, removed" => {
            let stage = own();
            fs::remove_file(stage.path(OWN_FILE)).unwrap();
            stage
        }
        "yours, disabled" => {
            let stage = own();
            let path = stage.path(OWN_FILE);
            done(&stage, &["disable", path.to_str().unwrap(), "--yes"]);
            stage
        }
        "switched off by the repository" => {
            let stage = installed("qwen", "qwen").hooks(GUARD);
            stage.write("work/.qwen/settings.json", "{\"disableAllHooks\": true}");
            stage
        }
        other => panic!("the page has a row that no test knows: {other}"),
    }
}

#[test]
fn every_command_says_what_the_page_promises_about_a_guard_that_is_not_in_force() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/troubleshooting.md");
    let page = fs::read_to_string(page).unwrap();
    let section = page.split("## What each command says\n").nth(1).unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .skip_while(|line| !line.starts_with("|---"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 8, "{rows:?}");
    let fire = ["fire", "pre_tool_use", "--tool", "shell", "--arg", "cmd=ls"];
    for row in rows {
        let [name, status, check, list, fired] = row.as_slice() else {
            panic!("a row has five cells: {row:?}");
        };
        let stage = situation(name);
        for (command, text) in [
            (&["status"][..], status),
            (&["doctor"], status),
            (&["check"], check),
            (&["list"], list),
            (&fire, fired),
        ] {
            let ran = stage.tenterhook(command);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                said.contains(text.trim_matches('"')),
                "{name}, {command:?}: {text} in {said}"
            );
            let is_report = matches!(command, ["status" | "doctor"]);
            assert!(
                !is_report || ran.status == 3,
                "{name}, {command:?}: {ran:?}"
            );
        }
    }
}
