//! Restores the state of a gateway from a backup.
//!
//! The backup is checked as a whole before anything is changed. What it replaces is kept in a folder of the state. If a
//! restore is interrupted while it replaces files, gateways do not start until it is repeated.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tar::{Archive, Entry};
use tenterhook_channel::store::{RESTORING, STORE_FILE, Store, StoreError, StoreLock};
use tenterhook_files::{
    Durability, HashingReader, UnfinishedFile, is_locked, make_private, private_options,
    sync_folder,
};
use thiserror::Error;

use crate::backup::{ABOUT, About, ArchivedFile, CHECKSUMS, LAYOUT, SESSIONS};
use crate::gateway::MEDIA_FOLDER;

/// The folder for what is unpacked, before it is checked.
const UNPACKED: &str = "restoring.partial";

/// The maximum length of an entry that describes the archive, in bytes.
const MAX_DESCRIPTION: u64 = 256 << 20;

/// Why nothing was restored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A gateway uses the state folder.
    #[error("a gateway uses the state folder `{}`", folder.display())]
    Running {
        /// The folder.
        folder: PathBuf,
    },
    /// The file is not a backup.
    #[error("`{}` is not a backup of a gateway", path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
    },
    /// The backup is damaged.
    #[error("the backup `{}` is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A newer version wrote the backup.
    #[error("version {version} of tenterhook wrote the backup `{}`, with layout {found}; expected layout {LAYOUT}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version that wrote it.
        version: String,
        /// Its layout.
        found: u32,
    },
    /// The sessions of the backup belong into another folder.
    #[error("the sessions of the backup were in `{}`, but agents that start here have theirs in `{}`", found.display(), expected.display())]
    OtherSessions {
        /// The folder of the backup.
        found: PathBuf,
        /// The folder of agents that start here.
        expected: PathBuf,
    },
    /// A program has a session open that would be replaced.
    #[error("the session in `{}` is in use by another process", path.display())]
    SessionInUse {
        /// The file.
        path: PathBuf,
    },
    /// The store in the backup, or the state folder, cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file or folder cannot be used.
    #[error("cannot use `{}`", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl RestoreError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}

