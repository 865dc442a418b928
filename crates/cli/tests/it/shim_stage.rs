//! Runs the shim as a coding agent does, with a daemon in the folders of the test.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_shim::environment::UserFolders;
use tenterhook_shim::place::DaemonPlace;

use crate::search_path::search_path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenterhook");
const SHIM: &str = env!("CARGO_BIN_EXE_tenterhook-shim");

/// A user with a home folder, a project, the shim and a daemon.
pub(crate) struct HostStage {
    folder: TempDir,
    variables: Vec<(String, String)>,
    /// The path of the shim in the configuration of the agent.
    shim: PathBuf,
    /// How many tool calls there were. Each has an id of its own.
    calls: AtomicU32,
}

/// What the shim printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShimOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) status: i32,
}

impl ShimOutput {
    /// Returns the reason of Claude Code's denial, or `None` if the shim did not deny.
    pub(crate) fn claude_denial(&self) -> Option<String> {
        let answer: Value = serde_json::from_str(&self.stdout).ok()?;
        let specific = &answer["hookSpecificOutput"];
        let is_deny = self.status == 0
            && specific["hookEventName"] == "PreToolUse"
            && specific["permissionDecision"] == "deny";
        is_deny.then(|| {
            specific["permissionDecisionReason"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    }

    /// Returns whether the shim has no opinion.
    pub(crate) fn is_silent(&self) -> bool {
        (self.stdout.as_str(), self.stderr.as_str(), self.status) == ("", "", 0)
    }
}

impl HostStage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "home", "config/hooks.d", "run", "bin"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let stage = Self {
            shim: folder.path().join("bin/tenterhook-shim"),
            folder,
            variables: Vec::new(),
            calls: AtomicU32::new(0),
        };
        // As `tenterhook install` does it, but without writing the shim: a file cannot be run while a child of another
        // test has it open for writing.
        let shim = stage.path("bin/tenterhook-shim");
        fs::hard_link(SHIM, &shim)
            .or_else(|_| fs::copy(SHIM, &shim).map(drop))
            .unwrap();
        symlink(PROGRAM, stage.path("bin/tenterhook")).unwrap();
        stage
    }

    /// Lets the agent start the shim that `tenterhook install` put into the data folder.
    pub(crate) fn with_installed_shim(mut self) -> Self {
        fs::remove_dir_all(self.path("bin")).unwrap();
        self.shim = self.path("home/.local/share/tenterhook/bin/tenterhook-shim");
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, which is executable.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes the user's hook file.
    pub(crate) fn hooks(self, text: &str) -> Self {
        self.write("config/hooks.d/hooks.yaml", text);
        self
    }

    pub(crate) fn place(&self) -> DaemonPlace {
        let folders = UserFolders {
            home: self.path("home"),
            config: self.path("config"),
            data: self.path("home/.local/share/tenterhook"),
            state: self.path("home/.local/state/tenterhook"),
        };
        DaemonPlace::in_folder(self.path("run/tenterhook"), &folders)
    }

    /// Creates a command in the environment of the test.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", self.path("home"))
            .env("TENTERHOOK_CONFIG_DIR", self.path("config"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .envs(self.variables.clone());
        command
    }

    /// Starts the shim and sends it an event.
    pub(crate) fn start(&self, host: &str, event: &str, input: &[u8]) -> Child {
        let mut command = self.command(&self.shim);
        let mut child = command
            .args([host, event])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A shim that refuses the event does not read all of it.
        child.stdin.take().unwrap().write_all(input).ok();
        child
    }

    /// Sends an event of a host.
    pub(crate) fn send(&self, host: &str, event: &str, input: &Value) -> ShimOutput {
        finish(self.start(host, event, input.to_string().as_bytes()))
    }

    /// Sends Claude Code's event before a shell command.
    pub(crate) fn claude(&self, session: &str, cmd: &str) -> ShimOutput {
        self.send("claude-code", "PreToolUse", &self.claude_call(session, cmd))
    }

    pub(crate) fn claude_call(&self, session: &str, cmd: &str) -> Value {
        json!({
            "session_id": session,
            "cwd": self.path("work"),
            "hook_event_name": "PreToolUse",
            "permission_mode": "default",
            "tool_name": "Bash",
            "tool_input": {"command": cmd},
            "tool_use_id": format!("toolu_{}", self.calls.fetch_add(1, Ordering::Relaxed)),
        })
    }

    pub(crate) fn claude_start(&self, session: &str) -> Value {
        json!({
            "session_id": session,
            "cwd": self.path("work"),
            "hook_event_name": "SessionStart",
            "source": "startup",
        })
    }

    /// Runs a command of the program, and returns its status and output.
    pub(crate) fn tenterhook(&self, args: &[&str]) -> ShimOutput {
        self.run(PROGRAM, args)
    }

    /// Runs a command of another copy of the program.
    pub(crate) fn run(&self, program: impl AsRef<Path>, args: &[&str]) -> ShimOutput {
        let mut command = self.command(program);
        let output = command.args(args).stdin(Stdio::null()).output();
        of_output(output.unwrap())
    }

    /// Starts a daemon if none runs, and returns its process id.
    pub(crate) fn daemon(&self) -> u32 {
        let shown = self.tenterhook(&["daemon", "--json"]);
        let status: Value = serde_json::from_str(&shown.stdout)
            .unwrap_or_else(|error| panic!("{error}: {shown:?}"));
        u32::try_from(status["process"].as_u64().unwrap()).unwrap()
    }

    pub(crate) fn status(&self) -> tenterhook_daemon::DaemonStatus {
        tenterhook_daemon::query(&self.place()).unwrap().unwrap()
    }

    /// Returns the records of all journals.
    pub(crate) fn journal(&self) -> String {
        let folder = self.path("home/.local/state/tenterhook/journal");
        let files = fs::read_dir(folder).into_iter().flatten();
        files
            .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
            .collect()
    }
}

impl Drop for HostStage {
    fn drop(&mut self) {
        let Ok(Some(status)) = tenterhook_daemon::query(&self.place()) else {
            return;
        };
        kill("TERM", status.process);
        if !ends(status.process) {
            kill("KILL", status.process);
        }
    }
}

/// Sends a signal. In a Turkish locale, `kill` of procps does not know `HUP`.
pub(crate) fn kill(signal: &str, process: u32) -> ExitStatus {
    let args = [format!("-{signal}"), process.to_string()];
    let mut kill = Command::new("kill");
    kill.args(args).env("LC_ALL", "C").status().unwrap()
}

/// Waits until a process has ended.
pub(crate) fn eventually_ended(process: u32) {
    if !ends(process) {
        kill("KILL", process);
        panic!("process {process} does not end");
    }
}

/// Returns whether a process ends in time.
fn ends(process: u32) -> bool {
    let end = Instant::now() + Duration::from_mins(1);
    while is_running(process) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    !is_running(process)
}

/// Returns whether a process runs. One that has ended and was not reaped does not.
pub(crate) fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| {
        let after_name = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.trim().to_owned());
        !after_name.is_none_or(|rest| rest.starts_with(['Z', 'X']))
    })
}

/// Waits for the shim to end.
pub(crate) fn finish(shim: Child) -> ShimOutput {
    of_output(shim.wait_with_output().unwrap())
}

fn of_output(output: std::process::Output) -> ShimOutput {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    ShimOutput {
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        status: output.status.code().unwrap_or(-1),
    }
}
