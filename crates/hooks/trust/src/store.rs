//! Stores approvals outside of every project, for one user. No other user can read them.
//!
//! ```text
//! DATA/trust/trust.json                     what was approved, by project
//! DATA/trust/files/PROJECT/DIGEST/a/b.sh    the approved bytes, laid out as in the project
//! DATA/trust/hook-files/SHA256              the hook files with the approved definitions
//! DATA/trust/covered/SHA256                 the lists of the other files of approved hooks
//! DATA/trust/stamps/PROJECT/DIGEST          what is known about the files of an approved hook
//! ```
//!
//! The copies are complete: an approved hook can be loaded and run from them when the project's files are gone.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tenterhook_files::{
    FileLock, entries, hex_digest, is_unfinished, lock_file, make_private, read_whole,
    readable_entries, write_private,
};

use crate::book::{Book, Kept, VERSION, read_book};
use crate::copy_map::inside_copies;
use crate::coverage::ApprovedFiles;
use crate::covered_file::CoveredFile;
use crate::error::TrustError;
use crate::file_memory::{FileMemory, FileStamp};
use crate::file_owner::{check_owner, current_user};
use crate::item::{ApprovalItem, HookOrder};
use crate::parallel::map_parallel;
use crate::project::Project;
use crate::project_hook::TrustState;
use crate::record::{ApprovalRecord, RepositoryIdentity};
use crate::repository::{Repositories, has_repository};

/// The folders of what the store keeps under its SHA-256.
const HOOK_FILES: &str = "hook-files";
const COVERED: &str = "covered";
/// How long to wait for another process that is changing the approvals.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long copies are kept after their approval ends. Sessions that began earlier still run them.
const COPIES_KEPT: Duration = Duration::from_hours(7 * 24);
/// How long a process may take to write one copy.
const WRITING: Duration = Duration::from_mins(1);

/// The approvals of this user, as they were when this value was opened. The default has none.
#[derive(Debug, Default)]
pub struct Approvals {
    dir: PathBuf,
    book: Book,
    repositories: Repositories,
}

impl Approvals {
    /// Reads the approvals in the folder for data. The folder need not exist.
    ///
    /// # Errors
    /// Fails if other users can write the file, or if it is damaged or cannot be read.
    pub fn open(data_dir: &Path) -> Result<Self, TrustError> {
        let dir = data_dir.join("trust");
        let book = read_book(&dir)?;
        Ok(Self {
            dir,
            book,
            repositories: Repositories::default(),
        })
    }

