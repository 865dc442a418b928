//! Everything that can go wrong between a coding agent and its hooks. Gates deny, and nothing waits
//! longer than the shim's deadline.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use tenterhook_shim::failure::HOST_FAILURES;
use tenterhook_shim::frame::{DaemonAnswer, HEADER, Header};

use crate::shim_stage::{HostStage, eventually_ended, finish, is_running, kill};
use crate::stage::eventually;

const SLOW: &str = "hooks: [{event: tool_guard, command: \"echo $$ > $HOME/started; exec sleep 600\", timeout: 600}]";

/// Returns the process id of the hook in [`SLOW`] when it has started.
fn hook_process(stage: &HostStage) -> u32 {
    let file = stage.path("home/started");
    eventually(|| fs::read_to_string(&file).ok()?.trim().parse().ok())
}

/// Lets a thread be the daemon for the next connections.
fn pretend(stage: &HostStage, behave: impl Fn(UnixStream) + Send + 'static) {
    let place = stage.place();
    place.prepare().unwrap();
    let listener = UnixListener::bind(&place.socket).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            behave(stream.unwrap());
        }
    });
}

fn short() -> HostStage {
    HostStage::new().variable("TENTERHOOK_SHIM_TIMEOUT", "1.5")
}

/// Checks that the shim denies and that other events pass.
fn assert_closed(stage: &HostStage, words: &str) {
    let denial = stage.claude("s1", "ls").claude_denial().unwrap();
    assert!(denial.contains(words), "{denial}");
    let start = stage.claude_start("s1");
    assert!(
        stage
            .send("claude-code", "SessionStart", &start)
            .is_silent()
    );
}

#[test]
fn without_the_program_gates_deny() {
    let stage = HostStage::new();
    fs::remove_file(stage.path("bin/tenterhook")).unwrap();
    assert_closed(&stage, "run `tenterhook install` again");
}

