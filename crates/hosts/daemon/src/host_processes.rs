//! The host processes that have called the daemon. Commands that only the user may give refuse to run
//! below them, because an agent must not approve, disable or reload the hooks that guard it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use parking_lot::Mutex;
use tenterhook_files::{Durability, replace_file};
use tenterhook_tools::{ProcessId, is_below};

/// How many processes are kept.
const MAX_PROCESSES: usize = 512;

/// The host processes, in memory and in the file that commands read.
#[derive(Debug)]
pub(crate) struct HostProcesses {
    file: PathBuf,
    known: Mutex<BTreeSet<ProcessId>>,
}

impl HostProcesses {
    /// Starts with the processes that earlier daemons have seen and that still run. Blocks the thread.
    ///
    /// Without the list, programs of running agents could approve or disable hooks, so an unreadable list is
    /// an error.
    pub(crate) fn new(file: PathBuf) -> io::Result<Self> {
        let list = match std::fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let known: BTreeSet<ProcessId> = ProcessId::read_list(&list)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line is not a process"))?;
        let known = known.into_iter().filter(|process| process.is_running());
        Ok(Self {
            known: Mutex::new(known.collect()),
            file,
        })
    }

    /// Adds a process, and forgets those that have ended. Blocks the thread.
    pub(crate) fn add(&self, process: ProcessId) {
        let mut known = self.known.lock();
        if !known.insert(process) {
            return;
        }
        known.retain(|process| process.is_running());
        while known.len() > MAX_PROCESSES {
            known.pop_first();
        }
        let lines = known
            .iter()
            .map(|process| format!("{} {}\n", process.id, process.start));
        // Without the file, commands still refuse to run below the daemon.
        let lines: String = lines.collect();
        replace_file(&self.file, lines.as_bytes(), 0o600, Durability::None).ok();
    }

    /// Returns whether any host still runs. Blocks the thread.
    pub(crate) fn any_runs(&self) -> bool {
        self.known.lock().iter().any(|process| process.is_running())
    }

    /// Returns whether a host started this process. Blocks the thread.
    pub(crate) fn started(&self, process: u32) -> bool {
        let known: Vec<ProcessId> = self.known.lock().iter().copied().collect();
        is_below(process, &known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_cannot_be_read_is_an_error_and_a_missing_one_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("7.hosts");
        assert!(!HostProcesses::new(file.clone()).unwrap().any_runs());
        std::fs::write(&file, "1 0\n").unwrap();
        assert!(!HostProcesses::new(file.clone()).unwrap().any_runs());
        for damaged in [&b"1 0\nx\n"[..], b"\xff"] {
            std::fs::write(&file, damaged).unwrap();
            assert!(HostProcesses::new(file.clone()).is_err());
        }
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        assert!(HostProcesses::new(file).is_err());
    }
}
