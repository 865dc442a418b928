//! Where approvals are kept: outside every project, for one user, unreadable to all others.
//!
//! ```text
//! DATA/trust/trust.json                     what was approved, by project
//! DATA/trust/files/PROJECT/DIGEST/a/b.sh    the approved bytes, laid out as in the project
//! DATA/trust/hook-files/SHA256              the hook files that have the approved definitions
//! ```
//!
//! The copies are complete: an approved hook can be loaded and run from them when the project's files are gone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tenterhook::EventName;

use super::TrustState;
use super::item::{Item, ItemFile, Order, hex_digest, read_whole};
use super::repository::{Repositories, RepositoryIdentity, has_repository};
use super::words::Named;

/// The version of the file.
const VERSION: u32 = 2;
/// The oldest version that is read. Its approvals have no hook file, no root and no identity of a repository.
const OLDEST_VERSION: u32 = 1;
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
    /// The repository of a project has to be known to approve its hooks.
    #[error("cannot tell which repository `{}` belongs to: {problem}", .project.display())]
    Repository {
        /// The folder of the project.
        project: PathBuf,
        /// Why.
        problem: String,
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
    /// The root of the repository that held the project; `None` in approvals of version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// The SHA-256 of the hook file that has the definition, of which a copy is kept. Executables and scripts have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_file: Option<String>,
    /// The words of the hook that name files, where the copies are put in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) named: Vec<Named>,
    /// The repository that the project was in.
    #[serde(default)]
    pub repository: RepositoryIdentity,
    /// Its hook file has other hooks in an order that was not approved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_out_of_order: bool,
}

/// A project whose approvals do not fit where the work is, as the user chose to leave it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// The folder that the approvals are for.
    project: PathBuf,
    /// The folder in which they deny.
    here: PathBuf,
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
    /// What the user was asked about and chose to leave as it is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    kept: BTreeSet<Kept>,
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
    repositories: Repositories,
}

impl Approvals {
    /// Reads the approvals below a folder for data. None has to be there.
    ///
    /// # Errors
    /// When the file could have been written by somebody else, is damaged or cannot be read.
    pub fn open(data_dir: &Path) -> Result<Self, TrustError> {
        let dir = data_dir.join("trust");
        let book = read_book(&dir)?;
        Ok(Self {
            dir,
            book,
            repositories: Repositories::default(),
        })
    }

