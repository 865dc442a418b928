//! Writes the records of an engine to a file, with one JSON object per line and without secrets.
//!
//! The [`Redactor`] finds the secrets. It also serves everything else that shows or stores text.
//! The record format is defined in `tenterhook-protocol`, and the trait that a journal implements
//! in `tenterhook-engine`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tenterhook_engine::Engine;
//! use tenterhook_journal::FileJournal;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("journal.jsonl");
//! let journal = Arc::new(FileJournal::open(&path)?);
//! let engine = Engine::builder().journal(journal.clone()).build();
//! // Dispatch events. At the end, wait until everything is written:
//! journal.close()?;
//! # drop(engine);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod redacted_record;
mod redactor;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_files::{make_private, private_options};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::redacted_record::withheld;

pub use crate::redacted_record::{RedactingJournal, redacted_line};
pub use crate::redactor::{Redactor, Secret};

/// The number of dispatches that may wait for the disk before the next dispatch has to wait.
const QUEUED_DISPATCHES: usize = 256;

/// Appends records to a file, with one JSON object per line and without their secrets. If the file is
/// moved away, as programs do that rotate logs, the next record begins a new one on Unix. A separate
/// thread writes them. A dispatch only waits if 256 earlier dispatches are still waiting for the disk. If a write fails,
/// later records are still tried.
#[derive(Debug)]
pub struct FileJournal {
    path: PathBuf,
    queue: mpsc::Sender<Vec<JournalRecord>>,
    closing: CancellationToken,
    writer: Mutex<Option<JoinHandle<Result<(), io::Error>>>>,
    problem: Arc<Mutex<Option<String>>>,
}

/// The error for a journal that could not be written.
#[derive(Debug, Error)]
#[error("cannot write the journal `{}`", .path.display())]
pub struct JournalError {
    /// The path of the file.
    pub path: PathBuf,
    /// What went wrong.
    #[source]
    pub source: io::Error,
}

impl FileJournal {
    /// Opens the file for appending, and creates it and its folder if necessary. On Unix, only the
    /// owner can read a file that it creates.
    ///
    /// # Errors
    /// Fails if the folder or the file cannot be created, if the file is a FIFO, or if the thread
    /// cannot be started.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let failed = |source| JournalError {
            path: path.clone(),
            source,
        };
        if let Some(folder) = path.parent() {
            // No one else may replace the folder, whatever the umask is.
            make_private(folder).map_err(failed)?;
        }
        // Opening a FIFO would wait for a reader, and writing would wait until the reader reads on.
        if std::fs::metadata(&path).is_ok_and(|found| is_fifo(found.file_type())) {
            return Err(failed(io::Error::other("it is a FIFO, expected a file")));
        }
        let file = open_to_append(&path).map_err(failed)?;
        Self::start(file, path)
    }

    /// Starts the thread that writes to `file`. Errors refer to it as `path`.
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
            path: path.clone(),
            problem: Arc::clone(&problem),
            is_torn: false,
            has_written: false,
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

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until all records so far are in the file. Blocks the thread. Later records are lost.
    ///
    /// # Errors
    /// Fails if any record could not be written.
    pub fn close(&self) -> Result<(), JournalError> {
        self.closing.cancel();
        let thread = self.writer.lock().take();
        let Some(thread) = thread else { return Ok(()) };
        let lost = |_| Err(io::Error::other("the writing thread panicked"));
        thread
            .join()
            .unwrap_or_else(lost)
            .map_err(|source| JournalError {
                path: self.path.clone(),
                source,
            })
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    private_options().create(true).append(true).open(path)
}

/// Returns whether a file was moved away from its path, as programs do that rotate logs.
#[cfg(unix)]
fn is_moved(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let Ok(open) = file.metadata() else {
        return false;
    };
    match std::fs::metadata(path) {
        Ok(found) => open.is_file() && (open.dev(), open.ino()) != (found.dev(), found.ino()),
        Err(error) => open.is_file() && error.kind() == io::ErrorKind::NotFound,
    }
}

