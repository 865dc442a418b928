//! Reads the file of a session and restores the [`Session`] from its entries.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use tenterhook_protocol::event::SessionEntry;

use crate::sessions::entry::MisplacedEntry;
use crate::sessions::file::{Header, SessionError, SessionFile, lock, read_all};
use crate::sessions::session::Session;

/// An incomplete last line, left by an interrupted write. Its content was never reported as saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedLine {
    /// The number of the line.
    pub line: usize,
    /// The number of bytes in it.
    pub bytes: usize,
}

/// The contents of a file.
pub(crate) struct FileContents {
    pub(crate) header: Header,
    pub(crate) session: Session,
    pub(crate) unfinished_line: Option<UnfinishedLine>,
    /// The number of valid bytes.
    len: u64,
    /// Whether the last line is complete except for its line end.
    is_unended: bool,
}

/// Reads a file that another process may be writing to.
pub(crate) fn read(path: &Path) -> Result<FileContents, SessionError> {
    let file = File::open(path).map_err(|error| SessionError::file(path, error))?;
    read_all(&file, path).and_then(|bytes| parse(&bytes, path))
}

/// Opens a file for writing. An incomplete last line is removed.
pub(crate) fn open(path: PathBuf) -> Result<(SessionFile, FileContents), SessionError> {
    let refused = |error| SessionError::file(&path, error);
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .open(&path)
        .map_err(refused)?;
    let mut file = lock(file, &path)?;
    let mut contents = read_all(&file, &path).and_then(|bytes| parse(&bytes, &path))?;
    if contents.unfinished_line.is_some() {
        file.set_len(contents.len).map_err(refused)?;
    }
    if contents.is_unended {
        file.seek(SeekFrom::Start(contents.len)).map_err(refused)?;
        file.write_all(b"\n").map_err(refused)?;
        contents.len += 1;
    }
    let len = contents.len;
    Ok((SessionFile::resume(path, file, len), contents))
}

fn parse(bytes: &[u8], path: &Path) -> Result<FileContents, SessionError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
    let (_, first) = lines.next().unwrap_or_default();
    let header = Header::read(first, path)?;
    let mut session = Session::stored(header.id.clone(), header.forked_from.clone());
    let mut len = first.len();
    let mut unfinished_line = None;
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
                unfinished_line = Some(UnfinishedLine {
                    line,
                    bytes: text.len(),
                });
                break;
            }
            Err(error) => return Err(wrong(format!("is not a valid entry: {error}"))),
        };
        session
            .append_stored(entry)
            .map_err(|misplaced: MisplacedEntry| wrong(misplaced.to_string()))?;
        len += text.len();
    }
    Ok(FileContents {
        header,
        session,
        is_unended: unfinished_line.is_none() && !bytes.ends_with(b"\n"),
        unfinished_line,
        len: u64::try_from(len).unwrap_or(u64::MAX),
    })
}
