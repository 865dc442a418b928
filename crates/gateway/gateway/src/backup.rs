//! Writes a backup of a gateway: its store, the sessions of its agents and its files, as of one moment.
//!
//! A backup is an archive in the format `tar`. Its first entry says which version wrote it, and its last one has the
//! SHA-256 of every file. So a backup that was cut or changed is noticed before anything is restored.
//!
//! The store and the lengths of the sessions are taken while nothing is stored. What a backup has is therefore what the
//! disk would have after a crash at this moment, and a gateway that continues from a backup recovers in the same way.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tar::{Builder, Header};
use tempfile::TempDir;
use tenterhook_channel::store::{STORE_FILE, Store, StoreError};
use tenterhook_files::{Durability, HashingReader, UnfinishedFile, entries};
use thiserror::Error;

use crate::gateway::MEDIA_FOLDER;

/// The version of the archive's layout that this program reads and writes.
pub(crate) const LAYOUT: u32 = 1;

/// The entries of an archive that describe it: the first one and the last one.
pub(crate) const ABOUT: &str = "tenterhook-backup.json";
pub(crate) const CHECKSUMS: &str = "checksums.json";

/// The folder of sessions in an archive.
pub(crate) const SESSIONS: &str = "sessions";

/// The extension of the files of sessions. Others in their folder are incomplete.
const SESSION_EXTENSION: &str = "jsonl";

/// The first entry of an archive. Later layouts keep `layout` and `version`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) layout: u32,
    /// The version of the program that wrote it.
    pub(crate) version: String,
    pub(crate) at: Timestamp,
    /// The folder of the sessions.
    pub(crate) sessions: Option<PathBuf>,
}

/// A file of an archive, as its last entry lists it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchivedFile {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

impl ArchivedFile {
    /// Describes the file that has been read.
    pub(crate) fn of<R: Read>(name: String, reader: HashingReader<R>) -> Self {
        let (sha256, size) = reader.finish();
        Self { name, size, sha256 }
    }
}

/// Why a backup could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store cannot be read or copied.
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
    /// A file became shorter while it was copied.
    #[error("`{}` became shorter while it was copied; try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl BackupError {
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}

/// What a backup has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackupSummary {
    /// Its size in bytes.
    pub bytes: u64,
    /// How many sessions it has.
    pub sessions: usize,
    /// How many files it has that people, hooks and tools sent.
    pub media: usize,
}

/// A file that belongs into a backup.
pub(crate) struct Source {
    name: String,
    path: PathBuf,
    /// How much of it belongs into the backup. `None` for a file that does not change once it is there.
    len: Option<u64>,
}

/// Writes a backup of the state in a folder, whose store is open, and of the sessions in another folder. The file must
/// not exist. Only its owner can read it.
///
/// # Errors
///
/// Describes what is wrong. Then there is no such file.
pub async fn write_backup(
    store: &Store,
    state: &Path,
    sessions: Option<PathBuf>,
    file: &Path,
) -> Result<BackupSummary, BackupError> {
    let path = file.to_owned();
    let copy = blocking(file, move || prepare(&path)).await?;
    let listed = sessions.clone();
    let observe = move || listed.as_deref().map_or(Ok(Vec::new()), list_sessions);
    let listed = store.copy_into(copy.path(), observe).await??;
    let (media, path) = (state.join(MEDIA_FOLDER), file.to_owned());
    blocking(file, move || {
        let mut sources = vec![Source {
            name: STORE_FILE.to_owned(),
            path: copy.path().join(STORE_FILE),
            len: None,
        }];
        let (of_sessions, of_media) = (listed, list_media(&media)?);
        let summary = (of_sessions.len(), of_media.len());
        sources.extend(of_sessions);
        sources.extend(of_media);
        let about = About {
            layout: LAYOUT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at: Timestamp::now(),
            sessions,
        };
        let bytes = write_archive(&about, &sources, &path)?;
        Ok(BackupSummary {
            bytes,
            sessions: summary.0,
            media: summary.1,
        })
    })
    .await
}

