//! Which program is started, in which environment, and why a start fails.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use tenterhook_process::{
    CancellationToken, Command, End, Program, ResolveError, Shell, Slots, SpawnError,
};

use crate::support::{file, is_alone, patient, run, sh, try_run, within};

#[tokio::test]
async fn a_plain_line_starts_no_shell() {
    let dir = tempfile::tempdir().unwrap();
    file(
        dir.path(),
        "check",
        "#!/bin/sh\necho \"$0 $1\"; ps -o comm= -p $PPID",
        0o755,
    );
    let command = sh("./check 'a b'").working_dir(dir.path().to_path_buf());
    let resolved = command.resolve().unwrap();
    assert_eq!(resolved.executable, dir.path().join("check"));
    assert_eq!(resolved.shell, None);
    let finished = run(&command, b"", &patient()).await;
    let text = finished.stdout.text();
    assert_eq!(text.lines().next(), Some("./check a b"));
    // The parent of the script is this test, not a shell.
    assert!(!text.lines().any(|line| line == "sh"), "{text}");
}

#[tokio::test]
async fn a_line_with_syntax_goes_through_its_shell() {
    for (shell, line, expected) in [
        (Shell::Sh, "printf '%s' \"$((6 * 7))\"", "42"),
        (Shell::Bash, "a=(1 2 3); printf '%s' \"${#a[@]}\"", "3"),
    ] {
        let line = line.to_owned();
        let command = Command::new(Program::Shell { shell, line });
        assert_eq!(command.resolve().unwrap().shell, Some(shell));
        let finished = run(&command, b"", &patient()).await;
        assert_eq!(finished.end, End::Exited(0));
        assert_eq!(finished.stdout.text(), expected);
    }
}

#[test]
fn a_function_from_the_environment_needs_the_shell() {
    let bash = |line: &str| {
        Command::new(Program::Shell {
            shell: Shell::Bash,
            line: line.to_owned(),
        })
    };
    let shell = |command: Command| command.resolve().unwrap().shell;
    assert_eq!(shell(bash("cat x")), None);
    assert_eq!(
        shell(bash("cat x").env("BASH_FUNC_cat%%", "() { echo function; }")),
        Some(Shell::Bash)
    );
    assert_eq!(
        shell(bash("cat x").env("BASH_ENV", "/etc/hooks")),
        Some(Shell::Bash)
    );
}

#[tokio::test]
async fn arguments_arrive_unchanged() {
    let command = Command::new(Program::exec(["printf", "<%s>", "a b", "$HOME", "*", ""]));
    let finished = run(&command, b"", &patient()).await;
    assert_eq!(finished.stdout.text(), "<a b><$HOME><*><>");
}

#[tokio::test]
async fn the_environment_is_inherited_and_overridden() {
    let inherited = std::env::var("PATH").unwrap();
    let finished = run(
        &sh("printf '%s|%s' \"$PATH\" \"$LEVEL\"")
            .env("LEVEL", "1")
            .env("LEVEL", "2"),
        b"",
        &patient(),
    )
    .await;
    assert_eq!(finished.stdout.text(), format!("{inherited}|2"));
}

#[tokio::test]
async fn a_removed_variable_is_not_inherited_but_may_be_set() {
    let home = sh("printf '%s|%s' \"${HOME-none}\" \"${LEVEL-none}\"")
        .env("LEVEL", "1")
        .without_env(&["HOME", "LEVEL"]);
    let finished = run(&home, b"", &patient()).await;
    assert_eq!(finished.stdout.text(), "none|1");
}

#[tokio::test]
async fn the_working_directory_is_also_the_one_in_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let both = Command::new(Program::exec(["sh", "-c", "pwd -P; printenv PWD"]));
    let finished = run(&both.working_dir(dir.clone()), b"", &patient()).await;
    let dir = dir.display();
    assert_eq!(finished.stdout.text(), format!("{dir}\n{dir}\n"));
}

#[tokio::test]
async fn the_search_path_is_the_one_of_the_child() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "my-check", "#!/bin/sh\necho mine\n", 0o755);
    let command = sh("my-check").env("PATH", dir.path());
    assert_eq!(command.resolve().unwrap().executable, path);
    assert_eq!(run(&command, b"", &patient()).await.stdout.text(), "mine\n");
}

