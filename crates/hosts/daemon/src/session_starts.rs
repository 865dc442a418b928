//! The folders in which sessions started, also those that earlier daemons have seen.
//!
//! An agent may work in another folder when its daemon is replaced. The next daemon must not take the
//! hooks of that folder. So each start is a line in a file of the daemon's folder.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tenterhook_files::{Durability, private_options, replace_file};
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
    /// Why a start is not in the file.
    problem: Option<String>,
    /// A damaged file, and why it counts as damaged.
    damage: Option<(PathBuf, String)>,
}

impl FileState {
    fn damage_text(&self) -> Option<String> {
        let (path, cause) = self.damage.as_ref()?;
        let path = path.display();
        Some(format!(
            "the list of sessions `{path}` is damaged: {cause}; start a new session of the agent, or \
             remove the file if every agent works in the folder in which it started"
        ))
    }
}

impl SessionStartsFile {
    /// Reads the starts that earlier daemons have seen, the oldest first. A file of which a part cannot be
    /// read is kept under another name, see [`SessionStartsFile::damage`]. Blocks the thread.
    pub(crate) fn open(path: PathBuf) -> (Self, Vec<SessionStarted>) {
        let (text, mut unreadable) = match read(&path) {
            Ok(text) => (text, None),
            Err(error) => (String::new(), Some(error.to_string())),
        };
        let lines = text.lines().count();
        let mut starts: Vec<_> = text.lines().filter_map(StartLine::read).collect();
        if starts.len() < lines {
            unreadable = Some(format!("{} lines cannot be read", lines - starts.len()));
        }
        starts.drain(..starts.len().saturating_sub(MAX_STARTS));
        let damaged = path.with_extension("sessions-damaged");
        let mut state = FileState {
            lines,
            ..FileState::default()
        };
        if fs::symlink_metadata(&damaged).is_ok() {
            let cause = "a part of it cannot be read".to_owned();
            state.damage = Some((damaged.clone(), cause));
        }
        if let Some(cause) = unreadable {
            let kept = fs::rename(&path, &damaged).and_then(|()| replace(&path, &starts));
            let left = if kept.is_ok() { damaged } else { path.clone() };
            state.lines = starts.len();
            state.damage = Some((left, cause));
        }
        let state = Mutex::new(state);
        (Self { path, state }, starts)
    }

    /// Returns why sessions that the file does not name may have started in another folder than their agent
    /// reports now, if they may: a file was damaged, and the user has not removed what is left of it. Blocks
    /// the thread.
    pub(crate) fn damage(&self) -> Option<String> {
        let mut state = self.state.lock();
        state
            .damage
            .take_if(|(path, _)| fs::symlink_metadata(path).is_err());
        state.damage_text()
    }

    /// Returns why the file is damaged or cannot be written, if so.
    pub(crate) fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        state.damage_text().or_else(|| state.problem.clone())
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
            replace(&self.path, &known)
        };
        if let Err(error) = written {
            let path = self.path.display();
            state.problem = Some(format!(
                "the list of sessions `{path}` cannot be written: {error}"
            ));
        }
    }

    /// Writes a line. It is one call of the system, so a daemon that is killed leaves no half line.
    fn append(&self, started: &SessionStarted) -> io::Result<()> {
        let line = StartLine::write(started)?;
        let mut options = private_options();
        let mut file = options.create(true).append(true).open(&self.path)?;
        file.write_all(line.as_bytes())
    }
}

/// Replaces the file at once, so that a daemon that is killed leaves the old one.
fn replace(path: &Path, starts: &[SessionStarted]) -> io::Result<()> {
    let lines = starts.iter().filter_map(|it| StartLine::write(it).ok());
    let text: String = lines.collect();
    replace_file(path, text.as_bytes(), 0o600, Durability::None)
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
    fn a_damaged_file_counts_until_it_is_removed_and_its_other_lines_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.sessions");
        let left = folder.path().join("7.sessions-damaged");
        let (file, _) = SessionStartsFile::open(path.clone());
        file.add(&started("s1", "/work"), none);
        assert_eq!(file.damage(), None);
        let half = fs::read_to_string(&path).unwrap() + "{\"host\":\"cl";
        fs::write(&path, &half).unwrap();
        let (file, found) = SessionStartsFile::open(path.clone());
        assert_eq!(found, [started("s1", "/work")]);
        assert!(
            file.damage()
                .unwrap()
                .contains("7.sessions-damaged` is damaged")
        );
        assert_eq!(fs::read_to_string(&left).unwrap(), half);

        // What starts after it is known to the next daemon, which knows of the damage too.
        file.add(&started("s2", "/work"), none);
        let (file, found) = SessionStartsFile::open(path.clone());
        assert_eq!(found, [started("s1", "/work"), started("s2", "/work")]);
        assert_eq!(file.problem(), file.damage());
        assert!(file.damage().is_some());
        fs::remove_file(&left).unwrap();
        assert_eq!(file.damage(), None);
    }

    #[test]
    fn whatever_is_in_the_place_of_the_file_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.sessions");
        fs::write(&path, b"\xff").unwrap();
        let (file, found) = SessionStartsFile::open(path.clone());
        assert!(found.is_empty() && file.damage().is_some());
        fs::remove_file(&path).unwrap();
        fs::create_dir_all(path.join("full")).unwrap();
        // The file of the damage before cannot make place for a folder.
        let (file, found) = SessionStartsFile::open(path);
        fs::remove_file(folder.path().join("7.sessions-damaged")).unwrap();
        assert!(found.is_empty() && file.damage().is_some());
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
