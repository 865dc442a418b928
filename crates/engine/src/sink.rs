//! Where records of runs and dispatches go.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use futures_util::future::BoxFuture;
use tenterhook_protocol::journal::JournalRecord;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Takes the records of an engine.
pub trait JournalSink: Send + Sync + fmt::Debug {
    /// Takes the records of one dispatch: its runs in order, then the dispatch itself. The dispatch waits for it.
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()>;

    /// Takes the record of a dispatch that its host dropped. Must not wait; what there is no room for is lost.
    fn record_dropped(&self, record: JournalRecord);

    /// Returns what kept records from being written since the last call. The host's user is told.
    fn take_problem(&self) -> Option<String> {
        None
    }
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

    fn record_dropped(&self, record: JournalRecord) {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(record);
    }
}

/// How many dispatches may wait for the disk before the next one does.
const QUEUED_DISPATCHES: usize = 256;

/// Appends records to a file, one JSON object a line, from a thread of its own. A dispatch waits only when the
/// disk is that many dispatches behind. After a write that failed the next one is tried all the same.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    queue: mpsc::Sender<Vec<JournalRecord>>,
    closing: CancellationToken,
    writer: Mutex<Option<JoinHandle<Result<(), io::Error>>>>,
    problem: Arc<Mutex<Option<String>>>,
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
    /// When folder or file cannot be made, when the file is a FIFO, or when the thread cannot be started.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let failed = |source| JournalError {
            path: path.clone(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        // Opening one would wait for a reader, and every record for it to read on.
        if std::fs::metadata(&path).is_ok_and(|found| is_fifo(found.file_type())) {
            return Err(failed(io::Error::other("it is a FIFO, expected a file")));
        }
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed)?;
        Self::start(file, path)
    }

    /// Starts the thread that writes to a file, which errors call `path`.
    fn start(file: File, path: PathBuf) -> Result<Self, JournalError> {
        let failed = |source| JournalError {
            path: path.clone(),
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(failed)?;
        let (queue, records) = mpsc::channel(QUEUED_DISPATCHES);
        let closing = CancellationToken::new();
        let problem = Arc::new(Mutex::new(None));
        let writer = Writer {
            file,
            problem: Arc::clone(&problem),
            is_torn: false,
            first_error: None,
        };
        let until = closing.clone();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || runtime.block_on(writer.write_all(records, until)))
            .map_err(failed)?;
        Ok(Self {
            path,
            queue,
            closing,
            writer: Mutex::new(Some(thread)),
            problem,
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
        self.closing.cancel();
        let thread = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread else { return Ok(()) };
        let lost = |_| Err(io::Error::other("the writer panicked"));
        thread
            .join()
            .unwrap_or_else(lost)
            .map_err(|source| JournalError {
                path: self.path.clone(),
                source,
            })
    }
}

#[cfg(unix)]
fn is_fifo(kind: std::fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_fifo(_: std::fs::FileType) -> bool {
    false
}

impl JournalSink for FileJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.queue.send(records).await.is_err() || self.closing.is_cancelled() {
                note(&self.problem, "the journal is closed");
            }
        })
    }

    fn record_dropped(&self, record: JournalRecord) {
        if self.queue.try_send(vec![record]).is_err() {
            note(&self.problem, "a dropped dispatch was not recorded");
        }
    }

    fn take_problem(&self) -> Option<String> {
        let problem = self
            .problem
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        problem.map(|problem| {
            format!(
                "cannot write the journal `{}`: {problem}",
                self.path.display()
            )
        })
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.close().ok();
    }
}

fn note(problem: &Mutex<Option<String>>, text: &str) {
    *problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
}

/// The side of a journal that writes.
struct Writer {
    file: File,
    problem: Arc<Mutex<Option<String>>>,
    /// The last write may have left a line without its end.
    is_torn: bool,
    first_error: Option<io::Error>,
}

impl Writer {
    /// Writes until the journal is closed, then what is still queued.
    async fn write_all(
        mut self,
        mut records: mpsc::Receiver<Vec<JournalRecord>>,
        closing: CancellationToken,
    ) -> io::Result<()> {
        while let Some(Some(batch)) = closing.run_until_cancelled(records.recv()).await {
            self.write(&batch);
        }
        // Closing wakes whoever waits for room in the queue. What they still send is not waited for: their thread may
        // be the one that waits for this one.
        records.close();
        while let Ok(batch) = records.try_recv() {
            self.write(&batch);
        }
        self.file
            .sync_data()
            .or_else(|error| self.sync_failure(error))?;
        self.first_error.map_or(Ok(()), Err)
    }

    /// A pipe or a device has nothing to sync.
    fn sync_failure(&self, error: io::Error) -> io::Result<()> {
        let is_file = self
            .file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file());
        if is_file { Err(error) } else { Ok(()) }
    }

    /// Writes a dispatch with one write, so that processes that share a file do not mix their lines.
    fn write(&mut self, batch: &[JournalRecord]) {
        let mut lines = Vec::new();
        if self.is_torn {
            lines.push(b'\n');
        }
        let encoded = batch.iter().try_for_each(|record| {
            serde_json::to_writer(&mut lines, record)?;
            lines.push(b'\n');
            Ok(())
        });
        let written = encoded.and_then(|()| self.file.write_all(&lines));
        self.is_torn = written.is_err();
        if let Err(error) = written {
            note(&self.problem, &error.to_string());
            self.first_error.get_or_insert(error);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::OwnedFd;
    use std::sync::Arc;

    use tenterhook_protocol::Origin;
    use tenterhook_protocol::event::TurnStart;

    use super::*;
    use crate::Engine;

    #[tokio::test]
    async fn closing_a_journal_frees_dispatches_that_wait_for_it() {
        // A pipe that nobody reads yet stands for a disk that is slow.
        let (mut reader, writer) = io::pipe().unwrap();
        let file = File::from(OwnedFd::from(writer));
        let journal = Arc::new(FileJournal::start(file, "pipe".into()).unwrap());
        let engine = Engine::builder().journal(journal.clone()).build();
        engine.on(|_: &TurnStart| ());
        let dispatches: Vec<_> = (0..2000)
            .map(|_| {
                let hooks = engine.dispatcher(Origin::default());
                tokio::spawn(async move { drop(hooks.dispatch(TurnStart::default()).await) })
            })
            .collect();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let reads = std::thread::spawn(move || io::copy(&mut reader, &mut io::sink()).unwrap());
        journal.close().unwrap();
        for dispatch in dispatches {
            dispatch.await.unwrap();
        }
        drop((engine, journal));
        reads.join().unwrap();
    }
}
