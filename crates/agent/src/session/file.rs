//! The file of a session: a header, then an entry a line, and never anything but another line at the end.
//!
//! Who writes holds the file's lock. A line is in force when its line end is there; the rest of a line whose writing was
//! cut short is no entry yet, and is cut off when the file is next written to.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
use tenterhook_protocol::SessionId;
use tenterhook_protocol::event::SessionEntry;
use thiserror::Error;
use tokio::task::JoinError;

use super::{Misplaced, Session};

/// What the first line of each file says that it is.
const FORMAT: &str = "tenterhook-session";

/// The version of the format that is read and written.
const VERSION: u32 = 1;

/// The most bytes of a file that is read.
const MOST_BYTES: u64 = 1 << 30;

/// A session that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A file or folder cannot be used.
    #[error("cannot use `{}`", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process writes to it.
    #[error("the session in `{}` is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The first line is not that of a session which can be read.
    #[error("`{}` is no session that can be read: its first line {problem}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong with the line.
        problem: String,
    },
    /// A line is wrong, and more than the rest of one that was not written to its end.
    #[error("`{}` is damaged in line {line}, which {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is larger than any that is read.
    #[error("`{}` has {bytes} bytes, expected at most {most}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// What is read.
        most: u64,
    },
    /// There is no such session.
    #[error("there is no session `{id}` in `{}`", folder.display())]
    Unknown {
        /// What was asked for.
        id: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Several sessions begin so.
    #[error("several sessions begin with `{id}`: {found}")]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// Some of those that there are.
        found: String,
    },
}

impl SessionError {
    pub(super) fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn interrupted(error: JoinError) -> Self {
        Self::file(Path::new(""), io::Error::other(error))
    }
}

/// The rest of a line that was not written to its end. It was never said to be saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The number of the line.
    pub line: usize,
    /// How many bytes there were.
    pub bytes: usize,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    format: String,
    version: u32,
    pub(super) id: SessionId,
    #[serde(serialize_with = "as_text")]
    pub(super) cwd: PathBuf,
    pub(super) created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) forked_from: Option<SessionId>,
}

/// Writes a path that is no text as nearly as text can say it: a file without its first line would be lost.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The keys of the first line that say whether it can be read.
#[derive(Deserialize)]
struct Kind {
    format: String,
    version: u32,
}

impl Header {
    pub(super) fn new(session: &Session, cwd: &Path) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: session.id.clone(),
            cwd: cwd.to_owned(),
            created: Timestamp::now(),
            forked_from: session.forked_from.clone(),
        }
    }

    fn read(line: &[u8], path: &Path) -> Result<Self, SessionError> {
        let wrong = |problem: String| SessionError::Header {
            path: path.to_owned(),
            problem,
        };
        let kind: Kind = serde_json::from_slice(line)
            .map_err(|error| wrong(format!("says no format and version ({error})")))?;
        if kind.format != FORMAT {
            return Err(wrong(format!(
                "says the format `{}`, expected `{FORMAT}`",
                kind.format
            )));
        }
        if kind.version != VERSION {
            return Err(wrong(format!(
                "says version {}, expected {VERSION}; another version of the program wrote it",
                kind.version
            )));
        }
        serde_json::from_slice(line).map_err(|error| wrong(format!("is wrong: {error}")))
    }
}

/// What a file says.
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) session: Session,
    pub(super) torn: Option<Torn>,
    /// How many bytes are in force.
    len: u64,
    /// The last line is whole but for its line end.
    is_unended: bool,
}

/// Reads a file without any right to it.
pub(super) fn read(path: &Path) -> Result<Contents, SessionError> {
    let file = File::open(path).map_err(|error| SessionError::file(path, error))?;
    read_all(&file, path).and_then(|bytes| parse(&bytes, path))
}

fn read_all(mut file: &File, path: &Path) -> Result<Vec<u8>, SessionError> {
    let refused = |error| SessionError::file(path, error);
    let bytes = file.metadata().map_err(refused)?.len();
    if bytes > MOST_BYTES {
        return Err(SessionError::TooLarge {
            path: path.to_owned(),
            bytes,
            most: MOST_BYTES,
        });
    }
    let mut text = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    file.rewind().map_err(refused)?;
    file.take(MOST_BYTES)
        .read_to_end(&mut text)
        .map_err(refused)?;
    Ok(text)
}

fn parse(bytes: &[u8], path: &Path) -> Result<Contents, SessionError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let (_, first) = lines.next().unwrap_or_default();
    let header = Header::read(first, path)?;
    let mut session = Session::new(header.id.clone());
    session.forked_from.clone_from(&header.forked_from);
    let mut len = first.len();
    let mut torn = None;
    for (place, text) in lines {
        let line = place + 1;
        let wrong = |problem| SessionError::Line {
            path: path.to_owned(),
            line,
            problem,
        };
        let entry: SessionEntry = match serde_json::from_slice(text) {
            Ok(entry) => entry,
            Err(_) if !text.ends_with(b"\n") => {
                torn = Some(Torn {
                    line,
                    bytes: text.len(),
                });
                break;
            }
            Err(error) => return Err(wrong(format!("is no entry: {error}"))),
        };
        session
            .take(entry)
            .map_err(|misplaced: Misplaced| wrong(misplaced.to_string()))?;
        len += text.len();
    }
    Ok(Contents {
        header,
        session,
        is_unended: torn.is_none() && !bytes.ends_with(b"\n"),
        torn,
        len: u64::try_from(len).unwrap_or(u64::MAX),
    })
}

