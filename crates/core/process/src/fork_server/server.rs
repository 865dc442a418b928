//! One running interpreter: its start, the files that it depends on, and the children that it forks.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::launch::Launch;
use crate::resolve::is_path;
use crate::sys::{Entry, abandon, has_ended, send_with};
use parking_lot::Mutex;
use rustix::io::ioctl_fionbio;
use rustix::process::Pid;

/// How many servers one process may run at once. Further scripts run without a server.
pub(super) const MAX_SERVERS: usize = 8;

/// The program that the interpreter runs.
const PROGRAM: &str = include_str!("server.py");

/// How long the start may take, including all imports of the script.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// The longest report of a server, in bytes.
const MAX_REPORT: usize = 4 << 20;

/// The message for a malformed report.
const UNREADABLE: &str = "the server's report cannot be read";

/// How many bytes of the output of a failed start are read.
const MAX_COMPLAINT: usize = 2048;

/// How many servers are running.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Everything that a server depends on: the program, the environment, and the directory if it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) executable: PathBuf,
    /// The directory, if a relative path or a wrapper script depends on it.
    dir: Option<PathBuf>,
    env: BTreeMap<OsString, OsString>,
    pub(super) script: PathBuf,
}

/// Where one run happens.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) place: Place,
    pub(super) dir: PathBuf,
    /// The value of `PWD`. It is kept apart because servers do not depend on it.
    pub(super) pwd: Option<OsString>,
}

impl Spot {
    /// Returns where a launch runs. `flags` is the number of words before the script. Returns
    /// `None` if the launch uses a shell or has no script.
    pub(super) fn of(launch: &Launch, flags: usize) -> Option<Self> {
        if launch.shell.is_some() {
            return None;
        }
        let script = launch.arguments.get(flags)?;
        let dir = match &launch.dir {
            Some(dir) => dir.clone(),
            None => env::current_dir().ok()?,
        };
        let mut env: BTreeMap<OsString, OsString> = env::vars_os().collect();
        for key in &launch.removed {
            env.remove(key);
        }
        env.extend(launch.env.iter().cloned());
        let pwd = env.remove(OsStr::new("PWD"));
        let depends_on_dir = Path::new(script).is_relative()
            || is_path(launch.path.as_os_str()) && launch.path.is_relative()
            || is_script(&launch.executable);
        Some(Self {
            place: Place {
                executable: launch.executable.clone(),
                script: dir.join(script),
                dir: depends_on_dir.then(|| dir.clone()),
                env,
            },
            dir,
            pwd,
        })
    }
}

/// Returns whether a program is a script. A script that selects one of several interpreters may
/// depend on the directory.
fn is_script(program: &Path) -> bool {
    let mut start = [0; 2];
    let read = fs::File::open(program).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"#!"
}

/// The state of a file, to notice changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    modified: i128,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            size: found.size(),
            modified: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        })
    }
}

/// The files and folders that a server has loaded, to notice changes.
#[derive(Debug, Default)]
struct Loaded {
    /// The script, its modules, and the folders in which modules were found.
    watched: Vec<(PathBuf, Stamp)>,
    /// The folder of the script and other folders outside the library. A new file there may replace
    /// a module.
    homes: Vec<(PathBuf, Mutex<Stamp>)>,
    /// The names of loaded modules. No file in `homes` may have one of these names.
    names: Vec<OsString>,
}

impl Loaded {
    /// Reads the report of a server. Its fields are separated by zero bytes.
    fn read(report: &[u8]) -> Result<Self, String> {
        let mut fields = report.split(|&byte| byte == 0).map(OsStr::from_bytes);
        let mut loaded = Self::default();
        let verdict = fields.next().unwrap_or_default();
        if verdict == "refused" {
            let reason = fields.next().unwrap_or_default();
            return Err(reason.to_string_lossy().into_owned());
        } else if verdict != "ready" {
            return Err(UNREADABLE.to_owned());
        }
        while let Some(kind) = fields.next() {
            let subject = fields.next().unwrap_or_default();
            if kind == "name" {
                loaded.names.push(subject.to_owned());
                continue;
            }
            let mut number = || fields.next()?.to_str()?.parse().ok();
            let stamp = (|| {
                Some(Stamp {
                    inode: u64::try_from(number()?).ok()?,
                    size: u64::try_from(number()?).ok()?,
                    modified: number()?,
                })
            })();
            let stamp: Stamp = stamp.ok_or(UNREADABLE)?;
            if kind == "home" {
                loaded.homes.push((subject.into(), Mutex::new(stamp)));
            } else {
                loaded.watched.push((subject.into(), stamp));
            }
        }
        Ok(loaded)
    }

