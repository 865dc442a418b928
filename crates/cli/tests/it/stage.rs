//! Runs the program in its own folder, with only `PATH` from the user's environment.

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::search_path::search_path;
use crate::shim_stage::kill;

/// The time limit for something that must happen.
const PATIENCE: Duration = Duration::from_mins(2);

/// A call of the program.
#[must_use = "nothing happens before `run` or `start`"]
pub(crate) struct Test {
    folder: TempDir,
    args: Vec<String>,
    files: Vec<String>,
    stdin: Option<Vec<u8>>,
    variables: Vec<(String, String)>,
    prefix: Option<String>,
    stdout: Option<String>,
}

impl Test {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "home", "state", "tmp", "config"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self::in_folder(folder)
    }

    /// Creates a call in the folders of another call.
    pub(crate) fn in_folder(folder: TempDir) -> Self {
        Self {
            folder,
            args: Vec::new(),
            files: Vec::new(),
            stdin: None,
            variables: Vec::new(),
            prefix: None,
            stdout: None,
        }
    }

    /// Adds arguments.
    pub(crate) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.args.extend(args.into_iter().map(str::to_owned));
        self
    }

    /// Writes a file into the working directory.
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self
    }

    /// Sets the mode of a file in the working directory or a subfolder.
    pub(crate) fn mode(self, name: &str, mode: u32) -> Self {
        let path = self.work().join(name);
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        self
    }

    /// Writes an executable into the working directory or a subfolder.
    pub(crate) fn executable(self, name: &str, text: &str) -> Self {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        self
    }

    /// Writes `hooks.yaml` and passes it with `--hooks`.
    pub(crate) fn hooks(mut self, text: &str) -> Self {
        self.files.extend(["--hooks".into(), "hooks.yaml".into()]);
        self.file("hooks.yaml", text)
    }

    /// Writes `script.yaml` and passes it with `--model`.
    pub(crate) fn script(mut self, text: &str) -> Self {
        self.files
            .extend(["--model".into(), "scripted:script.yaml".into()]);
        self.file("script.yaml", text)
    }

    /// Writes `event.json` and passes it with `--input`.
    pub(crate) fn event(mut self, text: &str) -> Self {
        self.files.extend(["--input".into(), "event.json".into()]);
        self.file("event.json", text)
    }

    pub(crate) fn stdin(self, text: &str) -> Self {
        self.stdin_bytes(text.as_bytes())
    }

    pub(crate) fn stdin_bytes(mut self, bytes: &[u8]) -> Self {
        self.stdin = Some(bytes.to_vec());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Limits the number of open descriptors of the program. It inherits only the standard streams, because others
    /// would use up the limit: the dynamic loader would then end the program with status 127.
    pub(crate) fn descriptors(self, most: u32) -> Self {
        let start = format!(
            "import os, resource, sys; os.closerange(3, 65536); \
             resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most})); os.execv(sys.argv[1], sys.argv[1:])"
        );
        self.after(&format!("exec python3 -c '{start}' \"$0\" \"$@\""))
    }

    /// Sets a shell command that runs before the program, in the same process.
    pub(crate) fn after(mut self, prefix: &str) -> Self {
        self.prefix = Some(prefix.to_owned());
        self
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Runs the program to its end.
    pub(crate) fn run(self) -> Ran {
        self.start().finish()
    }

    /// Runs the program with its stdout redirected to a file.
    pub(crate) fn run_into(mut self, stdout: &str) -> Ran {
        self.stdout = Some(stdout.to_owned());
        self.run()
    }

    /// Starts the program with a stdin that stays open.
    pub(crate) fn start_with_open_stdin(mut self) -> (Running, ChildStdin) {
        self.stdin = Some(Vec::new());
        let mut child = self.command().spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        let running = Running {
            _ended: EndedWithTest(child.id()),
            child,
            folder: self.folder,
        };
        (running, stdin)
    }

    /// Returns the command and its folders, for tests that start it themselves.
    pub(crate) fn into_command(self) -> (Command, TempDir) {
        (self.command(), self.folder)
    }

    /// Starts the program.
    pub(crate) fn start(self) -> Running {
        let mut child = self.command().spawn().unwrap();
        if let Some(bytes) = &self.stdin {
            let mut stdin = child.stdin.take().unwrap();
            // A program that refuses the call does not read its stdin.
            stdin.write_all(bytes).ok();
        }
        Running {
            _ended: EndedWithTest(child.id()),
            child,
            folder: self.folder,
        }
    }

    fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_tenterhook");
        let mut command = match &self.prefix {
            Some(prefix) => {
                let mut shell = Command::new("/bin/sh");
                let line = format!("{prefix}; exec \"$0\" \"$@\"");
                shell.args(["-c", &line, program]);
                shell
            }
            None => Command::new(program),
        };
        set_place(&mut command, self.folder.path());
        command
            .args(&self.args)
            .args(&self.files)
            .envs(self.variables.clone())
            .stdin(if self.stdin.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(self.stdout.as_ref().map_or_else(Stdio::piped, |path| {
                fs::OpenOptions::new()
                    .write(true)
                    .open(path)
                    .unwrap()
                    .into()
            }))
            .stderr(Stdio::piped());
        command
    }
}

/// Sets an environment that has only the folders of the test.
fn set_place(command: &mut Command, folder: &Path) {
    command
        .current_dir(folder.join("work"))
        .env_clear()
        .env("PATH", search_path())
        .env("HOME", folder.join("home"))
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("TENTERHOOK_CONFIG_DIR", folder.join("config"))
        .env("TMPDIR", folder.join("tmp"));
}

/// The running program.
pub(crate) struct Running {
    child: Child,
    folder: TempDir,
    _ended: EndedWithTest,
}

/// Kills a program whose test fails. A program that stays would make later approvals look as if it had asked for them.
struct EndedWithTest(u32);

impl Drop for EndedWithTest {
    fn drop(&mut self) {
        if thread::panicking() {
            // No one has waited for it, so its id is still its own.
            let kill = Command::new("kill")
                .args(["-KILL", &self.0.to_string()])
                .status();
            drop(kill);
        }
    }
}

impl Running {
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Returns a folder or file next to the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until a file in the working directory has a complete line, and returns the line.
    pub(crate) fn line_of(&self, name: &str) -> String {
        let path = self.folder.path().join("work").join(name);
        eventually(|| {
            Some(
                fs::read_to_string(&path)
                    .ok()?
                    .strip_suffix('\n')?
                    .to_owned(),
            )
        })
    }

    /// Waits until `journal.jsonl` in the working directory has a line with a text, and returns the line.
    pub(crate) fn journal_line(&self, text: &str) -> String {
        let path = self.work().join("journal.jsonl");
        eventually(|| {
            let journal = fs::read_to_string(&path).ok()?;
            let line = journal.lines().find(|line| line.contains(text))?;
            Some(line.to_owned())
        })
    }

    /// Returns the program's stdout, for reading while the program runs.
    pub(crate) fn stdout(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.child.stdout.take().unwrap())
    }

    /// Waits for the next line of stderr, while the program runs.
    pub(crate) fn next_stderr_line(&mut self) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut line = Vec::new();
        let mut byte = [0];
        // Byte by byte, because the rest is read elsewhere.
        while stderr.read(&mut byte).unwrap() > 0 && byte != *b"\n" {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// Returns the remaining stderr of a program that has ended.
    pub(crate) fn stderr(&mut self) -> String {
        let mut text = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }

    /// Creates another call in the same folders, while the program runs.
    pub(crate) fn beside<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Output {
        self.command_beside(args).output().unwrap()
    }

    /// Does the same without starting the call.
    pub(crate) fn command_beside<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenterhook"));
        command.args(args).stdin(Stdio::null());
        set_place(&mut command, self.folder.path());
        command
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns what sets the maximum size of the files that the program writes: 0 is like a full disk. `None` ends it.
    #[cfg(target_os = "linux")]
    pub(crate) fn disk(&self) -> impl Fn(Option<u64>) + Send + 'static {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};

        let pid = Pid::from_raw(self.pid().try_into().unwrap());
        move |current| {
            let maximum = None;
            prlimit(pid, Resource::Fsize, Rlimit { current, maximum }).unwrap();
        }
    }

    /// Sends the program the signal of Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.signal("INT");
    }

    /// Sends the program a signal.
    pub(crate) fn signal(&self, name: &str) {
        assert!(kill(name, self.child.id()).success());
    }

    /// Waits for the program to end.
    pub(crate) fn finish(self) -> Ran {
        let Self {
            child,
            folder,
            _ended,
        } = self;
        let pid = child.id();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait_with_output()).ok());
        let output = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            Command::new("kill")
                .args(["-KILL", &pid.to_string()])
                .status()
                .ok();
            let left = receiver.recv_timeout(PATIENCE);
            panic!("the program does not end: {left:?}");
        });
        Ran::new(&output.unwrap(), folder)
    }
}

