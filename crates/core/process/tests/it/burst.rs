//! Many runs at once, and few descriptors.

use std::fs::{self, File};
use std::time::Duration;

use tenterhook_process::{Command, End, Program, Slots, SpawnError};
use tokio::task::JoinSet;

use crate::support::{is_alone, patient, run, sh, try_run, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_runs_at_once_complete_with_64_descriptors() {
    let name = "burst::a_thousand_runs_at_once_complete_with_64_descriptors";
    if !is_alone(name, 64) {
        return;
    }
    let command = Command::new(Program::exec(["cat"]));
    let mut runs = JoinSet::new();
    for i in 0..1000 {
        let command = command.clone();
        runs.spawn(async move {
            let payload = format!("run {i}");
            let finished = run(&command, payload.as_bytes(), &patient()).await;
            assert_eq!(finished.end, End::Exited(0));
            assert_eq!(finished.stdout.text(), payload);
        });
    }
    assert_eq!(runs.join_all().await.len(), 1000);
    assert_eq!(Slots::shared().available(), Slots::shared().count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_slots_than_descriptors_only_make_runs_wait() {
    let name = "burst::more_slots_than_descriptors_only_make_runs_wait";
    if !is_alone(name, 32) {
        return;
    }
    let command = Command::new(Program::exec(["cat"])).slots(Slots::new(200));
    let mut runs = JoinSet::new();
    for _ in 0..200 {
        let command = command.clone();
        runs.spawn(async move { run(&command, b"hello", &patient()).await });
    }
    for finished in runs.join_all().await {
        assert_eq!(finished.end, End::Exited(0));
        assert_eq!(finished.stdout.text(), "hello");
    }
}

#[tokio::test]
async fn a_run_waits_for_descriptors() {
    if !is_alone("burst::a_run_waits_for_descriptors", 64) {
        return;
    }
    let hogs = hog_descriptors();
    let limits = patient();
    let command = Command::new(Program::exec(["cat"]));
    let (finished, ()) = tokio::join!(run(&command, b"hello", &limits), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(hogs);
    });
    assert_eq!(finished.stdout.text(), "hello");
}

#[tokio::test]
async fn descriptors_that_never_come_are_an_error_at_the_deadline() {
    let name = "burst::descriptors_that_never_come_are_an_error_at_the_deadline";
    if !is_alone(name, 64) {
        return;
    }
    let command = Command::new(Program::exec(["cat"])).slots(Slots::new(1));
    let hogs = hog_descriptors();
    let limits = within(Duration::from_millis(200), Duration::ZERO);
    let error = try_run(&command, b"hello", &limits).await.unwrap_err();
    drop(hogs);
    assert!(matches!(error, SpawnError::Exhausted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_shortage_that_no_other_run_can_end_is_an_error_long_before_the_deadline() {
    let name = "burst::a_shortage_that_no_other_run_can_end_is_an_error_long_before_the_deadline";
    if !is_alone(name, 64) {
        return;
    }
    let command = Command::new(Program::exec(["cat"])).slots(Slots::new(4));
    let hogs = hog_descriptors();
    let limits = within(Duration::from_hours(1), Duration::ZERO);
    let error = try_run(&command, b"hello", &limits).await.unwrap_err();
    drop(hogs);
    assert!(matches!(error, SpawnError::Exhausted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_run_needs_no_descriptor_for_its_exit() {
    let name = "burst::a_run_needs_no_descriptor_for_its_exit";
    if !is_alone(name, 64) {
        return;
    }
    let command = sh("exec >&- 2>&-; sleep 0.2; exit 7").slots(Slots::new(1));
    let limits = patient();
    let run = run(&command, b"", &limits);
    let hogging = async {
        // After the first poll, the child has started.
        let hogs = hog_descriptors();
        tokio::time::sleep(Duration::from_millis(100)).await;
        hogs
    };
    let (finished, _hogs) = tokio::join!(run, hogging);
    assert_eq!(finished.end, End::Exited(7));
}

#[tokio::test]
async fn no_more_children_run_than_there_are_slots() {
    let dir = tempfile::tempdir().unwrap();
    let line = "mkdir run.$$; ls -d run.* | wc -l; sleep 0.05; rmdir run.$$";
    let slots = Slots::new(2);
    let command = sh(line)
        .working_dir(dir.path().to_path_buf())
        .slots(slots.clone());
    let mut runs = JoinSet::new();
    for _ in 0..10 {
        let command = command.clone();
        runs.spawn(async move { run(&command, b"", &patient()).await });
    }
    for finished in runs.join_all().await {
        let at_once: usize = finished.stdout.text().trim().parse().unwrap();
        assert!(at_once <= 2, "{at_once}");
    }
    assert_eq!(slots.available(), 2);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

fn hog_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}
