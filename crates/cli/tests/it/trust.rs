//! `tenterhook trust`, and the effect of untrusted hooks on the other commands.

use std::fs;
use std::path::Path;

use crate::stage::{Ran, Test};

const GUARD: &str = "#!/bin/sh
[ \"$1\" = hook ] && { echo before_tool_call; exit; }
echo guarded >> ran
";

const SCRIPT: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo hello >> done}}]
  - text: done
";

/// A repository with an executable hook and a hook file.
fn repository() -> Test {
    let test = Test::new()
        .executable(".kodelet/hooks/guard", GUARD)
        .executable(".tenterhook/log.sh", "#!/bin/sh\necho logged >> ran\n")
        .file(
            ".tenterhook/hooks.yaml",
            "hooks: [{name: log, event: post_tool_use, command: ./.tenterhook/log.sh}]\n",
        );
    fs::create_dir(test.work().join(".git")).unwrap();
    test
}

fn run(before: Ran, more: &[&str]) -> Ran {
    let base = [
        "run",
        "go",
        "--yes",
        "--no-journal",
        "--model",
        "scripted:script.yaml",
    ];
    let args = base.iter().chain(more).copied();
    before.again(args).file("script.yaml", SCRIPT).run()
}

fn ran_hooks(ran: &Ran) -> String {
    fs::read_to_string(ran.path("work/ran")).unwrap_or_default()
}

const WITHHELD: &str = "\
warning: 2 hooks of this project are not approved and do not run: `log of .tenterhook/hooks.yaml`, `guard of .kodelet/hooks`
hint: review them with `tenterhook trust --show`
";

