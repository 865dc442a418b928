//! Tight resource limits, special files and signals: every command ends with a helpful error, gates deny, and nothing
//! panics or hangs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::TempDir;

use crate::stage::{Ran, Test, eventually, is_alive};

const EVENT: &str = r#"{"tool_name": "shell", "tool_input": {"cmd": "ls"}}"#;

const HOOKS: &str = "hooks: [{event: pre_tool_use, command: echo no >&2; exit 2}]";

/// The calls that are tried, and whether each is a gate.
const CALLS: [(&[&str], bool); 4] = [
    (
        &[
            "fire",
            "pre_tool_use",
            "--no-journal",
            "--input",
            "event.json",
            "--hooks",
            "hooks.yaml",
        ],
        true,
    ),
    (
        &[
            "run",
            "go",
            "--yes",
            "--no-journal",
            "--model",
            "scripted:script.yaml",
            "--hooks",
            "hooks.yaml",
        ],
        false,
    ),
    (&["demo"], false),
    (&["list", "--hooks", "hooks.yaml"], false),
];

fn call(args: &[&str]) -> Test {
    Test::new()
        .args(args.iter().copied())
        .file("hooks.yaml", HOOKS)
        .file("event.json", EVENT)
        .file(
            "script.yaml",
            "turns: [{tool_calls: [{name: shell, arguments: {cmd: ls}}]}, {text: done}]",
        )
}

/// Checks how a call ended. That it ends at all is part of the test.
fn check(ran: &Ran, is_gate: bool, what: &str) {
    let shown = format!("{what}: {}\n{}{}", ran.status, ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("panicked"), "{shown}");
    // A signal, or a status that is not documented.
    assert!([0, 1, 2, 3, 4].contains(&ran.status), "{shown}");
    if is_gate {
        assert_eq!(ran.status, 2, "{shown}");
    }
}

#[test]
fn few_descriptors_are_an_error_and_no_panic() {
    for (args, is_gate) in CALLS {
        for count in [4, 6, 7, 8, 10, 12, 14, 20] {
            let ran = call(args).descriptors(count).run();
            check(&ran, is_gate, &format!("{} with {count}", args[0]));
        }
    }
    let ran = call(CALLS[0].0).descriptors(6).run();
    assert_eq!(
        ran.stderr,
        "error: cannot start the async runtime\n  caused by: Too many open files (os error 24)\n\
         hint: raise the limit of open files (`ulimit -n`)\n"
    );
}

#[test]
fn each_count_of_descriptors_is_enough_or_is_named_as_the_reason() {
    let reasons = (8..=24).map(|count| {
        let ran = call(CALLS[0].0).descriptors(count).run();
        check(&ran, true, &format!("fire with {count}"));
        [
            "cannot start the async runtime",
            "not enough descriptors",
            ": no\n",
        ]
        .into_iter()
        .position(|reason| ran.stderr.contains(reason))
        .unwrap_or_else(|| panic!("fire with {count}: {}", ran.stderr))
    });
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(
        (reasons.first(), reasons.last()),
        (Some(&0), Some(&2)),
        "{reasons:?}"
    );
}

#[test]
fn hooks_and_tools_run_where_the_parent_ignores_the_end_of_children() {
    let ran = Test::new()
        .args(["run", "go", "--yes", "--no-journal"])
        .hooks("hooks: [{event: pre_tool_use, command: cat > /dev/null; touch judged}]")
        .script("turns: [{tool_calls: [{name: shell, arguments: {cmd: touch ran}}]}, {text: done}]")
        .after("trap '' CHLD")
        .run();
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    for name in ["judged", "ran"] {
        assert_eq!(ran.file(name), "");
    }
}

/// The program as another user, because the limit of processes does not apply to root.
struct OtherUser {
    /// The folder with a copy of the program that every user may run. The copy is large, so all calls share it.
    program: TempDir,
}

