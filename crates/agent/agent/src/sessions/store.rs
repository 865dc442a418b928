//! The sessions of one project: a folder with one file per session.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tenterhook_files::{entries, hex_digest};
use tenterhook_protocol::{Role, SessionId, message_extra};

use crate::sessions::entry_kind::MESSAGE;
use crate::sessions::file::{Header, SessionError, SessionFile};
use crate::sessions::read::{self, FileContents, UnfinishedLine};
use crate::sessions::session::Session;

/// The extension of session files.
const EXTENSION: &str = "jsonl";

/// The maximum number of characters of a project folder's name that are used in the name of its
/// sessions' folder.
const MAX_NAME_CHARS: usize = 40;

/// The maximum number of sessions that an error lists.
const MAX_NAMED: usize = 5;

/// The stored sessions of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStore {
    folder: PathBuf,
    cwd: PathBuf,
}

/// A stored session.
#[derive(Debug)]
pub struct StoredSession {
    /// The session.
    pub session: Session,
    /// The working directory of its agent.
    pub cwd: PathBuf,
    /// When its file was created.
    pub created: Timestamp,
    /// The incomplete last line, if there was one.
    pub unfinished_line: Option<UnfinishedLine>,
}

/// A session in a list.
#[derive(Debug)]
pub struct SessionListing {
    /// The session's id.
    pub id: SessionId,
    /// The session's file.
    pub path: PathBuf,
    /// When the file was last written to.
    pub changed: Option<Timestamp>,
    /// The contents in brief, or why the file cannot be read.
    pub overview: Result<SessionOverview, SessionError>,
}

/// The brief description of a session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOverview {
    /// When its file was created.
    pub created: Timestamp,
    /// The session that it was forked from.
    pub forked_from: Option<SessionId>,
    /// The number of messages on the branch.
    pub messages: usize,
    /// The first user message on the branch.
    pub first_message: Option<String>,
    /// The name that the user gave the session.
    pub name: Option<String>,
}

impl SessionStore {
    /// Returns the store for agents that work in `cwd`, below the data folder `data`. It creates no files yet.
    pub fn of_project(data: &Path, cwd: &Path) -> Self {
        Self {
            folder: data.join("sessions").join(project_folder_name(cwd)),
            cwd: cwd.to_owned(),
        }
    }

    /// Returns the same store with another folder.
    #[must_use]
    pub fn in_folder(self, folder: PathBuf) -> Self {
        Self { folder, ..self }
    }

    /// Returns the folder of the session files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Prepares a new session for storage. Its file is created when the first user message is sent to
    /// a model.
    pub fn begin(&self, session: &mut Session) {
        let header = Header::new(session.id(), session.forked_from(), &self.cwd);
        let file = SessionFile::plan(self.path(session.id()), header);
        session.store_in(file, false);
    }

    /// Opens a stored session to continue it. An incomplete last line is removed.
    ///
    /// # Errors
    ///
    /// Fails if the session does not exist, if another process has it open, or if its file is damaged.
    pub fn open(&self, id: &SessionId) -> Result<StoredSession, SessionError> {
        let path = self.existing(id)?;
        let (file, contents) = read::open(path.clone())?;
        let mut opened = stored_session(self.checked(contents, &path)?);
        opened.session.store_in(file, true);
        Ok(opened)
    }

    /// Reads a stored session, even if another process has it open. Changes to the result are not stored.
    ///
    /// # Errors
    ///
    /// Fails if the session does not exist or its file is damaged.
    pub fn read(&self, id: &SessionId) -> Result<StoredSession, SessionError> {
        self.read_checked(&self.existing(id)?).map(stored_session)
    }

    fn read_checked(&self, path: &Path) -> Result<FileContents, SessionError> {
        self.checked(read::read(path)?, path)
    }

    /// Refuses a copy of a session under another name, so that an id never has two files.
    fn checked(&self, contents: FileContents, path: &Path) -> Result<FileContents, SessionError> {
        let id = &contents.header.id;
        if self.path(id) == path {
            return Ok(contents);
        }
        Err(SessionError::Header {
            path: path.to_owned(),
            problem: format!("names the session `{id}`, but the file has another name"),
        })
    }

