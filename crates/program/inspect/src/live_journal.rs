//! The journal of an engine that runs, in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use jiff::Timestamp;
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_journal::redacted_line;

use crate::record_log::{LogLimits, RecordLog};
use crate::shown_sessions::ShownSessions;

/// How many positions a log has for each second since 1970. A log that is started later therefore has higher positions,
/// so a page notices that the program was restarted. JavaScript can represent these numbers exactly.
const POSITIONS_PER_SECOND: u64 = 1_000_000;

/// Keeps the newest records of an engine for the inspector, without the secrets in them.
#[derive(Debug)]
pub struct LiveJournal {
    log: Arc<RecordLog>,
    sessions: ShownSessions,
}

impl LiveJournal {
    /// Creates a journal without records.
    pub fn new() -> Self {
        let now = u64::try_from(Timestamp::now().as_second()).unwrap_or_default();
        let first = now.saturating_mul(POSITIONS_PER_SECOND);
        Self::with_log(RecordLog::new(LogLimits::LIVE, first))
    }

    /// Creates a journal that adds its records to a log.
    pub fn with_log(log: RecordLog) -> Self {
        Self {
            log: Arc::new(log),
            sessions: ShownSessions::default(),
        }
    }

    /// Leaves out what the events of other sessions contain.
    #[must_use]
    pub fn showing(self, sessions: ShownSessions) -> Self {
        Self { sessions, ..self }
    }

    fn append(&self, records: Vec<JournalRecord>) {
        let records = self.sessions.without_contents(records);
        self.log.append(records.iter().filter_map(line));
    }

    /// Returns the records.
    pub fn log(&self) -> &Arc<RecordLog> {
        &self.log
    }
}

impl Default for LiveJournal {
    fn default() -> Self {
        Self::new()
    }
}

/// A record whose secrets cannot be removed is left out.
fn line(record: &JournalRecord) -> Option<Bytes> {
    redacted_line(record).ok().map(Bytes::from)
}

impl JournalSink for LiveJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        self.append(records);
        Box::pin(ready(()))
    }

    fn record_dropped(&self, record: JournalRecord) {
        self.append(vec![record]);
    }

    fn record_at_once(&self, record: JournalRecord) {
        self.append(vec![record]);
    }
}