/// Adds a value as a line. What cannot be written as JSON does not occur in entries.
pub(super) fn write_line(lines: &mut Vec<u8>, value: &impl Serialize) {
    let before = lines.len();
    if serde_json::to_writer(&mut *lines, value).is_ok() {
        lines.push(b'\n');
    } else {
        lines.truncate(before);
    }
}

/// A file that this process alone writes to.
#[derive(Debug)]
pub(super) struct SessionFile {
    path: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It is made with the first entries.
    Planned(Header),
    /// Its bytes up to `len` are in force.
    Made { file: File, len: u64 },
}

impl SessionFile {
    /// Plans a file that is made with the first entries.
    pub(super) fn plan(path: PathBuf, header: Header) -> Self {
        Self {
            path,
            state: State::Planned(header),
        }
    }

    /// Opens a file to write to it, after its right part.
    pub(super) fn open(path: PathBuf) -> Result<(Self, Contents), SessionError> {
        let refused = |error| SessionError::file(&path, error);
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .open(&path)
            .map_err(refused)?;
        lock(&file, &path)?;
        let mut contents = read_all(&file, &path).and_then(|bytes| parse(&bytes, &path))?;
        if contents.torn.is_some() {
            file.set_len(contents.len).map_err(refused)?;
        }
        if contents.is_unended {
            file.seek(SeekFrom::Start(contents.len)).map_err(refused)?;
            file.write_all(b"\n").map_err(refused)?;
            contents.len += 1;
        }
        let state = State::Made {
            file,
            len: contents.len,
        };
        Ok((Self { path, state }, contents))
    }

    /// Writes lines and waits until they are on the disk. What cannot be written whole leaves the file as it was.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), SessionError> {
        let refused = |error| SessionError::file(&self.path, error);
        match &mut self.state {
            State::Planned(header) => {
                let mut all = Vec::new();
                write_line(&mut all, header);
                all.extend_from_slice(lines);
                let file = create(&self.path, &all)?;
                let len = u64::try_from(all.len()).unwrap_or(u64::MAX);
                self.state = State::Made { file, len };
            }
            State::Made { file, len } => {
                // A write that failed before may have left something here.
                file.set_len(*len).map_err(refused)?;
                file.seek(SeekFrom::Start(*len)).map_err(refused)?;
                let written = file.write_all(lines).and_then(|()| file.sync_data());
                if let Err(error) = written {
                    file.set_len(*len).map_err(refused)?;
                    return Err(refused(error));
                }
                *len += u64::try_from(lines.len()).unwrap_or_default();
            }
        }
        Ok(())
    }
}

fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => SessionError::InUse {
            path: path.to_owned(),
        },
        TryLockError::Error(error) => SessionError::file(path, error),
    })
}

/// Makes a file with its first lines, which is there whole or not at all.
fn create(path: &Path, lines: &[u8]) -> Result<File, SessionError> {
    let refused = |error| SessionError::file(path, error);
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder).map_err(|error| SessionError::file(folder, error))?;
    let unfinished = path.with_extension("new");
    let mut options = OpenOptions::new();
    // What another try left goes; a link that stands there instead is not followed.
    options.read(true).write(true).create_new(true);
    fs::remove_file(&unfinished).ok();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished).map_err(refused)?;
    let made = lock(&file, path).and_then(|()| {
        let written = file.write_all(lines).and_then(|()| file.sync_all());
        written.map_err(refused)?;
        if fs::exists(path).map_err(refused)? {
            return Err(refused(io::ErrorKind::AlreadyExists.into()));
        }
        fs::rename(&unfinished, path).map_err(refused)
    });
    if let Err(error) = made {
        fs::remove_file(&unfinished).ok();
        return Err(error);
    }
    if let Err(error) = sync_folder(folder) {
        // Nothing was said to be saved, and it is tried again.
        fs::remove_file(path).ok();
        return Err(refused(error));
    }
    Ok(file)
}

/// Makes a folder, and waits until its name is on the disk: a file in a folder that is gone is not stored.
fn make_folder(folder: &Path) -> io::Result<()> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists());
    let around: Vec<&Path> = missing.filter_map(Path::parent).collect();
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    for folder in around {
        let is_here = folder.as_os_str().is_empty();
        sync_folder(if is_here { Path::new(".") } else { folder })?;
    }
    Ok(())
}

/// Waits until the names in a folder are on the disk, where a platform lets one ask.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
