//! Companions, and their end when their owner drops them.

use std::path::Path;

use tenterhook_process::Companion;

use crate::support::{group_is_gone, pid_in, sh};

/// Writes its process id, starts a child, and never reads its input.
fn deaf(dir: &Path) -> String {
    let pid = dir.join("pid");
    let pid = pid.display();
    format!(
        "trap '' TERM; sleep 300 & echo $$ > '{pid}.new'; mv '{pid}.new' '{pid}'; while :; do sleep 300; done"
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
