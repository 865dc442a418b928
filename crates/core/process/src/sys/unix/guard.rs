//! Kills the children of this process when this process ends, even if it was killed.
//!
//! One guard process is started with the first child. It reads from a pipe whose other end only
//! this process has. The system closes that end when this process ends for any reason. Then the
//! guard kills every process group in the *table* and exits, usually within a few milliseconds.
//!
//! # The table
//!
//! The table is a file in memory that is shared with the guard. Each child has a line of fixed
//! length with its start time and its process id, which is also the id of its group. The line is
//! filled as soon as the child has started, and cleared before the child is reaped. Registering a
//! child is one small write: it cannot block, and no message can be lost. A guard that was killed
//! is replaced by a new one that reads the same table.
//!
//! # Recycled ids
//!
//! The guard never kills a process or a group whose id now belongs to someone else:
//!
//! - If a process with the id has another start time, neither the process nor its group is killed.
//! - If no process has the id, its group is killed. The line is cleared before the child is reaped, so the child still
//!   existed when this process ended. The system does not reuse an id while its group has members.
//! - A group that was released (`HeldPipe::Release`) stays in the table until it is empty, even if its
//!   leader has ended. The reaper notices when it is empty. The guard kills the group when this process
//!   ends.
//!
//! Start times are known only on Linux. Elsewhere, only the second rule applies.
//!
//! # Which processes are killed
//!
//! The guard kills every process in the group of a child. On Linux, it also kills descendants of
//! the group's members in other groups, such as those that `timeout` and `setsid` make, as long as
//! all parents up to a member of the group are alive. It cannot reach processes that have left both
//! their group and their parents, as daemons do. It also misses a child that was started
//! microseconds before this process was killed and had no line yet, unless [`include_session`] was
//! called. A program of the same user can kill the guard itself; the next start of a child replaces it.
//!
//! # Why a shell
//!
//! The guard must not be a fork of this process. A fork would need `unsafe`, copy the page tables
//! of the host, and keep its files and locks open. The guard cannot be this program in another role
//! either, because a library does not know its program. `/bin/sh` starts in about a millisecond and
//! has all that is needed as builtins, and `exec` closes all files of the host. The guard runs in
//! its own session if there is a `setsid` program. Otherwise it runs in its own process group. It
//! ignores the signals of a terminal. On a system without `/bin/sh`, children run without a guard.
//!
//! # A host that forks
//!
//! A copy of this process (`fork` without `exec`) has the same table and pipe. It must not use
//! them, because its guard would kill the children of the original. So the copy makes its own table
//! and guard when it starts a child. Until then, the copy keeps the pipe open, and the guard of the
//! original waits for the copy too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Resource, getpid, getrlimit, getsid};

use super::kernel::{create_table, start_time};
use super::programs::SH;

/// The script of the guard.
const SCRIPT: &str = include_str!("guard.sh");

/// The name of the guard in a list of processes.
const NAME: &str = "tenterhook-guard";

/// The program that starts another one in a new session. The path is absolute because a project may
/// have changed `PATH`.
const SETSID: &str = "/usr/bin/setsid";

/// The length of a line of the table: an id of ten digits, a start time of twenty, a space and a line feed.
const LINE: usize = 32;

/// How long to wait for the guard to end, and the pause between two checks.
const LAST_MOMENT: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_micros(200);

static GUARD: Mutex<Guard> = Mutex::new(Guard::new());

/// Whether the guard also kills the other processes of this session.
static INCLUDES_SESSION: AtomicBool = AtomicBool::new(false);

fn guard() -> MutexGuard<'static, Guard> {
    GUARD.lock()
}

/// The line of one child in the table of the guard. Dropping it clears the line.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The number of the line. `None` if no guard can run.
    line: Option<u64>,
    /// The process whose table has the line. A copy of it, made by `fork`, does not touch the line.
    owner: u32,
}

impl Entry {
    /// Reserves a line of the table for a child that is about to be started. Starts the guard if necessary.
    ///
    /// # Errors
    /// Fails if the guard cannot be started, or if the table cannot grow. In these cases, do not
    /// start the child.
    pub(crate) fn reserve() -> io::Result<Self> {
        let line = guard().reserve()?;
        Ok(Self {
            line,
            owner: process::id(),
        })
    }