    /// Returns whether nothing has changed since the server loaded it.
    fn is_fresh(&self) -> bool {
        let is_same = |(path, stamp): &(PathBuf, Stamp)| Stamp::of(path) == Some(*stamp);
        self.watched.iter().all(is_same) && self.homes.iter().all(|home| self.is_home_fresh(home))
    }

    /// Returns whether the script would still import the loaded modules. A new log file next to the
    /// script, for example, changes nothing.
    fn is_home_fresh(&self, (path, known): &(PathBuf, Mutex<Stamp>)) -> bool {
        let Some(now) = Stamp::of(path) else {
            return false;
        };
        let mut known = known.lock();
        if *known == now {
            return true;
        }
        let Ok(mut entries) = fs::read_dir(path) else {
            return false;
        };
        let hides = |entry: io::Result<fs::DirEntry>| {
            // An entry that cannot be read may be a file that hides a module.
            entry.map_or(true, |entry| {
                let name = entry.file_name();
                let stem = name.as_bytes().split(|&byte| byte == b'.').next();
                self.names.iter().any(|name| Some(name.as_bytes()) == stem)
            })
        };
        let is_fresh = !entries.any(hides);
        if is_fresh {
            *known = now;
        }
        is_fresh
    }
}

/// The right to run one more server.
#[derive(Debug)]
pub(super) struct ServerPermit(());

impl ServerPermit {
    pub(super) fn acquire() -> Option<Self> {
        let more = |live| (live < MAX_SERVERS).then_some(live + 1);
        let taken = LIVE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then_some(Self(()))
    }
}

