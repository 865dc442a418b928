//! The passphrase of `tenterhook protect`, and what keeps an agent's shell from commands that only the user may give.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::stage::Test;
use crate::terminal::Sitting;

const PASSPHRASE: &str = "correct horse battery";

/// Where the passphrase of a test is stored.
fn stored(folder: &Path) -> PathBuf {
    folder.join("home/.local/share/tenterhook/passphrase.json")
}

/// Runs the program at a terminal, and answers its questions in order. Returns the screen, the exit status and the
/// folder.
fn answer(test: Test, answers: &[(&str, &str)]) -> (String, u32, TempDir) {
    let sitting = Sitting::start(test);
    for (question, text) in answers {
        sitting.until(|screen| screen.ends_with(question));
        sitting.press(&format!("{text}\r"));
    }
    let (screen, status, folder) = sitting.end();
    for (_, text) in answers {
        assert!(
            !screen.contains(text),
            "the terminal shows `{text}`: {screen}"
        );
    }
    (screen, status, folder)
}

/// Sets the passphrase.
fn protect(test: Test) -> TempDir {
    let answers = [
        ("New passphrase:", PASSPHRASE),
        ("The same passphrase again:", PASSPHRASE),
    ];
    let (screen, status, folder) = answer(test.args(["protect"]), &answers);
    assert_eq!(status, 0, "{screen}");
    folder
}

