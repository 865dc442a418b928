//! How a run ends: by itself, at the deadline, by cancellation, by being dropped.

use std::time::{Duration, Instant};

use tenterhook_process::{CancellationToken, End, HeldPipe, Limits};

use crate::support::{eventually, group_is_gone, patient, pid_in, processes, run, sh, within};

const SECOND: Duration = Duration::from_secs(1);

/// How much longer a run with a limit may take on a busy machine. Commands that must be ended run much longer.
const SLACK: Duration = Duration::from_secs(200);

#[tokio::test]
async fn the_status_is_reported() {
    for status in [0, 1, 2, 127, 255] {
        let finished = run(&sh(&format!("exit {status}")), b"", &patient()).await;
        assert_eq!(finished.end, End::Exited(status));
    }
}

#[tokio::test]
async fn a_death_by_signal_is_reported() {
    for (name, number) in [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("PIPE", 13)] {
        let finished = run(&sh(&format!("kill -{name} $$")), b"", &patient()).await;
        assert_eq!(finished.end, End::Signaled(number));
    }
}

#[tokio::test]
async fn output_closed_long_before_the_exit_does_not_end_the_run() {
    for held_pipe in [
        HeldPipe::Wait,
        HeldPipe::Drain(SECOND),
        HeldPipe::Release(SECOND),
    ] {
        let limits = Limits {
            held_pipe,
            ..patient()
        };
        let finished = run(&sh("exec >&- 2>&-; sleep 0.2; exit 7"), b"", &limits).await;
        assert_eq!(finished.end, End::Exited(7));
        assert!(finished.duration >= Duration::from_millis(200));
    }
}

#[tokio::test]
async fn the_deadline_stops_a_whole_group_that_obeys() {
    let start = Instant::now();
    let line = "echo begun; sleep 300 & sleep 300";
    let finished = run(&sh(line), b"", &within(SECOND, 20 * SECOND)).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
    assert_eq!(finished.stdout.text(), "begun\n");
    assert!(start.elapsed() >= SECOND);
    assert!(start.elapsed() < SECOND + SLACK, "{:?}", start.elapsed());
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn the_deadline_kills_a_group_that_ignores_the_request() {
    let start = Instant::now();
    let line = "trap '' TERM; sleep 300 & sleep 300";
    let finished = run(&sh(line), b"", &within(SECOND, SECOND / 2)).await;
    assert_eq!(finished.end, End::TimedOut { killed: true });
    assert!(start.elapsed() >= SECOND * 3 / 2);
    assert!(start.elapsed() < SECOND * 3 / 2 + SLACK);
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn a_grace_of_zero_kills_at_once() {
    let limits = within(Duration::from_millis(100), Duration::ZERO);
    let finished = run(&sh("sleep 300; :"), b"", &limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: true });
}

#[tokio::test]
async fn the_grace_period_lets_a_child_clean_up() {
    let line = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let finished = run(&sh(line), b"", &within(SECOND, 20 * SECOND)).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
    assert_eq!(finished.stdout.text(), "ready\ncleaned\n");
}

#[tokio::test]
async fn a_child_that_stops_itself_is_ended_at_the_deadline() {
    let limits = within(SECOND / 2, 20 * SECOND);
    let finished = run(&sh("kill -STOP $$; exit 0"), b"", &limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
    group_is_gone(finished.pid).await;
}

#[tokio::test]
async fn a_flood_without_end_is_stopped_at_the_deadline() {
    let start = Instant::now();
    let limits = within(SECOND / 2, SECOND);
    let finished = run(&sh("cat /dev/zero; :"), b"", &limits).await;
    assert!(matches!(finished.end, End::TimedOut { .. }));
    assert!(start.elapsed() < SECOND / 2 + SLACK);
    assert!(finished.stdout.is_cut());
}

#[tokio::test]
async fn the_deadline_covers_an_input_that_nobody_reads() {
    let payload = vec![b'x'; 4 * 1024 * 1024];
    let limits = within(SECOND / 4, SECOND);
    let finished = run(&sh("sleep 300; :"), &payload, &limits).await;
    assert_eq!(finished.end, End::TimedOut { killed: false });
}

#[tokio::test]
async fn cancelling_stops_the_group() {
    let dir = tempfile::tempdir().unwrap();
    let line = "trap '' TERM; sleep 300 & echo $$ > pid; wait";
    let command = sh(line).working_dir(dir.path().to_path_buf());
    let cancel = CancellationToken::new();
    let limits = within(20 * SECOND, SECOND / 10);
    let (finished, pid) = tokio::join!(command.run(b"", &limits, &cancel), async {
        let pid = pid_in(&dir.path().join("pid")).await;
        cancel.cancel();
        pid
    });
    let finished = finished.unwrap();
    assert_eq!(finished.end, End::Cancelled { killed: true });
    assert_eq!(finished.pid, pid);
    group_is_gone(pid).await;
}

#[tokio::test]
async fn cancelling_asks_politely_first() {
    let dir = tempfile::tempdir().unwrap();
    let command = sh("echo $$ > pid; sleep 300; :").working_dir(dir.path().to_path_buf());
    let cancel = CancellationToken::new();
    let limits = within(20 * SECOND, 20 * SECOND);
    let (finished, ()) = tokio::join!(command.run(b"", &limits, &cancel), async {
        pid_in(&dir.path().join("pid")).await;
        cancel.cancel();
    });
    assert_eq!(finished.unwrap().end, End::Cancelled { killed: false });
}

#[tokio::test]
async fn dropping_the_run_kills_the_group_and_reaps_the_child() {
    for held_pipe in [HeldPipe::Wait, HeldPipe::Release(SECOND)] {
        let dir = tempfile::tempdir().unwrap();
        let line = "trap '' TERM; sleep 300 & echo $$ > pid; wait";
        let command = sh(line).working_dir(dir.path().to_path_buf());
        let limits = Limits {
            held_pipe,
            ..patient()
        };
        let cancel = CancellationToken::new();
        let pid_file = dir.path().join("pid");
        let pid = tokio::select! {
            pid = pid_in(&pid_file) => pid,
            finished = command.run(b"", &limits, &cancel) => panic!("{finished:?}"),
        };
        group_is_gone(pid).await;
        let is_reaped = || processes().iter().all(|process| process.pid != pid);
        eventually(|| is_reaped().then_some(())).await;
    }
}
