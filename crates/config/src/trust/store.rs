//! Where approvals are kept: outside every project, for one user, unreadable to all others.
//!
//! ```text
//! DATA/trust/trust.json                     what was approved, by project
//! DATA/trust/files/PROJECT/DIGEST/a/b.sh    the approved bytes, laid out as in the project
//! ```

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tenterhook::EventName;

use super::TrustState;
use super::item::{Item, hex_digest, read_whole};

/// The version of the file.
const VERSION: u32 = 1;
/// How long another process is waited for that changes the approvals.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long copies are kept that are not approved any more: sessions that began before run them.
const COPIES_KEPT: Duration = Duration::from_hours(7 * 24);
/// How long to wait between two looks at the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why approvals cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// Others than the user could have written the approvals.
    #[error("`{}` can be written by others than you (mode {mode:03o})", .path.display())]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The approvals are somebody else's.
    #[error("`{}` is not yours", .path.display())]
    NotOwned {
        /// The file or folder.
        path: PathBuf,
    },
    /// The file is none that this program wrote.
    #[error("`{}` is no file of approvals: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file system refuses.
    #[error("cannot use `{}`", .path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process changes the approvals and does not come to an end.
    #[error("another process is changing the approvals in `{}`", .path.display())]
    Busy {
        /// The folder of the approvals.
        path: PathBuf,
    },
}

impl TrustError {
    fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}

/// Something that was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approved {
    /// The file that has the definition.
    pub source: PathBuf,
    /// What the hook is called in it.
    pub name: String,
    /// What stands for all of it.
    pub digest: String,
    /// The definition, for people.
    pub definition: String,
    /// The files that it runs.
    pub files: Vec<ApprovedFile>,
    /// The events that it was for; empty is an executable that nobody had asked.
    #[serde(default)]
    pub events: Vec<EventName>,
    /// When it was approved.
    pub approved_at: Timestamp,
}

/// A file whose bytes were approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovedFile {
    /// The path as it is named.
    pub path: PathBuf,
    /// Where that led.
    pub target: PathBuf,
    /// The SHA-256 of the bytes.
    pub sha256: String,
    /// It may be executed.
    pub is_executable: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    version: u32,
    user: u32,
    projects: BTreeMap<PathBuf, Vec<Approved>>,
    /// The places of what was approved, by project, file and name.
    #[serde(skip)]
    places: HashMap<Vec<u8>, usize>,
}

impl Book {
    /// Finds everything anew.
    fn index(mut self) -> Self {
        let all = self.projects.iter().flat_map(|(project, all)| {
            all.iter()
                .enumerate()
                .map(move |(place, known)| (key(project, &known.source, &known.name), place))
        });
        self.places = all.collect();
        self
    }
}

fn key(project: &Path, source: &Path, name: &str) -> Vec<u8> {
    let parts = [
        project.as_os_str().as_encoded_bytes(),
        source.as_os_str().as_encoded_bytes(),
        name.as_bytes(),
    ];
    parts.join(&0)
}

/// The approvals of this user, as they were when they were opened.
#[derive(Debug)]
pub struct Approvals {
    dir: PathBuf,
    book: Book,
}

impl Approvals {
    /// Reads the approvals below a folder for data. None has to be there.
    ///
    /// # Errors
    /// When the file could have been written by somebody else, is damaged or cannot be read.
    pub fn open(data_dir: &Path) -> Result<Self, TrustError> {
        let dir = data_dir.join("trust");
        let book = read_book(&dir)?;
        Ok(Self { dir, book })
    }

    /// Returns approvals of nothing, which cannot be added to.
    pub(crate) fn none() -> Self {
        Self {
            dir: PathBuf::new(),
            book: Book::default(),
        }
    }

    /// Returns the file that has the approvals.
    pub fn path(&self) -> PathBuf {
        self.dir.join("trust.json")
    }

    /// Returns what was approved in a project.
    pub fn approved(&self, project: &Path) -> &[Approved] {
        self.book.projects.get(project).map_or(&[], Vec::as_slice)
    }

