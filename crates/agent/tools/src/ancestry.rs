//! Detects whether a program that Tenterhook runs, such as the shell of its agent, started this process or another one.
//!
//! There are three signs:
//!
//! - The agent's shell tool has set an environment variable.
//! - An ancestor of the process is Tenterhook.
//! - The process has no terminal, and no ancestor is older than a running Tenterhook. This finds programs that cut
//!   themselves off from their ancestors (`setsid`, a double fork).
//!
//! The last two work on Linux only. None of them stops a program that tries to hide, because any program of the user
//! can write the user's files.

#[cfg(unix)]
use std::collections::BTreeSet;
#[cfg(unix)]
use std::ffi::{OsStr, OsString};
use std::fs;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::shell::AGENT_VARIABLE;

/// The maximum number of ancestors of this process that are checked.
const MAX_ANCESTORS: usize = 1_024;

/// The names of programs that adopt processes whose parent has ended.
const ADOPTERS: [&str; 3] = ["systemd", "init", "launchd"];

/// Whether a program that Tenterhook runs started a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenterhookAncestry {
    /// No such program did.
    No,
    /// One did.
    Yes,
    /// A program of the Tenterhook with this process id may have started it and cut it off from its ancestors. The same
    /// is true of each program without a terminal that a service manager has started later than Tenterhook.
    Possible(u32),
}

/// Returns whether a program that Tenterhook runs started this one.
///
/// On Linux, the answer is also `Yes` if this process cannot be looked at. On other systems, only the variable counts.
pub fn tenterhook_ancestry() -> TenterhookAncestry {
    if std::env::var_os(AGENT_VARIABLE).is_some() {
        return TenterhookAncestry::Yes;
    }
    match Process::read("self") {
        Some(own) => ancestry_of(&own),
        None if cfg!(target_os = "linux") => TenterhookAncestry::Yes,
        None => TenterhookAncestry::No,
    }
}

/// Returns whether a program that Tenterhook runs started another process, such as the other end of a socket. The
/// program of this process counts as Tenterhook.
///
/// On Linux, a process that cannot be looked at, for example because it has ended, counts as one that Tenterhook runs.
/// On other systems the answer is `false`.
pub fn is_run_by_tenterhook(process: u32) -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    let Some(other) = Process::read(&process.to_string()) else {
        return true;
    };
    has_agent_variable(process) || ancestry_of(&other) != TenterhookAncestry::No
}

/// A running process. Its id alone may later belong to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId {
    /// The id.
    pub id: u32,
    /// When it started, in clock ticks since the machine booted.
    pub start: u64,
}

impl ProcessId {
    /// Reads a line of a list of processes: an id, and when the process started.
    fn read_line(line: &str) -> Option<Self> {
        let (id, start) = line.split_once(' ')?;
        Some(Self {
            id: id.parse().ok()?,
            start: start.parse().ok()?,
        })
    }

    /// Reads a list of processes, one per line. `None` means that a line is not a process.
    pub fn read_list<T: FromIterator<Self>>(text: &str) -> Option<T> {
        text.lines().map(Self::read_line).collect()
    }

    /// Returns whether the process still runs.
    pub fn is_running(self) -> bool {
        Process::read(&self.id.to_string()).is_some_and(|found| found.start == self.start)
    }
}

/// Returns the nearest ancestor of a process that runs one of these programs. Works on Linux only.
///
/// A script counts as a program, so that `node /usr/bin/acme` is `acme`.
pub fn ancestor_running(process: u32, programs: &[&str]) -> Option<ProcessId> {
    let start = Process::read(&process.to_string())?;
    let mut above = std::iter::successors(start.parent(), Process::parent).take(MAX_ANCESTORS);
    let found = above.find(|ancestor| runs_any(ancestor.id, programs))?;
    Some(ProcessId {
        id: found.id,
        start: found.start,
    })
}

/// Returns whether one of these processes is an ancestor of a process. Works on Linux only.
pub fn is_below(process: u32, processes: &[ProcessId]) -> bool {
    let Some(start) = Process::read(&process.to_string()) else {
        return false;
    };
    let mut above = std::iter::successors(start.parent(), Process::parent).take(MAX_ANCESTORS);
    above.any(|ancestor| {
        let id = ProcessId {
            id: ancestor.id,
            start: ancestor.start,
        };
        processes.contains(&id)
    })
}

/// Returns the values that an environment variable had when a process and its ancestors were started. Works on Linux
/// only.
#[cfg(unix)]
pub fn inherited_values(process: u32, variable: &str) -> BTreeSet<OsString> {
    let start = Process::read(&process.to_string());
    let chain = std::iter::successors(start, Process::parent).take(MAX_ANCESTORS);
    let prefix = format!("{variable}=");
    let values = chain.filter_map(|process| {
        let all = fs::read(format!("/proc/{}/environ", process.id)).ok()?;
        let mut all = all.split(|byte| *byte == 0);
        let value = all.find_map(|it| it.strip_prefix(prefix.as_bytes()))?;
        Some(OsStr::from_bytes(value).to_owned())
    });
    values.collect()
}

/// How many words of a command line may name the program: an interpreter, its options and the script.
const PROGRAM_WORDS: usize = 8;

/// The file extensions that the script of a program may have.
const SCRIPTS: [&str; 5] = [".js", ".mjs", ".cjs", ".py", ".sh"];

/// Returns whether a process runs one of these programs.
fn runs_any(process: u32, programs: &[&str]) -> bool {
    let Ok(line) = fs::read(format!("/proc/{process}/cmdline")) else {
        return false;
    };
    let words = line.split(|byte| *byte == 0).take(PROGRAM_WORDS);
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    words.iter().any(|word| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let name = SCRIPTS
            .iter()
            .find_map(|extension| name.strip_suffix(extension))
            .unwrap_or(name);
        programs.contains(&name)
    })
}

