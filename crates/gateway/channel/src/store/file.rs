//! The file of the store: its lock, and opening it again after a failure.

use std::path::Path;
use std::time::Duration;

use parking_lot::RwLock;
use redb::backends::InMemoryBackend;
use redb::{ReadTransaction, ReadableDatabase as _, ReadableTable as _, WriteTransaction};
use tenterhook_files::{FileLock, close_to_others, is_locked, lock_file, private_options};

use super::record::StoreError;
use super::tables::{COMMITS, FORMAT, Failure, Limits, META, Tables, unusable};

/// The file of the store in its folder.
pub const STORE_FILE: &str = "gateway.redb";

/// The version of the layout that this program reads and writes.
pub(super) const LAYOUT: u64 = 1;

/// The folder that is there while files of a backup replace the files of the state. The store is not opened meanwhile.
pub const RESTORING: &str = "restoring";

/// How long the lock of the folder is tried. The lock of a gateway that was killed can be held for a moment longer: a child
/// has a copy of it from its start until it runs its own program.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);

/// How much of the file is kept in memory, in bytes.
const CACHE: usize = 32 * 1024 * 1024;

/// Opens the file. It is called again after each failure.
pub(super) type Opener = Box<dyn Fn() -> Result<redb::Database, redb::DatabaseError> + Send + Sync>;

/// The open file. After one failed operation, redb refuses all others until the file is opened again.
pub(super) struct StoreFile {
    opener: Opener,
    current: RwLock<Option<redb::Database>>,
    /// Held also while the file is closed for a moment, so that no other process can take it then.
    _lock: Option<FileLock>,
}

impl StoreFile {
    /// Opens the file in a folder, and creates both if they are missing.
    pub(super) fn open(folder: &Path, limits: Limits) -> Result<Self, StoreError> {
        let path = folder.join(STORE_FILE);
        let opener: Opener = Box::new(move || {
            // Only its owner can read it.
            let mut options = private_options();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path)?;
            redb::Builder::new().set_cache_size(CACHE).create(&path)
        });
        Self::open_with(folder, limits, opener)
    }

    /// Does the same with another way to open the file.
    pub(super) fn open_with(
        folder: &Path,
        limits: Limits,
        opener: Opener,
    ) -> Result<Self, StoreError> {
        let lock = lock(folder)?;
        if folder.join(RESTORING).exists() {
            return Err(StoreError::Io {
                cause: "a restore of this state was interrupted; run `tenterhook gateway restore FILE` again"
                    .to_owned(),
            });
        }
        Self::prepared(limits, opener, Some(lock))
    }

    /// Creates an empty store in memory. If it fails and is opened again, it is empty again.
    pub(super) fn in_memory(limits: Limits) -> Result<Self, StoreError> {
        let opener: Opener =
            Box::new(|| redb::Builder::new().create_with_backend(InMemoryBackend::new()));
        Self::prepared(limits, opener, None)
    }

    fn prepared(
        limits: Limits,
        opener: Opener,
        lock: Option<FileLock>,
    ) -> Result<Self, StoreError> {
        let file = Self {
            current: RwLock::new(Some(opener().map_err(|error| unusable(&error.into()))?)),
            opener,
            _lock: lock,
        };
        file.prepare(limits)?;
        Ok(file)
    }

    /// Creates missing tables, and checks the version of the layout. It waits for the disk only if something is new.
    fn prepare(&self, limits: Limits) -> Result<(), StoreError> {
        let transaction = self.begin_write().map_err(|error| unusable(&error))?;
        let known = count_tables(&transaction)?;
        {
            let mut tables =
                Tables::open(&transaction, limits, 0).map_err(|error| unusable(&error))?;
            let found = tables.meta.get(FORMAT).map_err(Failure::from)?;
            let found = found.map(|format| format.value());
            if found.is_some_and(|found| found != LAYOUT) {
                let found = found.unwrap_or_default();
                let cause = format!(
                    "the store `gateway.redb` has layout {found}, expected {LAYOUT}; use the version of tenterhook that wrote it"
                );
                return Err(StoreError::Io { cause });
            }
            tables.meta.insert(FORMAT, LAYOUT).map_err(Failure::from)?;
        }
        if known == count_tables(&transaction)? {
            return transaction.abort().map_err(|error| unusable(&error.into()));
        }
        transaction
            .commit()
            .map_err(|error| unusable(&error.into()))
    }

    /// Begins a change.
    pub(super) fn begin_write(&self) -> Result<WriteTransaction, redb::Error> {
        match &*self.current.read() {
            Some(database) => Ok(database.begin_write()?),
            None => Err(redb::Error::DatabaseClosed),
        }
    }

    /// Runs a query on a snapshot.
    pub(super) fn read<T>(
        &self,
        query: impl FnOnce(&ReadTransaction) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let current = self.current.read();
        query(&snapshot_of(current.as_ref())?)
    }

    /// Begins a snapshot. Until it is dropped, the file cannot be opened again after a failure.
    pub(super) fn snapshot(&self) -> Result<ReadTransaction, Failure> {
        snapshot_of(self.current.read().as_ref())
    }

    /// Closes the file and opens it again. It waits for queries.
    pub(super) fn reopen(&self) -> Result<(), redb::Error> {
        let mut current = self.current.write();
        *current = None;
        *current = Some((self.opener)()?);
        Ok(())
    }

    /// Returns how many commits the file has seen.
    pub(super) fn commits(&self) -> Result<u64, Failure> {
        self.read(|snapshot| {
            let commits = snapshot.open_table(META)?.get(COMMITS)?;
            Ok(commits.map_or(0, |commits| commits.value()))
        })
    }
}

fn snapshot_of(database: Option<&redb::Database>) -> Result<ReadTransaction, Failure> {
    let database = database.ok_or(Failure::Storage(redb::Error::DatabaseClosed))?;
    Ok(database.begin_read()?)
}

fn count_tables(transaction: &WriteTransaction) -> Result<usize, StoreError> {
    let tables = transaction.list_tables().map_err(Failure::from)?;
    Ok(tables.count())
}

/// The file whose lock shows that a process uses the folder.
const LOCK_FILE: &str = "gateway.lock";

/// Returns whether a process uses the store in a folder.
pub(super) fn is_in_use(folder: &Path) -> bool {
    is_locked(&folder.join(LOCK_FILE))
}

/// Locks the folder for this process, and creates it if it is missing.
pub(super) fn lock(folder: &Path) -> Result<FileLock, StoreError> {
    let lock = close_to_others(folder)
        .and_then(|()| lock_file(&folder.join(LOCK_FILE)))
        .and_then(|file| FileLock::wait(file, LOCK_PATIENCE));
    lock.map_err(|error| unusable(&error.into()))?
        .ok_or(StoreError::Locked)
}
