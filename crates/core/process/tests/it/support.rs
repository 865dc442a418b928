//! Helpers for several modules: commands, waiting, and information about processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenterhook_process::{CancellationToken, Command, Finished, Limits, Program, SpawnError};

/// How long an expected event may take. A busy machine must not be what ends a test.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

/// The variable that marks a process that runs one test alone.
const ALONE: &str = "TENTERHOOK_INTERNAL__ALONE";

pub(crate) fn sh(line: &str) -> Command {
    Command::new(Program::shell(line))
}

/// Limits that only a hanging child reaches.
pub(crate) fn patient() -> Limits {
    Limits {
        timeout: PATIENCE,
        ..Limits::default()
    }
}

pub(crate) fn within(timeout: Duration, grace: Duration) -> Limits {
    Limits {
        timeout,
        grace,
        ..Limits::default()
    }
}

pub(crate) async fn run(command: &Command, stdin: &[u8], limits: &Limits) -> Finished {
    try_run(command, stdin, limits).await.unwrap()
}

pub(crate) async fn try_run(
    command: &Command,
    stdin: &[u8],
    limits: &Limits,
) -> Result<Finished, SpawnError> {
    command.run(stdin, limits, &CancellationToken::new()).await
}

/// Writes a file with this mode and returns its path.
pub(crate) fn file(dir: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Waits until `condition` returns a value.
pub(crate) async fn eventually<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it never happened");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits for a whole line with a process id in a file.
pub(crate) async fn pid_in(path: &Path) -> u32 {
    eventually(|| {
        fs::read_to_string(path)
            .ok()?
            .strip_suffix('\n')?
            .parse()
            .ok()
    })
    .await
}

/// Waits until nothing of a group is alive.
pub(crate) async fn group_is_gone(group: u32) {
    eventually(|| alive_in_group(group).is_empty().then_some(())).await;
}

/// Returns the processes of a group that are not dead.
pub(crate) fn alive_in_group(group: u32) -> Vec<u32> {
    let all = processes().into_iter();
    all.filter(|process| process.group == group && process.state != 'Z')
        .map(|process| process.pid)
        .collect()
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: u32,
}

/// Returns every process of the system.
pub(crate) fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| process(&entry.ok()?.path()))
        .collect()
}

/// Returns whether a process is the guard of a test process.
pub(crate) fn is_guard(pid: u32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.ends_with(b"\0tenterhook-guard\0")
}

/// Returns the guard of a process, once it has one.
pub(crate) async fn guard_of(owner: u32) -> u32 {
    eventually(|| {
        let children = processes()
            .into_iter()
            .filter(|process| process.parent == owner);
        let mut pids = children.map(|process| process.pid);
        pids.find(|pid| is_guard(*pid))
    })
    .await
}

fn process(dir: &Path) -> Option<Process> {
    let pid = dir.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(dir.join("stat")).ok()?;
    // The name in parentheses may contain anything, even parentheses.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some(Process {
        pid,
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
    })
}

/// Runs the test of this name in a separate process, with a limited number of descriptors. Returns
/// whether this is that process.
pub(crate) fn is_alone(test: &str, descriptors: u32) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let output = std::process::Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("ulimit -n {descriptors}; exec \"$0\" \"$@\""))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    assert!(printed.contains("1 passed"), "{printed}");
    false
}
