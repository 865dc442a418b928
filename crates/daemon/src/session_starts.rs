//! The folders in which sessions started, also those that earlier daemons have seen.
//!
//! An agent may work in another folder when its daemon is replaced. The next daemon must not take the
//! hooks of that folder. So each start is a line in a file of the daemon's folder.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tenterhook_systems::host::HostAgent;
use tenterhook_tools::ProcessId;

/// How many sessions are remembered. The one that started first is forgotten.
pub(crate) const MAX_STARTS: usize = 4_096;
/// The maximum length of a line in bytes. A longer one is not written.
const MAX_LINE: usize = 16 << 10;
/// The maximum size of the file that is read.
const MAX_FILE: u64 = (2 * MAX_STARTS * MAX_LINE) as u64;

/// The start of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionStarted {
    pub(crate) host: &'static str,
    pub(crate) session_id: String,
    /// The process of the host, if it is known.
    pub(crate) process: Option<ProcessId>,
    pub(crate) folder: PathBuf,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartLine {
    host: String,
    session: String,
    /// The id of the process and when it started.
    process: Option<(u32, u64)>,
    /// Not a `PathBuf`, which could not be written if it is not UTF-8.
    folder: OsString,
}

impl StartLine {
    fn read(line: &str) -> Option<SessionStarted> {
        let line: Self = serde_json::from_str(line).ok()?;
        Some(SessionStarted {
            host: HostAgent::by_name(&line.host)?.name,
            session_id: line.session,
            process: line.process.map(|(id, start)| ProcessId { id, start }),
            folder: line.folder.into(),
        })
    }

    fn write(started: &SessionStarted) -> io::Result<String> {
        let line = Self {
            host: started.host.to_owned(),
            session: started.session_id.clone(),
            process: started.process.map(|process| (process.id, process.start)),
            folder: started.folder.clone().into(),
        };
        let line = serde_json::to_string(&line)? + "\n";
        if line.len() > MAX_LINE {
            let text = format!("a session has an id or a folder of more than {MAX_LINE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(line)
    }
}

/// The file with the starts of sessions.
#[derive(Debug)]
pub(crate) struct SessionStartsFile {
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    lines: usize,
    problem: Option<String>,
}

impl SessionStartsFile {
    /// Reads the starts that earlier daemons have seen, the oldest first. Lines that cannot be read are
    /// reported, and their sessions are unknown. Blocks the thread.
    pub(crate) fn open(path: PathBuf) -> (Self, Vec<SessionStarted>) {
        let (text, mut problem) = match read(&path) {
            Ok(text) => (text, None),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        let mut starts: Vec<_> = text.lines().filter_map(StartLine::read).collect();
        let unreadable = text.lines().count() - starts.len();
        if unreadable > 0 {
            problem = Some(format!("{unreadable} lines cannot be read"));
        }
        starts.drain(..starts.len().saturating_sub(MAX_STARTS));
        let problem = problem.map(|problem| {
            let path = path.display();
            format!(
                "the list of sessions `{path}` is damaged: {problem}; sessions that it does not name \
                 get the hooks of the folder that their agent reports"
            )
        });
        let lines = text.lines().count();
        let state = Mutex::new(FileState { lines, problem });
        let file = Self { path, state };
        if unreadable > 0 && file.replace(&starts).is_ok() {
            file.state.lock().lines = starts.len();
        }
        (file, starts)
    }

    /// Adds a start. `known` returns all starts that are remembered, the oldest first; it is called when the
    /// file has grown too long. Blocks the thread.
    pub(crate) fn add(
        &self,
        started: &SessionStarted,
        known: impl FnOnce() -> Vec<SessionStarted>,
    ) {
        let mut state = self.state.lock();
        let written = if state.lines < 2 * MAX_STARTS {
            state.lines += 1;
            self.append(started)
        } else {
            let known = known();
            state.lines = known.len();
            self.replace(&known)
        };
        if let Err(error) = written {
            let path = self.path.display();
            state.problem = Some(format!(
                "the list of sessions `{path}` cannot be written: {error}"
            ));
        }
    }

    /// Returns why the file cannot be read or written, if it cannot.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state.lock().problem.clone()
    }

    /// Writes a line. It is one call of the system, so a daemon that is killed leaves no half line.
    fn append(&self, started: &SessionStarted) -> io::Result<()> {
        let line = StartLine::write(started)?;
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&self.path)?;
        file.write_all(line.as_bytes())
    }

    /// Replaces the file at once, so that a daemon that is killed leaves the old one.
    fn replace(&self, starts: &[SessionStarted]) -> io::Result<()> {
        let lines = starts.iter().filter_map(|it| StartLine::write(it).ok());
        let text: String = lines.collect();
        let new = self.path.with_extension("sessions-new");
        let mut options = OpenOptions::new();
        let mut file = options
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&new, &self.path)
    }
}

fn read(path: &Path) -> io::Result<String> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn started(session_id: &str, folder: &str) -> SessionStarted {
        SessionStarted {
            host: "claude-code",
            session_id: session_id.to_owned(),
            process: Some(ProcessId { id: 7, start: 9 }),
            folder: folder.into(),
        }
    }

    fn none() -> Vec<SessionStarted> {
        unreachable!("the file is short")
    }

    #[test]
    fn the_next_daemon_knows_the_sessions_even_if_a_folder_has_a_strange_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.sessions");
        let (file, before) = SessionStartsFile::open(path.clone());
        assert_eq!((before, file.problem()), (Vec::new(), None));
        let mut strange = started("s2", "/");
        strange.folder = OsString::from_vec(b"/a\xff\nb".to_vec()).into();
        let all = [started("s1", "/work"), strange];
        for one in &all {
            file.add(one, none);
        }
        let (file, found) = SessionStartsFile::open(path);
        assert_eq!((found.as_slice(), file.problem()), (all.as_slice(), None));
    }

    #[test]
    fn a_damaged_file_is_reported_and_its_other_lines_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.sessions");
        let (file, _) = SessionStartsFile::open(path.clone());
        file.add(&started("s1", "/work"), none);
        let half = fs::read_to_string(&path).unwrap() + "{\"host\":\"cl\n";
        fs::write(&path, half).unwrap();
        let (file, found) = SessionStartsFile::open(path.clone());
        assert_eq!(found, [started("s1", "/work")]);
        let problem = file.problem().unwrap();
        assert!(problem.contains("1 lines cannot be read"), "{problem}");
        assert_eq!(SessionStartsFile::open(path.clone()).0.problem(), None);

        fs::write(&path, b"\xff").unwrap();
        let (file, found) = SessionStartsFile::open(path.clone());
        assert!(found.is_empty() && file.problem().is_some());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let (file, found) = SessionStartsFile::open(path);
        assert!(found.is_empty() && file.problem().is_some());
    }

    #[test]
    fn a_file_that_has_grown_too_long_keeps_what_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.sessions");
        let (file, _) = SessionStartsFile::open(path.clone());
        for number in 0..2 * MAX_STARTS {
            file.add(&started(&format!("s{number}"), "/work"), none);
        }
        let (_, found) = SessionStartsFile::open(path.clone());
        assert_eq!(found.len(), MAX_STARTS);
        assert_eq!(found.first().unwrap().session_id, format!("s{MAX_STARTS}"));
        file.add(&started("last", "/work"), || vec![started("last", "/work")]);
        let (_, found) = SessionStartsFile::open(path);
        assert_eq!(found, [started("last", "/work")]);
    }
}