/// Files that are open cannot be moved here.
#[cfg(not(unix))]
fn is_moved(_: &File, _: &Path) -> bool {
    false
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

    fn record_at_once(&self, record: JournalRecord) {
        let lost = if matches!(record, JournalRecord::ModelCall(_)) {
            "a model call was not recorded"
        } else {
            "a line that a hook printed was not recorded"
        };
        if self.queue.try_send(vec![record]).is_err() {
            note(&self.problem, lost);
        }
    }

    fn take_problem(&self) -> Option<String> {
        let problem = self.problem.lock().take();
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
    *problem.lock() = Some(text.to_owned());
}

/// The part of a journal that runs in the writing thread.
struct Writer {
    file: File,
    path: PathBuf,
    problem: Arc<Mutex<Option<String>>>,
    /// Whether the last write may have left an incomplete line.
    is_torn: bool,
    /// Whether anything was written, so that there is something to sync.
    has_written: bool,
    first_error: Option<io::Error>,
}

impl Writer {
    /// Writes records until the journal is closed, and then the records that are still queued.
    async fn write_all(
        mut self,
        mut records: mpsc::Receiver<Vec<JournalRecord>>,
        closing: CancellationToken,
    ) -> io::Result<()> {
        while let Some(Some(batch)) = closing.run_until_cancelled(records.recv()).await {
            self.write(&batch);
        }
        // Closing wakes senders that wait for room in the queue. Records that they still send are
        // not awaited, because their thread may be the one that waits for this one.
        records.close();
        while let Ok(batch) = records.try_recv() {
            self.write(&batch);
        }
        // Most events have no hooks and leave no record, and even a sync without new data may wait
        // for the disk.
        if self.has_written {
            self.file
                .sync_data()
                .or_else(|error| self.sync_failure(error))?;
        }
        self.first_error.map_or(Ok(()), Err)
    }

    /// Returns the error of a sync, unless the file is a pipe or a device, which has nothing to
    /// sync.
    fn sync_failure(&self, error: io::Error) -> io::Result<()> {
        let is_file = self
            .file
            .metadata()
            .is_ok_and(|metadata| metadata.is_file());
        if is_file { Err(error) } else { Ok(()) }
    }

    /// Begins a new file if the old one was moved away. If that fails, the old one gets the records.
    fn follow_rotation(&mut self) {
        if !is_moved(&self.file, &self.path) {
            return;
        }
        // What others have put there could be something that opening or writing waits for.
        let is_new = std::fs::metadata(&self.path).map_or(true, |found| found.is_file());
        let opened = if is_new {
            open_to_append(&self.path)
        } else {
            Err(io::Error::other("it is not a file any more"))
        };
        match opened {
            Ok(file) => {
                if let Err(error) = self.file.sync_data() {
                    note(&self.problem, &error.to_string());
                }
                self.file = file;
                self.is_torn = false;
            }
            Err(error) => note(&self.problem, &error.to_string()),
        }
    }

    /// Writes the records of one dispatch in a single write, so that several processes can share a
    /// file without mixing their lines.
    fn write(&mut self, batch: &[JournalRecord]) {
        self.follow_rotation();
        let mut lines = Vec::new();
        if self.is_torn {
            lines.push(b'\n');
        }
        for record in batch {
            match redacted_line(record) {
                Ok(line) => {
                    lines.extend(line.into_bytes());
                    lines.push(b'\n');
                }
                Err(error) => {
                    note(&self.problem, &withheld(&error));
                    self.first_error.get_or_insert(error.into());
                }
            }
        }
        let written = self.file.write_all(&lines);
        self.is_torn = written.is_err();
        self.has_written = true;
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

    use tenterhook_engine::event::TurnStart;
    use tenterhook_engine::{Engine, Origin};

    use super::*;

    #[tokio::test]
    async fn closing_a_journal_frees_dispatches_that_wait_for_it() {
        // A pipe without a reader behaves like a slow disk.
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
