//! A denial that was wrong has a way out: `tenterhook allow`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::shim_stage::{HostStage, ShimOutput, finish};
use crate::stage::{Test, eventually};
use crate::terminal::Sitting;

const NO_SUDO: &str = "hooks: [{event: pre_tool_use, matcher: shell, name: no-sudo, builtin: deny_commands, args: [sudo]}]";

/// Returns the id in a denial, as a person copies it.
fn id_in(text: &str) -> String {
    let (_, after) = text.split_once("tenterhook allow ").unwrap();
    after.split(' ').next().unwrap().to_owned()
}

fn denial(stage: &HostStage, cmd: &str) -> String {
    stage.claude("s1", cmd).claude_denial().unwrap()
}

/// Sends Gemini CLI's event before a shell command.
fn gemini(stage: &HostStage, cmd: &str) -> ShimOutput {
    let event = json!({
        "session_id": "g1", "cwd": stage.path("work"), "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-22T00:27:05.580Z", "tool_name": "run_shell_command",
        "tool_input": {"command": cmd},
    });
    stage.send("gemini", "BeforeTool", &event)
}

fn allow(stage: &HostStage, args: &[&str]) -> String {
    let printed = stage.tenterhook(&[&["allow"], args].concat());
    assert_eq!(printed.status, 0, "{printed:?}");
    printed.stdout
}

#[test]
fn a_denied_call_of_a_host_is_let_through_once_and_that_is_recorded() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let denied = denial(&stage, "sudo ls");
    let id = id_in(&denied);
    let way_out = format!("If this was wrong, the user can run `tenterhook allow {id} --once`.");
    assert!(denied.contains(&way_out), "{denied}");
    assert_eq!(id_in(&denial(&stage, "sudo ls")), id);
    assert_ne!(id_in(&denial(&stage, "sudo ls -a")), id);

    let shown = allow(&stage, &[&id, "--yes"]);
    for part in ["no-sudo", "sudo ls", "hooks.yaml", "is not allowed here"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(stage.claude("s1", "sudo ls -a").claude_denial().is_some());
    assert!(stage.claude("s1", "sudo ls").is_silent());
    assert_eq!(id_in(&denial(&stage, "sudo ls")), id);
    drop(stage.tenterhook(&["daemon", "--stop"]));
    let origin = format!("`tenterhook allow {id} --once` of 2");
    let journal = eventually(|| Some(stage.journal()).filter(|it| it.contains(&origin)));
    let run = journal.lines().find(|line| line.contains(&origin)).unwrap();
    let run: Value = serde_json::from_str(run).unwrap();
    assert_eq!(
        (&run["hook"], &run["effect"]),
        (&json!("no-sudo"), &json!("deny"))
    );
}

#[test]
fn of_two_calls_of_hosts_at_the_same_time_one_passes() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let id = id_in(&denial(&stage, "sudo ls"));
    for _ in 0..5 {
        allow(&stage, &[&id, "--once", "--yes"]);
        let start = |session| {
            let call = stage.claude_call(session, "sudo ls").to_string();
            stage.start("claude-code", "PreToolUse", call.as_bytes())
        };
        let shims = ["s1", "s2", "s3"].map(start);
        let printed = shims.map(finish);
        let passed = printed.iter().filter(|it| it.is_silent()).count();
        let denied = printed.iter().filter(|it| it.claude_denial().is_some());
        assert_eq!((passed, denied.count()), (1, 2), "{printed:?}");
    }
}

#[test]
fn another_host_in_the_same_project_has_the_same_exception_until_it_is_revoked() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let refused = gemini(&stage, "sudo ls");
    let id = id_in(&refused.stdout);
    assert_eq!(id_in(&denial(&stage, "sudo ls")), id);
    allow(&stage, &[&id, "--project", "--yes"]);
    for _ in 0..2 {
        assert!(stage.claude("s1", "sudo ls").is_silent());
        assert!(!gemini(&stage, "sudo ls").stdout.contains("deny"));
    }
    // Another project.
    fs::create_dir(stage.path("other")).unwrap();
    let mut call = stage.claude_call("s2", "sudo ls");
    call["cwd"] = json!(stage.path("other"));
    let elsewhere = stage.send("claude-code", "PreToolUse", &call);
    assert_ne!(id_in(&elsewhere.claude_denial().unwrap()), id);
    allow(&stage, &[&id, "--revoke"]);
    assert!(stage.claude("s1", "sudo ls").claude_denial().is_some());
    assert!(gemini(&stage, "sudo ls").stdout.contains("deny"));
}

