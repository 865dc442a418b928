//! The sessions of one project: a folder with a file for each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use tenterhook_protocol::{Role, SessionId};

use super::file::{self, Contents, Header, SessionError, SessionFile, Torn};
use super::{MESSAGE, Session};

/// How the name of a session's file ends.
const EXTENSION: &str = "jsonl";

/// How many characters of a folder's name stand in that of its sessions' folder.
const MOST_NAME: usize = 40;

/// How many sessions an error names.
const NAMED: usize = 5;

/// The stored sessions of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sessions {
    folder: PathBuf,
    cwd: PathBuf,
}

/// A stored session.
#[derive(Debug)]
pub struct Opened {
    /// The session.
    pub session: Session,
    /// The directory that its agent worked in.
    pub cwd: PathBuf,
    /// When it began to be stored.
    pub created: Timestamp,
    /// What was not written to its end.
    pub torn: Option<Torn>,
}

/// A session in a list.
#[derive(Debug)]
pub struct Listed {
    /// The id.
    pub id: SessionId,
    /// The file.
    pub path: PathBuf,
    /// When the file was last written to.
    pub changed: Option<Timestamp>,
    /// What the file says, unless it cannot be read.
    pub about: Result<About, SessionError>,
}

/// What a list says of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// When it began to be stored.
    pub created: Timestamp,
    /// The session that it was forked from.
    pub forked_from: Option<SessionId>,
    /// How many messages the branch has.
    pub messages: usize,
    /// What the user said first on the branch.
    pub begins: Option<String>,
    /// The name that the user gave it.
    pub name: Option<String>,
}

impl Sessions {
    /// Returns the sessions of agents that work in `cwd`, below `data`. Nothing is made before there is a session.
    pub fn of_project(data: &Path, cwd: &Path) -> Self {
        Self {
            folder: data.join("sessions").join(project(cwd)),
            cwd: cwd.to_owned(),
        }
    }

    /// Returns the sessions of the same agents that are kept in another folder.
    #[must_use]
    pub fn in_folder(self, folder: PathBuf) -> Self {
        Self { folder, ..self }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Begins a session. Its file is made when the user's first words go to a model.
    pub(crate) fn begin(&self, session: &mut Session) {
        let header = Header::new(session, &self.cwd);
        let file = SessionFile::plan(self.path(session.id()), header);
        session.keep(file, false);
    }

    /// Opens a stored session to go on with it. The rest of a line that was not written to its end is cut off.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session, if another process has it open, and if its file is damaged.
    pub fn open(&self, id: &SessionId) -> Result<Opened, SessionError> {
        let path = self.existing(id)?;
        let (file, contents) = SessionFile::open(path.clone())?;
        let mut opened = opened(self.checked(contents, &path)?);
        opened.session.keep(file, true);
        Ok(opened)
    }

    /// Reads a stored session as it is, whoever has it open. What is made of it is not stored.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session, and if its file is damaged.
    pub fn read(&self, id: &SessionId) -> Result<Opened, SessionError> {
        self.look(&self.existing(id)?).map(opened)
    }

    fn look(&self, path: &Path) -> Result<Contents, SessionError> {
        self.checked(file::read(path)?, path)
    }

    /// A copy of a session under another name is no second session of its id.
    fn checked(&self, contents: Contents, path: &Path) -> Result<Contents, SessionError> {
        let id = &contents.header.id;
        if self.path(id) == path {
            return Ok(contents);
        }
        Err(SessionError::Header {
            path: path.to_owned(),
            problem: format!("says the session `{id}`, whose file has another name"),
        })
    }

    /// Lists the sessions, the one that was written to last first.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Listed>, SessionError> {
        let mut listed: Vec<Listed> = self
            .ids()?
            .into_iter()
            .map(|id| {
                let path = self.path(&id);
                let changed = fs::metadata(&path).and_then(|metadata| metadata.modified());
                Listed {
                    changed: changed.ok().and_then(|time| time.try_into().ok()),
                    about: self.look(&path).map(about),
                    id,
                    path,
                }
            })
            .collect();
        listed.sort_by(|a, b| (b.changed, &b.id).cmp(&(a.changed, &a.id)));
        Ok(listed)
    }

    /// Returns the session that was written to last.
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

    /// Returns the session of that id, or the only one whose id begins so.
    ///
    /// # Errors
    ///
    /// Fails if there is none, if there are several, and if the folder cannot be read.
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
                let some = found.iter().take(NAMED).map(|id| format!("`{id}`"));
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
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(refused(error)),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let path = entry.map_err(refused)?.path();
            let Some(id) = path.file_stem().and_then(|stem| stem.to_str()) else {
                continue;
            };
            // Whoever opens a pipe waits for its other end.
            let id = SessionId::from(id);
            if self.path(&id) == path && path.is_file() {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    /// Returns where a session is kept. An id is no way out of the folder.
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

    /// Returns the file of a session that there is.
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

fn opened(contents: Contents) -> Opened {
    Opened {
        session: contents.session,
        cwd: contents.header.cwd,
        created: contents.header.created,
        torn: contents.torn,
    }
}

fn about(contents: Contents) -> About {
    let entries = contents.session.entries();
    let said = entries.iter().filter(|entry| entry.kind == MESSAGE);
    let messages = said.filter_map(|entry| entry.message.as_ref());
    let mut of_user = messages
        .clone()
        .filter(|message| message.role == Role::User);
    About {
        created: contents.header.created,
        forked_from: contents.header.forked_from,
        name: contents.session.name().map(str::to_owned),
        begins: of_user.next().map(|message| message.content.clone()),
        messages: messages.count(),
    }
}

/// Returns the name of a project's folder: one that a person knows again, and that no other project has.
fn project(cwd: &Path) -> String {
    let name = cwd.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(MOST_NAME)
        .collect();
    format!("{name}-{}", digest(cwd.as_os_str().as_encoded_bytes()))
}

/// Says whether a character may stand in the name of a file everywhere.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Returns a short name that no other bytes have.
fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    digits.collect()
}