    /// Registers the child that was started. The child must lead its group and must not be reaped yet.
    ///
    /// # Errors
    /// Fails if the table cannot be written.
    pub(crate) fn fill(&self, pid: Pid) -> io::Result<()> {
        let Some(line) = self.own_line() else {
            return Ok(());
        };
        let start = start_time(pid).unwrap_or(0);
        guard().write(line, &format!("{} {start}", pid.as_raw_nonzero()))
    }

    fn own_line(&self) -> Option<u64> {
        self.line.filter(|_| self.owner == process::id())
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(line) = self.own_line() {
            guard().clear(line);
        }
    }
}

/// Lets guards that are started from now on also kill all other processes of the session of this process, if it
/// leads one. Linux only.
pub(crate) fn include_session() {
    INCLUDES_SESSION.store(true, Ordering::Relaxed);
}

/// Returns the session whose processes the guard kills: the process that leads it and its start time.
fn included_session() -> Option<(Pid, u64)> {
    let own = getpid();
    let is_leader = INCLUDES_SESSION.load(Ordering::Relaxed) && getsid(None) == Ok(own);
    is_leader.then(|| Some((own, start_time(own)?))).flatten()
}

/// Ends and reaps the guard of this process. The guard first kills the remaining children.
pub(crate) fn end() {
    guard().finish();
}

/// The guard process and its table.
#[derive(Debug)]
struct Guard {
    /// The id of the process that the other fields belong to; 0 at first.
    owner: u32,
    running: Option<Running>,
    table: Option<File>,
    /// How many lines the table has.
    lines: u64,
    /// The lines that are not in use.
    free: Vec<u64>,
}

#[derive(Debug)]
struct Running {
    process: process::Child,
    /// The writing end of the guard's pipe. The system closes it when this process ends. Children
    /// do not inherit it, because it is created close-on-exec.
    held: io::PipeWriter,
}

impl Guard {
    const fn new() -> Self {
        Self {
            owner: 0,
            running: None,
            table: None,
            lines: 0,
            free: Vec::new(),
        }
    }

    /// Returns an unused line, or `None` if no guard can run.
    fn reserve(&mut self) -> io::Result<Option<u64>> {
        self.belong_to(process::id());
        if !self.ensure_running()? {
            return Ok(None);
        }
        if let Some(line) = self.free.pop() {
            return Ok(Some(line));
        }
        // Written now, so that an error shows before the child is started.
        self.write(self.lines, "")?;
        self.lines += 1;
        Ok(Some(self.lines - 1))
    }

    /// Forgets the guard of the original if this process is a forked copy. That also closes the
    /// copy's end of the pipe.
    fn belong_to(&mut self, own: u32) {
        if self.owner != own {
            *self = Self::new();
            self.owner = own;
        }
    }

    /// Ends and reaps the guard. Otherwise the system's first process would have to reap it, which
    /// many containers' first processes do not do.
    fn finish(&mut self) {
        self.belong_to(process::id());
        let Some(Running { mut process, held }) = self.running.take() else {
            return;
        };
        if self.free.len() as u64 == self.lines {
            // No children are left, so there is no need to wait until the guard has read the table.
            process.kill().ok();
        }
        drop(held);
        let start = Instant::now();
        while matches!(process.try_wait(), Ok(None)) && start.elapsed() < LAST_MOMENT {
            sleep(LOOK);
        }
    }

    /// Starts the guard unless it is running. Returns whether there is a guard.
    fn ensure_running(&mut self) -> io::Result<bool> {
        let running = self.running.as_mut();
        if running.is_some_and(|running| matches!(running.process.try_wait(), Ok(None))) {
            return Ok(true);
        }
        let table = match self.table.take() {
            Some(table) => table,
            None => create_table()?,
        };
        let table = self.table.insert(table);
        match Running::start(table, included_session()) {
            Ok(running) => {
                self.running = Some(running);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes one line of the table.
    fn write(&self, line: u64, text: &str) -> io::Result<()> {
        let width = LINE - 1;
        let bytes = format!("{text:<width$}\n");
        let at = line * LINE as u64;
        let end = at + LINE as u64;
        // A write beyond the limit would also end this process with a signal.
        if getrlimit(Resource::Fsize)
            .current
            .is_some_and(|limit| end > limit)
        {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file size limit (`ulimit -f`) is too small for the table of children",
            ));
        }
        let table = self.table.as_ref().ok_or(io::ErrorKind::NotFound)?;
        table.write_all_at(bytes.as_bytes(), at)
    }

    /// Clears a line and makes it available again. A line that cannot be cleared is not used again.
    fn clear(&mut self, line: u64) {
        if self.write(line, "").is_ok() {
            self.free.push(line);
        }
    }
}

impl Running {
    fn start(table: &File, session: Option<(Pid, u64)>) -> io::Result<Self> {
        let shell = [SH, "-c", SCRIPT, NAME];
        let session = session.map(|(leader, start)| [leader.to_string(), start.to_string()]);
        let session = session.as_ref().map_or(&[][..], |session| session);
        // The leader of a process group cannot start a session, so `setsid` gets no group of its own.
        match Self::spawn(table, Command::new(SETSID).args(shell).args(session)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let [program, arguments @ ..] = shell;
                Self::spawn(
                    table,
                    Command::new(program)
                        .args(arguments)
                        .args(session)
                        .process_group(0),
                )
            }
            started => started,
        }
    }

