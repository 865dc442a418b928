//! Removes secrets from records.

use std::sync::Arc;

use crate::redactor::Redactor;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;

/// Returns a record as JSON, without the secrets in its texts, whatever its fields are.
///
/// # Errors
/// Fails if the record is not a record any more without its secrets. Then it must not be shown.
pub fn redacted_line(record: &JournalRecord) -> Result<String, serde_json::Error> {
    let line = serde_json::to_string(record)?;
    match changed(record, &line)? {
        Some(redacted) => serde_json::to_string(&redacted),
        None => Ok(line),
    }
}

/// Returns a record without its secrets, or `None` if it has none. `line` is the record as JSON.
fn changed(record: &JournalRecord, line: &str) -> Result<Option<JournalRecord>, serde_json::Error> {
    let redactor = Redactor::shared();
    // No rule has a keyword with a character that JSON escapes, so most records need only this search.
    if !redactor.has_keyword(line) {
        return Ok(None);
    }
    let mut value = serde_json::to_value(record)?;
    if redactor.redact_value(&mut value) {
        serde_json::from_value(value).map(Some)
    } else {
        Ok(None)
    }
}

/// Passes records to another sink without their secrets, for sinks that show records in another form than
/// [`redacted_line`]. A [`FileJournal`](crate::FileJournal) removes secrets itself.
#[derive(Debug)]
pub struct RedactingJournal {
    inner: Arc<dyn JournalSink>,
    problem: Mutex<Option<String>>,
}

impl RedactingJournal {
    /// Creates a sink that passes redacted records to `inner`.
    pub fn new(inner: Arc<dyn JournalSink>) -> Self {
        Self {
            inner,
            problem: Mutex::default(),
        }
    }

    fn redacted(&self, record: JournalRecord) -> Option<JournalRecord> {
        let line = serde_json::to_string(&record);
        match line.and_then(|line| changed(&record, &line)) {
            Ok(redacted) => Some(redacted.unwrap_or(record)),
            Err(error) => {
                *self.problem.lock() = Some(withheld(&error));
                None
            }
        }
    }
}

/// Returns the problem of a record that is not shown.
pub(crate) fn withheld(error: &serde_json::Error) -> String {
    format!("a record was left out, because its secrets could not be removed: {error}")
}

impl JournalSink for RedactingJournal {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        let redacted = records.into_iter().filter_map(|it| self.redacted(it));
        self.inner.record(redacted.collect())
    }

    fn record_dropped(&self, record: JournalRecord) {
        if let Some(record) = self.redacted(record) {
            self.inner.record_dropped(record);
        }
    }

    fn record_at_once(&self, record: JournalRecord) {
        if let Some(record) = self.redacted(record) {
            self.inner.record_at_once(record);
        }
    }

    fn take_problem(&self) -> Option<String> {
        let own = self.problem.lock().take();
        own.or_else(|| self.inner.take_problem())
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{Effect, Engine, MemoryJournal, Origin};

    use super::*;

    /// What an engine records in `journal` about an event with a secret in four places.
    async fn record(journal: Arc<dyn JournalSink>, token: &str) {
        let engine = Engine::builder().journal(journal).build();
        engine.on(|_: &PreToolUse| Effect::none());
        let origin = Origin::default().with_extra("user_token", token);
        let event = PreToolUse::new(format!("shell {token}"))
            .with_tool_use_id(token)
            .with_extra("line", format!("export GH={token}"));
        let _outcome = engine.dispatcher(origin).dispatch(event).await;
    }

    fn assert_redacted(records: &str) {
        for name in ["user_token", "line", "tool_use_id", "subject"] {
            assert!(records.contains(name), "{name}: {records}");
        }
        assert!(!records.contains(TAIL), "{records}");
    }

    const TAIL: &str = "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q";

    #[tokio::test]
    async fn no_field_of_a_record_that_is_passed_on_has_a_secret() {
        let memory = Arc::new(MemoryJournal::new());
        let journal = RedactingJournal::new(memory.clone());
        record(Arc::new(journal), &format!("ghp_{TAIL}")).await;
        assert_redacted(&serde_json::to_string(&memory.take()).unwrap());
    }

    #[tokio::test]
    async fn no_field_of_a_record_in_a_file_has_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Arc::new(crate::FileJournal::open(&path).unwrap());
        record(journal.clone(), &format!("ghp_{TAIL}")).await;
        journal.close().unwrap();
        assert_redacted(&std::fs::read_to_string(&path).unwrap());
    }
}