/// Returns whether a process was started with the variable that the agent's shell tool sets.
fn has_agent_variable(process: u32) -> bool {
    let prefix = format!("{AGENT_VARIABLE}=");
    let has_prefix = |variable: &[u8]| variable.starts_with(prefix.as_bytes());
    fs::read(format!("/proc/{process}/environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(has_prefix))
}

fn ancestry_of(process: &Process) -> TenterhookAncestry {
    let program = TenterhookProgram::own();
    let above = std::iter::successors(process.parent(), Process::parent);
    let ancestors: Vec<Process> = above.take(MAX_ANCESTORS).collect();
    let mut ids = ancestors.iter().map(|ancestor| ancestor.id);
    if ids.any(|id| program.is_run_by(id)) {
        return TenterhookAncestry::Yes;
    }
    match older_tenterhook(process, &ancestors, &program) {
        Some(id) => TenterhookAncestry::Possible(id),
        None => TenterhookAncestry::No,
    }
}

/// Returns the id of a running Tenterhook that may have started a process that then cut itself off.
fn older_tenterhook(
    own: &Process,
    ancestors: &[Process],
    program: &TenterhookProgram,
) -> Option<u32> {
    // A process that was put into a container from outside has a parent that is not visible here.
    let top = ancestors.last().unwrap_or(own);
    if own.has_terminal || top.id != 1 {
        return None;
    }
    let is_adopter = |process: &&Process| process.id == 1 || process.is_adopter;
    let chain = ancestors.iter().filter(|process| !is_adopter(process));
    let oldest = chain.chain([own]).map(|process| process.start).min();
    let is_older = |process: &Process| oldest.is_some_and(|oldest| process.start <= oldest);
    all_processes().find(|&id| {
        id != own.id
            && program.is_run_by(id)
            && Process::read(&id.to_string()).is_some_and(|process| is_older(&process))
    })
}

/// Returns the ids of all visible processes.
fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The Tenterhook program: the executable of this process, and any executable of the same name.
struct TenterhookProgram {
    file: Option<PathBuf>,
}

impl TenterhookProgram {
    /// The file name of the program, and the name that Linux shows after its file was replaced.
    const NAMES: [&str; 2] = ["tenterhook", "tenterhook (deleted)"];

    fn own() -> Self {
        Self {
            file: program_of("self"),
        }
    }

    fn is_run_by(&self, process: u32) -> bool {
        let Some(file) = program_of(&process.to_string()) else {
            return false;
        };
        let has_name = |name: &str| file.file_name().is_some_and(|own| own == name);
        self.file.as_ref() == Some(&file) || Self::NAMES.into_iter().any(has_name)
    }
}

/// Returns the file that a process runs, if the system shows it.
fn program_of(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/exe")).ok()
}

/// A process as Linux describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    id: u32,
    parent: u32,
    has_terminal: bool,
    /// When it started, in clock ticks since the machine booted.
    start: u64,
    is_adopter: bool,
}

impl Process {
    fn read(process: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }

    /// Reads a line of `/proc/PID/stat`.
    fn parse(line: &str) -> Option<Self> {
        // The name of the program is in parentheses and may contain any character, even a parenthesis.
        let (before, fields) = line.rsplit_once(')')?;
        let (id, name) = before.split_once('(')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
        Some(Self {
            id: id.trim().parse().ok()?,
            parent: u32::try_from(field(4)?).ok()?,
            has_terminal: field(7)? != 0,
            start: u64::try_from(field(22)?).ok()?,
            is_adopter: ADOPTERS.contains(&name),
        })
    }

    fn parent(&self) -> Option<Self> {
        (self.parent != 0).then(|| Self::read(&self.parent.to_string()))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_of_this_program_is_run_by_tenterhook_and_so_is_one_that_has_ended() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(is_run_by_tenterhook(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_run_by_tenterhook(child.id()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_program_above_a_process_is_found_through_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("acme.sh");
        fs::write(&script, "sh -c 'cat; :'; :\n").unwrap();
        let mut child = std::process::Command::new("sh")
            .arg(&script)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let children = || {
            let path = format!("/proc/{0}/task/{0}/children", child.id());
            let list = fs::read_to_string(path).unwrap();
            list.split_whitespace()
                .next()
                .map(|id| id.parse::<u32>().unwrap())
        };
        let below = std::iter::repeat_with(children).find_map(|id| id).unwrap();
        let found = ancestor_running(below, &["acme"]).unwrap();
        assert_eq!(found.id, child.id());
        assert!(found.is_running() && is_below(below, &[found]));
        assert!(!is_below(child.id(), &[found]));
        let other = ProcessId { start: 1, ..found };
        assert!(!other.is_running() && !is_below(below, &[other]));
        assert_eq!(ancestor_running(below, &["no-such-program"]), None);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!found.is_running());
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let line = "42 (a) (b 1) S 7 42 42 34816 42 4194304 1 0 0 0 1 2 0 0 20 0 1 0 98765 1 2";
        let process = Process::parse(line).unwrap();
        assert_eq!((process.id, process.parent, process.start), (42, 7, 98_765));
        assert!(process.has_terminal);
        let line = "1 (systemd) S 0 1 1 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 1 0 3 1 2";
        let process = Process::parse(line).unwrap();
        assert!(process.is_adopter && !process.has_terminal);
        assert_eq!(process.parent(), None);
        assert_eq!(Process::parse("1 (systemd"), None);
    }
}
