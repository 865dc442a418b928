//! Instances that are started ahead of time, and answers before the exit.

use std::fs;
use std::time::Duration;

use tenterhook_process::{
    CancellationToken, Command, End, Finished, Limits, MAX_WAITING, Prewarmed, WarmCounts,
};

use crate::support::{
    alive_in_group, eventually, file, group_is_gone, patient, pid_in, run, sh, within,
};

/// Waits until an instance is waiting. Other tests may use all places for a while.
async fn ready(warm: &Prewarmed, command: &Command) {
    eventually(|| {
        warm.arm(command);
        warm.is_ready().then_some(())
    })
    .await;
}

async fn run_warm(warm: &Prewarmed, command: &Command, stdin: &[u8], limits: &Limits) -> Finished {
    let cancel = CancellationToken::new();
    warm.run(command, stdin, limits, &cancel).await.unwrap()
}

const WARM: WarmCounts = WarmCounts { warm: 1, cold: 0 };
const COLD: WarmCounts = WarmCounts { warm: 0, cold: 1 };

#[tokio::test]
async fn a_waiting_instance_ends_like_a_fresh_one() {
    let dir = tempfile::tempdir().unwrap();
    let large = vec![b'x'; 1 << 20];
    let short = within(Duration::from_millis(300), Duration::from_millis(100));
    for (line, stdin, limits) in [
        ("read line; echo \"got $line\"", &b"hello\n"[..], patient()),
        ("cat >/dev/null; exit 2", b"x", patient()),
        ("cat >/dev/null; echo no >&2; exit 1", b"x", patient()),
        ("cat >/dev/null; kill -9 $$", b"x", patient()),
        ("echo early; cat", b"late", patient()),
        ("cat | wc -c", &large, patient()),
        ("read line; head -c 3000000 /dev/zero", b"x\n", patient()),
        ("exec 0<&-; read line < wait; echo deaf", b"x", patient()),
        ("cat >/dev/null; sleep 300", b"x", short),
        (
            "cat >/dev/null; trap '' TERM; sleep 300 & sleep 300",
            b"x",
            short,
        ),
        ("read line; sleep 300 & echo held", b"x\n", short),
        ("cat", b"", patient()),
    ] {
        let command = sh(line).working_dir(dir.path().to_owned());
        // A script that does not read its input waits for this instead.
        let fifo = dir.path().join("wait");
        fs::remove_file(&fifo).ok();
        assert_eq!(
            run(
                &sh("mkfifo wait").working_dir(dir.path().to_owned()),
                b"",
                &patient()
            )
            .await
            .end,
            End::Exited(0)
        );
        let open = || {
            let fifo = fifo.clone();
            std::thread::spawn(move || fs::write(fifo, "go\n"))
        };
        let is_deaf = line.contains("wait");
        let writer = is_deaf.then(open);
        let cold = run(&command, stdin, &limits).await;
        drop(writer);
        let warm = Prewarmed::new();
        ready(&warm, &command).await;
        let writer = is_deaf.then(open);
        let warmed = run_warm(&warm, &command, stdin, &limits).await;
        drop(writer);
        assert_eq!(warm.counts(), WARM, "{line}");
        assert_eq!(warmed.end, cold.end, "{line}");
        assert_eq!(
            (&warmed.stdout, &warmed.stderr),
            (&cold.stdout, &cold.stderr),
            "{line}"
        );
        assert_eq!(warmed.is_pipe_held, cold.is_pipe_held, "{line}");
        group_is_gone(warmed.pid).await;
    }
}

#[tokio::test]
async fn the_next_instance_is_there_after_a_run_and_each_is_used_once() {
    let command = sh("cat; echo $$");
    let warm = Prewarmed::new();
    let mut pids = Vec::new();
    for _ in 0..3 {
        ready(&warm, &command).await;
        pids.push(warm.waiting_pid().unwrap());
        let finished = run_warm(&warm, &command, b"", &patient()).await;
        assert_eq!(Some(&finished.pid), pids.last());
    }
    pids.dedup();
    assert_eq!(pids.len(), 3);
    assert_eq!(warm.counts().warm, 3);
}