impl Drop for ServerPermit {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An interpreter that has loaded a script. It ends when this value is dropped, and by itself when
/// this process ends.
#[derive(Debug)]
pub(super) struct Server {
    process: process::Child,
    /// The server's line in the table of the guard, which kills it if this process ends.
    entry: Option<Entry>,
    control: UnixStream,
    /// The socket of a child that was forked ahead of time.
    idle: Mutex<Option<UnixStream>>,
    loaded: Loaded,
    pub(super) place: Place,
    pub(super) began: Instant,
    _permit: ServerPermit,
}

impl Server {
    /// Starts a server and blocks until it is ready.
    pub(super) fn start(
        launch: &Launch,
        spot: Spot,
        flags: usize,
        permit: ServerPermit,
    ) -> Result<Self, String> {
        let began = Instant::now();
        let (control, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
        let entry = Entry::reserve()
            .map_err(|error| format!("could not start the guard process: {error}"))?;
        let (mut complaints, process) = spawn(launch, &spot, flags, theirs.into())
            .map_err(|error| format!("could not start the interpreter: {error}"))?;
        let mut server = Self {
            process,
            entry: Some(entry),
            control,
            idle: Mutex::new(None),
            loaded: Loaded::default(),
            place: spot.place,
            began,
            _permit: permit,
        };
        let filled = server
            .entry
            .as_ref()
            .map(|entry| entry.fill(Pid::from_child(&server.process)));
        filled.transpose().map_err(|error| error.to_string())?;
        let report = report(&mut server.control, began + START_PATIENCE);
        let report = report.map_err(|error| failure(&error, &mut complaints))?;
        server.loaded = Loaded::read(&report)?;
        let ready = server.control.set_nonblocking(true);
        ready.map_err(|error| error.to_string())?;
        server.fork_ahead();
        Ok(server)
    }

    /// Returns whether the loaded files are still what a fresh process would load.
    pub(super) fn is_fresh(&self) -> bool {
        self.loaded.is_fresh()
    }

    /// Returns whether the interpreter has ended. Then the children that it has forked cannot be
    /// used either.
    pub(super) fn has_ended(&self) -> bool {
        has_ended(&self.process)
    }

    /// Returns the socket of a child that was forked ahead, if there is one.
    pub(super) fn take_idle(&self) -> Option<UnixStream> {
        self.idle().take()
    }

    /// Requests a child and returns its socket. Does not wait until the child exists.
    pub(super) fn fork(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        send_with(&self.control, b"f", &[theirs.as_fd()])?;
        Ok(ours)
    }

    /// Requests the child of the next run.
    pub(super) fn fork_ahead(&self) {
        let mut idle = self.idle();
        if idle.is_none() {
            // If this fails, the next run requests its own child.
            *idle = self.fork().ok();
        }
    }

    fn idle(&self) -> parking_lot::MutexGuard<'_, Option<UnixStream>> {
        self.idle.lock()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        abandon(&self.process, self.entry.take());
    }
}

/// Starts the interpreter with its socket as standard input. The returned reader has its output
/// until it is ready.
fn spawn(
    launch: &Launch,
    spot: &Spot,
    flags: usize,
    control: OwnedFd,
) -> io::Result<(io::PipeReader, process::Child)> {
    let (reader, writer) = io::pipe()?;
    let (before, script) = launch.arguments.split_at_checked(flags).unwrap_or_default();
    let mut command = Command::new(&launch.path);
    command
        .args(before)
        .arg("-c")
        .arg(PROGRAM)
        .args(script)
        .env_clear()
        .envs(&spot.place.env)
        .current_dir(&spot.dir)
        .stdin(control)
        .stdout(writer.try_clone()?)
        .stderr(Stdio::from(writer))
        .process_group(0);
    if let Some(name) = &launch.name {
        command.arg0(name);
    }
    if let Some(pwd) = &spot.pwd {
        command.env("PWD", pwd);
    }
    Ok((reader, command.spawn()?))
}

/// Reads the report: its length in four bytes, then the report itself.
fn report(control: &mut UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    fill(control, &mut length, deadline)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_REPORT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut report = vec![0; length];
    fill(control, &mut report, deadline)?;
    Ok(report)
}

fn fill(control: &mut UnixStream, mut buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        control.set_read_timeout(Some(left))?;
        match control.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => buffer = buffer.get_mut(count..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Describes why a server did not become ready, with the last line that it printed.
fn failure(error: &io::Error, complaints: &mut io::PipeReader) -> String {
    let mut printed = vec![0; MAX_COMPLAINT];
    let count = ioctl_fionbio(&*complaints, true).map_err(io::Error::from);
    let count = count
        .and_then(|()| complaints.read(&mut printed))
        .unwrap_or(0);
    printed.truncate(count);
    let printed = String::from_utf8_lossy(&printed);
    let what = if error.kind() == io::ErrorKind::UnexpectedEof {
        "the server ended before it was ready".to_owned()
    } else if error.kind() == io::ErrorKind::TimedOut {
        let patience = START_PATIENCE.as_secs();
        format!("the server was not ready after {patience} s")
    } else {
        format!("{UNREADABLE}: {error}")
    };
    match printed.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{what}: {}", line.trim()),
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_whole_or_not_at_all() {
        let unreadable = Err("the server's report cannot be read".to_owned());
        let table = [
            ("ready", Ok((0, 0, 0))),
            (
                "ready|file|/a b|1|2|3|folder|/c|1|2|-3|home|/d|1|2|3|name|json",
                Ok((2, 1, 1)),
            ),
            ("ready|file|/a|1|2", unreadable.clone()),
            ("ready|file|/a|1|-2|3", unreadable.clone()),
            ("ready|file|/a|one|2|3", unreadable.clone()),
            ("refused|it prints", Err("it prints".to_owned())),
            ("", unreadable.clone()),
            ("hello", unreadable),
        ];
        for (text, expected) in table {
            let report = text.replace('|', "\0");
            let read = Loaded::read(report.as_bytes())
                .map(|loaded| (loaded.watched.len(), loaded.homes.len(), loaded.names.len()));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn a_file_that_is_missing_or_another_one_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("module.py");
        fs::write(&file, "1").unwrap();
        let stamp = Stamp::of(&file).unwrap();
        let loaded = Loaded {
            watched: vec![(file.clone(), stamp)],
            ..Loaded::default()
        };
        assert!(loaded.is_fresh());
        fs::write(&file, "12").unwrap();
        assert!(!loaded.is_fresh());
        fs::remove_file(&file).unwrap();
        assert!(!loaded.is_fresh());
    }
}
