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

use std::fs;
use std::path::PathBuf;

use crate::shell::AGENT_VARIABLE;

/// The maximum number of ancestors of this process that are checked.
const MAX_ANCESTORS: usize = 1_024;

/// The names of programs that adopt processes whose parent has ended.
const ADOPTERS: [&str; 3] = ["systemd", "init", "launchd"];

/// Returns whether a program that Tenterhook runs started this one.
pub fn has_tenterhook_ancestor() -> bool {
    if std::env::var_os(AGENT_VARIABLE).is_some() {
        return true;
    }
    let Some(own) = Process::read("self") else {
        return false;
    };
    is_below_tenterhook(&own)
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
    has_agent_variable(process) || is_below_tenterhook(&other)
}

/// Returns whether a process was started with the variable that the agent's shell tool sets.
fn has_agent_variable(process: u32) -> bool {
    let prefix = format!("{AGENT_VARIABLE}=");
    let has_prefix = |variable: &[u8]| variable.starts_with(prefix.as_bytes());
    fs::read(format!("/proc/{process}/environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(has_prefix))
}

fn is_below_tenterhook(process: &Process) -> bool {
    let program = TenterhookProgram::own();
    let above = std::iter::successors(process.parent(), Process::parent);
    let ancestors: Vec<Process> = above.take(MAX_ANCESTORS).collect();
    ancestors
        .iter()
        .any(|ancestor| program.is_run_by(ancestor.id))
        || is_cut_off(process, &ancestors, &program)
}

/// Returns whether a running Tenterhook may have started a process that then cut itself off.
fn is_cut_off(own: &Process, ancestors: &[Process], program: &TenterhookProgram) -> bool {
    // A process that was put into a container from outside has a parent that is not visible here.
    let top = ancestors.last().unwrap_or(own);
    if own.has_terminal || top.id != 1 {
        return false;
    }
    let is_adopter = |process: &&Process| process.id == 1 || process.is_adopter;
    let chain = ancestors.iter().filter(|process| !is_adopter(process));
    let oldest = chain.chain([own]).map(|process| process.start).min();
    let is_older = |process: &Process| oldest.is_some_and(|oldest| process.start <= oldest);
    all_processes().any(|id| {
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