#[tokio::test]
async fn an_instance_that_died_is_not_used() {
    let command = sh("read line; echo \"got $line\"");
    let warm = Prewarmed::new();
    ready(&warm, &command).await;
    let pid = warm.waiting_pid().unwrap();
    run(&sh(&format!("kill -9 {pid}")), b"", &patient()).await;
    eventually(|| alive_in_group(pid).is_empty().then_some(())).await;
    let finished = run_warm(&warm, &command, b"x\n", &patient()).await;
    assert_eq!(
        (finished.end, finished.stdout.text().as_ref()),
        (End::Exited(0), "got x\n")
    );
    assert_eq!(warm.counts(), COLD);
}

#[tokio::test]
async fn an_instance_for_another_place_or_of_another_version_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let script = file(
        dir.path(),
        "hook.sh",
        "cat >/dev/null; echo one; pwd\n",
        0o644,
    );
    let command = Command::new(tenterhook_process::Program::exec(["sh", "hook.sh"]));
    let here = command.placed(dir.path());
    let warm = Prewarmed::new();
    ready(&warm, &here).await;
    fs::copy(&script, elsewhere.path().join("hook.sh")).unwrap();
    let finished = run_warm(&warm, &command.placed(elsewhere.path()), b"x", &patient()).await;
    let folder = elsewhere.path().canonicalize().unwrap();
    assert_eq!(
        finished.stdout.text(),
        format!("one\n{}\n", folder.display())
    );
    assert_eq!(warm.counts(), COLD);
    ready(&warm, &here).await;
    fs::write(&script, "cat >/dev/null; echo two\n").unwrap();
    let finished = run_warm(&warm, &here, b"x", &patient()).await;
    assert_eq!(finished.stdout.text(), "two\n");
    assert_eq!(warm.counts(), WarmCounts { warm: 0, cold: 2 });
}

#[tokio::test]
async fn a_command_that_does_not_wait_is_started_ahead_three_times_only() {
    let dir = tempfile::tempdir().unwrap();
    let command = sh("echo started >> log").working_dir(dir.path().to_owned());
    let warm = Prewarmed::new();
    let starts = || {
        fs::read_to_string(dir.path().join("log"))
            .unwrap_or_default()
            .lines()
            .count()
    };
    for round in 0..3 {
        ready(&warm, &command).await;
        eventually(|| (starts() > round * 2).then_some(())).await;
        let pid = warm.waiting_pid().unwrap();
        eventually(|| alive_in_group(pid).is_empty().then_some(())).await;
        assert_eq!(
            run_warm(&warm, &command, b"x", &patient()).await.end,
            End::Exited(0)
        );
    }
    warm.arm(&command);
    assert!(!warm.is_ready());
    assert_eq!(starts(), 6);
}

#[tokio::test]
async fn whoever_drops_it_ends_the_instance_with_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let command = sh("sleep 300 & echo $! > pid; cat").working_dir(dir.path().to_owned());
    let warm = Prewarmed::new();
    ready(&warm, &command).await;
    pid_in(&dir.path().join("pid")).await;
    let group = warm.waiting_pid().unwrap();
    drop(warm);
    group_is_gone(group).await;
}

#[tokio::test]
async fn no_more_than_a_few_instances_wait() {
    let command = sh("cat");
    let all: Vec<Prewarmed> = (0..MAX_WAITING + 3).map(|_| Prewarmed::new()).collect();
    let is_ready = || all.iter().filter(|warm| warm.is_ready()).count();
    // Other tests of this process have instances too.
    eventually(|| {
        for warm in &all {
            warm.arm(&command);
        }
        (is_ready() >= MAX_WAITING / 2).then_some(())
    })
    .await;
    assert!(is_ready() <= MAX_WAITING);
    for warm in &all {
        let finished = run_warm(warm, &command, b"x", &patient()).await;
        assert_eq!(finished.stdout.text(), "x");
    }
}
