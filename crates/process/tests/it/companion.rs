//! Children that are spoken to, and what is left of them when nobody speaks any more.

use std::fs;
use std::path::Path;

use tenterhook_process::Companion;

use crate::support::{alive_in_group, eventually, group_is_gone, pid_in, sh};

/// The folder of a process that starts a companion and is killed.
const DIR: &str = "TENTERHOOK_INTERNAL__COMPANION";

/// Writes its process id, starts a child, and never looks at its input.
fn deaf(dir: &Path) -> String {
    let pid = dir.join("pid");
    let pid = pid.display();
    format!(
        "trap '' TERM; sleep 300 & echo $$ > {pid}.new; mv {pid}.new {pid}; while :; do sleep 300; done"
    )
}

#[tokio::test]
async fn a_companion_ends_with_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let (companion, _pipes) = Companion::start(&sh(&deaf(dir.path()))).unwrap();
    let pid = pid_in(&dir.path().join("pid")).await;
    assert_eq!(companion.pid(), pid);
    drop(companion);
    group_is_gone(pid).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_companion_when_its_owner_is_killed() {
    if let Some(dir) = std::env::var_os(DIR) {
        // Here is the owner, which is killed while it waits.
        let _companion = Companion::start(&sh(&deaf(Path::new(&dir)))).unwrap();
        std::future::pending::<()>().await;
    }
    let dir = tempfile::tempdir().unwrap();
    let test = "companion::nothing_is_left_of_a_companion_when_its_owner_is_killed";
    let mut owner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(DIR, dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let group = pid_in(&dir.path().join("pid")).await;
    // The child, what it has started, and the guard.
    eventually(|| (alive_in_group(group).len() == 4).then_some(())).await;
    owner.kill().unwrap();
    owner.wait().unwrap();
    group_is_gone(group).await;
    assert!(fs::exists(dir.path().join("pid")).unwrap());
}
