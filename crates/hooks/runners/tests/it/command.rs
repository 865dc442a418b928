//! Hooks that are real child processes, and every way in which they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tenterhook_engine::event::{PreToolUse, SessionStart, ToolGuard};
use tenterhook_engine::journal::{JournalRecord, RunStatus};
use tenterhook_engine::{
    AnyEffect, Decision, Dialect, Engine, EventInfo, EventKind, EventRef, HookSpec, JsonObject,
    MemoryJournal, OnError, Origin, Policy, ReadError, Reply, StopKind, WriteError,
};
use tenterhook_process::{Command, Program};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::native::Native;

use crate::{on_error, spec};

/// Returns a native command hook of `kind`.
pub(crate) fn command(kind: EventKind, id: &str, line: &str) -> HookSpec {
    let handler = CommandHandler::new(Command::new(Program::shell(line)), line, Native::new());
    spec(kind, id, Arc::new(handler))
}

/// An origin with its own folder.
pub(crate) fn origin(dir: &std::path::Path) -> Origin {
    let mut origin = crate::origin();
    dir.clone_into(&mut origin.cwd);
    origin
}

/// A call of the tool `shell` with two arguments.
pub(crate) fn shell_call(cmd: &str) -> PreToolUse {
    let mut call = crate::shell_call(cmd);
    call.tool_input.insert("cwd".to_owned(), "src".into());
    call
}

fn exec(id: &str, argv: &[&str]) -> HookSpec {
    let program = Program::Exec {
        argv: argv.iter().map(Into::into).collect(),
    };
    let handler = CommandHandler::new(Command::new(program), argv.join(" "), Native::new());
    spec(EventKind::PreToolUse, id, Arc::new(handler))
}

/// Gates that give no usable answer: how each is made in a folder, and what its failure says.
fn broken_gates(dir: &std::path::Path) -> Vec<(&'static str, HookSpec, &'static str)> {
    let not_executable = dir.join("not_executable.sh");
    std::fs::write(&not_executable, "#!/bin/sh\necho '{}'\n").unwrap();
    let line = |line: &str| command(EventKind::PreToolUse, "guard", line);
    let mut slow = line("sleep 300");
    slow.timeout = Duration::from_millis(200);
    vec![
        ("is killed", line("kill -9 $$"), "killed by signal 9"),
        ("times out", slow, "timed out after 0.2s"),
        ("exits 1", line("exit 1"), "exited with status 1"),
        ("exits 127", line("exit 127"), "exited with status 127"),
        (
            "says why on stderr",
            line("echo broken pipe dream >&2; exit 3"),
            "exited with status 3: broken pipe dream",
        ),
        (
            "prints half an object",
            line("printf '{\"decision\":'"),
            "invalid hook output: EOF while parsing",
        ),
        (
            "misspells its decision",
            line("echo '{\"decision\":\"dney\"}'"),
            "`decision` is `dney`",
        ),
        (
            "misspells its key beside a known one",
            line("echo '{\"decison\":\"deny\",\"reason\":\"no\"}'"),
            "`reason` is given without `decision`; unknown: `decison`",
        ),
        (
            "prints a log line first",
            line("echo checking; echo '{\"decision\":\"deny\"}'"),
            "the answer is plain text, but a gate expects one JSON object or no output",
        ),
        (
            "misspells its key",
            line("echo '{\"decison\":\"deny\"}'"),
            "the answer contains no decision; unknown: `decison`",
        ),
        (
            "prints two objects",
            line("echo '{} {}'"),
            "hook output must contain a single JSON object",
        ),
        (
            "is not UTF-8",
            line("printf '{\"reason\":\"\\377\"}'"),
            "the answer is not UTF-8",
        ),
        (
            "does not exist",
            exec("guard", &["/nonexistent/guard"]),
            "/nonexistent/guard",
        ),
        (
            "is not executable",
            exec("guard", &[not_executable.to_str().unwrap()]),
            "not_executable.sh",
        ),
        (
            "runs nowhere",
            HookSpec {
                ..in_missing_folder()
            },
            "missing",
        ),
    ]
}

