//! The list of hook sources that the user has disabled.
//!
//! A broken source keeps an agent from starting, until the user repairs or disables it. The list is in
//! the user's folder for data, never in a project, so that no repository can disable a guard. An entry
//! is for one path. Sources that the machine's administrator manages cannot be disabled.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tenterhook_engine::Layer;
use tenterhook_files::{FileLock, lock_file, make_private, read_whole, write_private};
use tenterhook_trust::check_owner;

/// The name of the file in the folder for data.
const FILE: &str = "disabled.json";
/// The version of the file's format.
const VERSION: u32 = 1;
/// How long to wait for another process that changes the list.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The sources that a user has disabled, as they were when the list was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisabledSources {
    entries: Arc<BTreeMap<PathBuf, Timestamp>>,
}

/// The error of reading or writing the list of disabled sources.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the list of disabled sources in `{}`", .path.display())]
pub struct DisabledError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    version: u32,
    sources: BTreeMap<PathBuf, Timestamp>,
}

impl DisabledSources {
    /// Reads the list in the folder for data. A missing file means an empty list.
    ///
    /// # Errors
    /// Fails if the file is damaged or cannot be read, or if other users can write it.
    pub fn open(data_dir: &Path) -> Result<Self, DisabledError> {
        let path = data_dir.join(FILE);
        read(&path).map_err(|source| DisabledError { path, source })
    }

    /// Returns whether a source is disabled. Sources of the machine and sources that the command line
    /// names are never disabled.
    pub fn contains(&self, path: &Path, layer: Layer) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        match layer {
            Layer::User => self.entries.contains_key(&identity(path)),
            // Links are not followed here, or a project could disable its source with a link.
            Layer::Project => self.entries.contains_key(&whole(path)),
            Layer::System | Layer::Explicit | Layer::Code => false,
        }
    }

    /// Returns the disabled paths with the time of disabling, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, Timestamp)> {
        self.entries.iter().map(|(path, at)| (path.as_path(), *at))
    }

    /// Disables a source. Returns its path as stored in the list.
    ///
    /// # Errors
    /// Fails if the list cannot be read or written.
    pub fn disable(data_dir: &Path, path: &Path) -> Result<PathBuf, DisabledError> {
        let own = identity(path);
        let now = Timestamp::now();
        change(data_dir, |sources| {
            for path in [own.clone(), whole(path)] {
                sources.entry(path).or_insert(now);
            }
        })?;
        Ok(own)
    }

    /// Enables a source again. Returns whether it was disabled.
    ///
    /// # Errors
    /// Fails if the list cannot be read or written.
    pub fn enable(data_dir: &Path, path: &Path) -> Result<bool, DisabledError> {
        let mut was_disabled = false;
        change(data_dir, |sources| {
            for path in [identity(path), whole(path)] {
                was_disabled |= sources.remove(&path).is_some();
            }
        })?;
        Ok(was_disabled)
    }
}

/// Returns the path that identifies a source. Links in its folder are resolved. The source itself is
/// not, so that a link keeps its identity when its target changes.
fn identity(path: &Path) -> PathBuf {
    let path = whole(path);
    let folder = path
        .parent()
        .and_then(|folder| fs::canonicalize(folder).ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// Returns the absolute path without resolving links.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn read(path: &Path) -> io::Result<DisabledSources> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(DisabledSources::default());
    }
    check_owner(path).map_err(io::Error::other)?;
    let (bytes, _) = read_whole(path)?;
    let book: Book = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    if book.version != VERSION {
        let problem = format!("version {}, expected {VERSION}", book.version);
        return Err(io::Error::other(problem));
    }
    Ok(DisabledSources {
        entries: Arc::new(book.sources),
    })
}

/// Changes the list, with a lock against other processes.
fn change(
    data_dir: &Path,
    edit: impl FnOnce(&mut BTreeMap<PathBuf, Timestamp>),
) -> Result<(), DisabledError> {
    let path = data_dir.join(FILE);
    let changed = || -> io::Result<()> {
        make_private(data_dir)?;
        let lock = lock_file(&data_dir.join("disabled.lock"))?;
        let _lock = FileLock::wait(lock, LOCK_WAIT)?.ok_or_else(|| {
            let problem = "another process is changing it; run the command again";
            io::Error::new(io::ErrorKind::WouldBlock, problem)
        })?;
        let mut sources = read(&path)?.entries.as_ref().clone();
        edit(&mut sources);
        let book = Book {
            version: VERSION,
            sources,
        };
        let bytes = serde_json::to_vec_pretty(&book).map_err(io::Error::other)?;
        write_private(&path, &bytes, 0o600)
    };
    changed().map_err(|source| DisabledError { path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disabled_source_stays_disabled_until_it_is_enabled() {
        let home = tempfile::tempdir().unwrap();
        let (data, guard) = (home.path().join("data"), home.path().join("hooks/guard.py"));
        fs::create_dir_all(home.path().join("hooks")).unwrap();
        let is_disabled = |layer| {
            DisabledSources::open(&data)
                .unwrap()
                .contains(&guard, layer)
        };
        assert!(!is_disabled(Layer::User));
        DisabledSources::disable(&data, &guard).unwrap();
        assert!(is_disabled(Layer::User) && is_disabled(Layer::Project));
        assert!(
            !is_disabled(Layer::System),
            "what is managed is not the user's to disable"
        );
        assert!(DisabledSources::enable(&data, &guard).unwrap());
        assert!(!DisabledSources::enable(&data, &guard).unwrap());
        assert!(!is_disabled(Layer::User));
    }

    #[test]
    fn another_file_behind_the_same_link_is_the_same_source() {
        let home = tempfile::tempdir().unwrap();
        let (data, link) = (home.path().join("data"), home.path().join("guard.py"));
        for name in ["nowhere", "data"] {
            let _gone = fs::remove_file(&link);
            std::os::unix::fs::symlink(home.path().join(name), &link).unwrap();
            DisabledSources::disable(&data, &link).unwrap();
        }
        assert_eq!(DisabledSources::open(&data).unwrap().iter().count(), 1);
    }

    #[test]
    fn a_list_that_is_damaged_or_open_to_others_disables_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        fs::write(&path, "{}").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let error = DisabledSources::open(home.path()).unwrap_err();
        assert!(tenterhook_engine::error_chain(&error).contains("missing field"));
        fs::write(&path, r#"{"version": 1, "sources": {}}"#).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let error = DisabledSources::open(home.path()).unwrap_err();
        assert!(tenterhook_engine::error_chain(&error).contains("other users"));
    }
}
