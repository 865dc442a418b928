//! Processes that outlive the child, with and without its pipes.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tenterhook_process::{Command, End, HeldPipe, Limits, Program};

use crate::support::{
    alive_in_group, eventually, group_is_gone, patient, pid_in, processes, run, sh,
};

const SECOND: Duration = Duration::from_secs(1);

fn limits(held_pipe: HeldPipe) -> Limits {
    Limits {
        held_pipe,
        ..patient()
    }
}

#[tokio::test]
async fn the_child_leads_its_own_group() {
    let command = Command::new(Program::exec(["cat", "/proc/self/stat"]));
    let finished = run(&command, b"", &patient()).await;
    let text = finished.stdout.text();
    let fields: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(fields[0], finished.pid.to_string());
    assert_eq!(fields[4], finished.pid.to_string());
}

#[tokio::test]
async fn a_background_process_without_the_pipes_is_killed_after_the_exit() {
    let start = Instant::now();
    let line = "sleep 300 >/dev/null 2>&1 & exit 5";
    let finished = run(&sh(line), b"", &patient()).await;
    assert_eq!(finished.end, End::Exited(5));
    assert!(!finished.is_pipe_held);
    assert!(start.elapsed() < 10 * SECOND);
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn waiting_for_a_held_pipe_ends_at_the_deadline() {
    let limits = Limits {
        timeout: SECOND / 2,
        ..limits(HeldPipe::Wait)
    };
    let finished = run(&sh("sleep 300 & echo done"), b"", &limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
    assert_eq!(finished.stdout.text(), "done\n");
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn waiting_for_a_held_pipe_takes_what_is_still_written() {
    let line = "(sleep 0.2; echo late) & echo early";
    let finished = run(&sh(line), b"", &limits(HeldPipe::Wait)).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.text(), "early\nlate\n");
}

#[tokio::test]
async fn draining_returns_what_is_there_and_kills_the_rest() {
    let start = Instant::now();
    let limits = limits(HeldPipe::Drain(SECOND / 10));
    let finished = run(&sh("sleep 300 & echo done; exit 6"), b"", &limits).await;
    assert_eq!(finished.end, End::Exited(6));
    assert_eq!(finished.stdout.text(), "done\n");
    assert!(finished.is_pipe_held);
    assert!(start.elapsed() < 10 * SECOND);
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn draining_ends_early_when_the_pipes_are_closed() {
    let start = Instant::now();
    let limits = limits(HeldPipe::Drain(15 * SECOND));
    let finished = run(&sh("(sleep 0.1; echo late) & echo early"), b"", &limits).await;
    assert_eq!(finished.end, End::Exited(0));
    assert_eq!(finished.stdout.text(), "early\nlate\n");
    assert!(!finished.is_pipe_held);
    assert!(start.elapsed() < 10 * SECOND);
}

#[tokio::test]
async fn draining_ends_at_the_deadline() {
    let limits = Limits {
        timeout: SECOND / 2,
        ..limits(HeldPipe::Drain(300 * SECOND))
    };
    let finished = run(&sh("sleep 300 & echo done"), b"", &limits).await;
    assert_eq!(finished.end, End::Exited(0));
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn releasing_leaves_a_background_process_alive() {
    for line in [
        "sleep 300 & echo done",
        "sleep 300 >/dev/null 2>&1 & echo done",
    ] {
        let limits = limits(HeldPipe::Release(SECOND / 10));
        let finished = run(&sh(line), b"", &limits).await;
        assert_eq!(finished.end, End::Exited(0));
        assert_eq!(finished.stdout.text(), "done\n");
        assert_eq!(alive_in_group(finished.pid).len(), 1);
        let group = Pid::from_raw(i32::try_from(finished.pid).unwrap()).unwrap();
        kill_process_group(group, Signal::KILL).unwrap();
        group_is_gone(finished.pid).await;
    }
}

#[tokio::test]
async fn releasing_still_kills_the_group_at_the_deadline() {
    let limits = Limits {
        timeout: SECOND / 2,
        ..limits(HeldPipe::Release(SECOND / 10))
    };
    let finished = run(&sh("sleep 300 & sleep 300"), b"", &limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn a_daemon_that_took_the_pipe_cannot_hold_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let limits = Limits {
        timeout: 2 * SECOND,
        grace: SECOND / 10,
        ..limits(HeldPipe::Wait)
    };
    // Its parent has ended too, so nothing shows where it comes from.
    let line = "setsid -f sh -c 'echo $$ > pid; exec sleep 300'; sleep 300; true";
    let command = sh(line).working_dir(dir.path().to_path_buf());
    let finished = run(&command, b"", &limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: true });
    assert!(finished.is_pipe_held);
    assert!(start.elapsed() < 60 * SECOND);
    let escaped = fs::read_to_string(dir.path().join("pid")).unwrap();
    let escaped = Pid::from_raw(escaped.trim().parse().unwrap()).unwrap();
    kill_process_group(escaped, Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_process_that_left_the_group_ends_at_the_deadline() {
    for (starter, trap, killed) in [
        ("timeout 300", "", false),
        ("setsid", "", false),
        ("setsid", "trap \"\" TERM; ", true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            timeout: SECOND,
            grace: SECOND / 10,
            ..limits(HeldPipe::Wait)
        };
        let line = format!("{starter} sh -c '{trap}echo $$ > pid; sleep 300; true'; true");
        let command = sh(&line).working_dir(dir.path().to_path_buf());
        let finished = run(&command, b"", &limits).await;
        assert_eq!(finished.end, End::TimedOut { killed }, "{line}");
        assert!(!finished.is_pipe_held, "{line}");
        let pid = pid_in(&dir.path().join("pid")).await;
        group_is_gone(pid).await;
        group_is_gone(finished.pid).await;
    }
}

#[tokio::test]
async fn a_process_that_left_the_group_ends_with_a_dropped_run() {
    let dir = tempfile::tempdir().unwrap();
    let line = "timeout 300 sh -c 'echo $$ > pid; sleep 300; true'; true";
    let command = sh(line).working_dir(dir.path().to_path_buf());
    let pid_file = dir.path().join("pid");
    let limits = patient();
    let pid = tokio::select! {
        pid = pid_in(&pid_file) => pid,
        finished = run(&command, b"", &limits) => panic!("{finished:?}"),
    };
    eventually(|| {
        processes()
            .iter()
            .all(|one| one.pid != pid || one.state == 'Z')
            .then_some(())
    })
    .await;
}
