//! Removes secrets from records.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_redaction::Redactor;

/// Replaces the secrets in all texts of a record, whatever its fields are.
///
/// # Errors
/// Fails if the rest is not a record. Then it must not be shown.
pub(crate) fn redacted(record: JournalRecord) -> Result<JournalRecord, serde_json::Error> {
    let redactor = Redactor::shared();
    // No rule has a keyword with a character that JSON escapes, so most records need only this search.
    if !redactor.has_keyword(&serde_json::to_string(&record)?) {
        return Ok(record);
    }
    let mut value = serde_json::to_value(record)?;
    redactor.redact_value(&mut value);
    serde_json::from_value(value)
}

/// Passes records to another sink without their secrets. A [`FileJournal`](crate::FileJournal) needs none.
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
        let redacted = redacted(record);
        redacted
            .inspect_err(|error| *self.problem.lock() = Some(withheld(error)))
            .ok()
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

    #[tokio::test]
    async fn a_secret_that_a_host_adds_to_an_event_is_not_recorded() {
        let token = format!("ghp_{}", "1x9QzP3vW7kB5nR2mT8yL4cF6dH0sJgA1x9Q");
        let memory = Arc::new(MemoryJournal::new());
        let journal = RedactingJournal::new(memory.clone());
        let engine = Engine::builder().journal(Arc::new(journal)).build();
        engine.on(|_: &PreToolUse| Effect::none());
        let origin = Origin::default().with_extra("user_token", token.as_str());
        let event = PreToolUse::new("shell").with_extra("line", format!("export GH={token}"));
        let _outcome = engine.dispatcher(origin).dispatch(event).await;
        let records = serde_json::to_string(&memory.take()).unwrap();
        assert!(
            records.contains("user_token") && records.contains("line"),
            "{records}"
        );
        assert!(!records.contains("1x9QzP3vW7kB5nR2"), "{records}");
    }
}