    /// Reads the approvals that apply in the folder `start`, and examines the repositories that
    /// they are bound to. Runs git only if an approval is bound to a repository.
    ///
    /// # Errors
    /// Fails if other users can write the approvals, or if they are damaged or cannot be read.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn open_at(data_dir: &Path, start: &Path) -> Result<Self, TrustError> {
        let mut approvals = Self::open(data_dir)?;
        let look = Repositories::look(&approvals.book.projects, start);
        approvals.repositories = Box::pin(look).await;
        Ok(approvals)
    }

    /// Identifies the repositories of these items by their first commits, which
    /// [`approve`](Self::approve) needs.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn identify(&mut self, items: &[ApprovalItem]) {
        let projects = items.iter().map(|item| item.project.as_path());
        Box::pin(self.repositories.identify(projects)).await;
    }

    /// Returns the path of the file of approvals.
    pub fn path(&self) -> PathBuf {
        self.dir.join("trust.json")
    }

    /// Returns the project folders that have approvals.
    pub fn projects(&self) -> impl Iterator<Item = &Path> {
        self.book.projects.keys().map(PathBuf::as_path)
    }

    /// Returns the projects that were approved in another copy of the current repository, each with
    /// the corresponding folder here.
    pub fn elsewhere(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.repositories.elsewhere()
    }

    /// Returns why an approval does not apply to the repository that its project is in now.
    pub fn objection(&self, project: &Path, approved: &ApprovalRecord) -> Option<String> {
        self.repositories.objection(project, &approved.repository)
    }

    /// Returns whether the user chose that the gates of a project's approvals keep denying in `here`.
    pub fn is_kept(&self, project: &Path, here: &Path) -> bool {
        let mut kept = self.book.kept.iter();
        kept.any(|kept| kept.project == project && kept.here == here)
    }

    /// Returns the approvals of a project.
    pub fn approved(&self, project: &Path) -> &[ApprovalRecord] {
        self.book.projects.get(project).map_or(&[], Vec::as_slice)
    }

    /// Returns the approval of the hook with the same project, file and name as the item.
    pub fn before(&self, item: &ApprovalItem) -> Option<&ApprovalRecord> {
        self.find(&item.project, &item.source, &item.name)
    }

    /// Returns the approval of the hook with this project, file and name.
    pub fn find(&self, project: &Path, source: &Path, name: &str) -> Option<&ApprovalRecord> {
        let mut approved = self.approved(project).iter();
        approved.find(|approved| approved.name == name && approved.source == source)
    }

    /// Returns the files of an approval. `own` has the named files, as they are now.
    ///
    /// # Errors
    /// Returns the reason if their list is missing or damaged.
    pub fn approved_files(
        &self,
        approved: &ApprovalRecord,
        own: &[CoveredFile],
    ) -> Result<ApprovedFiles, String> {
        let own = own.iter().map(CoveredFile::without_bytes);
        Ok(ApprovedFiles::new(self.covered(approved)?, own))
    }

    /// Compares an item with its approval.
    pub fn state(&self, item: &ApprovalItem) -> TrustState {
        match self.before(item) {
            Some(approved) if self.objection(&item.project, approved).is_some() => {
                TrustState::Displaced
            }
            // Where the command names the files is compared too: a folder that is swapped while the command is read
            // must not keep a word from being replaced by its copy.
            Some(approved)
                if approved.digest == item.digest()
                    && approved.named == item.named
                    && item.order != HookOrder::Moved =>
            {
                TrustState::Trusted
            }
            Some(_) => TrustState::Changed,
            None => TrustState::Untrusted,
        }
    }

    /// Returns whether an item is exactly what was approved, without checking its repository.
    pub fn is_approved(&self, item: &ApprovalItem) -> bool {
        let approved = self.before(item);
        approved.is_some_and(|approved| approved.digest == item.digest())
    }

    /// Returns a hook as it was approved, from the copies of its files.
    ///
    /// # Errors
    /// Returns the reason if a copy is missing or damaged.
    pub fn restore(
        &self,
        project: &Path,
        approved: &ApprovalRecord,
    ) -> Result<ApprovalItem, String> {
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
            files.push(CoveredFile {
                size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
                bytes: bytes.into(),
                ..file.clone()
            });
        }
        let root = approved.root.clone();
        let project = Project {
            dir: project.to_owned(),
            root: root.unwrap_or_else(|| project.to_owned()),
        };
        let item = ApprovalItem {
            covered: self.covered(approved)?,
            definition: approved.definition.clone(),
            files,
            named: approved.named.clone(),
            events: approved.events.clone(),
            ..ApprovalItem::new(&project, approved.source.clone(), approved.name.clone())
        };
        if item.digest() != approved.digest {
            return Err("the record of the approval is damaged".to_owned());
        }
        let memory = self.memory_of(&project.dir, &approved.digest);
        // A copy that is what was approved is its own original. Another one cannot be written again.
        self.keep_copies_from(&item, &memory, |file| {
            folder.join(inside_copies(&file.path))
        })
        .map_err(|error| {
            let TrustError::File { path, source } = &error else {
                return tenterhook_engine::error_chain(&error);
            };
            let name = path.strip_prefix(&folder).unwrap_or(path).display();
            format!("the approved copy of `{name}` is damaged: {source}")
        })?;
        Ok(item)
    }

    /// Returns the files of an approved hook besides those that it names.
    ///
    /// # Errors
    /// Returns the reason if their list is missing or damaged.
    pub fn covered(&self, approved: &ApprovalRecord) -> Result<Vec<CoveredFile>, String> {
        let Some(sha256) = &approved.covered else {
            return Ok(Vec::new());
        };
        let list = read_blob(&self.blob(COVERED, sha256), sha256);
        list.and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| "the list of its approved files is missing or damaged".to_owned())
    }

    /// Returns what is known about the files of the approval of a hook. Empty if it is not approved.
    pub fn memory(&self, project: &Path, source: &Path, name: &str) -> FileMemory {
        let approved = self.find(project, source, name);
        approved.map_or_else(FileMemory::default, |approved| {
            self.memory_of(project, &approved.digest)
        })
    }

    fn memory_of(&self, project: &Path, digest: &str) -> FileMemory {
        FileMemory::read(&self.stamps(project, digest))
    }

    /// Returns where the store keeps something under its SHA-256.
    fn blob(&self, kind: &str, sha256: &str) -> PathBuf {
        self.dir.join(kind).join(sha256)
    }

    fn stamps(&self, project: &Path, digest: &str) -> PathBuf {
        self.of_project("stamps", project, digest)
    }

    fn copies(&self, project: &Path, digest: &str) -> PathBuf {
        self.of_project("files", project, digest)
    }

    /// Returns where the store keeps something for an approval. A project has a folder with a short name.
    fn of_project(&self, kind: &str, project: &Path, digest: &str) -> PathBuf {
        let project = hex_digest(project.as_os_str().as_encoded_bytes());
        self.dir.join(kind).join(project).join(digest)
    }

    /// Returns the folder with the copies of an approved hook's files.
    pub fn copies_of(&self, project: &Path, approved: &ApprovalRecord) -> PathBuf {
        self.copies(project, &approved.digest)
    }

    /// Returns the approved text of a hook file. `None` if its copy is missing or damaged.
    pub fn hook_text(&self, approved: &ApprovalRecord) -> Option<Arc<str>> {
        let sha256 = approved.hook_file.as_ref()?;
        let bytes = read_blob(&self.blob(HOOK_FILES, sha256), sha256)?;
        String::from_utf8(bytes).ok().map(Into::into)
    }

    /// Returns the newest approval for `source` that also approved the order of its hooks.
    pub fn ordered(&self, project: &Path, source: &Path) -> Option<&ApprovalRecord> {
        let all = self.approved(project).iter();
        all.filter(|it| it.source == source && it.hook_file.is_some() && !it.is_out_of_order)
            .max_by_key(|it| it.approved_at)
    }

    /// Approves items as they were read. This replaces earlier approvals of the same hooks.
    ///
    /// # Errors
    /// Fails if a repository was not identified before or if the approvals cannot be written.
    pub fn approve(&mut self, items: &[ApprovalItem]) -> Result<(), TrustError> {
        let lock = self.lock()?;
        // Another process may have added approvals since this value was opened.
        self.book = read_book(&self.dir)?;
        let now = Timestamp::now();
        for item in items {
            if item.unread_version.is_some() {
                let source = io::Error::other("its files were not read, so nothing was shown");
                return Err(TrustError::file(&item.project.join(&item.source), source));
            }
            let files = item.files.iter().chain(&item.covered);
            let files = files.map(|file| &file.path);
            let mut paths = std::iter::once(&item.source).chain(files);
            if let Some(path) = paths.find(|path| path.to_str().is_none()) {
                let source = io::Error::other("its name is not UTF-8; rename or remove it");
                return Err(TrustError::file(&item.project.join(path), source));
            }
            let identity = self.identity(&item.project)?;
            // A running session may be using the copies of a complete approval, so leave them alone.
            let before = self.before(item);
            if before.is_some_and(|before| self.is_complete(before, item, &identity)) {
                continue;
            }
            let is_whole = |file: &CoveredFile| hex_digest(&file.bytes) == file.sha256;
            // A trusted item no longer holds its bytes; only its copies do.
            let is_trusted = self.is_approved(item);
            let other = item.files.iter().find(|file| !is_whole(file));
            if let Some(file) = other.filter(|_| !is_trusted) {
                let source = io::Error::other("its content differs from what was shown");
                return Err(TrustError::file(&file.path, source));
            }
            if !is_trusted {
                self.keep_copies(item, &FileMemory::default())?;
            }
            let approved = ApprovalRecord {
                source: item.source.clone(),
                name: item.name.clone(),
                digest: item.digest(),
                definition: item.definition.clone(),
                files: item.files.iter().map(CoveredFile::without_bytes).collect(),
                covered: self.keep_covered_list(item)?,
                events: item.events.clone(),
                approved_at: now,
                root: Some(item.root.clone()),
                hook_file: self.keep_hook_file(item)?,
                named: item.named.clone(),
                repository: identity,
                is_out_of_order: item.order == HookOrder::NextToMoved,
            };
            self.record(&item.project, approved);
        }
        self.write()?;
        self.drop_unused_copies();
        drop(lock);
        Ok(())
    }

    /// Returns whether an approval is for this item and has everything to run it without the project.
    fn is_complete(
        &self,
        approved: &ApprovalRecord,
        item: &ApprovalItem,
        identity: &RepositoryIdentity,
    ) -> bool {
        let list = self.covered(approved);
        approved.digest == item.digest()
            && approved.repository == *identity
            && approved.root.as_ref() == Some(&item.root)
            && approved.named == item.named
            && list.is_ok_and(|list| list.len() == item.covered.len())
            && (item.hook_text.is_none() || self.hook_text(approved).is_some())
            && item.order != HookOrder::Moved
    }

    /// Records an approval. It replaces the earlier approval of the same hook.
    fn record(&mut self, project: &Path, approved: ApprovalRecord) {
        self.book.kept.retain(|kept| kept.here != project);
        let all = self.book.projects.entry(project.to_owned()).or_default();
        let is_same =
            |it: &&mut ApprovalRecord| it.name == approved.name && it.source == approved.source;
        let before = all.iter_mut().find(is_same);
        let Some(before) = before else {
            return all.push(approved);
        };
        let replaced = std::mem::replace(before, approved);
        // `drop_unused_copies` keeps them for sessions that began earlier, counted from now.
        let copies = self.copies(project, &replaced.digest);
        let _touched = File::open(copies).and_then(|dir| dir.set_modified(SystemTime::now()));
    }

    /// Returns the repository of a project. If there is one, `identify` must have been called.
    fn identity(&self, project: &Path) -> Result<RepositoryIdentity, TrustError> {
        let known = self.repositories.identity(project);
        let identity = known.unwrap_or_else(|| {
            if has_repository(project) {
                return Err("it was not read before the approval".to_owned());
            }
            Ok(RepositoryIdentity::None)
        });
        identity.map_err(|problem| TrustError::Repository {
            project: project.to_owned(),
            problem,
        })
    }

    fn keep_hook_file(&self, item: &ApprovalItem) -> Result<Option<String>, TrustError> {
        let text = item.hook_text.as_ref();
        text.map(|text| keep_blob(text.as_bytes(), |sha256| self.blob(HOOK_FILES, sha256)))
            .transpose()
    }

    fn keep_covered_list(&self, item: &ApprovalItem) -> Result<Option<String>, TrustError> {
        if item.covered.is_empty() {
            return Ok(None);
        }
        let bytes = serde_json::to_vec(&item.covered)
            .map_err(|error| TrustError::file(&self.dir, io::Error::other(error)))?;
        keep_blob(&bytes, |sha256| self.blob(COVERED, sha256)).map(Some)
    }

    /// Makes the approvals of `project` apply in `here`, unchanged, and binds them to the repository
    /// there. Both are the same folder if another repository has replaced the approved one. Returns
    /// the number of these approvals.
    ///
    /// # Errors
    /// Fails if the approvals cannot be written, or if a copy is damaged.
    ///
    /// # Panics
    /// Panics outside a tokio runtime with I/O and time enabled.
    pub async fn accept(&mut self, project: &Path, here: &Path) -> Result<usize, TrustError> {
        Box::pin(self.repositories.identify([here])).await;
        let identity = self.identity(here)?;
        let lock = self.lock()?;
        self.book = read_book(&self.dir)?;
        // An approval that was given here takes precedence over one from elsewhere.
        let is_here = |it: &ApprovalRecord| {
            project != here && self.find(here, &it.source, &it.name).is_some()
        };
        let all = self.approved(project).iter();
        let moved: Vec<ApprovalRecord> = all.filter(|it| !is_here(it)).cloned().collect();
        for approved in &moved {
            let restored = self.restore(project, approved);
            let item = restored.map_err(|problem| TrustError::Invalid {
                path: self.path(),
                problem: format!("cannot accept the hook `{}`: {problem}", approved.name),
            })?;
            let copies = self.copies_of(project, approved);
            let root = item.root.clone();
            let item = item.moved(here);
            self.keep_copies_from(&item, &FileMemory::default(), |file| {
                let below = file.path.strip_prefix(&item.root);
                let before = below.map_or_else(|_| file.path.clone(), |below| root.join(below));
                copies.join(inside_copies(&before))
            })?;
            let approved = ApprovalRecord {
                digest: item.digest(),
                files: item.files.iter().map(CoveredFile::without_bytes).collect(),
                covered: self.keep_covered_list(&item)?,
                root: Some(item.root.clone()),
                named: item.named.clone(),
                repository: identity.clone(),
                ..approved.clone()
            };
            self.record(here, approved);
        }
        self.write()?;
        drop(lock);
        Ok(moved.len())
    }

    /// Records that the gates of a project's approvals keep denying in `here`, so that Tenterhook
    /// does not ask again.
    ///
    /// # Errors
    /// Fails if the approvals cannot be written.
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

    /// Revokes those approvals of a project for which `wanted` returns true. Returns their number.
    ///
    /// # Errors
    /// Fails if the approvals cannot be written.
    pub fn revoke(
        &mut self,
        project: &Path,
        wanted: impl Fn(&ApprovalRecord) -> bool,
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

    /// Returns the folder with the copies of a trusted item. Writes those that are missing or changed.
    /// `memory` has what is known about its files.
    ///
    /// # Errors
    /// Fails if a copy cannot be written.
    pub fn keep_copies(
        &self,
        item: &ApprovalItem,
        memory: &FileMemory,
    ) -> Result<PathBuf, TrustError> {
        self.keep_copies_from(item, memory, |file| item.project.join(&file.path))
    }

    /// Like [`keep_copies`](Self::keep_copies). `original` returns the file to copy.
    fn keep_copies_from(
        &self,
        item: &ApprovalItem,
        memory: &FileMemory,
        original: impl Fn(&CoveredFile) -> PathBuf + Sync,
    ) -> Result<PathBuf, TrustError> {
        let digest = item.digest();
        let folder = self.copies(&item.project, &digest);
        let files: Vec<&CoveredFile> = item.files.iter().chain(&item.covered).collect();
        let copies = map_parallel(&files, |file| {
            let copy = folder.join(inside_copies(&file.path));
            let stamp = || FileStamp::of(&fs::symlink_metadata(&copy).ok()?);
            let before = stamp();
            if memory.has_copy(&file.path, before) || file.is_copy(&copy) {
                return Ok(before.and_then(FileStamp::if_stable));
            }
            let original = original(file);
            file.copy(&original, &copy)
                .map_err(|source| TrustError::file(&original, source))?;
            // A copy that was just written could change within the same tick of the clock. The next start
            // reads it again.
            Ok(stamp().and_then(FileStamp::if_stable))
        });
        let copies = copies.into_iter().collect::<Result<Vec<_>, TrustError>>()?;
        remove_others(item, &folder)?;
        let copies = files.iter().zip(copies);
        let copies = copies.filter_map(|(file, stamp)| Some((file.path.clone(), stamp?)));
        let known = item.covered.iter();
        let known = known.filter_map(|file| Some((file.path.clone(), file.known.clone()?)));
        let mut now = FileMemory {
            originals: known.collect(),
            copies: copies.collect(),
        };
        if now.originals.is_empty() {
            // A restored hook was read from its copies.
            now.originals.clone_from(&memory.originals);
        }
        if now != *memory {
            now.write(&self.stamps(&item.project, &digest));
        }
        Ok(folder)
    }

    /// Removes copies that have no approval, unless a session may still run them. A copy that cannot
    /// be removed does no harm, because nothing runs it.
    fn drop_unused_copies(&self) {
        let projects = self.book.projects.iter();
        let all = projects.flat_map(|(project, all)| all.iter().map(move |it| (project, it)));
        let used = all.flat_map(|(project, approved)| {
            let hook_file = approved.hook_file.as_deref();
            let covered = approved.covered.as_deref();
            let of_project = [
                self.stamps(project, &approved.digest),
                self.copies(project, &approved.digest),
            ];
            let blobs = hook_file.map(|sha256| self.blob(HOOK_FILES, sha256));
            let blobs = blobs
                .into_iter()
                .chain(covered.map(|sha256| self.blob(COVERED, sha256)));
            blobs.chain(of_project)
        });
        let used: BTreeSet<PathBuf> = used.collect();
        let paths = |dir: &Path| readable_entries(dir).map(|entry| entry.path());
        let below = |name: &str| paths(&self.dir.join(name));
        let blobs = below(HOOK_FILES).chain(below(COVERED));
        let projects = below("stamps").chain(below("files"));
        for path in blobs.chain(projects.flat_map(|project| paths(&project))) {
            if !used.contains(&path) && is_old(&path) {
                let _gone = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
    }

    fn lock(&self) -> Result<FileLock, TrustError> {
        let refused = |source| TrustError::file(&self.dir, source);
        make_private(&self.dir).map_err(refused)?;
        check_owner(&self.dir)?;
        let path = self.dir.join("lock");
        let lock = lock_file(&path).and_then(|file| FileLock::wait(file, LOCK_WAIT));
        lock.map_err(refused)?.ok_or_else(|| TrustError::Busy {
            path: self.dir.clone(),
        })
    }

    fn write(&mut self) -> Result<(), TrustError> {
        let path = self.path();
        self.book.version = VERSION;
        self.book.user = current_user();
        let refused = |source| TrustError::file(&path, source);
        let bytes = serde_json::to_vec_pretty(&self.book)
            .map_err(|error| refused(io::Error::other(error)))?;
        write_private(&path, &bytes, 0o600).map_err(refused)
    }
}

/// Reads a file that is named after its content. `None` if it is missing or damaged.
fn read_blob(path: &Path, sha256: &str) -> Option<Vec<u8>> {
    let (bytes, _) = read_whole(path).ok()?;
    (hex_digest(&bytes) == sha256).then_some(bytes)
}

/// Stores bytes in a file that is named after them, and returns the name.
fn keep_blob(bytes: &[u8], path: impl Fn(&str) -> PathBuf) -> Result<String, TrustError> {
    let sha256 = hex_digest(bytes);
    let path = path(&sha256);
    if read_blob(&path, &sha256).is_none() {
        write_private(&path, bytes, 0o400).map_err(|source| TrustError::file(&path, source))?;
    }
    Ok(sha256)
}

/// Removes files from the copies that are not part of the item, because approved code might load them.
fn remove_others(item: &ApprovalItem, folder: &Path) -> Result<(), TrustError> {
    let files = item.files.iter().chain(&item.covered);
    let copies = files.map(|file| folder.join(inside_copies(&file.path)));
    let copies: HashSet<PathBuf> = copies.collect();
    let mut folders = vec![folder.to_owned()];
    while let Some(dir) = folders.pop() {
        let refused = |source| TrustError::file(&dir, source);
        for entry in entries(&dir).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let path = entry.path();
            if entry.file_type().map_err(refused)?.is_dir() {
                folders.push(path);
            } else if !copies.contains(&path) && !is_being_written(&path) {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(TrustError::file(&path, error));
                    }
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }
    Ok(())
}

/// Returns whether another process may just be writing this copy: a file with a temporary name is renamed when
/// it is complete.
fn is_being_written(path: &Path) -> bool {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let is_new = modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < WRITING));
    is_unfinished(path) && is_new
}

fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > COPIES_KEPT))
}