/// Where the sessions of a backup are restored to.
#[derive(Debug, Clone)]
pub struct SessionsTarget {
    /// The folder.
    pub folder: PathBuf,
    /// Whether the user has named the folder, so that it may be another one than before.
    pub is_named: bool,
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreSummary {
    /// When the backup was written.
    pub at: Timestamp,
    /// How many sessions were written. Those that were there already, with the same text, are not counted.
    pub sessions: usize,
    /// The folder with what was replaced. `None` if nothing was.
    pub replaced: Option<PathBuf>,
}

/// Restores the state in a folder. It blocks.
///
/// # Errors
///
/// Describes what is wrong. Unless a file could not be written, nothing has changed then.
pub fn restore_backup(
    state: &Path,
    sessions: &SessionsTarget,
    backup: &Path,
) -> Result<RestoreSummary, RestoreError> {
    let locked = StoreLock::take(state).map_err(|error| {
        if error == StoreError::Locked {
            RestoreError::Running {
                folder: state.to_owned(),
            }
        } else {
            error.into()
        }
    });
    let _lock = locked?;
    let unpacked = state.join(UNPACKED);
    remove_folder(&unpacked)?;
    let checked = unpack(backup, &unpacked).and_then(|about| {
        if let Some(found) = about.sessions.as_ref().filter(|_| !sessions.is_named)
            && *found != sessions.folder
        {
            return Err(RestoreError::OtherSessions {
                found: found.clone(),
                expected: sessions.folder.clone(),
            });
        }
        // The layout of the store has a version of its own.
        Store::open(&unpacked)?;
        let replacing = differing_sessions(&unpacked, &sessions.folder)?;
        Ok((about, replacing))
    });
    let (about, replacing) = match checked {
        Ok(checked) => checked,
        Err(error) => {
            remove_folder(&unpacked)?;
            return Err(error);
        }
    };
    let restoring = state.join(RESTORING);
    remove_folder(&restoring)?;
    fs::rename(&unpacked, &restoring).map_err(RestoreError::file(&unpacked))?;
    sync_folder(state).map_err(RestoreError::file(state))?;
    let places = Places {
        state,
        sessions: &sessions.folder,
        replaced: state.join(format!("replaced-{}", Timestamp::now().as_millisecond())),
    };
    places.replace(&restoring, &replacing)?;
    remove_folder(&restoring)?;
    Ok(RestoreSummary {
        at: about.at,
        sessions: replacing.len(),
        replaced: places.replaced.exists().then_some(places.replaced),
    })
}

/// Unpacks an archive into a folder, and checks every file.
fn unpack(backup: &Path, folder: &Path) -> Result<About, RestoreError> {
    let file = File::open(backup).map_err(RestoreError::file(backup))?;
    let damaged = |problem: String| RestoreError::Damaged {
        path: backup.to_owned(),
        problem,
    };
    let unreadable = |error: io::Error| damaged(error.to_string());
    let not_a_backup = || RestoreError::NotABackup {
        path: backup.to_owned(),
    };
    let mut archive = Archive::new(io::BufReader::new(file));
    let mut entries = archive.entries().map_err(unreadable)?;
    let first = entries.next().and_then(Result::ok);
    let first = first.filter(|entry| name_of(entry).as_deref() == Some(ABOUT));
    let about: serde_json::Value = read_json(first.ok_or_else(not_a_backup)?).map_err(damaged)?;
    check_layout(&about, backup)?;
    let about: About = serde_json::from_value(about).map_err(|error| damaged(error.to_string()))?;
    for name in [SESSIONS, MEDIA_FOLDER] {
        let folder = folder.join(name);
        make_private(&folder).map_err(RestoreError::file(&folder))?;
    }
    let mut found = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let name = name_of(&entry).unwrap_or_default();
        if name == CHECKSUMS {
            let expected: BTreeSet<ArchivedFile> = read_json(entry).map_err(damaged)?;
            return if expected == found {
                // Without this check, an empty store would replace the messages.
                if !found.iter().any(|file| file.name == STORE_FILE) {
                    return Err(damaged(format!("it has no `{STORE_FILE}`")));
                }
                Ok(about)
            } else {
                let changed = expected.symmetric_difference(&found).next();
                let name = changed.map(|file| file.name.as_str()).unwrap_or_default();
                Err(damaged(format!("`{name}` is not as it was written")))
            };
        }
        let path = safe_place(folder, &name)
            .ok_or_else(|| damaged(format!("it has an entry `{}`", name.escape_debug())))?;
        let mut reader = HashingReader::new(entry);
        unpack_file(&path, &mut reader).map_err(|error| {
            // An archive that was cut ends in the middle of an entry.
            let cut = [io::ErrorKind::UnexpectedEof, io::ErrorKind::InvalidData];
            if cut.contains(&error.kind()) {
                unreadable(error)
            } else {
                RestoreError::file(&path)(error)
            }
        })?;
        found.insert(ArchivedFile::of(name, reader));
    }
    Err(damaged("its end is missing".to_owned()))
}

/// Refuses an archive of a later layout, of which nothing else may be known.
fn check_layout(about: &serde_json::Value, backup: &Path) -> Result<(), RestoreError> {
    let found = about.get("layout").and_then(serde_json::Value::as_u64);
    let Some(found) = found.and_then(|found| u32::try_from(found).ok()) else {
        let path = backup.to_owned();
        return Err(RestoreError::NotABackup { path });
    };
    if found == LAYOUT {
        return Ok(());
    }
    let version = about.get("version").and_then(serde_json::Value::as_str);
    Err(RestoreError::Newer {
        path: backup.to_owned(),
        version: version.unwrap_or("?").escape_debug().to_string(),
        found,
    })
}

fn name_of<R: io::Read>(entry: &Entry<'_, R>) -> Option<String> {
    let is_file = entry.header().entry_type().is_file();
    let name = entry.path().ok().filter(|_| is_file)?;
    name.to_str().map(str::to_owned)
}

fn read_json<T: DeserializeOwned>(entry: impl io::Read) -> Result<T, String> {
    serde_json::from_reader(entry.take(MAX_DESCRIPTION)).map_err(|error| error.to_string())
}

/// Returns where a file of an archive is unpacked to. `None` for names that no backup has.
fn safe_place(folder: &Path, name: &str) -> Option<PathBuf> {
    let parts: Vec<_> = Path::new(name).components().collect();
    let is_safe = match parts.as_slice() {
        [Component::Normal(name)] => *name == STORE_FILE,
        [Component::Normal(of), Component::Normal(_)] => *of == SESSIONS || *of == MEDIA_FOLDER,
        _ => false,
    };
    is_safe.then(|| folder.join(name))
}

/// Returns the names of the sessions that are missing in a folder, or different. None of them may be in use.
fn differing_sessions(unpacked: &Path, folder: &Path) -> Result<Vec<PathBuf>, RestoreError> {
    let mut differing = Vec::new();
    for name in names(&unpacked.join(SESSIONS))? {
        let (new, old) = (unpacked.join(SESSIONS).join(&name), folder.join(&name));
        if has_same_bytes(&new, &old)? {
            continue;
        }
        if is_locked(&old) {
            return Err(RestoreError::SessionInUse { path: old });
        }
        differing.push(name);
    }
    Ok(differing)
}