    /// Reads the approvals that count in the folder `start`, and looks at the repositories that they are bound to. Git is
    /// run only where an approval is bound to a repository.
    ///
    /// # Errors
    /// When the approvals could have been written by somebody else, are damaged or cannot be read.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn open_at(data_dir: &Path, start: &Path) -> Result<Self, TrustError> {
        let mut approvals = Self::open(data_dir)?;
        let look = Repositories::look(&approvals.book.projects, start);
        approvals.repositories = Box::pin(look).await;
        Ok(approvals)
    }

    /// Reads the first commits of the repositories of these items, so that they can be approved.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn identify(&mut self, items: &[Item]) {
        let projects = items.iter().map(|item| item.project.as_path());
        Box::pin(self.repositories.identify(projects)).await;
    }

    /// Returns approvals of nothing, which cannot be added to.
    pub(crate) fn none() -> Self {
        Self {
            dir: PathBuf::new(),
            book: Book::default(),
            repositories: Repositories::default(),
        }
    }

    /// Returns the file that has the approvals.
    pub fn path(&self) -> PathBuf {
        self.dir.join("trust.json")
    }

    /// Returns the folders that something was approved in.
    pub(crate) fn projects(&self) -> impl Iterator<Item = &Path> {
        self.book.projects.keys().map(PathBuf::as_path)
    }

    /// Returns the projects whose approvals were given in another copy of the repository that the work is in, each with the
    /// folder that stands for it here.
    pub(crate) fn elsewhere(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.repositories.elsewhere()
    }

    /// Returns why an approval does not count where its project is now.
    pub(crate) fn objection(&self, project: &Path, approved: &Approved) -> Option<String> {
        self.repositories.objection(project, &approved.repository)
    }

    /// Says whether the user chose to leave it as it is that approvals of a project deny in a folder.
    pub fn is_kept(&self, project: &Path, here: &Path) -> bool {
        let mut kept = self.book.kept.iter();
        kept.any(|kept| kept.project == project && kept.here == here)
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
            Some(approved) if self.objection(&item.project, approved).is_some() => {
                TrustState::Displaced
            }
            Some(approved) if approved.digest == item.digest() && item.order != Order::Moved => {
                TrustState::Trusted
            }
            Some(_) => TrustState::Changed,
            None => TrustState::Untrusted,
        }
    }

    /// Says whether an item is what is approved under its name, wherever its repository is.
    pub(crate) fn is_approved(&self, item: &Item) -> bool {
        let approved = self.before(item);
        approved.is_some_and(|approved| approved.digest == item.digest())
    }

    /// Returns an approved hook as it was approved, from the copies of its files.
    ///
    /// The error says why the copies cannot stand for it.
    pub(crate) fn restore(&self, project: &Path, approved: &Approved) -> Result<Item, String> {
        let folder = self.copies(project, &approved.digest);
        let mut files = Vec::with_capacity(approved.files.len());
        for file in &approved.files {
            let name = file.path.display();
            let (bytes, _) =
                read_whole(&folder.join(inside_copies(&file.path))).map_err(|error| {
                    format!("the approved copy of `{name}` cannot be read: {error}")
                })?;
            if hex_digest(&bytes) != file.sha256 {
                return Err(format!("the approved copy of `{name}` is damaged"));
            }
            files.push(ItemFile {
                path: file.path.clone(),
                target: file.target.clone(),
                bytes: bytes.into(),
                is_executable: file.is_executable,
                sha256: file.sha256.clone(),
            });
        }
        let item = Item {
            project: project.to_owned(),
            root: approved.root.clone().unwrap_or_else(|| project.to_owned()),
            source: approved.source.clone(),
            name: approved.name.clone(),
            definition: approved.definition.clone(),
            files,
            hook_text: None,
            named: approved.named.clone(),
            events: approved.events.clone(),
            unread: Vec::new(),
            order: Order::default(),
        };
        if item.digest() != approved.digest {
            return Err("the record of the approval is damaged".to_owned());
        }
        // A copy that was made writable, or that lost its mode, is written anew.
        self.keep_copies(&item)
            .map_err(|error| tenterhook::error_chain(&error))?;
        Ok(item)
    }

    /// Returns the folder with the copies of an approved hook.
    pub(crate) fn copies_of(&self, project: &Path, approved: &Approved) -> PathBuf {
        self.copies(project, &approved.digest)
    }

    /// Returns the approved text of the hook file that has a definition, where a whole copy of it is there.
    pub(crate) fn hook_text(&self, approved: &Approved) -> Option<Arc<str>> {
        let sha256 = approved.hook_file.as_ref()?;
        let (bytes, _) = read_whole(&self.hook_file(sha256)).ok()?;
        if hex_digest(&bytes) != *sha256 {
            return None;
        }
        String::from_utf8(bytes).ok().map(Into::into)
    }

    /// Returns the approval whose hook file has the hooks of a file in the order that was approved last.
    pub(crate) fn ordered(&self, project: &Path, source: &Path) -> Option<&Approved> {
        let all = self.approved(project).iter();
        all.filter(|it| it.source == source && it.hook_file.is_some() && !it.is_out_of_order)
            .max_by_key(|it| it.approved_at)
    }

    fn hook_file(&self, sha256: &str) -> PathBuf {
        self.dir.join("hook-files").join(sha256)
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
            let files = item.files.iter().map(|file| &file.path);
            let mut paths = std::iter::once(&item.source).chain(files);
            if let Some(path) = paths.find(|path| path.to_str().is_none()) {
                let source = io::Error::other("its name is not UTF-8; rename or remove it");
                return Err(TrustError::file(&item.project.join(path), source));
            }
            let identity = self.identity(&item.project)?;
            // What is trusted and complete has its copies, which a session may be running.
            let before = self.before(item);
            if before.is_some_and(|before| self.is_complete(before, item, &identity)) {
                continue;
            }
            let is_whole = |file: &ItemFile| hex_digest(&file.bytes) == file.sha256;
            // The bytes of a trusted item are let go of, and its copies are there.
            let is_trusted = self.is_approved(item);
            let other = item.files.iter().find(|file| !is_whole(file));
            if let Some(file) = other.filter(|_| !is_trusted) {
                let source = io::Error::other("its bytes are not those that were shown");
                return Err(TrustError::file(&file.path, source));
            }
            if !is_trusted {
                self.keep_copies(item)?;
            }
            let approved = Approved {
                source: item.source.clone(),
                name: item.name.clone(),
                digest: item.digest(),
                definition: item.definition.clone(),
                files: item.files.iter().map(ApprovedFile::from).collect(),
                events: item.events.clone(),
                approved_at: now,
                root: Some(item.root.clone()),
                hook_file: self.keep_hook_file(item)?,
                named: item.named.clone(),
                repository: identity,
                is_out_of_order: item.order == Order::BesideMoved,
            };
            self.record(&item.project, approved);
        }
        self.write()?;
        self.drop_unused_copies();
        drop(lock);
        Ok(())
    }

    /// Says whether an approval is for this item, and has all that is needed to run it without the project.
    fn is_complete(&self, approved: &Approved, item: &Item, identity: &RepositoryIdentity) -> bool {
        let is_in_order = item.order != Order::Moved;
        let has_text = item.hook_text.is_none() || self.hook_text(approved).is_some();
        approved.digest == item.digest()
            && approved.repository == *identity
            && approved.root.as_ref() == Some(&item.root)
            && approved.named == item.named
            && has_text
            && is_in_order
    }

    /// Records an approval and replaces the one that the hook had.
    fn record(&mut self, project: &Path, approved: Approved) {
        let place = key(project, &approved.source, &approved.name);
        let place = self.book.places.get(&place).copied();
        let all = self.book.projects.entry(project.to_owned()).or_default();
        let before = place.and_then(|place| all.get_mut(place));
        let Some(before) = before else {
            all.push(approved);
            self.book.kept.retain(|kept| kept.here != project);
            return;
        };
        let replaced = std::mem::replace(before, approved);
        self.book.kept.retain(|kept| kept.here != project);
        // From now on they are kept for the sessions that began before.
        let copies = self.copies(project, &replaced.digest);
        let _touched = File::open(copies).and_then(|dir| dir.set_modified(SystemTime::now()));
    }

    /// Returns which repository a project is in. It has to be looked at before, where there is one.
    fn identity(&self, project: &Path) -> Result<RepositoryIdentity, TrustError> {
        let known = self.repositories.identity(project);
        let unknown = || {
            if has_repository(project) {
                Err("it was not looked at".to_owned())
            } else {
                Ok(RepositoryIdentity::None)
            }
        };
        known
            .unwrap_or_else(unknown)
            .map_err(|problem| TrustError::Repository {
                project: project.to_owned(),
                problem,
            })
    }

    fn keep_hook_file(&self, item: &Item) -> Result<Option<String>, TrustError> {
        let Some(text) = &item.hook_text else {
            return Ok(None);
        };
        let sha256 = hex_digest(text.as_bytes());
        let path = self.hook_file(&sha256);
        if read_whole(&path).is_ok_and(|(bytes, _)| bytes == text.as_bytes()) {
            return Ok(Some(sha256));
        }
        write_private(&path, text.as_bytes(), 0o400)
            .map_err(|source| TrustError::file(&path, source))?;
        Ok(Some(sha256))
    }

    /// Binds approvals to where their repository is now: those of `project` count in `here` from now on, as they were
    /// approved. Both are the same folder where another repository has taken the place of the approved one. Returns how many
    /// approvals that are.
    ///
    /// # Errors
    /// When the approvals cannot be written, or the copies of one are damaged.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn accept(&mut self, project: &Path, here: &Path) -> Result<usize, TrustError> {
        Box::pin(self.repositories.identify([here])).await;
        let identity = self.identity(here)?;
        let lock = self.lock()?;
        self.book = read_book(&self.dir)?;
        let mut moved = Vec::new();
        // What was approved here as well is newer than what comes from elsewhere.
        let is_here = |approved: &&Approved| {
            let mut known = self.approved(here).iter();
            let is_same =
                |known: &Approved| known.source == approved.source && known.name == approved.name;
            project != here && known.any(is_same)
        };
        for approved in self.approved(project).iter().filter(|it| !is_here(it)) {
            let restored = self.restore(project, approved);
            let item = restored.map_err(|problem| TrustError::Invalid {
                path: self.path(),
                problem: format!("`{}` cannot be accepted: {problem}", approved.name),
            })?;
            moved.push((item.moved(here), approved.clone()));
        }
        let count = moved.len();
        for (item, approved) in moved {
            self.keep_copies(&item)?;
            let approved = Approved {
                digest: item.digest(),
                files: item.files.iter().map(ApprovedFile::from).collect(),
                root: Some(item.root.clone()),
                named: item.named.clone(),
                repository: identity.clone(),
                ..approved
            };
            self.record(here, approved);
            self.book = std::mem::take(&mut self.book).index();
        }
        self.write()?;
        drop(lock);
        Ok(count)
    }

    /// Notes that approvals of a project go on denying in a folder, so that nobody is asked again.
    ///
    /// # Errors
    /// When the approvals cannot be written.
    pub fn keep(&mut self, project: &Path, here: &Path) -> Result<(), TrustError> {
        let lock = self.lock()?;
        self.book = read_book(&self.dir)?;
        self.book.kept.insert(Kept {
            project: project.to_owned(),
            here: here.to_owned(),
        });
        self.write()?;
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
            self.book.kept.retain(|kept| kept.project != project);
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
        let hook_files: BTreeSet<PathBuf> = self
            .book
            .projects
            .values()
            .flatten()
            .filter_map(|approved| approved.hook_file.as_deref())
            .map(|sha256| self.hook_file(sha256))
            .collect();
        for hook_file in entries(&self.dir.join("hook-files")) {
            if !hook_files.contains(&hook_file) && is_old(&hook_file) {
                let _gone = fs::remove_file(&hook_file);
            }
        }
        for project in entries(&self.dir.join("files")) {
            for copies in entries(&project) {
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

impl From<&ItemFile> for ApprovedFile {
    fn from(file: &ItemFile) -> Self {
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
    if !(OLDEST_VERSION..=VERSION).contains(&book.version) {
        return Err(invalid(format!(
            "version {}, expected {OLDEST_VERSION} to {VERSION}",
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

fn entries(dir: &Path) -> Vec<PathBuf> {
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