#[tokio::test]
async fn the_child_starts_with_default_signals() {
    let command = Command::new(Program::exec(["grep", "Sig[BI]", "/proc/self/status"]));
    let finished = run(&command, b"", &patient()).await;
    let text = finished.stdout.text();
    let mask = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap()
    };
    assert_eq!(mask("SigBlk"), 0);
    // SIGPIPE is signal 13; Rust programs ignore it.
    assert_eq!(mask("SigIgn") & (1 << 12), 0);
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let error = try_run(&sh("no-such-check"), b"", &patient())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "program `no-such-check` was not found in `PATH`"
    );
    let error = Command::new(Program::exec(["/no/such/check"]))
        .resolve()
        .unwrap_err();
    let path = PathBuf::from("/no/such/check");
    assert_eq!(error, ResolveError::NotFound { path });
    let nothing = Command::new(Program::exec([OsString::new()])).resolve();
    assert_eq!(nothing, Err(ResolveError::Empty));
}

#[tokio::test]
async fn a_file_without_permission_and_a_directory_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "check", "#!/bin/sh\n", 0o644);
    let error = Command::new(Program::exec([&path])).resolve().unwrap_err();
    assert_eq!(error, ResolveError::NotExecutable { path: path.clone() });
    let error = sh("check").env("PATH", dir.path()).resolve().unwrap_err();
    assert_eq!(error, ResolveError::NotExecutable { path });
    let path = dir.path().to_path_buf();
    let error = Command::new(Program::exec([&path])).resolve().unwrap_err();
    assert_eq!(error, ResolveError::NotAFile { path });
}

#[tokio::test]
async fn a_missing_interpreter_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "check", "#!/no/such/python -I\n", 0o755);
    let error = try_run(&Command::new(Program::exec([&path])), b"", &patient()).await;
    let Err(SpawnError::Resolve(error)) = error else {
        panic!("{error:?}");
    };
    let interpreter = PathBuf::from("/no/such/python");
    assert_eq!(error, ResolveError::NoInterpreter { path, interpreter });
}

#[tokio::test]
async fn a_script_without_a_first_line_is_run_by_sh() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "check", "echo \"$0 $1\"; exit 3\n", 0o755);
    let command = Command::new(Program::exec([path.as_os_str(), "a b".as_ref()]));
    let finished = run(&command, b"", &patient()).await;
    assert_eq!(finished.end, End::Exited(3));
    assert_eq!(finished.stdout.text(), format!("{} a b\n", path.display()));
}

#[tokio::test]
async fn a_program_that_appears_after_loading_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let command = sh("late").env("PATH", dir.path());
    assert!(command.resolve().is_err());
    file(dir.path(), "late", "#!/bin/sh\necho here\n", 0o755);
    assert_eq!(run(&command, b"", &patient()).await.stdout.text(), "here\n");
}

#[tokio::test]
async fn another_program_of_the_same_name_does_not_take_the_place_of_the_one_found() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    let path = std::env::join_paths([&first, &second]).unwrap();
    file(&second, "check", "#!/bin/sh\necho second\n", 0o755);
    let command = sh("check").env("PATH", path);
    file(&first, "check", "#!/bin/sh\necho first\n", 0o755);
    let placed = command.placed(dir.path());
    assert_eq!(
        run(&placed, b"", &patient()).await.stdout.text(),
        "second\n"
    );
    fs::remove_file(second.join("check")).unwrap();
    let error = try_run(&placed, b"", &patient()).await.unwrap_err();
    let expected = format!(
        "program `{}` does not exist",
        second.join("check").display()
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_relative_program_is_that_of_the_directory_it_runs_in() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&other).unwrap();
    file(&one, "check", "#!/bin/sh\necho one\n", 0o755);
    file(&other, "check", "#!/bin/sh\necho other\n", 0o755);
    let command = sh("./check").working_dir(one);
    assert_eq!(
        run(&command.placed(&other), b"", &patient())
            .await
            .stdout
            .text(),
        "other\n"
    );
}