#[test]
fn status_lists_what_is_in_force_and_reports_a_damaged_exception() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let id = id_in(&denial(&stage, "sudo ls"));
    let list = || stage.tenterhook(&["allow", "--list"]);
    assert_eq!(list().stdout, "No exceptions are in force.\n");
    allow(&stage, &[&id, "--until", "1h", "--yes"]);
    let line = format!("  {id}  `no-sudo` lets a call of `shell` through in ");
    for printed in [list(), stage.tenterhook(&["status"])] {
        assert!(
            printed.stdout.contains("1 exception in force:"),
            "{printed:?}"
        );
        assert!(printed.stdout.contains(&line), "{printed:?}");
        assert!(printed.stdout.contains(", until 2"), "{printed:?}");
    }
    let shown = stage.tenterhook(&["status", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let exception = &shown["exceptions"]["in_force"][0];
    assert_eq!(
        (&exception["id"], &exception["once"]),
        (&json!(id), &json!(false))
    );
    assert!(exception["expires_at"].is_string());

    let path = exceptions(&stage).join(format!("{id}.json"));
    fs::write(&path, "{").unwrap();
    for args in [&["status"][..], &["allow", "--list"]] {
        let printed = stage.tenterhook(args);
        assert_eq!(printed.status, 3, "{printed:?}");
        let problem = format!("invalid file `{}`", path.display());
        let text = format!("{}{}", printed.stdout, printed.stderr);
        assert!(text.contains(&problem), "{printed:?}");
    }
    let printed = stage.claude("s1", "sudo ls");
    assert!(printed.claude_denial().is_some());
    assert!(
        printed
            .stdout
            .contains("the exception for this call is not in force"),
        "{printed:?}"
    );
}

/// Returns the records of exceptions in the journal.
fn records(stage: &HostStage) -> Vec<Value> {
    let journal = stage.journal();
    let records = journal.lines().map(serde_json::from_str);
    let records = records.map(|record| record.unwrap());
    records
        .filter(|record: &Value| record["record"] == "exception")
        .collect()
}

#[test]
fn every_exception_that_a_person_grants_or_revokes_is_recorded() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let id = id_in(&denial(&stage, &format!("sudo ls {token}")));
    let named = Command::new("id").arg("-un").output().unwrap();
    let user = String::from_utf8(named.stdout).unwrap();
    let user = user.trim_end();
    for (option, scope, ends) in [
        (&["--once"][..], "once", true),
        (&["--until", "1h"], "until", true),
        (&["--project"], "project", false),
    ] {
        allow(&stage, &[&[&*id, "--yes"], option].concat());
        let found = records(&stage);
        let record = found.last().unwrap();
        let known = [("action", "granted"), ("id", &*id), ("user", user)];
        for (key, value) in known {
            assert_eq!(record[key], value, "{record:#}");
        }
        let exception = &record["exception"];
        for (key, value) in [
            ("hook", "no-sudo"),
            ("event", "pre_tool_use"),
            ("tool", "shell"),
            ("scope", scope),
            ("project", stage.path("work").to_str().unwrap()),
        ] {
            assert_eq!(exception[key], value, "{record:#}");
        }
        assert_eq!(exception["expires_at"].is_string(), ends, "{record:#}");
        let input = exception["input"].as_str().unwrap();
        assert!(
            input.contains("sudo ls") && !input.contains(&token),
            "{input}"
        );
    }
    allow(&stage, &[&id, "--revoke"]);
    let found = records(&stage);
    let record = found.last().unwrap();
    assert_eq!(record["action"], "revoked");
    assert_eq!(record["exception"]["scope"], "project", "{record:#}");
    assert_eq!(found.len(), 4);
    // What changes nothing is not recorded.
    assert_eq!(stage.tenterhook(&["allow", &id, "--revoke"]).status, 64);
    assert_eq!(records(&stage).len(), 4);
}

#[test]
fn an_exception_that_cannot_be_recorded_is_not_granted_but_it_can_be_revoked() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let id = id_in(&denial(&stage, "sudo ls"));
    let folder = stage.path("home/no-folder");
    fs::write(&folder, "").unwrap();
    let file = folder.join("journal.jsonl");
    let unwritable = ["--journal", file.to_str().unwrap()];
    let refused = stage.tenterhook(&[&["allow", &*id, "--yes"], &unwritable[..]].concat());
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(stage.claude("s1", "sudo ls").claude_denial().is_some());
    allow(&stage, &[&id, "--project", "--yes"]);
    let failed = stage.tenterhook(&[&["allow", &*id, "--revoke"], &unwritable[..]].concat());
    assert_eq!(failed.status, 1, "{failed:?}");
    assert!(stage.claude("s1", "sudo ls").claude_denial().is_some());
}

#[test]
fn without_an_id_the_last_denials_are_listed_the_newest_first() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let list = || allow(&stage, &[]);
    assert_eq!(list(), "No hook has denied a tool call yet.\n");
    let ids: Vec<String> = (0..12)
        .map(|number| id_in(&denial(&stage, &format!("sudo ls {number}"))))
        .collect();
    let shown = list();
    let listed: Vec<&str> = shown
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    let newest: Vec<&str> = ids.iter().rev().take(10).map(String::as_str).collect();
    assert_eq!(listed, newest, "{shown}");
    assert!(
        shown.contains("`no-sudo` denied a call of `shell` in "),
        "{shown}"
    );
    let report: Value = serde_json::from_str(&allow(&stage, &["--json"])).unwrap();
    assert_eq!(report["denied"][0]["id"], *newest[0], "{report:#}");
}

