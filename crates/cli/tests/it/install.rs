//! Installing into the agents of a temporary home folder.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::stage::{Ran, Test};

const SETTINGS: &str = ".claude/settings.json";

/// Settings as a person has them.
const TEXT: &str = "{\n  // mine\n  \"model\": \"opus\",\n}\n";

fn install(args: &[&str]) -> Test {
    let test = Test::new().args(args.iter().copied());
    fs::create_dir_all(test.home().join(".claude")).unwrap();
    fs::write(test.home().join(SETTINGS), TEXT).unwrap();
    with_guard(test)
}

/// Writes a guard of the user, without which `status` reports that nothing is guarded.
fn with_guard(test: Test) -> Test {
    let folder = test.home().with_file_name("config").join("hooks.d");
    fs::create_dir(&folder).unwrap();
    let guard = "hooks: [{event: pre_tool_use, name: guard, command: exit 2}]";
    fs::write(folder.join("guard.yaml"), guard).unwrap();
    test
}

fn settings(ran: &Ran) -> String {
    fs::read_to_string(ran.path("home").join(SETTINGS)).unwrap()
}

fn done(ran: Ran) -> Ran {
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn an_agent_is_guarded_and_then_as_it_was() {
    let ran = done(install(&["install", "claude-code"]).run());
    assert!(
        ran.stdout
            .starts_with("Installed Tenterhook in Claude Code ("),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("tenterhook doctor --prove claude-code"));
    let shim = ran.path("home/.local/share/tenterhook/bin/tenterhook-shim");
    let line = format!("'{}' claude-code PreToolUse", shim.display());
    assert!(settings(&ran).contains(&line) && settings(&ran).contains("// mine"));
    assert!(shim.exists());

    let ran = done(ran.again(["install", "claude-code"]).run());
    assert!(
        ran.stdout
            .starts_with("Tenterhook is already installed in Claude Code")
    );
    let ran = done(ran.again(["status"]).run());
    assert!(
        ran.stdout
            .starts_with("ok: 1 guard is in force in Claude Code.\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("user: installed in "), "{}", ran.stdout);

    let ran = done(ran.again(["uninstall", "--all"]).run());
    assert!(
        ran.stdout
            .starts_with("Removed Tenterhook from Claude Code."),
        "{}",
        ran.stdout
    );
    assert_eq!(settings(&ran), TEXT);
    assert!(!shim.exists());
    let ran = done(ran.again(["uninstall", "claude-code"]).run());
    assert_eq!(ran.stdout, "Tenterhook is not installed in Claude Code.\n");
}

#[test]
fn the_shim_denies_when_nothing_can_answer() {
    let ran = done(install(&["install", "claude-code"]).run());
    let shim = ran.path("home/.local/share/tenterhook/bin/tenterhook-shim");
    // Without the program, no daemon can be started.
    let program = fs::canonicalize(shim.with_file_name("tenterhook")).unwrap();
    fs::remove_file(program).unwrap();
    let output = std::process::Command::new(&shim)
        .args(["claude-code", "PreToolUse"])
        .env_clear()
        .env("HOME", ran.path("home"))
        .env("XDG_RUNTIME_DIR", ran.path("tmp"))
        .env("TENTERHOOK_SHIM_TIMEOUT", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let answer = String::from_utf8_lossy(&output.stdout);
    assert!(answer.contains("\"deny\""), "{output:?}");
}

#[test]
fn a_setting_that_switches_all_hooks_off_needs_attention() {
    let ran = done(install(&["install", "claude-code"]).run());
    let text = settings(&ran).replacen('{', "{\"disableAllHooks\": true,", 1);
    fs::write(ran.path("home").join(SETTINGS), text).unwrap();
    let ran = ran.again(["status"]).run();
    assert_eq!(ran.status, 3, "{}", ran.stdout);
    let expected = "problem: Claude Code runs no hooks because of `disableAllHooks` in ";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn the_daemon_ends_when_nothing_is_left_that_needs_it() {
    let ran = done(install(&["install", "claude-code"]).run());
    let ran = done(ran.again(["daemon"]).run());
    let ran = done(ran.again(["uninstall", "--all"]).run());
    let expected = "The daemon ends after the events that it is handling.";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    let ran = done(ran.again(["daemon", "--stop"]).run());
    assert!(ran.stdout.contains("No daemon runs."), "{}", ran.stdout);
}

#[test]
fn a_dry_run_writes_nothing() {
    let ran = done(install(&["install", "claude-code", "--dry-run"]).run());
    assert!(
        ran.stdout.contains("+  \"hooks\": {")
            && ran.stdout.contains("tenterhook-shim' claude-code Stop")
    );
    assert_eq!(settings(&ran), TEXT);
    assert!(!ran.path("home/.local/share/tenterhook/bin").exists());
}

#[test]
fn all_finds_the_agents_of_the_machine() {
    let test = install(&["install", "--all", "--json"]);
    fs::create_dir_all(test.home().join(".codex")).unwrap();
    let ran = done(test.run());
    let report = ran.json();
    let hosts = report["hosts"].as_array().unwrap();
    let names: Vec<&Value> = hosts.iter().map(|host| &host["host"]).collect();
    assert_eq!(names, [&json!("claude-code"), &json!("codex")]);
    assert_eq!(hosts[0]["fails_closed"], true);
    assert_eq!(hosts[0]["changes"][0]["action"], "change");
    assert_eq!(hosts[1]["approval"], "missing");

    // Codex runs nothing that was not approved, so the installation is not complete.
    let ran = ran.again(["status", "--json"]).run();
    assert_eq!((ran.status, ran.json()["ok"].take()), (3, json!(false)));
    let ran = done(ran.again(["install", "codex", "--trust"]).run());
    assert!(
        fs::read_to_string(ran.path("home/.codex/config.toml"))
            .unwrap()
            .contains("trusted_hash = \"sha256:")
    );
    let ran = done(ran.again(["status", "--json"]).run());
    assert_eq!(ran.json()["shim"]["state"], "current");
    let ran = done(ran.again(["uninstall", "--all", "--json"]).run());
    assert_eq!(ran.json()["shim_removed"], true);
    assert!(!ran.path("home/.codex/config.toml").exists());
}

#[test]
fn an_installation_in_an_agent_that_is_switched_off_says_so() {
    let ran = install(&["install", "claude-code"]);
    let off = "{\"disableAllHooks\": true}";
    fs::write(ran.home().join(SETTINGS), off).unwrap();
    let ran = ran.run();
    assert_eq!(ran.status, 3, "{}{}", ran.stdout, ran.stderr);
    let title = "Not in force, because Claude Code runs no hooks:\n";
    assert!(ran.stdout.contains(title), "{}", ran.stdout);
    assert!(
        ran.stderr
            .contains("runs no hooks because of `disableAllHooks` in "),
        "{}",
        ran.stderr
    );
    let ran = ran.again(["install", "claude-code", "--json"]).run();
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["switched_off"], json!(["claude-code"]), "{report:#}");
}

#[test]
fn nothing_to_install_into_is_an_error() {
    let ran = Test::new().args(["install", "--all"]).run();
    let (text, status) = ran.refusal();
    assert!(
        status == 1 && text.contains("no coding agent was found"),
        "{text}"
    );
    let ran = Test::new().args(["install", "emacs"]).run();
    let (text, status) = ran.refusal();
    assert!(status == 64 && text.contains("claude-code"), "{text}");
    let ran = Test::new().args(["install"]).run();
    assert_eq!(ran.status, 64);
}

#[test]
fn settings_that_do_not_parse_stay_as_they_are() {
    let agent = install(&["install", "claude-code"]);
    fs::write(agent.home().join(SETTINGS), "{\"model\": }").unwrap();
    let ran = agent.run();
    let (text, status) = ran.refusal();
    assert!(status == 3 && text.contains("line 1, column 11"), "{text}");
    assert_eq!(settings(&ran), "{\"model\": }");
}

#[test]
fn a_project_is_installed_at_the_root_of_its_repository() {
    let test = with_guard(Test::new().args(["install", "claude-code", "--project"]));
    fs::create_dir(test.work().join(".git")).unwrap();
    let ran = done(test.run());
    assert!(
        ran.stderr
            .contains("until they run `tenterhook install --project`, too"),
        "{}",
        ran.stderr
    );
    assert!(Path::new(&ran.path("work").join(SETTINGS)).exists());
    let ran = done(ran.again(["install", "claude-code"]).run());
    let ran = ran.again(["status"]).run();
    assert_eq!(ran.status, 3);
    assert!(
        ran.stdout
            .contains("Claude Code runs every hook twice, because it also runs the entries in "),
        "{}",
        ran.stdout
    );
    let ran = done(ran.again(["uninstall", "claude-code", "--project"]).run());
    assert!(!ran.path("work/.claude").exists());
    let ran = ran.again(["status"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stdout);
}