#[test]
fn a_daemon_that_cannot_start_is_named() {
    let stage = HostStage::new();
    fs::remove_file(stage.path("bin/tenterhook")).unwrap();
    symlink("/bin/false", stage.path("bin/tenterhook")).unwrap();
    assert_closed(&stage, "its daemon ended with exit status: 1");
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_replaced() {
    let stage = HostStage::new();
    let first = stage.daemon();
    kill("KILL", first);
    eventually_ended(first);
    assert!(stage.place().socket.exists());
    assert!(stage.claude("s1", "ls").is_silent());
    assert_ne!(stage.daemon(), first);
}

#[test]
fn a_folder_that_others_can_enter_is_not_used() {
    let stage = HostStage::new();
    let folder = stage.path("run/tenterhook");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert_closed(&stage, "other users can enter it");
    fs::remove_dir(&folder).unwrap();
    fs::create_dir(stage.path("elsewhere")).unwrap();
    symlink(stage.path("elsewhere"), &folder).unwrap();
    assert_closed(&stage, "it is not a folder");
}

#[test]
fn a_daemon_that_says_nothing_meets_the_deadline() {
    let stage = short();
    pretend(&stage, |stream| {
        // Held open for longer than the test.
        std::mem::forget(stream);
    });
    let began = Instant::now();
    let denial = stage.claude("s1", "ls").claude_denial().unwrap();
    assert!(denial.contains("did not answer in time"), "{denial}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn garbage_and_half_answers_deny() {
    let whole = {
        let answer = DaemonAnswer::Print(tenterhook_shim::frame::Printed::default());
        [Header::write(0).to_vec(), answer.write()].concat()
    };
    let half = whole[..whole.len() - 3].to_vec();
    let no_answer = whole[..HEADER].to_vec();
    let unknown = [Header::write(0).as_slice(), &Header::write(1), b"?"].concat();
    for (bytes, words) in [
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), "cannot be read"),
        (half, "ended before it answered"),
        (no_answer, "ended before it answered"),
        (unknown, "unknown kind"),
    ] {
        let stage = short();
        pretend(&stage, move |mut stream| {
            stream.write_all(&bytes).unwrap();
            // The request is read first, because the shim sends it first.
            stream.read_exact(&mut [0; HEADER]).unwrap();
        });
        assert_closed(&stage, words);
    }
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_denies_and_the_next_event_has_a_new_one() {
    let stage = HostStage::new().hooks(SLOW);
    let event = stage.claude_call("s1", "ls").to_string();
    let shim = stage.start("claude-code", "PreToolUse", event.as_bytes());
    let hook = hook_process(&stage);
    let daemon = stage.status().process;
    kill("KILL", daemon);
    let denial = finish(shim).claude_denial().unwrap();
    assert!(denial.contains("ended before it answered"), "{denial}");
    eventually_ended(hook);
    fs::remove_file(stage.path("config/hooks.d/hooks.yaml")).unwrap();
    assert!(stage.claude("s1", "ls").is_silent());
}

#[test]
fn after_a_daemon_was_killed_a_session_that_works_elsewhere_keeps_the_hooks_of_its_folder() {
    let stage = HostStage::new();
    let elsewhere = stage.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert!(stage.claude("s1", "ls").is_silent());
    for damage in ["", "{\"host\":\n"] {
        let daemon = stage.status().process;
        kill("KILL", daemon);
        eventually_ended(daemon);
        let list = stage.place().sessions;
        let text = fs::read_to_string(&list).unwrap() + damage;
        fs::write(&list, text).unwrap();
        let mut event = stage.claude_call("s1", "ls");
        event["cwd"] = elsewhere.to_str().into();
        assert!(stage.send("claude-code", "PreToolUse", &event).is_silent());
        let status = stage.status();
        assert_ne!(status.process, daemon);
        let folders: Vec<_> = status.projects.into_iter().map(|it| it.path).collect();
        assert_eq!(folders, [stage.path("work").canonicalize().unwrap()]);
        assert_eq!(status.sessions_problem.is_some(), !damage.is_empty());
    }
}

#[test]
fn with_a_damaged_list_of_sessions_only_sessions_that_it_lacks_are_denied_until_they_begin_anew() {
    let stage = HostStage::new();
    assert!(stage.claude("s1", "ls").is_silent());
    let daemon = stage.status().process;
    kill("KILL", daemon);
    eventually_ended(daemon);
    let list = stage.place().sessions;
    let text = fs::read_to_string(&list).unwrap() + "{\"host\":";
    fs::write(&list, text).unwrap();

    assert!(stage.claude("s1", "ls").is_silent());
    let denial = stage.claude("s2", "ls").claude_denial().unwrap();
    assert!(denial.contains("start a new session"), "{denial}");
    let start = stage.claude_start("s2");
    assert!(
        stage
            .send("claude-code", "SessionStart", &start)
            .is_silent()
    );
    assert!(stage.claude("s2", "ls").is_silent());

    let problem = stage.status().sessions_problem.unwrap();
    let left = list.with_extension("sessions-damaged");
    assert!(problem.contains(left.to_str().unwrap()), "{problem}");
    assert!(stage.claude("s3", "ls").claude_denial().is_some());
    fs::remove_file(left).unwrap();
    assert!(stage.claude("s3", "ls").is_silent());
    assert_eq!(stage.status().sessions_problem, None);
}

#[test]
fn without_the_list_of_agents_gates_deny_and_only_the_users_commands_refuse() {
    let stage = short();
    let place = stage.place();
    place.prepare().unwrap();
    fs::write(&place.hosts, "nonsense\n").unwrap();
    assert_closed(&stage, "its daemon ended");
    let reload = stage
        .command(stage.path("bin/tenterhook"))
        .arg("reload")
        .output();
    let said = String::from_utf8(reload.unwrap().stderr).unwrap();
    assert!(
        said.contains("cannot read the list of agents that run"),
        "{said}"
    );
    fs::remove_file(&place.hosts).unwrap();
    assert!(stage.claude("s1", "ls").is_silent());
}

#[test]
fn hooks_that_are_too_slow_are_cancelled_and_deny() {
    let stage = HostStage::new()
        .variable("TENTERHOOK_SHIM_TIMEOUT", "6")
        .hooks(SLOW);
    let denial = stage.claude("s1", "ls").claude_denial().unwrap();
    assert!(denial.contains("did not answer in time"), "{denial}");
    let hook = hook_process(&stage);
    eventually_ended(hook);
    assert_eq!(stage.status().failed, 1);
}

#[test]
fn a_signal_denies_and_cancels_the_hooks() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let stage = HostStage::new().hooks(SLOW);
        let event = stage.claude_call("s1", "ls").to_string();
        let shim = stage.start("claude-code", "PreToolUse", event.as_bytes());
        let hook = hook_process(&stage);
        kill(signal, shim.id());
        let denial = finish(shim).claude_denial().unwrap();
        assert!(denial.contains("ended by a signal"), "{denial}");
        eventually_ended(hook);
    }
}