/// Runs the program without a terminal.
fn without_terminal(test: Test) -> (Output, TempDir) {
    let (command, folder) = test.into_command();
    let mut detached = Command::new("setsid");
    detached
        .arg("--wait")
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(command.get_current_dir().unwrap());
    (detached.output().unwrap(), folder)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_passphrase_is_set_changed_and_removed_and_never_shown() {
    let folder = protect(Test::new());
    let path = stored(folder.path());
    let record = fs::read_to_string(&path).unwrap();
    assert!(
        record.contains("$argon2id$") && !record.contains(PASSPHRASE),
        "{record}"
    );
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let ran = Test::in_folder(folder).args(["protect"]).run();
    let (stderr, status) = ran.refusal();
    assert!(
        stderr.contains("hint: replace it with `tenterhook protect --change`") && status == 64,
        "{stderr}"
    );
    let change = |ran: Test, old: &str| {
        let answers = [
            ("Passphrase to change the passphrase:", old),
            ("New passphrase:", "another passphrase"),
            ("The same passphrase again:", "another passphrase"),
        ];
        answer(ran.args(["protect", "--change"]), &answers)
    };
    let (screen, status, folder) = change(ran.again([]), PASSPHRASE);
    assert_eq!(status, 0, "{screen}");
    let remove = |test: Test, text: &str| {
        let answers = [("Passphrase to remove the passphrase:", text)];
        answer(test.args(["protect", "--remove"]), &answers)
    };
    let (screen, status, folder) = remove(Test::in_folder(folder), PASSPHRASE);
    assert!(
        screen.contains("error: wrong passphrase; nothing was done") && status == 64,
        "{screen}"
    );
    assert!(path_of(&folder).exists());
    let (screen, status, folder) = remove(Test::in_folder(folder), "another passphrase");
    assert!(
        screen.contains("warning: 1 try with a wrong passphrase"),
        "{screen}"
    );
    assert!(
        screen.contains("Removed the passphrase.") && status == 0,
        "{screen}"
    );
    assert!(!path_of(&folder).exists());
    let ran = Test::in_folder(folder).args(["protect", "--remove"]).run();
    assert!(
        ran.refusal().0.contains("error: no passphrase is set"),
        "{}",
        ran.stderr
    );
}

fn path_of(folder: &TempDir) -> PathBuf {
    stored(folder.path())
}

#[test]
fn a_short_passphrase_two_that_differ_and_an_interrupted_one_are_not_set() {
    type Answers = &'static [(&'static str, &'static str)];
    let rows: [(Answers, &str, u32); 3] = [
        (
            &[("New passphrase:", "short")],
            "the passphrase has 5 characters",
            64,
        ),
        (
            &[
                ("New passphrase:", PASSPHRASE),
                ("The same passphrase again:", "correct horse batter"),
            ],
            "the two passphrases differ",
            64,
        ),
        (
            &[("New passphrase:", "some keys\u{3}")],
            "interrupted; nothing was changed",
            130,
        ),
    ];
    for (answers, expected, exit) in rows {
        let (screen, status, folder) = answer(Test::new().args(["protect"]), answers);
        assert!(screen.contains(expected), "{screen}");
        assert_eq!(status, exit, "{screen}");
        assert!(!path_of(&folder).exists(), "{screen}");
    }
}

#[test]
fn with_a_passphrase_no_command_that_only_the_user_may_give_runs_without_a_terminal() {
    let commands: [&[&str]; 22] = [
        &["trust", "--all"],
        &["trust", "--revoke"],
        &["allow", "7K3MZQ2P", "--yes"],
        &["allow", "7K3MZQ2P", "--revoke"],
        &["disable", "on.yaml", "--yes"],
        &["enable", "off.yaml"],
        &["install", "claude-code"],
        &["uninstall", "claude-code"],
        &["import", "claude-code"],
        &["init"],
        &["test"],
        &["reload"],
        &["daemon", "--stop"],
        &["protect", "--change"],
        &["protect", "--remove"],
        &["gateway", "reload"],
        &["gateway", "stop"],
        &["gateway", "open"],
        &["gateway", "pair", "approve", "web", "123456"],
        &["gateway", "token", "create", "me"],
        &["gateway", "send", "web:1", "hello"],
        &["gateway", "channels", "restart", "web"],
    ];
    let cases = "cases: [{name: one, tool: shell, input: {cmd: ls}, expect: {decision: proceed}}]";
    let hooks = "hooks: [{event: turn_end, command: \"true\"}]";
    let test = Test::new()
        .file(".tenterhook/hooks.yaml", hooks)
        .file(".tenterhook/hooks.cases.yaml", cases);
    let mut folder = protect(test);
    for words in commands {
        // No variable leads to another place.
        let elsewhere = folder.path().join("elsewhere").display().to_string();
        let test = Test::in_folder(folder)
            .args(words.iter().copied())
            .variable("TENTERHOOK_DATA_DIR", &elsewhere)
            .variable("XDG_DATA_HOME", &elsewhere);
        let (output, kept) = without_terminal(test);
        folder = kept;
        let stderr = text(&output.stderr);
        let expected =
            "error: this process has no terminal, so no one can be asked for a passphrase";
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
        assert_eq!(output.status.code(), Some(64), "{words:?}: {stderr}");
        assert!(!folder.path().join("elsewhere").exists(), "{words:?}");
    }
}

#[test]
fn doctor_says_what_keeps_agents_from_the_users_commands() {
    let ran = Test::new()
        .args(["doctor"])
        .variable("PATH", "/nowhere")
        .run();
    assert!(
        ran.stdout
            .contains("`tenterhook protect` sets a passphrase"),
        "{}",
        ran.stdout
    );
    let folder = protect(ran.again([]));
    let ran = Test::in_folder(folder)
        .args(["doctor"])
        .variable("PATH", "/nowhere")
        .run();
    assert!(
        ran.stdout.contains("ask for your passphrase"),
        "{}",
        ran.stdout
    );
}

/// A way to start a program from an agent's shell, so that it looks like the user's own.
struct Way {
    name: &'static str,
    /// A program that must be there, and a command that succeeds if the way can be used.
    needs: &'static str,
    /// The lines of a shell script that start `sh try.sh`.
    script: &'static str,
    /// Whether the program passes for the user's own if there is no passphrase.
    passes: bool,
}

/// Starts `sh try.sh` at a terminal of its own, and answers its question for a passphrase with the words of the
/// command line.
const TERMINAL: &str = "\
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp('sh', ['sh', 'try.sh'])
shown, answered = b'', False
while True:
    try:
        data = os.read(terminal, 1024)
    except OSError:
        break
    if not data:
        break
    shown += data
    if b'Passphrase' in shown and not answered:
        answered = True
        os.write(terminal, ' '.join(sys.argv[1:]).encode() + b'\\n')
";

const WAYS: [Way; 7] = [
    Way {
        name: "fork",
        needs: "true",
        script: "(sh -c 'sh try.sh &' > out 2>&1 < /dev/null &)",
        passes: false,
    },
    Way {
        name: "setsid",
        needs: "setsid --version",
        script: "setsid sh -c 'sh try.sh &' > out 2>&1 < /dev/null",
        passes: false,
    },
    Way {
        name: "own terminal",
        needs: "python3 --version",
        script: "python3 terminal.py a guess > out 2>&1 < /dev/null",
        passes: false,
    },
    Way {
        name: "double fork with an own terminal",
        needs: "python3 --version",
        script: "setsid sh -c 'python3 terminal.py a guess &' > out 2>&1 < /dev/null",
        passes: true,
    },
    Way {
        name: "systemd-run --user",
        needs: "systemctl --user is-system-running",
        script: "systemd-run --user sh \"$PWD/try.sh\" > out 2>&1 < /dev/null",
        passes: false,
    },
    Way {
        name: "tmux",
        needs: "tmux -V",
        script: "tmux -S \"$PWD/socket\" new-session -d 'python3 terminal.py a guess' > out 2>&1 < /dev/null",
        passes: true,
    },
    Way {
        name: "at",
        needs: "pgrep -x atd && at -V",
        script: "echo \"cd '$PWD' && sh try.sh\" | at now > out 2>&1",
        passes: true,
    },
];

/// Lets an agent's shell try to disable a source of hooks in one way. Returns whether it did, and what the command
/// printed.
fn try_to_disable(folder: TempDir, script: &str) -> (bool, String, TempDir) {
    let hooks = folder.path().join("config/hooks.d");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(
        hooks.join("on.yaml"),
        "hooks: [{event: turn_end, command: \"true\"}]",
    )
    .unwrap();
    let (place, program) = (folder.path().display(), env!("CARGO_BIN_EXE_tenterhook"));
    // The variables, because a service manager starts programs without them.
    let disable = format!(
        "cd '{place}/work'\nunset TENTERHOOK_AGENT\nexport HOME='{place}/home' TENTERHOOK_CONFIG_DIR='{place}/config'\n\
         '{program}' disable on.yaml --yes --no-journal > said 2>&1\necho $? > status.part\nmv status.part status\n"
    );
    let test = Test::in_folder(folder)
        .args(["run", "go", "--yes", "--no-journal", "--model", "scripted:script.yaml"])
        .file("try.sh", &disable)
        .file("terminal.py", TERMINAL)
        .file(
            "way.sh",
            &format!("{script}\nuntil test -e status; do sleep 0.05; done\n"),
        )
        .file(
            "script.yaml",
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: 'env -u TENTERHOOK_AGENT sh way.sh'}}]}, {text: done}]",
        );
    let ran = test.run();
    assert_eq!(ran.status, 0, "{script}: {}", ran.stderr);
    let (status, said) = (ran.file("status"), ran.file("said"));
    let list = ran.path("home/.local/share/tenterhook/disabled.json");
    let is_disabled = fs::read_to_string(list).is_ok_and(|list| list.contains("on.yaml"));
    assert_eq!(
        is_disabled,
        status.trim() == "0",
        "{script}: {status} {said}"
    );
    (is_disabled, said, into_folder(ran))
}