    fn spawn(table: &File, command: &mut Command) -> io::Result<Self> {
        let (reader, held) = io::pipe()?;
        let process = command
            .env_clear()
            .stdin(reader)
            .stdout(table.try_clone()?)
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, held })
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process, kill_process_group, test_kill_process_group};

    use super::*;

    /// How long an expected event may take.
    const PATIENCE: Duration = Duration::from_mins(1);

    fn eventually(mut condition: impl FnMut() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < PATIENCE, "it never happened");
            sleep(Duration::from_millis(2));
        }
    }

    /// A child that leads a group. It is killed at the end of a test.
    struct Sleeper(process::Child);

    impl Sleeper {
        fn start() -> Self {
            let mut command = Command::new("sleep");
            Self(command.arg("300").process_group(0).spawn().unwrap())
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }

        fn is_running(&mut self) -> bool {
            self.0.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    impl Guard {
        fn add(&mut self, pid: Pid, start: u64) -> u64 {
            let line = self.reserve().unwrap().unwrap();
            self.write(line, &format!("{} {start}", pid.as_raw_nonzero()))
                .unwrap();
            line
        }

        /// Simulates the end of this process, and waits for the guard to end.
        fn end(&mut self) {
            let Running { mut process, held } = self.running.take().unwrap();
            drop(held);
            eventually(|| process.try_wait().unwrap().is_some());
        }
    }

    #[test]
    fn a_recycled_id_is_not_killed() {
        let [mut ours, mut recycled, mut cleared] = [(); 3].map(|()| Sleeper::start());
        let mut guard = Guard::new();
        guard.add(ours.pid(), start_time(ours.pid()).unwrap());
        guard.add(recycled.pid(), start_time(recycled.pid()).unwrap() + 1);
        let line = guard.add(cleared.pid(), start_time(cleared.pid()).unwrap());
        guard.clear(line);
        guard.end();
        eventually(|| !ours.is_running());
        assert!(recycled.is_running());
        assert!(cleared.is_running());
    }

    #[test]
    fn a_group_whose_leader_has_ended_is_killed() {
        let mut leader = Command::new("/bin/sh")
            .args(["-c", "sleep 300 & exit 0"])
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_child(&leader);
        let start = start_time(group).unwrap();
        leader.wait().unwrap();
        assert_eq!(start_time(group), None);
        test_kill_process_group(group).unwrap();
        let mut guard = Guard::new();
        guard.add(group, start);
        guard.end();
        eventually(|| test_kill_process_group(group).is_err());
    }

    #[test]
    fn a_guard_that_was_killed_is_replaced_and_knows_the_same_children() {
        let [mut first, mut second] = [(); 2].map(|()| Sleeper::start());
        let mut guard = Guard::new();
        guard.add(first.pid(), start_time(first.pid()).unwrap());
        let killed = Pid::from_child(&guard.running.as_ref().unwrap().process);
        kill_process(killed, Signal::KILL).unwrap();
        eventually(|| {
            let running = guard.running.as_mut().unwrap();
            running.process.try_wait().unwrap().is_some()
        });
        guard.add(second.pid(), start_time(second.pid()).unwrap());
        guard.end();
        eventually(|| !first.is_running() && !second.is_running());
    }

    #[test]
    fn signals_of_a_terminal_do_not_end_the_guard() {
        let mut ours = Sleeper::start();
        let mut guard = Guard::new();
        guard.add(ours.pid(), start_time(ours.pid()).unwrap());
        let process = Pid::from_child(&guard.running.as_ref().unwrap().process);
        // `setsid` becomes the shell, which then ignores the signals.
        let ignores = || {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
            let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
            ignored & 0x4007 == 0x4007
        };
        eventually(ignores);
        for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM] {
            kill_process_group(process, signal).unwrap();
        }
        guard.end();
        eventually(|| !ours.is_running());
    }

    #[test]
    fn a_copy_of_the_process_does_not_touch_the_children_of_the_original() {
        let mut ours = Sleeper::start();
        let mut guard = Guard::new();
        let line = guard.add(ours.pid(), start_time(ours.pid()).unwrap());
        // The state that `fork` leaves in the copy, which has another process id.
        let mut copy = Guard {
            owner: guard.owner + 1,
            running: None,
            table: guard.table.as_ref().map(|table| table.try_clone().unwrap()),
            lines: guard.lines,
            free: Vec::new(),
        };
        let first = copy.reserve().unwrap().unwrap();
        copy.clear(first);
        copy.end();
        assert!(ours.is_running());
        let foreign = Entry {
            line: Some(line),
            owner: process::id() + 1,
        };
        assert_eq!(foreign.own_line(), None);
        guard.end();
        eventually(|| !ours.is_running());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_that_was_never_registered_is_killed_with_the_session() {
        for is_included in [true, false] {
            let mut leader = Command::new(SETSID)
                .args([SH, "-c", "set -m; sleep 300 & echo $!; exec sleep 300"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let mut output = io::BufReader::new(leader.stdout.take().unwrap());
            io::BufRead::read_line(&mut output, &mut line).unwrap();
            let child = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
            let id = Pid::from_child(&leader);
            let start = start_time(id).unwrap();
            // The id of the leader belongs to another process if the start time differs.
            let start = if is_included { start } else { start + 1 };
            let table = create_table().unwrap();
            let mut running = Running::start(&table, Some((id, start))).unwrap();
            drop(running.held);
            running.process.wait().unwrap();
            // The leader does not reap the child.
            let has_ended = || {
                let line = std::fs::read_to_string(format!("/proc/{child}/stat"));
                line.map_or(true, |line| line.contains(") Z "))
            };
            if is_included {
                eventually(has_ended);
            } else {
                assert!(!has_ended());
                kill_process(child, Signal::KILL).unwrap();
            }
            assert!(leader.try_wait().unwrap().is_none());
            leader.kill().unwrap();
            leader.wait().unwrap();
        }
    }

    #[test]
    fn a_guard_is_reaped_at_the_end_and_kills_what_is_left_before() {
        let mut left = Sleeper::start();
        for child in [None, Some(left.pid())] {
            let mut guard = Guard::new();
            match child {
                None => drop(guard.reserve().unwrap().map(|line| guard.clear(line))),
                Some(pid) => drop(guard.add(pid, start_time(pid).unwrap())),
            }
            let id = Pid::from_child(&guard.running.as_ref().unwrap().process);
            guard.finish();
            assert!(guard.running.is_none());
            assert_eq!(start_time(id), None, "the guard was reaped");
        }
        eventually(|| !left.is_running());
    }

    #[test]
    fn a_child_that_left_its_group_is_killed_where_only_its_parent_is_left_of_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let line = "(/usr/bin/setsid sh -c 'echo $$ > new; mv new id; exec sleep 300'; :) & exit 0";
        let mut leader = Command::new("/bin/sh")
            .args(["-c", line])
            .current_dir(dir.path())
            .process_group(0)
            .spawn()
            .unwrap();
        let group = Pid::from_child(&leader);
        let start = start_time(group).unwrap();
        leader.wait().unwrap();
        let id = dir.path().join("id");
        eventually(|| id.exists());
        let text = std::fs::read_to_string(id).unwrap();
        let stray = Pid::from_raw(text.trim().parse().unwrap()).unwrap();
        let mut guard = Guard::new();
        guard.add(group, start);
        guard.end();
        eventually(|| start_time(stray).is_none());
    }

    #[test]
    fn lines_of_ended_children_are_used_again() {
        let mut guard = Guard::new();
        let first = guard.reserve().unwrap().unwrap();
        guard.clear(first);
        assert_eq!(guard.reserve().unwrap(), Some(first));
        assert_eq!(guard.reserve().unwrap(), Some(first + 1));
        guard.end();
    }
}
