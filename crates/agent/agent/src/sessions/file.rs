//! The file of a session: a header, then one entry per line. Changes are only ever appended.
//!
//! The process that writes holds the file's lock. A line is valid once its line end is written. If a write was
//! interrupted, the incomplete last line is not an entry. Opening the file for writing removes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use tenterhook_files::{Durability, FileLock, UnfinishedFile, make_private, sync_folder};
use tenterhook_protocol::SessionId;
use thiserror::Error;
use tokio::task::JoinError;

use crate::sessions::tail::{SessionTail, UnsyncedTail};

/// The format's name in the first line of each file.
pub(crate) const FORMAT: &str = "tenterhook-session";

/// The version of the format that this program reads and writes.
const VERSION: u32 = 1;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The reasons why a session cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A file or folder cannot be used.
    #[error("cannot use `{}`", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process is writing to the session.
    #[error("the session in `{}` is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The first line is not the header of a readable session.
    #[error("`{}` is not a readable session: its first line {problem}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with the line.
        problem: String,
    },
    /// A line is invalid, and not just an incomplete last line.
    #[error("`{}` is damaged in line {line}, which {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line.
        line: usize,
        /// What is wrong with the line.
        problem: String,
    },
    /// The file exceeds the size limit.
    #[error("`{}` has {bytes} bytes, expected at most {most}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size in bytes.
        bytes: u64,
        /// The size limit in bytes.
        most: u64,
    },
    /// The session does not exist.
    #[error("there is no session `{id}` in `{}`", folder.display())]
    Unknown {
        /// The requested id.
        id: String,
        /// The folder that was searched.
        folder: PathBuf,
    },
    /// Several ids start with the given text.
    #[error("several sessions begin with `{id}`: {found}")]
    Ambiguous {
        /// The given text.
        id: String,
        /// Some of the matching ids.
        found: String,
    },
}

impl SessionError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    /// Creates an error for a task that was cancelled or panicked.
    pub fn interrupted(error: JoinError) -> Self {
        Self::file(Path::new(""), io::Error::other(error))
    }
}

/// The first line of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    format: String,
    version: u32,
    pub(crate) id: SessionId,
    #[serde(serialize_with = "as_text")]
    pub(crate) cwd: PathBuf,
    pub(crate) created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forked_from: Option<SessionId>,
}

/// Writes a path as text, replacing invalid UTF-8. An error here would leave the file without its first line.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The keys of the first line that determine whether the file can be read.
#[derive(Deserialize)]
struct Kind {
    format: String,
    version: u32,
}

impl Header {
    pub(crate) fn new(id: &SessionId, forked_from: Option<&SessionId>, cwd: &Path) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: id.clone(),
            cwd: cwd.to_owned(),
            created: Timestamp::now(),
            forked_from: forked_from.cloned(),
        }
    }

    pub(crate) fn read(line: &[u8], path: &Path) -> Result<Self, SessionError> {
        let wrong = |problem: String| SessionError::Header {
            path: path.to_owned(),
            problem,
        };
        let kind: Kind = serde_json::from_slice(line)
            .map_err(|error| wrong(format!("has no format and version ({error})")))?;
        if kind.format != FORMAT {
            return Err(wrong(format!(
                "has the format `{}`, expected `{FORMAT}`",
                kind.format
            )));
        }
        if kind.version != VERSION {
            return Err(wrong(format!(
                "has version {}, expected {VERSION}; another version of the program wrote it",
                kind.version
            )));
        }
        serde_json::from_slice(line).map_err(|error| wrong(format!("is invalid: {error}")))
    }
}

/// Appends a value as a line of JSON. Entries can always be written as JSON; any other value would be left out.
pub(crate) fn write_line(lines: &mut Vec<u8>, value: &impl Serialize) {
    let before = lines.len();
    if serde_json::to_writer(&mut *lines, value).is_ok() {
        lines.push(b'\n');
    } else {
        lines.truncate(before);
    }
}

/// Reads all bytes of a file, up to the size limit.
pub(crate) fn read_all(mut file: &File, path: &Path) -> Result<Vec<u8>, SessionError> {
    let refused = |error| SessionError::file(path, error);
    let bytes = file.metadata().map_err(refused)?.len();
    if bytes > MAX_BYTES {
        return Err(SessionError::TooLarge {
            path: path.to_owned(),
            bytes,
            most: MAX_BYTES,
        });
    }
    let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    file.rewind().map_err(refused)?;
    file.take(MAX_BYTES)
        .read_to_end(&mut text)
        .map_err(refused)?;
    Ok(text)
}

/// A file to which only this process writes.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    state: FileState,
}

#[derive(Debug)]
enum FileState {
    /// The file will be created with the first entries.
    Planned(Header),
    /// The file exists, and its bytes up to `len` are valid.
    Made { file: FileLock, len: u64 },
}