impl OtherUser {
    /// Returns `None` if the tests do not run as root, because the limit then applies anyway.
    fn for_root() -> Option<Self> {
        let id = Command::new("id").arg("-u").output().unwrap();
        if id.stdout != b"0\n" {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::copy(env!("CARGO_BIN_EXE_tenterhook"), &program).unwrap();
        for path in [folder.path(), &program] {
            fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        Some(Self { program: folder })
    }
}

/// Limits the number of processes and threads of the program.
fn with_processes(test: Test, count: u32, other_user: Option<&OtherUser>) -> Test {
    // Debian's shell uses the option `-p` for this limit.
    let limit = format!("ulimit -u {count} 2>/dev/null || ulimit -p {count}");
    let Some(OtherUser { program }) = other_user else {
        return test.after(&limit);
    };
    let folder = test.work().join("..");
    let mut open = Command::new("chmod");
    let opened = open.args(["-R", "a+rwX"]).arg(&folder).status();
    assert!(opened.unwrap().success());
    let user = "--reuid=54321 --regid=54321 --clear-groups";
    let program = program.path().join("program");
    test.after(&format!(
        "exec setpriv {user} /bin/sh -c '{limit}; exec {} \"$@\"' sh \"$@\"",
        program.display()
    ))
}

#[test]
fn few_processes_are_an_error_and_no_panic() {
    let other_user = OtherUser::for_root();
    let other_user = other_user.as_ref();
    for (args, is_gate) in CALLS {
        for count in [0, 1, 2, 3, 4, 5, 6, 7, 8] {
            let ran = with_processes(call(args), count, other_user).run();
            check(&ran, is_gate, &format!("{} with {count}", args[0]));
        }
    }
    let ran = with_processes(call(CALLS[0].0), 3, other_user).run();
    assert_eq!(
        ran.stderr,
        "error: cannot start the async runtime\n  caused by: Resource temporarily unavailable (os error 11)\n\
         hint: raise the limit of processes (`ulimit -u`), or end other programs\n"
    );
}

#[test]
fn a_fifo_as_journal_is_refused() {
    for (args, is_gate) in &CALLS[..2] {
        let args: Vec<_> = args.iter().filter(|arg| **arg != "--no-journal").collect();
        let ran = Test::new()
            .args(args.into_iter().copied().chain(["--journal", "fifo"]))
            .file("hooks.yaml", HOOKS)
            .file("event.json", EVENT)
            .file("script.yaml", "turns: [{text: done}]")
            .after("mkfifo fifo")
            .run();
        assert_eq!(
            ran.stderr,
            "error: cannot write the journal `fifo`\n  caused by: it is a FIFO, expected a file\n\
             hint: name another file with `--journal FILE`, or pass `--no-journal`\n"
        );
        assert_eq!(ran.status, if *is_gate { 2 } else { 1 });
    }
}

#[test]
fn closed_streams_are_no_panic() {
    for (args, is_gate) in CALLS {
        for closed in ["exec <&-", "exec >&-", "exec 2>&-", "exec <&- >&- 2>&-"] {
            let ran = call(args).after(closed).run();
            check(&ran, is_gate, &format!("{} after {closed}", args[0]));
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_panic() {
    for (args, is_gate) in CALLS {
        for full in ["exec >/dev/full", "ulimit -f 0"] {
            let ran = call(args).after(full).run();
            check(&ran, is_gate, &format!("{} after {full}", args[0]));
        }
    }
    let args = CALLS[0].0.iter().filter(|arg| **arg != "--no-journal");
    let ran = Test::new()
        .args(args.copied().chain(["--journal", "/dev/full"]))
        .file(
            "hooks.yaml",
            "hooks: [{event: pre_tool_use, command: exit 0}]",
        )
        .file("event.json", EVENT)
        .run();
    check(&ran, true, "a journal on a full disk");
}

#[test]
fn no_signal_gives_fire_a_status_that_lets_the_tool_run() {
    // If the signal ended the program, the status would be 153 or similar.
    for signal in [
        "HUP", "INT", "QUIT", "TERM", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "XCPU", "TRAP",
        "ABRT", "SYS", "IO", "PWR", "STKFLT",
    ] {
        let running = call(CALLS[0].0)
            .file(
                "hooks.yaml",
                "hooks: [{event: pre_tool_use, command: echo $$ > hook.pid; sleep 300}]",
            )
            .start();
        let pid = running.line_of("hook.pid");
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, 2, "{signal}: {}{}", ran.stdout, ran.stderr);
        eventually(|| (!is_alive(&pid)).then_some(()));
    }
}
