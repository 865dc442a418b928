//! The journal of a process that runs for days: a file for each day.
//!
//! A journal that cannot be written must not delay or change a decision. So a record waits only for a
//! moment, and a failure is a notice.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_journal::FileJournal;
use tenterhook_setup::journal::path_of_today;
use tokio::time::timeout;

/// How long a dispatch waits for a journal whose disk is slow.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often to look whether a new day has begun.
const SAME_DAY: Duration = Duration::from_secs(30);

/// Where the daemon writes its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DaemonJournal {
    /// The day's file in the user's state folder.
    Daily,
    /// This file.
    File(PathBuf),
    /// Nowhere.
    Off,
}

/// Writes each record to the file of its day.
#[derive(Debug)]
pub(crate) struct DailyJournal {
    place: DaemonJournal,
    open: Mutex<OpenJournal>,
}

#[derive(Debug, Default)]
struct OpenJournal {
    file: Option<Arc<FileJournal>>,
    checked: Option<Instant>,
    problem: Option<String>,
}

impl DailyJournal {
    pub(crate) fn new(place: DaemonJournal) -> Self {
        Self {
            place,
            open: Mutex::default(),
        }
    }

    /// Returns the journal of today, or `None` if it is off or cannot be opened.
    fn today(&self) -> Option<Arc<FileJournal>> {
        let mut open = self.open.lock();
        if open
            .checked
            .is_some_and(|checked| checked.elapsed() < SAME_DAY)
        {
            return open.file.clone();
        }
        open.checked = Some(Instant::now());
        let path = match &self.place {
            DaemonJournal::Daily => path_of_today(),
            DaemonJournal::File(path) => Some(path.clone()),
            DaemonJournal::Off => None,
        };
        let is_open = |file: &Arc<FileJournal>| path.as_deref() == Some(file.path());
        if open.file.as_ref().is_some_and(is_open) {
            return open.file.clone();
        }
        let opened = path.map(FileJournal::open).transpose();
        let before = match opened {
            Ok(file) => std::mem::replace(&mut open.file, file.map(Arc::new)),
            Err(error) => {
                open.problem = Some(tenterhook_engine::error_chain(&error));
                open.file.take()
            }
        };
        // Closing waits for the disk.
        std::thread::Builder::new().spawn(move || drop(before)).ok();
        open.file.clone()
    }

    fn note(&self, problem: &str) {
        self.open.lock().problem = Some(problem.to_owned());
    }

    /// Waits until all records are written. Blocks the thread.
    pub(crate) fn close(&self) {
        let file = self.open.lock().file.take();
        if let Some(file) = file {
            file.close().ok();
        }
    }
}

impl JournalSink for DailyJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(file) = self.today()
                && timeout(PATIENCE, file.record(records)).await.is_err()
            {
                self.note("the disk is too slow; records were lost");
            }
        })
    }

    fn record_dropped(&self, record: JournalRecord) {
        if let Some(file) = self.today() {
            file.record_dropped(record);
        }
    }

    fn record_at_once(&self, record: JournalRecord) {
        if let Some(file) = self.today() {
            file.record_at_once(record);
        }
    }

    fn take_problem(&self) -> Option<String> {
        let mut open = self.open.lock();
        let of_file = open.file.as_ref().and_then(|file| file.take_problem());
        open.problem.take().or(of_file)
    }
}
