//! Receivers of the records of runs and dispatches. The journal in a file is in
//! `tenterhook-journal`.

use std::fmt;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_protocol::journal::JournalRecord;

/// Receives the records of an engine.
pub trait JournalSink: Send + Sync + fmt::Debug {
    /// Stores the records of one dispatch: its runs in order, followed by the dispatch itself. The
    /// dispatch waits for it.
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()>;

    /// Stores the record of a dispatch that its host dropped. Must not wait. If there is no room,
    /// the record is lost.
    fn record_dropped(&self, record: JournalRecord);

    /// Stores a record that belongs to no dispatch, such as a line that a hook printed. Must not wait.
    /// If there is no room, the record is lost. The default ignores it.
    fn record_at_once(&self, _record: JournalRecord) {}

    /// Returns the error that has kept records from being written since the last call, for the host
    /// to show.
    fn take_problem(&self) -> Option<String> {
        None
    }
}

/// Keeps records in memory, for tests and for hosts that show what happened.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    records: Mutex<Vec<JournalRecord>>,
}

impl MemoryJournal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes and returns all records so far.
    pub fn take(&self) -> Vec<JournalRecord> {
        std::mem::take(&mut *self.records.lock())
    }
}

impl JournalSink for MemoryJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        self.records.lock().extend(records);
        Box::pin(std::future::ready(()))
    }

    fn record_dropped(&self, record: JournalRecord) {
        self.records.lock().push(record);
    }

    fn record_at_once(&self, record: JournalRecord) {
        self.records.lock().push(record);
    }
}