#[test]
fn a_shim_that_is_killed_cancels_its_hooks() {
    let stage = HostStage::new().hooks(SLOW);
    let event = stage.claude_call("s1", "ls").to_string();
    let mut shim = stage.start("claude-code", "PreToolUse", event.as_bytes());
    let hook = hook_process(&stage);
    shim.kill().unwrap();
    shim.wait().unwrap();
    eventually_ended(hook);
    assert!(!is_running(hook));
}

#[test]
fn an_event_that_cannot_be_read_denies() {
    let stage = HostStage::new();
    for input in [
        &b"not json"[..],
        b"",
        b"[]",
        b"{\"session_id\": 7}",
        b"\xff",
    ] {
        let printed = finish(stage.start("claude-code", "PreToolUse", input));
        let denial = printed.claude_denial();
        assert!(denial.is_some(), "{input:?}: {printed:?}");
        let printed = finish(stage.start("claude-code", "SessionStart", input));
        assert!(printed.is_silent(), "{input:?}: {printed:?}");
    }
    let large = vec![b' '; (64 << 20) + 1];
    let printed = finish(stage.start("claude-code", "PreToolUse", &large));
    let denial = printed.claude_denial().unwrap();
    assert!(denial.contains("larger than 64 MiB"), "{denial}");
}