fn into_folder(ran: crate::stage::Ran) -> TempDir {
    ran.again([]).into_command().1
}

/// Returns the ways that can be used on this machine, and reports the others.
#[expect(clippy::print_stderr, reason = "a test says what it does not try")]
fn usable_ways() -> impl Iterator<Item = &'static Way> {
    static WAYS_OF_THIS_MACHINE: [Way; 7] = WAYS;
    let (usable, others): (Vec<_>, Vec<_>) = WAYS_OF_THIS_MACHINE.iter().partition(|way| {
        let tried = Command::new("sh").args(["-c", way.needs]).output();
        tried.is_ok_and(|output| output.status.success())
    });
    let names: Vec<&str> = others.iter().map(|way| way.name).collect();
    if !names.is_empty() {
        eprintln!(
            "{} of {} ways are not tried: {}",
            names.len(),
            WAYS.len(),
            names.join(", ")
        );
    }
    assert!(usable.len() >= 4, "{names:?}");
    usable.into_iter()
}

// Without a passphrase, the ancestors of a process decide. A program can cut itself off from them and create its own
// terminal. The threat model says so.
#[test]
fn without_a_passphrase_only_a_detached_program_with_its_own_terminal_passes_for_the_user() {
    for way in usable_ways() {
        let folder = into_folder(Test::new().args(["list"]).run());
        let (has_disabled, said, _) = try_to_disable(folder, way.script);
        assert_eq!(has_disabled, way.passes, "{}: {said}", way.name);
        if !has_disabled {
            let refusal = "a program that Tenterhook runs cannot disable hooks";
            assert!(said.contains(refusal), "{}: {said}", way.name);
        }
    }
}

#[test]
fn with_a_passphrase_no_program_of_an_agent_disables_hooks_in_any_way() {
    for way in usable_ways() {
        let (has_disabled, said, folder) = try_to_disable(protect(Test::new()), way.script);
        assert!(!has_disabled, "{}: {said}", way.name);
        let is_refused = said.contains("wrong passphrase") || said.contains("has no terminal");
        assert!(is_refused, "{}: {said}", way.name);
        let record = fs::read(path_of(&folder)).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        let tries = u64::from(said.contains("wrong passphrase"));
        assert_eq!(record["wrong_tries"], tries, "{}: {said}", way.name);
    }
}

#[test]
fn the_passphrase_is_enough_where_the_ancestors_would_not_be() {
    let script = format!("python3 terminal.py {PASSPHRASE} > out 2>&1 < /dev/null");
    let folder = into_folder(Test::new().args(["list"]).run());
    let (has_disabled, said, _) = try_to_disable(folder, &script);
    assert!(!has_disabled, "{said}");
    let (has_disabled, said, _) = try_to_disable(protect(Test::new()), &script);
    assert!(has_disabled, "{said}");
}
