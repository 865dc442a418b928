//! Tests that need a disk that fails, smaller limits, or the number of commits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures_util::future::join_all;
use redb::StorageBackend;
use redb::backends::FileBackend;
use tempfile::TempDir;

use super::file::Opener;
use super::*;
use crate::chat::{ChannelId, Sender};

/// What a disk does wrong.
#[derive(Debug, Default)]
struct Faults {
    /// No write succeeds.
    is_full: AtomicBool,
    /// How many of the next synchronisations fail.
    failing_syncs: AtomicU32,
}

/// A disk that fails on demand.
#[derive(Debug)]
struct FailingDisk {
    file: FileBackend,
    faults: Arc<Faults>,
}

impl FailingDisk {
    fn check_space(&self) -> io::Result<()> {
        if self.faults.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for FailingDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_space()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let take = |left: u32| left.checked_sub(1);
        let failing = &self.faults.failing_syncs;
        if failing
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
            .is_ok()
        {
            return Err(io::Error::other("the disk does not answer"));
        }
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check_space()?;
        self.file.write(offset, data)
    }
}

fn failing_store(folder: &Path) -> (Store, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let path = folder.join("gateway.redb");
    let shared = Arc::clone(&faults);
    let opener: Opener = Box::new(move || {
        let mut options = std::fs::File::options();
        options.read(true).write(true).create(true).truncate(false);
        let disk = FailingDisk {
            file: FileBackend::new(options.open(&path)?)?,
            faults: Arc::clone(&shared),
        };
        redb::Builder::new().create_with_backend(disk)
    });
    let limits = Limits::default();
    let file = StoreFile::open_with(folder, limits, opener).unwrap();
    (Store::over(file, limits).unwrap(), faults)
}

fn limited_store(folder: &Path, limits: Limits) -> Store {
    Store::over(StoreFile::open(folder, limits).unwrap(), limits).unwrap()
}

async fn accept(store: &Store, dedupe: &str) -> Result<Recorded, StoreError> {
    let message = IncomingMessage {
        dedupe: dedupe.to_owned(),
        message_id: dedupe.to_owned(),
        chat: chat(),
        sender: Sender {
            id: "ann".to_owned(),
            name: None,
            is_bot: false,
        },
        is_direct: true,
        is_addressed: true,
        parts: Vec::new(),
        reply_to: None,
        at: jiff::Timestamp::UNIX_EPOCH,
    };
    let key = SessionKey("a".to_owned());
    store.accept(message, SenderRole::Owner, key).await
}

fn chat() -> ChatRef {
    ChatRef {
        channel: ChannelId::new("web").unwrap(),
        chat: "a".to_owned(),
        thread: None,
    }
}

async fn waiting(store: &Store) -> Vec<String> {
    let records = store.unfinished().await.unwrap();
    let dedupes = records.into_iter().map(|record| record.message.dedupe);
    dedupes.collect()
}

fn is_fresh(recorded: &Result<Recorded, StoreError>) -> bool {
    matches!(recorded, Ok(Recorded::Fresh(_)))
}

#[tokio::test]
async fn changes_that_are_made_at_once_share_commits() {
    let folder = TempDir::new().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let dedupes: Vec<String> = (0..512).map(|number| number.to_string()).collect();
    let recorded = join_all(dedupes.iter().map(|dedupe| accept(&store, dedupe))).await;
    assert!(recorded.iter().all(is_fresh));
    assert_eq!(waiting(&store).await.len(), 512);
    let commits = store.file.commits().unwrap();
    assert!((2..64).contains(&commits), "{commits} commits");
}

// G50, the part of the store
#[tokio::test]
async fn a_full_disk_fails_the_changes_of_that_time_and_no_others() {
    let folder = TempDir::new().unwrap();
    let (store, faults) = failing_store(folder.path());
    assert!(is_fresh(&accept(&store, "1").await));
    faults.is_full.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let failed = accept(&store, "2").await.unwrap_err().to_string();
        assert!(failed.contains("`gateway.redb`"), "{failed}");
    }
    let frame = Frame::Message {
        turn: None,
        text: "x".to_owned(),
        media: None,
        reply_to: None,
    };
    let update = (vec![InboxId(1)], InboxState::Answered);
    let failed = store
        .append(&chat(), vec![frame.clone()], update.clone())
        .await;
    assert!(matches!(failed, Err(StoreError::Io { .. })), "{failed:?}");

    faults.is_full.store(false, Ordering::SeqCst);
    assert!(is_fresh(&accept(&store, "2").await));
    assert_eq!(accept(&store, "1").await, Ok(Recorded::Duplicate));
    assert_eq!(waiting(&store).await, ["1", "2"]);
    let stored = store.append(&chat(), vec![frame], update).await.unwrap();
    assert_eq!(stored[0].seq, Some(1));
    drop(store);
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(waiting(&store).await, ["2"]);
}

#[tokio::test]
async fn a_message_that_was_reported_as_failed_is_not_a_duplicate_later() {
    let folder = TempDir::new().unwrap();
    for failing_syncs in 1..8 {
        let (store, faults) = failing_store(folder.path());
        let dedupe = failing_syncs.to_string();
        faults.failing_syncs.store(failing_syncs, Ordering::SeqCst);
        let mut recorded = accept(&store, &dedupe).await;
        while recorded.is_err() {
            recorded = accept(&store, &dedupe).await;
        }
        assert!(is_fresh(&recorded), "{failing_syncs}: {recorded:?}");
        faults.failing_syncs.store(0, Ordering::SeqCst);
        assert_eq!(accept(&store, &dedupe).await, Ok(Recorded::Duplicate));
        let found = waiting(&store).await;
        let same = found.iter().filter(|found| **found == dedupe);
        assert_eq!(same.count(), 1, "{failing_syncs}: {found:?}");
    }
}