#[tokio::test]
async fn a_program_that_is_removed_after_loading_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "check", "#!/bin/sh\n", 0o755);
    let command = Command::new(Program::exec([&path]));
    command.resolve().unwrap();
    fs::remove_file(&path).unwrap();
    let error = try_run(&command, b"", &patient()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("program `{}` does not exist", path.display())
    );
}

#[tokio::test]
async fn a_removed_working_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let command = sh("cat").working_dir(dir.path().to_path_buf());
    command.resolve().unwrap();
    let path = dir.path().to_path_buf();
    dir.close().unwrap();
    let error = try_run(&command, b"", &patient()).await.unwrap_err();
    assert!(
        matches!(&error, SpawnError::Resolve(ResolveError::NoWorkingDir { path: named }) if *named == path),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_file_that_is_being_written_is_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("check");
    fs::copy("/bin/true", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let command = Command::new(Program::exec([&path]));
    let writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let limits = patient();
    let (finished, ()) = tokio::join!(run(&command, b"", &limits), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(writer);
    });
    assert_eq!(finished.end, End::Exited(0));
}

#[tokio::test]
async fn a_file_that_stays_open_for_writing_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("check");
    fs::copy("/bin/true", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let _writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let command = Command::new(Program::exec([&path]));
    let error = try_run(&command, b"", &patient()).await.unwrap_err();
    let SpawnError::Spawn { program, source } = error else {
        panic!("{error:?}");
    };
    assert_eq!(program, path);
    assert_eq!(source.kind(), io::ErrorKind::ExecutableFileBusy);
}

#[tokio::test]
async fn cancelling_during_the_start_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("check");
    fs::copy("/bin/true", &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let _writer = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let command = Command::new(Program::exec([&path]));
    let cancel = CancellationToken::new();
    let limits = patient();
    let (result, ()) = tokio::join!(command.run(b"", &limits, &cancel), async {
        cancel.cancel();
    });
    assert!(matches!(result, Err(SpawnError::Cancelled)), "{result:?}");
}

#[tokio::test]
async fn cancelling_ends_the_wait_for_a_slot() {
    let slots = Slots::new(1);
    let command = sh("exec sleep 300").slots(slots.clone());
    let (cancel, wanted) = (CancellationToken::new(), CancellationToken::new());
    let limits = patient();
    let first = command.run(b"", &limits, &cancel);
    let second = async {
        assert_eq!(slots.available(), 0);
        let (result, ()) = tokio::join!(command.run(b"", &limits, &wanted), async {
            wanted.cancel();
        });
        cancel.cancel();
        result
    };
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(second, Err(SpawnError::Cancelled)), "{second:?}");
    assert!(matches!(first.unwrap().end, End::Cancelled { .. }));
    assert_eq!(slots.available(), 1);
}

#[tokio::test]
async fn a_cancelled_token_and_a_timeout_of_zero_start_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let command = sh("echo > started").working_dir(dir.path().to_path_buf());
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = command.run(b"", &patient(), &cancel).await;
    assert!(matches!(result, Err(SpawnError::Cancelled)), "{result:?}");
    let result = try_run(&command, b"", &within(Duration::ZERO, Duration::ZERO)).await;
    assert!(
        matches!(result, Err(SpawnError::TimedOut { .. })),
        "{result:?}"
    );
    assert!(!dir.path().join("started").exists());
}

#[tokio::test]
async fn starting_a_child_does_not_copy_the_memory_of_the_parent() {
    const PAGE: usize = 4096;
    const PAGES: usize = 16 * 1024;
    if !is_alone(
        "start::starting_a_child_does_not_copy_the_memory_of_the_parent",
        256,
    ) {
        return;
    }
    let mut memory = vec![0_u8; PAGES * PAGE];
    let mut touch = || memory.iter_mut().step_by(PAGE).for_each(|byte| *byte += 1);
    let command = Command::new(Program::exec(["cat", "-"]))
        .working_dir(PathBuf::from("/"))
        .env("LEVEL", "1");
    touch();
    run(&command, b"hello", &patient()).await;
    let before = page_faults();
    run(&command, b"hello", &patient()).await;
    touch();
    // After a fork each page faults once when it is written to.
    let faults = page_faults() - before;
    assert!(faults < PAGES / 8, "{faults}");
}

fn page_faults() -> usize {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields.split_whitespace().nth(7).unwrap().parse().unwrap()
}