/// The result of a run of the program.
#[must_use = "a run that nobody looks at tests nothing"]
#[derive(Debug)]
pub(crate) struct Ran {
    /// Its stdout, with placeholders for text that differs from run to run.
    pub(crate) stdout: String,
    /// Its stderr, with placeholders for text that differs from run to run.
    pub(crate) stderr: String,
    /// The exit status; -1 after a signal.
    pub(crate) status: i32,
    printed: String,
    folder: TempDir,
}

impl Ran {
    fn new(output: &Output, folder: TempDir) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let printed = text(&output.stdout);
        Self {
            stdout: stable(&printed, folder.path()),
            stderr: stable(&text(&output.stderr), folder.path()),
            status: output.status.code().unwrap_or(-1),
            printed,
            folder,
        }
    }

    /// Creates another call in the same folders.
    pub(crate) fn again<'a>(self, args: impl IntoIterator<Item = &'a str>) -> Test {
        Test::in_folder(self.folder).args(args)
    }

    /// Returns stdout, stderr and exit status.
    pub(crate) fn all(&self) -> (&str, &str, i32) {
        (&self.stdout, &self.stderr, self.status)
    }

    /// Returns stderr and exit status of a run that printed nothing.
    pub(crate) fn refusal(&self) -> (&str, i32) {
        assert_eq!(self.stdout, "");
        (&self.stderr, self.status)
    }

    /// Returns the single JSON object on stdout.
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.printed).unwrap_or_else(|error| {
            panic!("{error}: {}{}", self.printed, self.stderr);
        });
        assert!(value.is_object(), "{value}");
        value
    }

    /// Returns the text of a file in the working directory.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.path("work").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!(
                "{}: {error}\n{}{}",
                path.display(),
                self.stdout,
                self.stderr
            )
        })
    }

    /// Returns the JSON values of a file in the working directory, one per line.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        json_lines(&self.file(name))
    }

    /// Returns one of the folders or files of the test: `work`, `home`, `state`, `tmp`.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Reads one JSON value from each line.
pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Waits until `condition` returns a value.
pub(crate) fn eventually<T>(mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it never happened");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process is alive. A zombie process is not.
pub(crate) fn is_alive(pid: &str) -> bool {
    let listed = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
    let state = String::from_utf8(listed.unwrap().stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Replaces text that differs from run to run with placeholders.
fn stable(text: &str, folder: &Path) -> String {
    let text = text.replace(folder.to_str().unwrap(), "[DIR]");
    let lines: Vec<String> = text.split('\n').map(stable_line).collect();
    lines.join("\n")
}

/// Replaces the id of a denial, which depends on the temporary folder.
pub(crate) fn without_denial_id(text: &str) -> String {
    let mut parts = text.split("tenterhook allow ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, after| {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit());
        format!("{before}tenterhook allow [ID]{rest}")
    })
}

/// Replaces the temporary folders and the durations of a line, including the spaces that align durations.
fn stable_line(line: &str) -> String {
    let mut parts: Vec<String> = line.split(" ms").map(str::to_owned).collect();
    let last = parts.len() - 1;
    for part in &mut parts[..last] {
        let before = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        *part = format!("{} [TIME]", before.trim_end());
    }
    let line = parts.concat();
    match line.split_once("[DIR]/tmp/") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.');
            format!("{before}[TMP]{rest}")
        }
        None => line,
    }
}
