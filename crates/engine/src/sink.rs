//! Where records of runs and dispatches go.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tenterhook_protocol::journal::JournalRecord;
use thiserror::Error;
use tokio::sync::mpsc;

/// Takes the records of an engine.
pub trait JournalSink: Send + Sync + fmt::Debug {
    /// Takes the records of one dispatch: its runs in order, then the dispatch itself. The dispatch waits for it.
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()>;
}

/// Keeps records in memory: for tests, and for hosts that show what happened.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    records: Mutex<Vec<JournalRecord>>,
}

impl MemoryJournal {
    /// Makes an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes out all records so far.
    pub fn take(&self) -> Vec<JournalRecord> {
        std::mem::take(&mut *self.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl JournalSink for MemoryJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(records);
        Box::pin(std::future::ready(()))
    }
}

/// How many dispatches may wait for the disk before the next one does.
const QUEUED_DISPATCHES: usize = 256;

/// Appends records to a file, one JSON object a line, from a thread of its own. A dispatch waits only when the
/// disk is that many dispatches behind.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    queue: Mutex<Option<mpsc::Sender<Vec<JournalRecord>>>>,
    writer: Mutex<Option<std::thread::JoinHandle<Result<(), JournalError>>>>,
}

/// A journal that could not be written.
#[derive(Debug, Error)]
#[error("cannot write the journal `{}`", .path.display())]
pub struct JournalError {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub source: io::Error,
}

impl FileJournal {
    /// Opens the file to append to, readable by its owner only where the system has such a mode, and makes its folder.
    ///
    /// # Errors
    /// When folder or file cannot be made, or the thread cannot be started.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let failed = |source| JournalError {
            path: path.clone(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        let (queue, records) = mpsc::channel(QUEUED_DISPATCHES);
        let file_path = path.clone();
        let writer = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                write_all(file, records).map_err(|source| JournalError {
                    path: file_path,
                    source,
                })
            })
            .map_err(failed)?;
        Ok(Self {
            path,
            queue: Mutex::new(Some(queue)),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Returns the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until everything recorded so far is in the file. Blocks the thread; later records are lost.
    ///
    /// # Errors
    /// When anything could not be written.
    pub fn close(&self) -> Result<(), JournalError> {
        drop(
            self.queue
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        writer.map_or(Ok(()), |writer| {
            let lost = || JournalError {
                path: self.path.clone(),
                source: io::Error::other("the writer panicked"),
            };
            writer.join().unwrap_or_else(|_| Err(lost()))
        })
    }

    fn queue(&self) -> Option<mpsc::Sender<Vec<JournalRecord>>> {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl JournalSink for FileJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(queue) = self.queue() {
                // The writer is gone only after an error, which `close` returns.
                queue.send(records).await.ok();
            }
        })
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.close().ok();
    }
}

/// Writes each dispatch with one write, so that processes that share a file do not mix their lines.
fn write_all(
    mut file: std::fs::File,
    mut records: mpsc::Receiver<Vec<JournalRecord>>,
) -> io::Result<()> {
    let mut lines = Vec::new();
    while let Some(batch) = records.blocking_recv() {
        lines.clear();
        for record in &batch {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
        }
        file.write_all(&lines)?;
    }
    file.sync_data()
}
