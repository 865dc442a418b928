//! The thread that writes. It puts all changes that wait into one transaction, so that they share one wait for the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redb::WriteTransaction;
use tokio::sync::{mpsc, oneshot};

use super::file::StoreFile;
use super::record::StoreError;
use super::tables::{Failure, Limits, Tables, unusable};

/// The maximum number of changes in one transaction.
const MAX_BATCH: usize = 256;

/// How many changes may wait in addition. Later ones make their callers wait.
const MAX_WAITING: usize = 1_024;

/// How often it is tried whether transactions succeed again.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The entrance of the thread. Dropping it ends the thread.
pub(super) struct Writer {
    changes: Option<mpsc::Sender<Box<dyn Change>>>,
    /// Whether the last transaction failed.
    has_failed: Arc<AtomicBool>,
    /// When it was last tried whether transactions succeed again.
    probed: Mutex<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(file: Arc<StoreFile>, limits: Limits) -> Result<Self, StoreError> {
        let (changes, waiting) = mpsc::channel(MAX_WAITING);
        let batches = Batches {
            file,
            limits,
            in_doubt: Vec::new(),
            has_failed: Arc::default(),
        };
        let has_failed = Arc::clone(&batches.has_failed);
        let thread = std::thread::Builder::new()
            .name("gateway-store".to_owned())
            .spawn(move || batches.run(waiting))
            .map_err(|error| unusable(&error.into()))?;
        Ok(Self {
            changes: Some(changes),
            has_failed,
            probed: Mutex::default(),
            thread: Some(thread),
        })
    }

    /// Returns whether the last transaction failed, or the thread has ended because of a bug.
    pub(super) fn has_failed(&self) -> bool {
        let has_ended = self.changes.as_ref().is_none_or(mpsc::Sender::is_closed);
        has_ended || self.has_failed.load(Ordering::Acquire)
    }

    /// Returns whether it is time to try if transactions succeed again.
    pub(super) fn is_probe_due(&self) -> bool {
        if !self.has_failed() {
            return false;
        }
        let mut probed = self.probed.lock();
        let is_due = probed.is_none_or(|last| last.elapsed() >= PROBE_INTERVAL);
        if is_due {
            *probed = Some(Instant::now());
        }
        is_due
    }

    /// Makes a change. Returns after it is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        apply: impl FnOnce(&mut Tables<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let ended = || StoreError::Io {
            cause: "the store has stopped; restart the gateway".to_owned(),
        };
        let (answer, result) = oneshot::channel();
        let change = Box::new(WaitingChange {
            apply: Some(apply),
            outcome: None,
            answer,
        });
        let changes = self.changes.as_ref().ok_or_else(ended)?;
        changes.send(change).await.map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }
}

/// Waits for the last changes, so that the folder can be opened again at once.
impl Drop for Writer {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            // It fails if the thread panicked. Nothing can be done about that here.
            thread.join().ok();
        }
    }
}

/// A change that waits for its transaction.
trait Change: Send {
    /// Applies it. A change that is refused has written nothing. It is not a failure here.
    fn apply(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error>;

    /// Answers the caller after the commit.
    fn finish(self: Box<Self>, committed: &Result<(), StoreError>);
}

struct WaitingChange<F, T> {
    apply: Option<F>,
    outcome: Option<Result<T, StoreError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> Change for WaitingChange<F, T>
where
    F: FnOnce(&mut Tables<'_>) -> Result<T, Failure> + Send,
    T: Send,
{
    fn apply(&mut self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        // A caller that has gone away wants nothing.
        let apply = self.apply.take().filter(|_| !self.answer.is_closed());
        let Some(apply) = apply else {
            return Ok(());
        };
        self.outcome = Some(match apply(tables) {
            Ok(value) => Ok(value),
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Storage(error)) => return Err(error),
        });
        Ok(())
    }

    fn finish(self: Box<Self>, committed: &Result<(), StoreError>) {
        let result = match (self.outcome, committed) {
            (Some(Err(refused)), _) => Err(refused),
            (_, Err(error)) => Err(error.clone()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => return,
        };
        // The caller may have gone away.
        self.answer.send(result).ok();
    }
}

/// A transaction that was reported as failed, but may have reached the disk.
#[derive(Debug, PartialEq, Eq)]
struct InDoubt {
    /// The number of its commit.
    commit: u64,
    /// The number of the last message before it.
    last_message: u64,
}

struct Batches {
    file: Arc<StoreFile>,
    limits: Limits,
    /// Empty, unless the file could not be opened again after a failure.
    in_doubt: Vec<InDoubt>,
    /// Whether the last transaction failed.
    has_failed: Arc<AtomicBool>,
}

impl Batches {
    fn run(mut self, mut waiting: mpsc::Receiver<Box<dyn Change>>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while waiting.blocking_recv_many(&mut batch, MAX_BATCH) > 0 {
            let committed = self.commit(&mut batch).map_err(|error| unusable(&error));
            self.has_failed.store(committed.is_err(), Ordering::Release);
            for change in batch.drain(..) {
                change.finish(&committed);
            }
        }
    }

    /// Commits a batch. If that fails, the file is opened again for the next one.
    fn commit(&mut self, batch: &mut [Box<dyn Change>]) -> Result<(), redb::Error> {
        let transaction = if let Ok(transaction) = self.file.begin_write() {
            transaction
        } else {
            // A query failed since the last batch, or the file could not be opened after a failed one.
            self.file.reopen()?;
            self.file.begin_write()?
        };
        let mut attempt = None;
        let Err(error) = self.write(transaction, batch, &mut attempt) else {
            self.in_doubt.clear();
            return Ok(());
        };
        let is_open = self.file.reopen().is_ok();
        let commits = is_open.then(|| self.file.commits().ok()).flatten();
        match (attempt, commits) {
            // It reached the disk: opening the file has checked it and waited for the disk again.
            (Some(attempt), Some(commits)) if commits == attempt.commit => {
                self.in_doubt.clear();
                Ok(())
            }
            (Some(attempt), None) if self.in_doubt.last() != Some(&attempt) => {
                self.in_doubt.push(attempt);
                Err(error)
            }
            _ => Err(error),
        }
    }

    /// Applies a batch and commits it. `attempt` is set before the commit.
    fn write(
        &self,
        transaction: WriteTransaction,
        batch: &mut [Box<dyn Change>],
        attempt: &mut Option<InDoubt>,
    ) -> Result<(), redb::Error> {
        let now = jiff::Timestamp::now().as_millisecond();
        {
            let mut tables = Tables::open(&transaction, self.limits, now)?;
            let commits = tables.commits()?;
            let mut last_message = tables.last_message;
            let undo = self.in_doubt.iter().find(|doubt| doubt.commit == commits);
            if let Some(doubt) = undo {
                // Their senders were asked to send them again. Those messages must not count as duplicates.
                for id in doubt.last_message + 1..=last_message {
                    tables.forget(id)?;
                }
                last_message = doubt.last_message;
            }
            for change in batch {
                change.apply(&mut tables)?;
            }
            tables.prune_seen()?;
            tables.count_commit(commits + 1)?;
            *attempt = Some(InDoubt {
                commit: commits + 1,
                last_message,
            });
        }
        Ok(transaction.commit()?)
    }
}
