//! The guard of an agent while the programs of Tenterhook are removed, replaced or damaged: it stays in force or denies,
//! and `status` says which.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shim_stage::{HostStage, eventually_ended, finish, is_running, kill};
use crate::stage::eventually;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenterhook");
const SHIM: &str = env!("CARGO_BIN_EXE_tenterhook-shim");
const NO_SUDO: &str = "hooks: [{event: tool_guard, builtin: deny_commands, args: [sudo]}]";
const BIN: &str = "home/.local/share/tenterhook/bin";

/// Something that happens to the copy of the program.
type Damage = fn(&Path);

/// Puts the programs into a folder, as Cargo, pip or npm do.
fn put(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let program = folder.join("tenterhook");
    link(PROGRAM, &program);
    link(SHIM, &folder.join("tenterhook-shim"));
    program
}

/// Gives a program another name, or copies it to another file system.
fn link(program: &str, name: &Path) {
    fs::hard_link(program, name)
        .or_else(|_| fs::copy(program, name).map(drop))
        .unwrap();
}

/// Puts another build of the program into a folder.
fn put_other(folder: &Path, name: &str) -> PathBuf {
    let program = put(folder);
    // Another process writes it, because a file cannot be run while a child of another test has it open for writing.
    let script = "cp \"$1\" \"$2.new\" && printf \"$3\" >> \"$2.new\" && mv \"$2.new\" \"$2\"";
    let copied = Command::new("/bin/sh")
        .args(["-c", script, "sh", PROGRAM])
        .arg(&program)
        .arg(name)
        .status();
    assert!(copied.unwrap().success());
    program
}