#[test]
fn a_host_that_does_not_send_its_event_meets_the_deadline() {
    let stage = short();
    let mut shim = stage.command(stage.path("bin/tenterhook-shim"));
    let mut shim = shim
        .args(["claude-code", "PreToolUse"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = shim.stdin.take();
    let denial = finish(shim).claude_denial().unwrap();
    assert!(
        denial.contains("did not send the event in time"),
        "{denial}"
    );
    drop(stdin);
}

/// Runs the shim on an event with another standard output than a pipe, and returns its status and error message.
fn with_output(stage: &HostStage, host: &str, event: &str, output: &str) -> (i32, String) {
    let line = format!("exec \"$@\" {output}");
    let mut shell = stage.command("/bin/sh");
    let mut shim = shell
        .args(["-c", &line, "sh"])
        .arg(stage.path("bin/tenterhook-shim"))
        .args([host, event])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The event is broken, so each gate is denied without a daemon's help.
    shim.stdin.take().unwrap().write_all(b"{}").unwrap();
    let ended = finish(shim);
    (ended.status, ended.stderr)
}

#[test]
fn a_denial_that_no_one_can_read_is_an_exit_status_with_a_reason_in_every_host() {
    let stage = HostStage::new();
    for output in [">&-", "> /dev/full", "> /dev/null", "1< /dev/zero"] {
        for host in HOST_FAILURES {
            for gate in host.gates {
                let (status, reason) = with_output(&stage, host.host, gate.event, output);
                let place = format!("{} {} {output}: {reason}", host.host, gate.event);
                assert_eq!(status, 2, "{place}");
                assert!(!reason.trim().is_empty(), "{place}");
            }
            for other in host.others {
                let (status, reason) = with_output(&stage, host.host, other, output);
                assert_eq!(status, 0, "{} {other} {output}: {reason}", host.host);
            }
        }
    }
}

#[test]
fn an_answer_without_an_opinion_needs_no_reader() {
    let stage = HostStage::new();
    let event = stage.claude_call("s1", "ls").to_string();
    let mut shell = stage.command("/bin/sh");
    let mut shim = shell
        .args(["-c", "exec \"$0\" claude-code PreToolUse >&-"])
        .arg(stage.path("bin/tenterhook-shim"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    shim.stdin
        .take()
        .unwrap()
        .write_all(event.as_bytes())
        .unwrap();
    assert!(finish(shim).is_silent());
}

#[test]
fn an_unknown_host_or_event_denies_by_its_status_only_if_it_looks_like_a_gate() {
    let stage = HostStage::new();
    for (words, status) in [
        (&["no-such-host", "PreToolUse"][..], 2),
        (&["no-such-host", "Stop"], 0),
        (&["claude-code", "pre_tool_use"], 2),
        (&["claude-code", "BeforeSomethingNew"], 2),
        (&["claude-code", "SomethingNew"], 0),
        (&[], 2),
    ] {
        let mut shim = stage.command(stage.path("bin/tenterhook-shim"));
        let output = shim.args(words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn a_journal_on_a_full_disk_changes_no_decision() {
    let guard = "hooks: [{event: tool_guard, command: \"grep -q sudo && exit 2; exit 0\"}]";
    let stage = HostStage::new().hooks(guard);
    let mut daemon = stage.command(stage.path("bin/tenterhook"));
    let mut daemon = daemon
        .args(["daemon", "--foreground", "--journal", "/dev/full"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    eventually(|| UnixStream::connect(stage.place().socket).ok());
    for _ in 0..20 {
        assert!(stage.claude("s1", "sudo ls").claude_denial().is_some());
    }
    let status = stage.status();
    assert_eq!((status.stopped, status.failed), (20, 0));
    kill("TERM", daemon.id());
    daemon.wait().unwrap();
}

#[test]
fn a_new_version_takes_over_while_events_of_the_old_one_finish() {
    let stage = HostStage::new().hooks(
        "hooks: [{event: tool_guard, command: \"grep -q slow || exit 0; echo $$ > $HOME/started; \
         read line < $HOME/pipe; echo $line >&2; exit 2\"}]",
    );
    let pipe = stage.path("home/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    assert!(stage.claude("s1", "ls").is_silent());
    let old = stage.status().process;
    let event = stage.claude_call("s1", "slow").to_string();
    let slow = stage.start("claude-code", "PreToolUse", event.as_bytes());
    hook_process(&stage);
    // Another file at the program's path is another version.
    let link = stage.path("bin/tenterhook");
    let target = fs::read_link(&link).unwrap();
    let next = format!("#!/bin/sh\nexec '{}' \"$@\"\n", target.display());
    stage.write("bin/next", &next);
    fs::remove_file(&link).unwrap();
    symlink(stage.path("bin/next"), &link).unwrap();
    assert!(stage.claude("s2", "ls").is_silent());
    assert_ne!(stage.status().process, old);
    assert!(is_running(old));
    fs::write(&pipe, "the old daemon answers\n").unwrap();
    let denial = finish(slow).claude_denial().unwrap();
    assert!(denial.contains("the old daemon answers"), "{denial}");
    eventually_ended(old);
}

#[test]
fn many_shims_start_one_daemon() {
    let stage = HostStage::new();
    let shims: Vec<_> = (0..30)
        .map(|number| {
            let event = stage.claude_call(&format!("s{number}"), "ls").to_string();
            stage.start("claude-code", "PreToolUse", event.as_bytes())
        })
        .collect();
    for shim in shims {
        assert!(finish(shim).is_silent());
    }
    assert_eq!(stage.status().events, 30);
}

#[test]
fn an_idle_daemon_ends_and_removes_its_socket() {
    let stage = HostStage::new();
    let mut daemon = stage.command(stage.path("bin/tenterhook"));
    let status = daemon
        .args([
            "daemon",
            "--foreground",
            "--no-journal",
            "--idle-exit",
            "1s",
        ])
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(!stage.place().socket.exists());
}