#[tokio::test]
async fn messages_are_compared_with_the_newest_ones_only() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        seen: 3,
        ..Limits::default()
    };
    let store = limited_store(folder.path(), limits);
    for dedupe in ["1", "2", "3", "4", "5"] {
        assert!(is_fresh(&accept(&store, dedupe).await));
    }
    assert_eq!(accept(&store, "3").await, Ok(Recorded::Duplicate));
    assert!(is_fresh(&accept(&store, "2").await));
}

#[tokio::test]
async fn old_messages_are_forgotten() {
    let folder = TempDir::new().unwrap();
    let limits = Limits {
        seen_ms: -1,
        ..Limits::default()
    };
    let store = limited_store(folder.path(), limits);
    for _ in 0..2 {
        assert!(is_fresh(&accept(&store, "1").await));
    }
}

#[tokio::test]
async fn a_copy_has_everything_that_was_stored_before_and_can_be_opened() {
    let (folder, backup) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = Store::open(folder.path()).unwrap();
    assert!(is_fresh(&accept(&store, "1").await));
    let frame = Frame::Message {
        turn: None,
        text: "x".to_owned(),
        media: None,
        reply_to: None,
    };
    let update = (vec![], InboxState::Answered);
    store.append(&chat(), vec![frame], update).await.unwrap();
    let key = SessionKey("key".to_owned());
    let session = SessionId::from("session");
    store
        .set_session(&key, Some(session.clone()))
        .await
        .unwrap();
    let token = Some(Value::Bool(true));
    store
        .set_document(DocumentKind::Token, "t", token.clone())
        .await
        .unwrap();

    let observed = store.copy_into(backup.path(), || "observed").await;
    assert_eq!(observed, Ok("observed"));
    assert!(is_fresh(&accept(&store, "2").await));

    let copy = Store::open(backup.path()).unwrap();
    assert_eq!(waiting(&copy).await, ["1"]);
    assert_eq!(accept(&copy, "1").await, Ok(Recorded::Duplicate));
    assert_eq!(copy.unsent().await, store.unsent().await);
    assert_eq!(copy.session(&key).await, Ok(Some(session)));
    let stored = copy.document(DocumentKind::Token, "t").await;
    assert_eq!(stored, Ok(token));
    assert_eq!(
        copy.chats(10).await.unwrap(),
        store.chats(10).await.unwrap()
    );
}

// A copy waits for the disk with a transaction of its own, so other changes continue meanwhile.
#[tokio::test]
async fn messages_are_stored_while_a_copy_is_written_and_belong_to_it_only_if_they_came_before() {
    let (folder, backup) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = Store::open(folder.path()).unwrap();
    let dedupes: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let accepts = join_all(dedupes.iter().map(|dedupe| accept(&store, dedupe)));
    let copying = store.copy_into(backup.path(), || ());
    let (recorded, copied) = tokio::join!(accepts, copying);
    assert!(recorded.iter().all(is_fresh));
    assert_eq!(copied, Ok(()));
    let found = waiting(&Store::open(backup.path()).unwrap()).await;
    assert_eq!(found, dedupes[..found.len()]);
}

#[tokio::test]
async fn a_store_is_writable_again_after_the_disk_has_room_although_no_one_writes() {
    let folder = TempDir::new().unwrap();
    let (store, faults) = failing_store(folder.path());
    assert!(store.is_writable().await);
    faults.is_full.store(true, Ordering::SeqCst);
    accept(&store, "1").await.unwrap_err();
    assert!(!store.is_writable().await);
    faults.is_full.store(false, Ordering::SeqCst);
    // It was tried a moment ago.
    assert!(!store.is_writable().await);
    while !store.is_writable().await {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(is_fresh(&accept(&store, "1").await));
}

#[test]
fn a_store_is_not_opened_while_files_of_a_backup_replace_it() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join(RESTORING)).unwrap();
    let refused = Store::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("was interrupted"), "{refused}");
}

#[test]
fn a_locked_folder_keeps_its_store_closed() {
    let folder = TempDir::new().unwrap();
    let lock = StoreLock::take(folder.path()).unwrap();
    assert_eq!(Store::open(folder.path()).err(), Some(StoreError::Locked));
    drop(lock);
    Store::open(folder.path()).unwrap();
}

#[test]
fn a_store_that_a_newer_version_wrote_is_refused_and_stays_as_it_is() {
    use super::file::{LAYOUT, StoreFile};
    use super::tables::{FORMAT, META};

    let folder = TempDir::new().unwrap();
    let file = StoreFile::open(folder.path(), Limits::default()).unwrap();
    let transaction = file.begin_write().unwrap();
    let newer = LAYOUT + 1;
    transaction
        .open_table(META)
        .unwrap()
        .insert(FORMAT, newer)
        .unwrap();
    transaction.commit().unwrap();
    drop(file);
    for _ in 0..2 {
        let refused = Store::open(folder.path()).unwrap_err().to_string();
        let expected = format!("layout {newer}, expected {LAYOUT}; use the version of tenterhook");
        assert!(refused.contains(&expected), "{refused}");
    }
}

#[test]
fn a_folder_is_in_use_as_long_as_its_store_is_open() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!Store::is_in_use(folder.path()));
    let store = Store::open(folder.path()).unwrap();
    assert!(Store::is_in_use(folder.path()));
    drop(store);
    assert!(!Store::is_in_use(folder.path()));
    // Looking does not keep anyone from using it.
    drop(Store::open(folder.path()).unwrap());
}