fn has_same_bytes(new: &Path, old: &Path) -> Result<bool, RestoreError> {
    let Ok(found) = fs::metadata(old) else {
        return Ok(false);
    };
    let len = fs::metadata(new).map_err(RestoreError::file(new))?.len();
    if found.len() != len {
        return Ok(false);
    }
    let hash = |path: &Path| HashingReader::copy(File::open(path)?, &mut io::sink());
    let (one, two) = (
        hash(new).map_err(RestoreError::file(new))?,
        hash(old).map_err(RestoreError::file(old))?,
    );
    Ok(one == two)
}

fn names(folder: &Path) -> Result<Vec<PathBuf>, RestoreError> {
    let entries = fs::read_dir(folder).map_err(RestoreError::file(folder))?;
    let names = entries.map(|entry| entry.map(|entry| PathBuf::from(entry.file_name())));
    names
        .collect::<io::Result<_>>()
        .map_err(RestoreError::file(folder))
}

/// Where the files of a backup belong.
struct Places<'a> {
    state: &'a Path,
    sessions: &'a Path,
    /// Where replaced files are kept.
    replaced: PathBuf,
}

impl Places<'_> {
    /// Puts the unpacked files in their places. The store comes last, because it refers to the others.
    fn replace(&self, unpacked: &Path, sessions: &[PathBuf]) -> Result<(), RestoreError> {
        for name in sessions {
            let place = self.sessions.join(name);
            self.keep(&place, &Path::new(SESSIONS).join(name))?;
            put(&unpacked.join(SESSIONS).join(name), &place)?;
        }
        let media = self.state.join(MEDIA_FOLDER);
        for name in names(&unpacked.join(MEDIA_FOLDER))? {
            let place = media.join(&name);
            // Files of this folder never change.
            if !place.exists() {
                put(&unpacked.join(MEDIA_FOLDER).join(&name), &place)?;
            }
        }
        let store = self.state.join(STORE_FILE);
        self.keep(&store, Path::new(STORE_FILE))?;
        put(&unpacked.join(STORE_FILE), &store)
    }

    /// Keeps a copy of a file that is replaced.
    fn keep(&self, path: &Path, name: &Path) -> Result<(), RestoreError> {
        if path.exists() {
            put(path, &self.replaced.join(name))?;
        }
        Ok(())
    }
}

/// Copies a file to its place, so that the place has the old file or the new one at each moment.
fn put(from: &Path, to: &Path) -> Result<(), RestoreError> {
    let folder = to.parent().unwrap_or(Path::new("/"));
    make_private(folder).map_err(RestoreError::file(folder))?;
    let mut source = File::open(from).map_err(RestoreError::file(from))?;
    let mut copy = || {
        let mut copy = UnfinishedFile::create_with_extension(to, "restored")?;
        io::copy(&mut source, &mut copy)?;
        copy.replace(Durability::ContentAndName)
    };
    copy().map_err(RestoreError::file(to))
}

/// Writes a file that only its owner can read, and waits for the disk.
fn unpack_file(path: &Path, from: &mut impl io::Read) -> io::Result<()> {
    let mut file = private_options().write(true).create_new(true).open(path)?;
    io::copy(from, &mut file)?;
    file.sync_all()
}

fn remove_folder(folder: &Path) -> Result<(), RestoreError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(RestoreError::file(folder)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::write_archive;

    #[test]
    fn a_backup_without_a_store_is_refused_and_replaces_no_messages() {
        let folder = tempfile::tempdir().unwrap();
        let (state, backup) = (folder.path().join("state"), folder.path().join("backup"));
        drop(Store::open(&state).unwrap());
        let before = fs::read(state.join(STORE_FILE)).unwrap();
        let about = About {
            layout: LAYOUT,
            version: "0".to_owned(),
            at: Timestamp::UNIX_EPOCH,
            sessions: None,
        };
        write_archive(&about, &[], &backup).unwrap();
        let sessions = SessionsTarget {
            folder: folder.path().join("sessions"),
            is_named: true,
        };
        let refused = restore_backup(&state, &sessions, &backup).unwrap_err();
        assert!(matches!(refused, RestoreError::Damaged { .. }), "{refused}");
        assert_eq!(fs::read(state.join(STORE_FILE)).unwrap(), before);
    }
}