/// Runs work on a thread for work that blocks. `file` is the backup.
async fn blocking<T: Send + 'static>(
    file: &Path,
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, BackupError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(BackupError::file(file)(io::Error::other(error))))
}

/// Creates a private folder next to a backup, for the copy of the store.
fn prepare(file: &Path) -> Result<TempDir, BackupError> {
    if fs::symlink_metadata(file).is_ok() {
        return Err(BackupError::file(file)(io::ErrorKind::AlreadyExists.into()));
    }
    let folder = folder_of(file);
    tempfile::tempdir_in(folder).map_err(BackupError::file(folder))
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// Returns the sessions in a folder with their lengths.
fn list_sessions(folder: &Path) -> Result<Vec<Source>, BackupError> {
    let is_session = |path: &Path| path.extension().is_some_and(|it| it == SESSION_EXTENSION);
    let mut sources = list(folder, SESSIONS, is_session)?;
    for source in &mut sources {
        let found = fs::metadata(&source.path).map_err(BackupError::file(&source.path))?;
        source.len = Some(found.len());
    }
    Ok(sources)
}

/// Returns the complete files in the folder of files.
fn list_media(folder: &Path) -> Result<Vec<Source>, BackupError> {
    list(folder, MEDIA_FOLDER, |path| {
        path.extension().is_some_and(|it| it != "part")
    })
}

/// Returns the files in a folder that `is_wanted` chooses. `of` is their folder in the archive.
fn list(
    folder: &Path,
    of: &str,
    is_wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<Source>, BackupError> {
    let failed = || BackupError::file(folder);
    let mut sources = Vec::new();
    // The folder is created with its first file.
    for entry in entries(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let path = entry.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str())
            && entry.file_type().map_err(failed())?.is_file()
            && is_wanted(&path)
        {
            sources.push(Source {
                name: format!("{of}/{name}"),
                len: None,
                path,
            });
        }
    }
    Ok(sources)
}

pub(crate) fn write_archive(
    about: &About,
    sources: &[Source],
    file: &Path,
) -> Result<u64, BackupError> {
    let failed = || BackupError::file(file);
    let mut unfinished =
        UnfinishedFile::create(file).map_err(BackupError::file(folder_of(file)))?;
    let mut archive = Builder::new(io::BufWriter::new(&mut unfinished));
    let mut files = Vec::with_capacity(sources.len());
    let described = serde_json::to_vec(about).map_err(|error| failed()(error.into()))?;
    append(&mut archive, ABOUT, &described).map_err(failed())?;
    for source in sources {
        let read = |error| BackupError::file(&source.path)(error);
        let opened = match File::open(&source.path) {
            Ok(opened) => opened,
            // It was too old, and was removed since it was listed. The store is never removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound && source.name != STORE_FILE => {
                continue;
            }
            Err(error) => return Err(read(error)),
        };
        let size = match source.len {
            Some(len) => len,
            None => opened.metadata().map_err(read)?.len(),
        };
        let mut reader = HashingReader::new(opened.take(size));
        let mut header = header(size);
        let appended = archive.append_data(&mut header, &source.name, &mut reader);
        appended.map_err(failed())?;
        if reader.size() != size {
            let path = source.path.clone();
            return Err(BackupError::Changed { path });
        }
        files.push(ArchivedFile::of(source.name.clone(), reader));
    }
    let checksums = serde_json::to_vec(&files).map_err(|error| failed()(error.into()))?;
    append(&mut archive, CHECKSUMS, &checksums).map_err(failed())?;
    let mut writer = archive.into_inner().map_err(failed())?;
    writer.flush().map_err(failed())?;
    drop(writer);
    let kept = unfinished.keep_new(Durability::ContentAndName);
    kept.and_then(|kept| kept.metadata())
        .map(|found| found.len())
        .map_err(failed())
}

fn header(size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o600);
    header.set_entry_type(tar::EntryType::Regular);
    header
}

fn append<W: io::Write>(archive: &mut Builder<W>, name: &str, bytes: &[u8]) -> io::Result<()> {
    archive.append_data(&mut header(bytes.len() as u64), name, bytes)
}