    /// Returns what was approved under the name of an item.
    pub fn before(&self, item: &Item) -> Option<&Approved> {
        let key = key(&item.project, &item.source, &item.name);
        let place = self.book.places.get(&key)?;
        self.approved(&item.project).get(*place)
    }

    /// Says whether an item may run.
    pub fn state(&self, item: &Item) -> TrustState {
        match self.before(item) {
            Some(approved) if approved.digest == item.digest() => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Untrusted,
        }
    }

    /// Returns the bytes that were approved of a file. `None` is a copy that is gone.
    pub fn approved_bytes(
        &self,
        project: &Path,
        approved: &Approved,
        path: &Path,
    ) -> Option<Vec<u8>> {
        let file = self
            .copies(project, &approved.digest)
            .join(inside_copies(path));
        read_whole(&file).ok().map(|(bytes, _)| bytes)
    }

    /// Approves items as they were read, in the place of what was approved under their names before.
    ///
    /// # Errors
    /// When the approvals cannot be written.
    pub fn approve(&mut self, items: &[Item]) -> Result<(), TrustError> {
        let lock = self.lock()?;
        // Somebody else may have approved something since.
        self.book = read_book(&self.dir)?;
        let now = Timestamp::now();
        for item in items {
            // What is trusted already has its copies, which a session may be running.
            if self.state(item) == TrustState::Trusted {
                continue;
            }
            let is_whole = |file: &super::ItemFile| hex_digest(&file.bytes) == file.sha256;
            if let Some(file) = item.files.iter().find(|file| !is_whole(file)) {
                let source = io::Error::other("its bytes are not those that were shown");
                return Err(TrustError::file(&file.path, source));
            }
            self.keep_copies(item)?;
            let before = self
                .book
                .places
                .get(&key(&item.project, &item.source, &item.name));
            let before = before.copied();
            let approved = Approved {
                source: item.source.clone(),
                name: item.name.clone(),
                digest: item.digest(),
                definition: item.definition.clone(),
                files: item.files.iter().map(ApprovedFile::from).collect(),
                events: item.events.clone(),
                approved_at: now,
            };
            let project = self.book.projects.entry(item.project.clone()).or_default();
            let mut replaced = None;
            if let Some(before) = before.and_then(|place| project.get_mut(place)) {
                replaced = Some(std::mem::replace(before, approved));
            } else {
                project.push(approved);
            }
            if let Some(replaced) = replaced {
                // From now on they are kept for the sessions that began before.
                let copies = self.copies(&item.project, &replaced.digest);
                let _touched =
                    File::open(copies).and_then(|dir| dir.set_modified(SystemTime::now()));
            }
        }
        self.write()?;
        self.drop_unused_copies();
        drop(lock);
        Ok(())
    }

    /// Takes approvals of a project back: those that `wanted` says; returns how many.
    ///
    /// # Errors
    /// When the approvals cannot be written.
    pub fn revoke(
        &mut self,
        project: &Path,
        wanted: impl Fn(&Approved) -> bool,
    ) -> Result<usize, TrustError> {
        let lock = self.lock()?;
        self.book = read_book(&self.dir)?;
        let Some(approved) = self.book.projects.get_mut(project) else {
            return Ok(0);
        };
        let before = approved.len();
        approved.retain(|approved| !wanted(approved));
        let revoked = before - approved.len();
        if approved.is_empty() {
            self.book.projects.remove(project);
        }
        self.write()?;
        self.drop_unused_copies();
        drop(lock);
        Ok(revoked)
    }

