//! No children are left when the process that started them ends or is killed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tenterhook_process::{CancellationToken, Companion, HeldPipe, Limits, Prewarmed};

use crate::support::{
    alive_in_group, eventually, guard_of, is_alone, patient, pid_in, processes, run, sh,
};

/// The folder of a process that starts children and is killed or ends.
const DIR: &str = "TENTERHOOK_INTERNAL__OWNER";

/// How a child of the owner is started, and the files to which process ids are written.
const KINDS: [(&str, &[&str]); 6] = [
    ("command", &["command.pid", "command.child.pid"]),
    ("released", &["released.pid"]),
    ("timeout", &["timeout.pid", "timeout.child.pid"]),
    ("setsid", &["setsid.pid", "setsid.child.pid"]),
    ("prewarmed", &["prewarmed.pid", "prewarmed.child.pid"]),
    ("companion", &["companion.pid", "companion.child.pid"]),
];

/// A line that writes its process id and the id of a child in the background, and never ends.
fn endless(name: &str) -> String {
    format!(
        "trap '' TERM; sleep 300 & {}; {}; while :; do sleep 300; done",
        note("$!", &format!("{name}.child")),
        note("$$", name)
    )
}

/// Writes a process id in one piece.
fn note(pid: &str, name: &str) -> String {
    format!("echo {pid} > {name}.new; mv {name}.new {name}.pid")
}

/// Starts a child of a kind and continues while it lives.
async fn start(kind: &str, dir: &Path) {
    let cancel = CancellationToken::new();
    let placed = |line: &str| sh(line).working_dir(dir.to_owned());
    let limits = Limits {
        timeout: Duration::from_mins(5),
        ..patient()
    };
    match kind {
        "command" => drop(placed(&endless(kind)).run(b"", &limits, &cancel).await),
        // Its leader has ended and was reaped.
        "released" => {
            let limits = Limits {
                held_pipe: HeldPipe::Release(Duration::from_millis(100)),
                ..limits
            };
            let line = format!("sleep 300 & {}", note("$!", kind));
            placed(&line).run(b"", &limits, &cancel).await.unwrap();
        }
        // `timeout` and `setsid` leave the group of the shell that starts them.
        "timeout" | "setsid" => {
            fs::write(dir.join(kind), endless(kind)).unwrap();
            let prefix = if kind == "timeout" {
                "timeout 300"
            } else {
                "setsid"
            };
            let line = format!("{prefix} sh ./{kind}; true");
            drop(placed(&line).run(b"", &limits, &cancel).await);
        }
        "prewarmed" => {
            let warm = Prewarmed::new();
            warm.arm(&placed(&endless(kind)));
            std::future::pending::<()>().await;
        }
        "companion" => {
            let _companion = Companion::start(&placed(&endless(kind))).unwrap();
            std::future::pending::<()>().await;
        }
        _ => unreachable!("{kind}"),
    }
}

/// Runs as the owner: starts a child of every kind and waits to be killed.
async fn own(dir: &Path) -> ! {
    for (kind, _) in KINDS {
        let dir = dir.to_owned();
        tokio::spawn(async move { start(kind, &dir).await });
    }
    std::future::pending().await
}

#[tokio::test]
async fn after_kill_9_nothing_that_was_started_is_alive() {
    if let Some(dir) = std::env::var_os(DIR) {
        own(Path::new(&dir)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "guard::after_kill_9_nothing_that_was_started_is_alive";
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(DIR, dir.path())
        .spawn()
        .unwrap();
    let mut pids = Vec::new();
    for name in KINDS.iter().flat_map(|(_, names)| *names) {
        pids.push((*name, pid_in(&dir.path().join(name)).await));
    }
    let guard = guard_of(owner.id()).await;
    let mut watched: Vec<_> = pids.iter().map(|(_, pid)| *pid).chain([guard]).collect();
    let groups: Vec<_> = processes()
        .into_iter()
        .filter(|process| watched.contains(&process.pid))
        .map(|process| process.group)
        .collect();
    let alive = alive(&watched);
    assert_eq!(alive, watched, "{pids:?}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually(|| {
        watched.retain(|pid| !self::alive(&[*pid]).is_empty());
        watched.is_empty().then_some(())
    })
    .await;
    for group in groups {
        assert_eq!(alive_in_group(group), [0; 0], "{pids:?}");
    }
}

/// Returns the processes that are alive.
fn alive(pids: &[u32]) -> Vec<u32> {
    let all = processes();
    let is_alive = |pid: &&u32| all.iter().any(|one| one.pid == **pid && one.state != 'Z');
    pids.iter().filter(is_alive).copied().collect()
}

#[test]
fn no_child_inherits_the_pipe_or_the_table_of_the_guard() {
    let name = "guard::no_child_inherits_the_pipe_or_the_table_of_the_guard";
    if !is_alone(name, 1024) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap();
    // The guard starts with the first of these, while others start too.
    let listings = runtime.block_on(async {
        let list = || async { run(&sh("ls -l /proc/self/fd; true"), b"x", &patient()).await };
        let tasks: Vec<_> = (0..32).map(|_| tokio::spawn(list())).collect();
        let mut listings = Vec::new();
        for task in tasks {
            listings.push(task.await.unwrap().stdout.text().into_owned());
        }
        listings
    });
    let guard = runtime.block_on(guard_of(std::process::id()));
    let pipe = fs::read_link(format!("/proc/{guard}/fd/0")).unwrap();
    let pipe = pipe.to_str().unwrap();
    assert!(pipe.starts_with("pipe:"), "{pipe}");
    for listing in listings {
        assert!(listing.contains(" 1 -> pipe:"), "{listing}");
        assert!(!listing.contains(pipe), "{listing}");
        assert!(!listing.contains("tenterhook-children"), "{listing}");
    }
}

#[test]
fn the_guard_has_a_session_of_its_own_and_holds_no_output_of_its_owner() {
    let name = "guard::the_guard_has_a_session_of_its_own_and_holds_no_output_of_its_owner";
    if !is_alone(name, 1024) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        run(&sh("true"), b"", &patient()).await;
        let guard = guard_of(std::process::id()).await;
        let low_descriptors = || {
            let files = fs::read_dir(format!("/proc/{guard}/fd")).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            // A shell can close no other descriptors. Inherited ones may be among them.
            let mut names: Vec<_> = names.filter(|name| name.len() == 1).collect();
            names.sort();
            names
        };
        // The guard is first `setsid`, then the shell, which closes the inherited descriptors.
        eventually(|| {
            let stat = fs::read_to_string(format!("/proc/{guard}/stat")).unwrap();
            let session = stat.rsplit_once(')').unwrap().1.split(' ').nth(4).unwrap();
            let is_alone = session == guard.to_string() && low_descriptors() == ["0", "1", "2"];
            is_alone.then_some(())
        })
        .await;
        let file = |descriptor: u32| {
            let link = fs::read_link(format!("/proc/{guard}/fd/{descriptor}")).unwrap();
            link.display().to_string()
        };
        assert!(file(0).starts_with("pipe:"), "{}", file(0));
        assert!(
            file(1).starts_with("/memfd:tenterhook-children"),
            "{}",
            file(1)
        );
        assert_eq!(file(2), "/dev/null");
    });
}
