//! Nothing stays behind in this process: no descriptor, no zombie, no thread.

use std::fs;
use std::time::Duration;

use tenterhook_process::{CancellationToken, Command, Program};

use crate::support::{
    eventually, is_alone, is_guard, patient, processes, run, sh, try_run, within,
};

#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    descriptors: usize,
    threads: usize,
    children: usize,
}

impl Belongings {
    fn count() -> Self {
        let entries = |path: &str| fs::read_dir(path).unwrap().count();
        let me = std::process::id();
        Self {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            children: processes()
                .iter()
                // The guard stays, because there is one for the whole process.
                .filter(|process| process.parent == me && !is_guard(process.pid))
                .count(),
        }
    }
}

#[tokio::test]
async fn two_hundred_runs_of_every_kind_leave_nothing_behind() {
    let name = "leftovers::two_hundred_runs_of_every_kind_leave_nothing_behind";
    if !is_alone(name, 256) {
        return;
    }
    let quick = within(Duration::from_millis(20), Duration::from_millis(20));
    let large = vec![b'x'; 1024 * 1024];
    let every_kind = async |rounds: usize| {
        for _ in 0..rounds {
            run(&Command::new(Program::exec(["cat"])), b"hello", &patient()).await;
            run(&sh("sleep 300 & exit 3"), b"", &quick).await;
            run(&sh("trap '' TERM; sleep 300; :"), &large, &quick).await;
            try_run(&sh("no-such-check"), b"", &patient())
                .await
                .unwrap_err();
            let (dropped, cancel) = (sh("sleep 300; :"), CancellationToken::new());
            tokio::select! {
                biased;
                finished = dropped.run(&large, &quick, &cancel) => panic!("{finished:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    };
    every_kind(2).await;
    let settled = async || {
        // A killed child of a dropped run is reaped a moment later.
        eventually(|| (Belongings::count().children == 0).then_some(())).await;
        eventually(|| (Belongings::count().threads <= 2).then_some(())).await;
        Belongings::count()
    };
    let before = settled().await;
    every_kind(40).await;
    assert_eq!(settled().await, before);
}