    /// Returns the folder with the bytes of a trusted item, and writes there what is missing or was touched.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn keep_copies(&self, item: &Item) -> Result<PathBuf, TrustError> {
        let folder = self.copies(&item.project, &item.digest());
        for file in &item.files {
            let path = folder.join(inside_copies(&file.path));
            let is_there = read_whole(&path).is_ok_and(|(bytes, may_run)| {
                may_run == file.is_executable && *bytes == *file.bytes
            });
            if !is_there {
                // A hook that writes to a file which was approved has to find out.
                let mode = if file.is_executable { 0o500 } else { 0o400 };
                write_private(&path, &file.bytes, mode)
                    .map_err(|source| TrustError::file(&path, source))?;
            }
        }
        Ok(folder)
    }

    fn copies(&self, project: &Path, digest: &str) -> PathBuf {
        let name = hex_digest(project.as_os_str().as_encoded_bytes());
        self.dir.join("files").join(name).join(digest)
    }

    /// Removes copies of what is not approved any more, unless a session may still run them. What cannot be removed
    /// stays; nothing runs it.
    fn drop_unused_copies(&self) {
        let wanted: Vec<PathBuf> = self
            .book
            .projects
            .iter()
            .flat_map(|(project, all)| {
                all.iter()
                    .map(|approved| self.copies(project, &approved.digest))
            })
            .collect();
        for project in folders(&self.dir.join("files")) {
            for copies in folders(&project) {
                if !wanted.contains(&copies) && is_old(&copies) {
                    let _gone = fs::remove_dir_all(&copies);
                }
            }
        }
    }

    fn lock(&self) -> Result<File, TrustError> {
        let refused = |source| TrustError::file(&self.dir, source);
        make_private(&self.dir).map_err(refused)?;
        check_owner(&self.dir)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.dir.join("lock"))
            .map_err(refused)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::Error(source)) => return Err(refused(source)),
                Err(fs::TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(TrustError::Busy {
                        path: self.dir.clone(),
                    });
                }
            }
        }
    }

    fn write(&mut self) -> Result<(), TrustError> {
        let path = self.path();
        self.book.version = VERSION;
        self.book.user = current_user();
        let refused = |source| TrustError::file(&path, source);
        let bytes = serde_json::to_vec_pretty(&self.book)
            .map_err(|error| refused(io::Error::other(error)))?;
        write_private(&path, &bytes, 0o600).map_err(refused)?;
        self.book = std::mem::take(&mut self.book).index();
        Ok(())
    }
}

impl From<&super::ItemFile> for ApprovedFile {
    fn from(file: &super::ItemFile) -> Self {
        Self {
            path: file.path.clone(),
            target: file.target.clone(),
            sha256: file.sha256.clone(),
            is_executable: file.is_executable,
        }
    }
}

/// Returns where a file stands among the copies. A path that leads out of them is laid out below a folder of its own.
pub(crate) fn inside_copies(path: &Path) -> PathBuf {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some("_parent".as_ref()),
            Component::RootDir => Some("_root".as_ref()),
            Component::Prefix(_) | Component::CurDir => None,
        })
        .collect()
}

fn read_book(dir: &Path) -> Result<Book, TrustError> {
    let path = dir.join("trust.json");
    let empty = || Book {
        version: VERSION,
        user: current_user(),
        ..Book::default()
    };
    if !dir.exists() || fs::symlink_metadata(&path).is_err() {
        return Ok(empty());
    }
    check_owner(dir)?;
    check_owner(&path)?;
    let (bytes, _) = read_whole(&path).map_err(|source| TrustError::file(&path, source))?;
    let invalid = |problem: String| TrustError::Invalid {
        path: path.clone(),
        problem,
    };
    let book: Book = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    if book.version != VERSION {
        return Err(invalid(format!(
            "version {}, expected {VERSION}",
            book.version
        )));
    }
    if book.user != current_user() {
        return Err(invalid(format!(
            "the approvals are of user {}, not of user {}",
            book.user,
            current_user()
        )));
    }
    Ok(book.index())
}

fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > COPIES_KEPT))
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Writes a file that only the user can read; it is there as a whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_private(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Makes sure that only the user can have written a file or folder.
#[cfg(unix)]
pub(crate) fn check_owner(path: &Path) -> Result<(), TrustError> {
    use std::os::unix::fs::MetadataExt as _;
    // A symbolic link counts as what it is: others could have put it there.
    let metadata = fs::symlink_metadata(path).map_err(|source| TrustError::file(path, source))?;
    let path = path.to_owned();
    if metadata.uid() != current_user() {
        return Err(TrustError::NotOwned { path });
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(TrustError::Writable { path, mode });
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn check_owner(_path: &Path) -> Result<(), TrustError> {
    Ok(())
}

#[cfg(unix)]
fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn current_user() -> u32 {
    0
}