    /// Lists the sessions, most recently changed first.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<SessionListing>, SessionError> {
        let mut listed: Vec<SessionListing> = self
            .ids()?
            .into_iter()
            .map(|id| {
                let path = self.path(&id);
                let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
                SessionListing {
                    changed: changed.ok().and_then(|time| time.try_into().ok()),
                    overview: self.read_checked(&path).map(overview),
                    id,
                    path,
                }
            })
            .collect();
        listed.sort_by(|a, b| (b.changed, &b.id).cmp(&(a.changed, &a.id)));
        Ok(listed)
    }

    /// Returns the most recently changed session.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn newest(&self) -> Result<Option<SessionId>, SessionError> {
        let changed = |id: &SessionId| fs::metadata(self.path(id)).and_then(|data| data.modified());
        let newest = self
            .ids()?
            .into_iter()
            .max_by_key(|id| (changed(id).ok(), id.clone()));
        Ok(newest)
    }

    /// Returns the session with this id, or the only session whose id starts with it.
    ///
    /// # Errors
    ///
    /// Fails if no session matches, if several do, or if the folder cannot be read.
    pub fn find(&self, id: &str) -> Result<SessionId, SessionError> {
        let mut found = self.ids()?;
        if found.iter().any(|known| known.as_str() == id) {
            return Ok(id.into());
        }
        found.retain(|known| known.as_str().starts_with(id));
        found.sort();
        match found.as_slice() {
            [only] if !id.is_empty() => Ok(only.clone()),
            [_, _, ..] if !id.is_empty() => {
                let some = found.iter().take(MAX_NAMED).map(|id| format!("`{id}`"));
                Err(SessionError::Ambiguous {
                    id: id.to_owned(),
                    found: some.collect::<Vec<_>>().join(", "),
                })
            }
            _ => Err(self.unknown(id)),
        }
    }

    fn ids(&self) -> Result<Vec<SessionId>, SessionError> {
        let refused = |error| SessionError::file(&self.folder, error);
        let mut ids = Vec::new();
        for entry in entries(&self.folder).map_err(refused)? {
            let path = entry.map_err(refused)?.path();
            let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            // Only regular files are considered, because opening a pipe would wait for its other end.
            let id = SessionId::from(id);
            if self.path(&id) == path && path.is_file() {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// Returns the file of a session. Ids with unusual characters are hashed, so that none can leave the folder.
    fn path(&self, id: &SessionId) -> PathBuf {
        let id = id.as_str();
        let is_name = id.chars().all(is_plain) && !id.is_empty();
        let name = if is_name {
            id.to_owned()
        } else {
            digest(id.as_bytes())
        };
        self.folder.join(name).with_extension(EXTENSION)
    }

    /// Returns the file of an existing session.
    fn existing(&self, id: &SessionId) -> Result<PathBuf, SessionError> {
        let path = self.path(id);
        let is_file = path.is_file();
        is_file
            .then_some(path)
            .ok_or_else(|| self.unknown(id.as_str()))
    }

    fn unknown(&self, id: &str) -> SessionError {
        SessionError::Unknown {
            id: id.to_owned(),
            folder: self.folder.clone(),
        }
    }
}

fn stored_session(contents: FileContents) -> StoredSession {
    StoredSession {
        session: contents.session,
        cwd: contents.header.cwd,
        created: contents.header.created,
        unfinished_line: contents.unfinished_line,
    }
}

fn overview(contents: FileContents) -> SessionOverview {
    let entries = contents.session.entries();
    let said = entries.iter().filter(|entry| entry.kind == MESSAGE);
    let messages = said.filter_map(|entry| entry.message.as_ref());
    // Messages of extensions also have the role of the user.
    let mut of_user = messages.clone().filter(|message| {
        message.role == Role::User && !message.extra.contains_key(message_extra::KIND)
    });
    SessionOverview {
        created: contents.header.created,
        forked_from: contents.header.forked_from,
        name: contents.session.name().map(str::to_owned),
        first_message: of_user.next().map(|message| message.content.clone()),
        messages: messages.count(),
    }
}

/// Returns the name of a project's folder. It is recognisable for people and unique.
fn project_folder_name(cwd: &Path) -> String {
    let name = cwd.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(MAX_NAME_CHARS)
        .collect();
    format!("{name}-{}", digest(cwd.as_os_str().as_encoded_bytes()))
}

/// Reports whether a character is safe in file names on every platform.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Returns a short hash as hex digits.
fn digest(bytes: &[u8]) -> String {
    let mut digits = hex_digest(bytes);
    digits.truncate(16);
    digits
}

#[cfg(test)]
mod tests;