fn exceptions(stage: &HostStage) -> PathBuf {
    stage.path("home/.local/share/tenterhook/exceptions")
}

#[test]
fn a_guard_that_fails_has_no_way_out() {
    let stage = HostStage::new()
        .hooks("hooks: [{event: pre_tool_use, name: broken, command: ./does-not-exist.sh}]");
    let denied = denial(&stage, "ls");
    assert!(!denied.contains("tenterhook allow"), "{denied}");
    assert!(!stage.path("home/.local/share/tenterhook/denials").exists());
}

#[test]
fn without_an_answer_nothing_is_allowed_and_an_unknown_id_is_an_error() {
    let stage = HostStage::new().hooks(NO_SUDO);
    let id = id_in(&denial(&stage, "sudo ls"));
    for (args, error) in [
        (
            &[&*id][..],
            "error: no one can be asked here; nothing was allowed",
        ),
        (
            &[&id, "--json"],
            "error: no one can be asked here; nothing was allowed",
        ),
        (&["00000000", "--yes"], "error: unknown id `00000000`"),
        (&["../trust", "--yes"], "an id has 8 letters and digits"),
        (
            &[&id, "--yes", "--until", "yesterday"],
            "expected a duration such as `30m`",
        ),
        (&[&id, "--yes", "--until=-1h"], "this time has passed"),
        (
            &[&id, "--yes", "--once", "--project"],
            "cannot be used with",
        ),
        (&[&id, "--revoke"], "error: there is no exception"),
        (&["--revoke"], "required"),
        (&["--until", "1h"], "required"),
    ] {
        let printed = stage.tenterhook(&[&["allow"], args].concat());
        assert_eq!(printed.status, 64, "{args:?}: {printed:?}");
        assert!(printed.stderr.contains(error), "{args:?}: {printed:?}");
    }
    assert!(!exceptions(&stage).exists());
}

#[test]
fn a_person_sees_the_whole_call_before_the_answer() {
    let test = Test::new()
        .args([
            "fire",
            "pre_tool_use",
            "--hooks",
            "hooks.yaml",
            "--tool",
            "shell",
        ])
        .args(["--arg", "cmd=sudo \u{202e}ls", "--json"])
        .file("hooks.yaml", NO_SUDO);
    let ran = test.run();
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = id_in(report["remedy"].as_str().unwrap());
    assert_eq!(report["reason"], "`sudo` is not allowed here");
    let ask = |test: Test, answer: &str| {
        let sitting = Sitting::start(test);
        sitting.answer(
            "Let this call through the next time? [y/N]",
            &format!("{answer}\r"),
        );
        sitting.end()
    };
    let (screen, status, folder) = ask(ran.again(["allow", &id]), "n");
    assert!(screen.contains("\"cmd\": \"sudo \\u{202e}ls\""), "{screen}");
    assert!(
        screen.contains("Nothing was allowed.") && status == 0,
        "{screen}"
    );
    let (screen, status, folder) = ask(Test::in_folder(folder).args(["allow", &id]), "y");
    assert!(
        screen.contains("Allowed once, until 2") && status == 0,
        "{screen}"
    );
    // `fire` runs no tool, so it does not use up the exception.
    let mut folder = folder;
    for _ in 0..2 {
        let ran = Test::in_folder(folder)
            .args([
                "fire",
                "pre_tool_use",
                "--hooks",
                "hooks.yaml",
                "--tool",
                "shell",
            ])
            .args(["--arg", "cmd=sudo \u{202e}ls"])
            .run();
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("lifted"), "{}", ran.stdout);
        folder = ran.again([]).into_command().1;
    }
}

#[test]
fn the_agent_of_run_is_told_the_way_out_and_uses_the_exception() {
    let script = "turns: [{tool_calls: [{name: shell, arguments: {cmd: sudo --version || touch ran}}]}, {text: done}]";
    let args = [
        "run",
        "go",
        "--yes",
        "--output-format",
        "jsonl",
        "--model",
        "scripted:script.yaml",
    ];
    let test = Test::new()
        .args(args)
        .file("script.yaml", script)
        .hooks(NO_SUDO);
    let ran = test.run();
    assert!(
        ran.stdout.contains("If this was wrong, the user can run"),
        "{}",
        ran.stdout
    );
    let id = id_in(&ran.stdout);
    assert!(
        !ran.path("work/ran").exists() && ran.status == 0,
        "{}",
        ran.stderr
    );
    let ran = ran.again(["allow", &id, "--yes"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran.again(args).args(["--hooks", "hooks.yaml"]).run();
    assert!(
        !ran.stdout.contains("is not allowed here"),
        "{}",
        ran.stdout
    );
    let ran = ran.again(args).args(["--hooks", "hooks.yaml"]).run();
    assert!(ran.stdout.contains("is not allowed here"), "{}", ran.stdout);
}