#[test]
fn hooks_of_a_repository_run_once_they_are_approved() {
    let ran = run(repository().args(["list"]).run(), &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, WITHHELD));
    assert_eq!(ran_hooks(&ran), "");
    let ran = ran.again(["trust", "--all"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.ends_with("Approved 2 hooks.\n"),
        "{}",
        ran.stdout
    );
    let ran = run(ran, &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    assert_eq!(ran_hooks(&ran), "guarded\nlogged\n");
    // A changed version does not run; the approved version runs instead.
    let script = ran.path("work/.kodelet/hooks/guard");
    fs::write(&script, GUARD.replace("guarded", "evil")).unwrap();
    let ran = run(ran, &[]);
    assert!(
        ran.stderr.starts_with(
            "warning: 1 approved hook differs from the project; its approved version is in force: `guard of .kodelet/hooks` (its files changed)"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!(ran_hooks(&ran), "guarded\nlogged\nguarded\nlogged\n");
    fs::write(&script, GUARD).unwrap();
    let ran = run(ran, &[]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

#[test]
fn fire_and_list_obey_the_same_gate() {
    let ran = repository().args(["list"]).run();
    assert_eq!((ran.stdout.as_str(), ran.status), ("No hooks.\n", 0));
    assert!(ran.stderr.starts_with(WITHHELD), "{}", ran.stderr);
    let fire = ["fire", "pre_tool_use", "--no-journal", "--input", "-"];
    let ran = ran.again(fire).stdin("{\"tool_name\": \"shell\"}").run();
    assert!(ran.stdout.contains("no hook matched"), "{}", ran.stdout);
    let ran = ran
        .again(["trust", "--all"])
        .run()
        .again(fire)
        .stdin("{\"tool_name\": \"shell\"}")
        .run();
    assert!(ran.stdout.contains("(1 hook ran)"), "{}", ran.stdout);
    assert_eq!(ran_hooks(&ran), "guarded\n");
    let ran = ran.again(["list", "--json"]).run();
    assert_eq!(ran.json()["hooks"][0]["trust"], "approved");
    assert_eq!(ran.json()["withheld"], serde_json::json!([]));
}

#[test]
fn a_file_that_is_named_is_its_users_to_answer_for() {
    let ran = run(
        repository().args(["list"]).run(),
        &["--hooks", ".tenterhook/hooks.yaml"],
    );
    assert!(
        ran.stderr.starts_with(
            "warning: 1 hook of this project is not approved and does not run: `guard"
        ),
        "{}",
        ran.stderr
    );
    assert_eq!(ran_hooks(&ran), "logged\n");
}

#[test]
fn an_untrusted_gate_denies_on_demand() {
    let ran = run(repository().args(["list"]).run(), &["--deny-untrusted"]);
    assert!(
        ran.stderr
            .contains("operations that untrusted hooks may guard are denied"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(!ran.path("work/done").exists());
}

#[test]
fn what_changed_is_shown_as_a_difference() {
    let ran = repository().args(["trust", "--all"]).run();
    fs::write(
        ran.path("work/.kodelet/hooks/guard"),
        GUARD.replace("guarded", "evil"),
    )
    .unwrap();
    let ran = ran
        .again(["trust", "--show", "guard", "--color", "never"])
        .run();
    let (text, rest) = ran.stdout.split_once("bytes\n").unwrap();
    assert_eq!(
        text,
        "guard of .kodelet/hooks  changed; the approved version is in force\n  .kodelet/hooks/guard  changed, 79 "
    );
    assert!(
        rest.contains("    - echo guarded >> ran\n    + echo evil >> ran\n"),
        "{rest}"
    );
    assert!(
        ran.stdout
            .contains("1 hook of this project: 0 trusted, 0 untrusted, 1 changed.")
    );
    let json = ran.again(["trust", "--show", "--json"]).run().json();
    assert_eq!(json["hooks"][1]["state"], "changed");
}

#[test]
fn each_hook_is_asked_for() {
    let ran = repository().args(["trust"]).stdin("y\nno\n").run();
    assert!(
        ran.stdout
            .contains("Approve `log of .tenterhook/hooks.yaml`? [y/N]"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.ends_with("Approved 1 hook; 1 not approved.\n"),
        "{}",
        ran.stdout
    );
    let ran = ran.again(["trust"]).run();
    assert_eq!(ran.status, 64);
    assert!(
        ran.stderr
            .contains("stdin ended before an answer; nothing was approved"),
        "{}",
        ran.stderr
    );
    let ran = ran.again(["trust", "guard"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran.again(["trust"]).run();
    assert_eq!(ran.all(), ("Nothing to approve: 2 hooks trusted.\n", "", 0));
}

#[test]
fn approvals_are_taken_back() {
    let ran = repository().args(["trust", "--all"]).run();
    let ran = ran.again(["trust", "--revoke", "guard"]).run();
    assert_eq!(ran.all(), ("Revoked 1 approval.\n", "", 0));
    let ran = ran.again(["trust", "--revoke", "guard"]).run();
    let expected = "\
error: no approved hook has the name `guard`
hint: approved here: `log`
";
    assert_eq!(ran.refusal(), (expected, 64));
    let ran = ran.again(["trust", "--revoke"]).run();
    assert_eq!(ran.all(), ("Revoked 1 approval.\n", "", 0));
    assert_eq!(run(ran, &[]).stderr, WITHHELD);
}

const MENDED: &str = "\
from tenterhook import deny, on
@on('pre_tool_use', matcher='shell')
def guard(event):
    return deny('not today')
";

const FIRE: [&str; 7] = [
    "fire",
    "pre_tool_use",
    "--tool",
    "shell",
    "--arg",
    "cmd=ls",
    "--no-journal",
];

#[test]
fn an_approval_of_a_broken_script_warns_at_once() {
    let test = Test::new().file(".tenterhook/hooks/guard.py", "import no_such_module\n");
    let ran = test.args(["trust", "--all"]).run();
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    for expected in [
        "No module named 'no_such_module'",
        "guard.py` is approved but cannot be loaded",
        "approve it again with `tenterhook trust`",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    let whole = Test::new().file(".tenterhook/hooks/guard.py", "import no_such_module\n");
    let broken = &whole.args(["trust", "--all", "--json"]).run().json()["broken"];
    let message = broken[0]["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("no_such_module"), "{broken}");
    let good = Test::new().file(".tenterhook/hooks/guard.py", MENDED);
    let ran = good.args(["trust", "--all"]).run();
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

#[test]
fn an_approval_of_a_hook_for_a_misspelt_tool_warns_at_once() {
    let hooks = "hooks: [{name: one, event: pre_tool_use, matcher: shel, command: exit 2}]";
    let test = Test::new().file(".tenterhook/hooks.yaml", hooks);
    let ran = test.args(["trust", "--all"]).run();
    for expected in ["warning: a hook never runs: ", "did you mean `shell`?"] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

/// Returns the files and folders below a folder that other users can reach and write.
#[cfg(unix)]
fn writable_by_others(folder: &Path) -> Vec<std::path::PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(dir) = folders.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode();
            if !metadata.is_symlink() && mode & 0o022 != 0 {
                found.push(path);
            } else if metadata.is_dir() && mode & 0o011 != 0 {
                folders.push(path);
            }
        }
    }
    found
}

#[cfg(unix)]
#[test]
fn no_umask_lets_other_users_replace_approvals_hook_files_or_the_journal() {
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh"}]}]}}"#;
    let fire: Vec<&str> = FIRE
        .into_iter()
        .filter(|it| *it != "--no-journal")
        .collect();
    for umask in ["umask 000", "umask 077"] {
        let test = Test::new()
            .file(".claude/settings.json", settings)
            .executable(".claude/hooks/guard.sh", "#!/bin/sh\necho no >&2\nexit 2\n");
        let home = test.home().clone();
        let before = writable_by_others(&home);
        let mut ran = test
            .args(["import", "claude-code", "--project"])
            .after(umask)
            .run();
        for args in [
            &["import", "claude-code", "--file", ".claude/settings.json"][..],
            &["trust", "--all"],
        ] {
            ran = ran.again(args.iter().copied()).after(umask).run();
            assert_eq!(ran.status, 0, "{umask}: {}", ran.stderr);
        }
        let ran = ran.again(fire.iter().copied()).after(umask).run();
        assert_eq!(ran.status, 2, "{umask}: {}", ran.stdout);
        assert!(ran.stdout.contains("no"), "{umask}: {}", ran.stdout);
        assert_eq!(writable_by_others(&home), before, "{umask}");
    }
}

#[test]
fn trust_exits_with_3_as_long_as_an_approved_script_cannot_be_loaded() {
    let path = ".tenterhook/hooks/guard.py";
    let test = Test::new().file(path, "import no_such_module\n");
    let mut ran = test.args(["trust", "--all"]).run();
    for args in [
        &["trust", "--all"][..],
        &["trust", "--show"],
        &["trust", "--show", "--json"],
    ] {
        ran = ran.again(args.iter().copied()).run();
        assert_eq!(ran.status, 3, "{args:?}: {}", ran.stderr);
        let expected = "1 approved source of this project cannot be loaded";
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    let ran = ran.again(["trust", "--all"]).file(path, MENDED).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.again(["trust", "--show"]).run().status, 0);
}

#[test]
fn a_script_that_was_approved_broken_and_mended_since_shows_the_approved_line_and_the_way_out() {
    let path = ".tenterhook/hooks/guard.py";
    let ran = Test::new()
        .args(["trust", "--all"])
        .file(path, "import no_such_module\n")
        .run();
    let ran = ran.again(FIRE).file(path, MENDED).run();
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    for expected in [
        "the approved version of `guard.py` cannot be loaded, and the file has changed since: ModuleNotFoundError",
        "1 | import no_such_module",
        "approve the file as it is now: `tenterhook trust 'guard.py'`",
        "hint: approve changed files with `tenterhook trust`",
    ] {
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    assert!(
        !ran.stderr.contains("from tenterhook import"),
        "{}",
        ran.stderr
    );
    let ran = ran.again(["trust", "guard.py"]).run();
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
    let ran = ran.again(FIRE).run();
    assert!(ran.stderr.contains("not today"), "{}", ran.stderr);
}

#[test]
fn an_executable_script_that_registers_hooks_is_told_apart_from_an_executable_hook() {
    let script = format!("#!/usr/bin/env python3\n{MENDED}");
    for (path, expected) in [
        (
            ".tenterhook/hooks/guard.py",
            "must not be executable: run `chmod -x '",
        ),
        (".kodelet/hooks/guard.py", "belongs in `.tenterhook/hooks`"),
    ] {
        let ran = Test::new()
            .args(["trust", "--all"])
            .executable(path, &script)
            .run();
        let message = "the executable was called with `hook` to print the name of its event, but it ended with \
                       exit status 1: ModuleNotFoundError: No module named 'tenterhook'";
        assert!(ran.stderr.contains(message), "{path}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{path}: {}", ran.stderr);
    }
}

#[test]
fn a_name_that_no_hook_has_is_refused() {
    let ran = repository().args(["trust", "gaurd"]).run();
    let expected = "\
error: this project has no hook `gaurd`
hint: available: `log`, `guard`
";
    assert_eq!(ran.refusal(), (expected, 64));
}

#[test]
fn a_name_that_several_hooks_have_approves_none_of_them() {
    let test = repository().executable(".tenterhook/hooks/guard", GUARD);
    let ran = test.args(["trust", "guard"]).run();
    let expected = "\
error: `guard` is the name of 2 hooks
hint: give the path of one: `[DIR]/work/.tenterhook/hooks/guard`, `[DIR]/work/.kodelet/hooks/guard`
";
    assert_eq!(ran.refusal(), (expected, 64));
    let whole = ran.path("work").canonicalize().unwrap();
    let whole = whole.join(".kodelet/hooks/guard");
    let ran = ran.again(["trust", whole.to_str().unwrap()]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran.again(["trust", ".tenterhook/hooks/guard", "log"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let ran = ran.again(["trust"]).run();
    assert_eq!(ran.all(), ("Nothing to approve: 3 hooks trusted.\n", "", 0));
}

#[test]
fn a_file_of_approvals_that_others_may_write_is_refused() {
    let ran = repository().args(["trust", "--all"]).run();
    let file = ran.path("home/.local/share/tenterhook/trust/trust.json");
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o606)).unwrap();
    for args in [&["list"][..], &["trust", "--show"], &["explain", "stop"]] {
        let test = Test::new();
        copy_into(&ran, &test);
        let refused = test.args(args.iter().copied()).run();
        let (stderr, status) = refused.refusal();
        assert!(
            stderr.contains("can be written by other users (mode 606)"),
            "{stderr}"
        );
        assert!(stderr.contains("chmod 600"), "{stderr}");
        assert_eq!(status, 3);
    }
}

/// Gives another call the repository and the approvals of this one.
fn copy_into(ran: &Ran, test: &Test) {
    let to = test.work();
    let to = to.parent().unwrap();
    for folder in ["work", "home"] {
        let status = std::process::Command::new("cp")
            .arg("-a")
            .arg(ran.path(folder))
            .arg(to)
            .status();
        assert!(status.unwrap().success());
    }
    assert!(Path::new(&to.join("work/.kodelet")).is_dir());
}

#[test]
fn terminal_sequences_of_a_repository_are_not_acted_on() {
    let test = Test::new().executable(
        ".kodelet/hooks/guard",
        "#!/bin/sh\n# \u{1b}[2Khidden\necho evil\n",
    );
    let ran = test.args(["trust", "--show"]).run();
    assert!(ran.stdout.contains("# \\u{1b}[2Khidden"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'));
}

#[test]
fn names_of_a_repository_are_not_acted_on_by_a_terminal() {
    let test = Test::new()
        .executable(".kodelet/hooks/a\u{1b}[2K", GUARD)
        .executable(".tenterhook/hooks/a\u{1b}[2K", GUARD);
    let ran = test.args(["trust", "b"]).run();
    assert!(ran.stderr.contains("a\\u{1b}[2K"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'));
    let ran = ran.again(["trust", "a\u{1b}[2K"]).run();
    assert!(ran.stderr.contains("hooks/a\\u{1b}[2K"), "{}", ran.stderr);
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

#[test]
fn every_character_that_does_not_show_is_shown_before_an_approval() {
    let hooks = "hooks:\n  - {name: log, event: turn_end, command: \"/x/tool\u{a0}\"}\n";
    let test = Test::new()
        .file(".tenterhook/hooks.yaml", hooks)
        .executable(
            ".kodelet/hooks/guard",
            "#!/bin/sh\necho a\u{200b}\u{202e}\u{e0041}\u{fe0f}\u{2028} \r\n",
        );
    let shown = test.args(["trust", "--show"]).run();
    let before = shown.stdout.clone();
    let asked = shown.again(["trust"]).stdin("n\nn\n").run();
    for stdout in [before, asked.stdout] {
        for expected in [
            "command: /x/tool\\u{a0}\n",
            "echo a\\u{200b}\\u{202e}\\u{e0041}\\u{fe0f}\\u{2028} \\r\n",
        ] {
            assert!(stdout.contains(expected), "{expected}: {stdout}");
        }
    }
}

#[test]
fn a_change_of_the_mode_alone_is_named() {
    let hooks = "hooks:\n  - {name: log, event: turn_end, command: sh check.sh}\n";
    let ran = Test::new()
        .file(".tenterhook/hooks.yaml", hooks)
        .file("check.sh", "echo x\n")
        .args(["trust", "--all"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let mode = |bits| std::os::unix::fs::PermissionsExt::from_mode(bits);
    fs::set_permissions(ran.path("work/check.sh"), mode(0o755)).unwrap();
    let ran = ran.again(["trust", "--show", "--color", "never"]).run();
    let expected = "check.sh  same bytes, now executable, 7 bytes";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}

#[test]
fn what_may_change_without_an_approval_is_noted() {
    let hooks =
        "hooks:\n  - {name: log, event: turn_end, command: make -fevil.mk, env: {HOME: .}}\n";
    let ran = Test::new()
        .file(".tenterhook/hooks.yaml", hooks)
        .args(["trust", "--show", "--color", "never"])
        .run();
    for expected in [
        "warning: `make` may load files that the command does not name",
        "warning: `HOME=.` makes programs load or run what it names",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}

#[test]
fn an_approval_covers_the_files_that_the_arguments_of_a_voice_builtin_name() {
    let hooks = r#"hooks:
  - event: message_receive
    builtin: stt
    args: [engine=command, 'argv=["sh", "./listen.sh", "{input}"]']
"#;
    let ran = Test::new()
        .file(".tenterhook/hooks.yaml", hooks)
        .file("listen.sh", "echo hello\n")
        .args(["trust", "--show", "--color", "never"])
        .run();
    for expected in [
        "warning: the built-in `stt` may run and read more than these files",
        "listen.sh  new, 11 bytes",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}

#[test]
fn a_plugins_hook_is_approved_and_revoked_by_the_name_that_list_prints() {
    let test = Test::new().executable(".kodelet/plugins/org@repo/hooks/audit_logger", GUARD);
    fs::create_dir(test.work().join(".git")).unwrap();
    let ran = test.args(["trust", "org/repo/unknown"]).run();
    assert_eq!(ran.status, 64, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("available: `org/repo/audit_logger`"),
        "{}",
        ran.stderr
    );
    let ran = ran.again(["trust", "org/repo/audit_logger"]).run();
    assert_eq!(ran.all(), (ran.stdout.as_str(), "", 0));
    assert!(ran.stdout.ends_with("Approved 1 hook.\n"), "{}", ran.stdout);
    let ran = ran.again(["list"]).run();
    assert!(
        ran.stdout.contains("org/repo/audit_logger"),
        "{}",
        ran.stdout
    );
    let ran = ran
        .again(["trust", "--revoke", "org/repo/audit_logger"])
        .run();
    assert_eq!(ran.all(), ("Revoked 1 approval.\n", "", 0));
}

#[test]
fn a_file_that_several_hooks_share_is_shown_once() {
    let hooks = "hooks:\n  - {name: one, event: turn_end, command: sh h/one.sh}\n  - {name: two, event: turn_end, command: sh h/two.sh}\n";
    let ran = Test::new()
        .file(".tenterhook/hooks.yaml", hooks)
        .file("h/one.sh", "echo first\n")
        .file("h/two.sh", "echo second\n")
        .args(["trust", "--show", "--color", "never"])
        .run();
    assert_eq!(
        ran.stdout.matches("    echo first\n").count(),
        1,
        "{}",
        ran.stdout
    );
    assert_eq!(
        ran.stdout.matches("    shown above\n").count(),
        2,
        "{}",
        ran.stdout
    );
}