/// Installs with a program, and checks that it succeeds. Returns what it printed.
fn install(stage: &HostStage, program: &Path) -> String {
    let ran = stage.run(program, &["install", "claude-code"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    ran.stdout
}

fn guarded() -> HostStage {
    HostStage::new().hooks(NO_SUDO).with_installed_shim()
}

/// Checks that the guard decides: it denies one command and has no opinion about another.
fn assert_in_force(stage: &HostStage) {
    let denial = stage.claude("s1", "sudo ls").claude_denial().unwrap();
    assert!(denial.contains("sudo"), "{denial}");
    assert!(stage.claude("s1", "ls").is_silent());
}

/// Checks that every call is denied.
fn assert_denies(stage: &HostStage) {
    let denial = stage.claude("s1", "ls").claude_denial().unwrap();
    assert!(denial.contains("could not run the hooks"), "{denial}");
}

/// Returns the exit status and the whole output of `status`, run with a program.
fn status(stage: &HostStage, program: &Path) -> (i32, String) {
    let ran = stage.run(program, &["status"]);
    (ran.status, ran.stdout + &ran.stderr)
}

/// Returns the file of the running daemon's program.
fn daemon_file(stage: &HostStage) -> PathBuf {
    let process = stage.status().process;
    fs::read_link(format!("/proc/{process}/exe")).unwrap()
}

fn end_daemon(stage: &HostStage) {
    let process = stage.status().process;
    kill("KILL", process);
    eventually_ended(process);
}

#[test]
fn after_the_folder_of_the_program_was_emptied_the_guard_is_in_force_and_a_new_daemon_starts() {
    // What `cargo clean`, `rm -r .venv` and `npm cache clean` remove. npm and pipx call a program by a link.
    for (folder, link) in [
        ("target/debug", None),
        (".venv/bin", Some("bin/tenterhook")),
        (
            "_npx/7f/node_modules/tenterhook-linux-x64/bin",
            Some("_npx/7f/node_modules/.bin/tenterhook"),
        ),
    ] {
        let stage = guarded();
        let mut typed = put(&stage.path(folder));
        if let Some(link) = link.map(|link| stage.path(link)) {
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&typed, &link).unwrap();
            typed = link;
        }
        install(&stage, &typed);
        assert_in_force(&stage);
        fs::remove_dir_all(stage.path(folder)).unwrap();
        assert_in_force(&stage);
        end_daemon(&stage);
        assert_in_force(&stage);
        assert!(daemon_file(&stage).starts_with(stage.path(BIN).join("versions")));
        let (status, text) = status(&stage, &stage.path(BIN).join("tenterhook"));
        assert_eq!(status, 0, "{text}");
    }
}

#[test]
fn a_build_of_the_program_alone_guards_and_install_and_doctor_say_what_that_costs() {
    let stage = guarded();
    let program = put(&stage.path("target/debug"));
    fs::remove_file(stage.path("target/debug/tenterhook-shim")).unwrap();
    let printed = install(&stage, &program);
    let cost = "The small program `tenterhook-shim` was not built";
    assert!(printed.contains(cost), "{printed}");
    assert_in_force(&stage);
    let (exit, text) = status(&stage, &program);
    assert_eq!(exit, 0, "{text}");
    stage.write("agents/claude", "#!/bin/sh\nexit 1\n");
    let agents = stage.path("agents").display().to_string();
    let stage = stage.variable("PATH", &agents);
    let doctor = stage.run(&program, &["doctor"]);
    assert!(
        doctor.status == 0 && doctor.stdout.contains(cost),
        "{doctor:?}"
    );
}

#[test]
fn a_program_that_is_started_as_the_shim_denies_under_any_name() {
    use std::os::unix::process::CommandExt as _;
    let stage = HostStage::new();
    let file = stage.path("alone/tenterhook-shim");
    fs::create_dir(stage.path("alone")).unwrap();
    link(PROGRAM, &file);
    for name in ["tenterhook-shim", "sh", ""] {
        let mut command = stage.command(&file);
        let command = command.arg0(name).args(["claude-code", "PreToolUse"]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("\"deny\""), "`{name}`: {output:?}");
    }
}

#[test]
fn an_upgrade_and_a_downgrade_during_a_session_keep_the_guard_in_force() {
    let slow = "hooks: [{event: tool_guard, builtin: deny_commands, args: [sudo]}, {event: tool_guard, command: \
                \"grep -q slow || exit 0; echo $$ > $HOME/started; read line < $HOME/pipe; echo $line >&2; exit 2\"}]";
    let stage = HostStage::new().hooks(slow).with_installed_shim();
    let pipe = stage.path("home/pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let first = put(&stage.path("first"));
    let second = put_other(&stage.path("second"), "second");
    install(&stage, &first);
    assert_in_force(&stage);
    for next in [&second, &first] {
        let (old, old_file) = (stage.status().process, daemon_file(&stage));
        let event = stage.claude_call("s1", "slow").to_string();
        let waiting = stage.start("claude-code", "PreToolUse", event.as_bytes());
        let started = stage.path("home/started");
        eventually(|| {
            fs::read_to_string(&started)
                .ok()?
                .trim()
                .parse::<u32>()
                .ok()
        });
        fs::remove_file(&started).unwrap();

        let (exit, text) = status(&stage, next);
        assert_eq!(exit, 3, "{text}");
        let expected = "your agents run version 0.1.0, and `";
        assert!(
            text.contains(expected) && text.contains("another build"),
            "{text}"
        );
        let printed = install(&stage, next);
        let expected = "Your agents now run version 0.1.0, a copy of this program in ";
        assert!(printed.contains(expected), "{printed}");
        assert_in_force(&stage);
        assert_ne!(stage.status().process, old);
        assert_ne!(daemon_file(&stage), old_file);
        let (exit, text) = status(&stage, next);
        assert_eq!(exit, 0, "{text}");

        // The old daemon finishes what it has begun.
        assert!(is_running(old));
        fs::write(&pipe, "the old daemon answers\n").unwrap();
        let denial = finish(waiting).claude_denial().unwrap();
        assert!(denial.contains("the old daemon answers"), "{denial}");
        eventually_ended(old);
    }
    let versions = fs::read_dir(stage.path(BIN).join("versions")).unwrap();
    assert_eq!(versions.count(), 2);
}

#[test]
fn a_program_that_is_missing_or_damaged_denies_and_status_names_it() {
    let stage = guarded();
    stage.write("agents/claude", "#!/bin/sh\nexit 1\n");
    let agents = stage.path("agents").display().to_string();
    let stage = stage.variable("PATH", &agents);
    let program = put(&stage.path("target/debug"));
    install(&stage, &program);
    let copy = fs::canonicalize(stage.path(BIN).join("tenterhook")).unwrap();
    let damages: [(Damage, &str); 3] = [
        (
            |copy| fs::remove_file(copy).unwrap(),
            "tenterhook` is missing, so every call of your agents is denied",
        ),
        (
            |copy| fs::write(copy, "#!/bin/sh\nexit 1\n").unwrap(),
            "tenterhook` does not start (exit status: 1",
        ),
        (
            |copy| fs::write(copy, "").unwrap(),
            "tenterhook` does not start (Exec format error",
        ),
    ];
    for (damage, expected) in damages {
        damage(&copy);
        assert_denies(&stage);
        let (exit, text) = status(&stage, &program);
        assert_eq!(exit, 3, "{text}");
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("run `tenterhook install` again"), "{text}");
        let ran = stage.run(&program, &["doctor"]);
        assert!(ran.status == 3 && ran.stdout.contains(expected), "{ran:?}");
        let ran = stage.run(&program, &["status", "--json"]);
        assert!(
            ran.stdout.contains("\"ok\":false") || ran.stdout.contains("\"ok\": false"),
            "{ran:?}"
        );
        fs::remove_file(&copy).ok();
        fs::copy(PROGRAM, &copy).unwrap();
    }
    install(&stage, &program);
    assert_in_force(&stage);
    // Without the shim, nothing of Tenterhook runs, and only the agent can deny.
    fs::remove_file(stage.path(BIN).join("current")).unwrap();
    let (exit, text) = status(&stage, &program);
    assert_eq!(exit, 3, "{text}");
    assert!(
        text.contains("tenterhook-shim` is missing, so nothing is guarded"),
        "{text}"
    );
    install(&stage, &program);
    assert_in_force(&stage);
    assert_eq!(status(&stage, &program).0, 0);
}

#[test]
fn an_upgrade_that_is_killed_leaves_the_guard_in_force() {
    let stage = guarded();
    let first = put(&stage.path("first"));
    install(&stage, &first);
    let versions = stage.path(BIN).join("versions");
    let unfinished = || {
        let entries = fs::read_dir(&versions).unwrap().map(|entry| entry.unwrap());
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.find(|name| name.starts_with(".new-"))
    };
    let mut interrupted = 0;
    for number in 0..5 {
        let second = put_other(&stage.path(&format!("second{number}")), &number.to_string());
        let mut command = stage.command(&second);
        let mut upgrade = command
            .args(["install", "claude-code"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // In the middle of the copy, or of what follows it.
        let end = eventually(|| match upgrade.try_wait().unwrap() {
            Some(_) => Some(false),
            None => unfinished().map(|_| true),
        });
        interrupted += u32::from(end);
        upgrade.kill().ok();
        upgrade.wait().unwrap();
        assert_in_force(&stage);
        fs::remove_dir_all(second.parent().unwrap()).unwrap();
    }
    assert!(interrupted > 0);
    install(&stage, &first);
    assert_eq!(unfinished(), None);
    assert_in_force(&stage);
}

#[test]
fn an_uninstallation_leaves_no_program_behind() {
    let stage = guarded();
    let first = put(&stage.path("first"));
    install(&stage, &first);
    install(&stage, &put_other(&stage.path("second"), "second"));
    let ran = stage.run(&first, &["uninstall", "claude-code"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!stage.path(BIN).exists());
}

#[test]
fn an_installation_ends_with_what_is_in_force() {
    let stage = HostStage::new().with_installed_shim();
    let program = put(&stage.path("target/debug"));
    let printed = install(&stage, &program);
    let end = "Nothing is guarded yet: no hook is in force in this folder.\nTo write a first guard for all your agents, \
               run `tenterhook init --user`.\n";
    assert!(printed.ends_with(end), "{printed}");

    // A hook of the project does not run before it is approved.
    let guard = "hooks: [{name: no-sudo, event: tool_guard, builtin: deny_commands, args: [sudo]}]";
    stage.write("work/.tenterhook/hooks.yaml", guard);
    let printed = install(&stage, &program);
    assert!(
        printed.contains(
            "Not in force, because you have not approved them (`tenterhook trust`):\n  no-sudo"
        ),
        "{printed}"
    );
    assert!(printed.ends_with(end), "{printed}");

    let stage = stage
        .hooks("hooks: [{name: no-rm, event: tool_guard, builtin: deny_commands, args: [rm]}]");
    let printed = install(&stage, &program);
    let (_, list) = printed.split_once("In force in this folder:\n").unwrap();
    assert!(
        list.trim_start().starts_with("no-rm") && list.contains("hooks.d/hooks.yaml"),
        "{printed}"
    );
    assert!(!printed.contains("Nothing is guarded yet"), "{printed}");

    stage.write("config/hooks.d/broken.yaml", "hooks: {");
    let ran = stage.run(&program, &["install", "claude-code"]);
    assert!(
        ran.stdout
            .contains("Cannot be loaded, so gates deny (`tenterhook check`):"),
        "{ran:?}"
    );
    assert_denies(&stage);
}