impl SessionFile {
    /// Plans a file that is created with the first entries.
    pub(crate) fn plan(path: PathBuf, header: Header) -> Self {
        Self {
            path,
            state: FileState::Planned(header),
        }
    }

    /// Continues a file whose bytes up to `len` are valid.
    pub(crate) fn resume(path: PathBuf, file: FileLock, len: u64) -> Self {
        let state = FileState::Made { file, len };
        Self { path, state }
    }

    /// Returns where the file is, or will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends lines and waits until they are on the disk, unless they are added to `tail`. If that fails, the file stays
    /// as it was.
    pub(crate) fn append(
        &mut self,
        lines: &[u8],
        tail: Option<&UnsyncedTail>,
    ) -> Result<(), SessionError> {
        let refused = |error| SessionError::file(&self.path, error);
        match &mut self.state {
            FileState::Planned(header) => {
                let mut all = Vec::new();
                write_line(&mut all, header);
                all.extend_from_slice(lines);
                let file = create(&self.path, &all)?;
                let len = u64::try_from(all.len()).unwrap_or(u64::MAX);
                self.state = FileState::Made { file, len };
            }
            FileState::Made { file, len } => {
                if file.metadata().map_err(refused)?.len() != *len {
                    // An earlier write that failed may have left bytes here.
                    file.set_len(*len).map_err(refused)?;
                }
                file.seek(SeekFrom::Start(*len)).map_err(refused)?;
                let written = file.write_all(lines).and_then(|()| {
                    if tail.is_some_and(|tail| tail.push(&self.path, *len, lines)) {
                        return Ok(());
                    }
                    file.sync_data()?;
                    tail.into_iter().for_each(UnsyncedTail::clear);
                    Ok(())
                });
                if let Err(error) = written {
                    file.set_len(*len).map_err(refused)?;
                    return Err(refused(error));
                }
                *len += u64::try_from(lines.len()).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Waits until the tail is on the disk.
    pub(crate) fn sync(&self, tail: &UnsyncedTail) -> Result<(), SessionError> {
        if let FileState::Made { file, .. } = &self.state
            && !tail.is_empty()
        {
            let synced = file.sync_data();
            synced.map_err(|error| SessionError::file(&self.path, error))?;
            tail.clear();
        }
        Ok(())
    }
}

impl SessionTail {
    /// Adds to the file what is missing of the lines, and waits for the disk. A file that was removed, or that continues
    /// in another way, is not changed. It blocks.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be used, or if more is missing than the lines.
    pub fn restore(&self) -> Result<(), SessionError> {
        let refused = |error| SessionError::file(&self.file, error);
        let mut options = OpenOptions::new();
        let file = match options.read(true).write(true).open(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(refused)?,
        };
        let mut file = lock(file, &self.file)?;
        if file.metadata().map_err(refused)?.len() < self.offset {
            let text = "it is shorter than when it was last synchronised";
            return Err(refused(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        file.seek(SeekFrom::Start(self.offset)).map_err(refused)?;
        let mut found = Vec::new();
        let lines = self.lines.as_bytes();
        let max = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        (&mut *file)
            .take(max)
            .read_to_end(&mut found)
            .map_err(refused)?;
        match lines.strip_prefix(found.as_slice()) {
            Some(missing) if !missing.is_empty() => {
                let written = file.write_all(missing).and_then(|()| file.sync_data());
                written.map_err(refused)
            }
            _ => Ok(()),
        }
    }
}

/// Takes the lock of a file, so that there is only one writer.
pub(crate) fn lock(file: File, path: &Path) -> Result<FileLock, SessionError> {
    let lock = FileLock::try_lock(file).map_err(|error| SessionError::file(path, error))?;
    lock.ok_or_else(|| SessionError::InUse {
        path: path.to_owned(),
    })
}

/// Creates a file with its first lines. It exists completely or not at all: the caller reports a failure and tries again.
fn create(path: &Path, lines: &[u8]) -> Result<FileLock, SessionError> {
    let refused = |error| SessionError::file(path, error);
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder).map_err(|error| SessionError::file(folder, error))?;
    let mut unfinished = UnfinishedFile::create_with_extension(path, "new").map_err(refused)?;
    // The file has its writer before others can find it.
    let locked = lock(unfinished.as_file().try_clone().map_err(refused)?, path)?;
    let written = unfinished.write_all(lines);
    written
        .and_then(|()| unfinished.keep_new(Durability::ContentAndName))
        .map_err(refused)?;
    Ok(locked)
}

/// Creates a folder and waits until its name is on the disk. Otherwise a crash could lose the folder with the file.
fn make_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists());
    let around: Vec<&Path> = missing.filter_map(Path::parent).collect();
    make_private(folder)?;
    for folder in around {
        let is_here = folder.as_os_str().is_empty();
        sync_folder(if is_here { Path::new(".") } else { folder })?;
    }
    Ok(())
}