fn in_missing_folder() -> HookSpec {
    let handler = CommandHandler::new(Command::new(Program::shell("true")), "true", Native::new())
        .working_dir(Some("missing/folder".into()));
    spec(EventKind::PreToolUse, "guard", Arc::new(handler))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_gives_no_usable_answer_denies_and_says_which_hook_and_why() {
    // D-22, D-23, D-27, D-29, D-30
    let dir = tempfile::tempdir().unwrap();
    for (case, hook, cause) in broken_gates(dir.path()) {
        let engine = Engine::new();
        engine.register(hook);
        let outcome = engine
            .dispatcher(origin(dir.path()))
            .dispatch(shell_call("ls"))
            .await;
        let decision = outcome.decision();
        let reason = decision
            .reason()
            .unwrap_or_else(|| panic!("a gate that {case} let the call through"));
        assert!(
            matches!(
                outcome.decision(),
                Decision::Stop {
                    kind: StopKind::Failed,
                    ..
                }
            ),
            "{case}"
        );
        assert!(
            reason.starts_with("pre_tool_use hook failed to execute: hook \"guard\": "),
            "{case}: {reason}"
        );
        assert!(reason.contains(cause), "{case}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_gate_lets_the_call_through_only_where_its_author_said_so() {
    let dir = tempfile::tempdir().unwrap();
    for (case, hook, cause) in broken_gates(dir.path()) {
        for (policy, notices) in [(OnError::Warn, 1), (OnError::Ignore, 0)] {
            let engine = Engine::new();
            engine.register(on_error(hook.clone(), policy));
            let outcome = engine
                .dispatcher(origin(dir.path()))
                .dispatch(shell_call("ls"))
                .await;
            assert_eq!(outcome.decision().reason(), None, "{case}");
            assert_eq!(outcome.notices().len(), notices, "{case}");
            let [failure] = outcome.failures() else {
                panic!("{case}: {:?}", outcome.failures())
            };
            assert!(
                failure.let_through && failure.cause.contains(cause),
                "{case}: {failure:?}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strict_denies_whatever_the_author_said() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::builder().strict(true).build();
    engine.register(on_error(
        command(EventKind::PreToolUse, "guard", "exit 1"),
        OnError::Ignore,
    ));
    let outcome = engine
        .dispatcher(origin(dir.path()))
        .dispatch(shell_call("ls"))
        .await;
    assert!(outcome.decision().reason().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_observer_never_reaches_the_agent() {
    // D-56
    let engine = Engine::new();
    engine.register(command(EventKind::SessionStart, "log", "exit 1"));
    engine.register(command(EventKind::SessionStart, "hint", "echo hello"));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(SessionStart::default())
        .await;
    assert_eq!(outcome.context(), ["hello"]);
    let expected = "session_start hook failed to execute: hook \"log\": exited with status 1";
    assert_eq!(outcome.notices(), [expected]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_reads_the_event_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::new();
    let line = r#"read -r event; case "$event" in *'"cmd":"sudo'*) echo '{"decision":"deny","reason":"no sudo"}';; esac"#;
    engine.register(command(EventKind::PreToolUse, "no-sudo", line));
    let hooks = engine.dispatcher(origin(dir.path()));
    assert_eq!(
        hooks
            .dispatch(shell_call("sudo ls"))
            .await
            .decision()
            .reason(),
        Some("no sudo")
    );
    assert_eq!(
        hooks.dispatch(shell_call("ls")).await.decision().reason(),
        None
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_hook_sees_what_an_earlier_one_rewrote() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::new();
    let rewrite = r#"echo '{"updated_input":{"cmd":"ls -h"}}'"#;
    let check = r#"read -r event; case "$event" in *'"cmd":"ls -h"'*) ;; *) echo "saw $event" >&2; exit 2;; esac"#;
    engine.register(command(EventKind::PreToolUse, "rewrite", rewrite));
    engine.register(command(EventKind::PreToolUse, "check", check));
    let outcome = engine
        .dispatcher(origin(dir.path()))
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), None);
    let input = outcome.into_rewritten().unwrap().tool_input;
    assert_eq!(json!(input), json!({ "cmd": "ls -h", "cwd": "src" }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_run_in_the_events_folder_and_a_relative_one_below_it() {
    // D-82, D-84
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("scripts")).unwrap();
    let run_in = |working_dir: Option<&str>| {
        let command = Command::new(Program::shell("pwd; echo $HOOK_VALUE")).env("HOOK_VALUE", "v");
        let handler = CommandHandler::new(command, "pwd", Native::new())
            .working_dir(working_dir.map(Into::into));
        spec(EventKind::SessionStart, "pwd", Arc::new(handler))
    };
    let engine = Engine::new();
    engine.register(run_in(None));
    engine.register(run_in(Some("scripts")));
    let outcome = engine
        .dispatcher(origin(dir.path()))
        .dispatch(SessionStart::default())
        .await;
    let root = dir.path().canonicalize().unwrap();
    let expected = [
        format!("{}\nv", root.display()),
        format!("{}\nv", root.join("scripts").display()),
    ];
    assert_eq!(outcome.context(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_outlives_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::new();
    let pids = dir.path().join("pids");
    let line = format!(
        "sleep 300 & echo $! > '{0}'; echo $$ >> '{0}'; sleep 300",
        pids.display()
    );
    let mut hook = command(EventKind::PreToolUse, "guard", &line);
    hook.timeout = Duration::from_secs(1);
    engine.register(hook);
    let began = Instant::now();
    let outcome = engine
        .dispatcher(origin(dir.path()))
        .dispatch(shell_call("ls"))
        .await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .ends_with("timed out after 1s")
    );
    assert!(
        began.elapsed() < Duration::from_mins(1),
        "{:?}",
        began.elapsed()
    );
    for pid in std::fs::read_to_string(pids).unwrap().lines() {
        assert!(ends(pid), "process {pid} outlived its hook");
    }
}

/// Waits for a process that was killed to be gone. A kill takes effect a moment after it was sent.
fn ends(pid: &str) -> bool {
    let deadline = Instant::now() + crate::AMPLE;
    while is_running(pid) && Instant::now() < deadline {
        std::thread::yield_now();
    }
    !is_running(pid)
}

/// Returns whether a process runs. A process that is dead but not yet reaped does not.
fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .trim_start()
        .chars()
        .next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_never_reads_gets_a_mebibyte_and_is_fine() {
    // D-41
    let engine = Engine::new();
    engine.register(command(EventKind::PreToolUse, "deaf", "exec true"));
    let event = shell_call(&"x".repeat(1 << 20));
    let outcome = engine.dispatcher(Origin::default()).dispatch(event).await;
    assert_eq!(
        outcome.decision().reason(),
        None,
        "{:?}",
        outcome.failures()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_megabytes_of_output_are_bounded() {
    let engine = Engine::new();
    engine.register(command(
        EventKind::SessionStart,
        "flood",
        "head -c 200000000 /dev/zero | tr '\\0' x",
    ));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(SessionStart::default())
        .await;
    let [context] = outcome.context() else {
        panic!("{:?}", outcome.failures())
    };
    assert!(context.len() < 2 << 20, "{}", context.len());
    assert!(context.contains("bytes"), "the cut is not reported");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_gates_at_once_all_run_and_one_deny_counts() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::new();
    let log = dir.path().join("log");
    for index in 0..1000 {
        let answer = if index == 777 {
            r#"{"decision":"deny","reason":"777"}"#
        } else {
            "{}"
        };
        let line = format!("echo {index} >> '{}'; echo '{answer}'", log.display());
        engine.register(command(
            EventKind::ToolGuard,
            &format!("gate {index}"),
            &line,
        ));
    }
    let event = ToolGuard::new("shell");
    let outcome = engine.dispatcher(origin(dir.path())).dispatch(event).await;
    assert_eq!(outcome.failures(), []);
    assert_eq!(outcome.decision().reason(), Some("777"));
    assert_eq!(std::fs::read_to_string(log).unwrap().lines().count(), 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_dispatch_kills_its_hooks() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::new();
    let fifo = dir.path().join("fifo");
    let made = Command::new(Program::Exec {
        argv: vec!["mkfifo".into(), fifo.clone().into()],
    });
    let cancel = tokio_util::sync::CancellationToken::new();
    made.run(b"", &tenterhook_process::Limits::default(), &cancel)
        .await
        .unwrap();
    let line = format!("echo $$ > '{}'; exec sleep 300", fifo.display());
    engine.register(command(EventKind::PreToolUse, "guard", &line));
    let hooks = engine.dispatcher(origin(dir.path()));
    let dispatch = tokio::spawn(async move {
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .map(str::to_owned)
    });
    let pid = tokio::task::spawn_blocking(move || std::fs::read_to_string(fifo).unwrap())
        .await
        .unwrap();
    dispatch.abort();
    assert!(dispatch.await.unwrap_err().is_cancelled());
    assert!(ends(pid.trim()));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_found_when_it_was_loaded_is_not_replaced_by_one_found_later() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let write = |folder: &std::path::Path, script: &str| {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join("myguard");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
    };
    write(&second, "#!/bin/sh\necho guarded >&2; exit 2\n");
    let path = format!("{}:{}:/usr/bin:/bin", first.display(), second.display());
    let command = Command::new(Program::exec(["myguard"])).env("PATH", path);
    let handler = CommandHandler::new(command, "myguard", Native::new());
    let engine = Engine::new();
    engine.register(spec(EventKind::PreToolUse, "guard", Arc::new(handler)));
    let hooks = engine.dispatcher(origin(dir.path()));
    assert_eq!(
        hooks.dispatch(shell_call("ls")).await.decision().reason(),
        Some("guarded")
    );
    write(&first, "#!/bin/sh\nexit 0\n");
    assert_eq!(
        hooks.dispatch(shell_call("ls")).await.decision().reason(),
        Some("guarded")
    );
    std::fs::remove_file(second.join("myguard")).unwrap();
    assert!(
        hooks
            .dispatch(shell_call("ls"))
            .await
            .decision()
            .reason()
            .unwrap()
            .contains("myguard")
    );
}

/// Counts how often an event is written.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Dialect>,
    writes: AtomicUsize,
}

impl Dialect for Counted {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn write(&self, event: &EventRef) -> Result<Vec<u8>, WriteError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.inner.write(event)
    }

    fn skeleton(&self, info: &EventInfo) -> Option<JsonObject> {
        self.inner.skeleton(info)
    }

    fn read(
        &self,
        info: &EventInfo,
        reply: &Reply<'_>,
        strict: bool,
    ) -> Result<AnyEffect, ReadError> {
        self.inner.read(info, reply, strict)
    }

    fn policy(&self, info: &EventInfo, configured: Option<OnError>) -> Policy {
        self.inner.policy(info, configured)
    }
}

#[tokio::test]
async fn a_mebibyte_for_four_commands_is_written_once_and_reaches_all() {
    let dialect = Arc::new(Counted {
        inner: Native::new(),
        writes: AtomicUsize::new(0),
    });
    let engine = Engine::new();
    for number in 0..4 {
        let line = "test $(wc -c) -gt 1048576";
        let command = Command::new(Program::shell(line));
        let handler = CommandHandler::new(command, line, dialect.clone());
        engine.register(HookSpec::new(
            EventKind::ToolGuard,
            number.to_string(),
            Arc::new(handler),
        ));
    }
    let mut event = ToolGuard::new("shell");
    let text = "x".repeat(1 << 20);
    event.tool_input.insert("cmd".to_owned(), text.into());
    let outcome = engine.dispatcher(Origin::default()).dispatch(event).await;
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    assert_eq!(dialect.writes.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_call_that_goes_through_because_a_hook_failed_is_in_the_journal() {
    let journal = Arc::new(MemoryJournal::new());
    let engine = Engine::builder().journal(journal.clone()).build();
    engine.register(on_error(
        command(EventKind::PreToolUse, "guard", "exit 1"),
        OnError::Ignore,
    ));
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell_call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), None);
    let records = journal.take();
    let [JournalRecord::Run(run), JournalRecord::Dispatch(dispatch)] = &records[..] else {
        panic!("{records:?}")
    };
    assert!(run.let_through);
    assert_eq!(
        (run.status, run.cause.as_deref()),
        (RunStatus::Failed, Some("exited with status 1"))
    );
    assert!(dispatch.failures[0].let_through && !dispatch.stopped);
}
