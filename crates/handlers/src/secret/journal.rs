//! A journal without secrets.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook::JournalSink;
use tenterhook::journal::JournalRecord;

use super::Redactor;

/// Takes secrets out of records before another sink gets them: out of reasons, causes and subjects, which hooks,
/// processes and models write.
#[derive(Debug)]
pub struct RedactingJournal {
    inner: Arc<dyn JournalSink>,
}

impl RedactingJournal {
    /// Puts itself before `inner`.
    pub fn new(inner: Arc<dyn JournalSink>) -> Self {
        Self { inner }
    }
}

fn redact(record: &mut JournalRecord) {
    let redactor = Redactor::shared();
    let mut texts: Vec<&mut String> = Vec::new();
    match record {
        JournalRecord::Run(run) => texts.extend(run.cause.iter_mut().chain(&mut run.reason)),
        JournalRecord::Dispatch(dispatch) => {
            texts.extend(dispatch.reason.iter_mut().chain(&mut dispatch.subject));
            texts.extend(
                dispatch
                    .failures
                    .iter_mut()
                    .map(|failure| &mut failure.cause),
            );
        }
        JournalRecord::Source(source) => texts.push(&mut source.path),
        _ => {}
    }
    for text in texts {
        redactor.redact_text(text);
    }
}

impl JournalSink for RedactingJournal {
    fn record(&self, mut records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        records.iter_mut().for_each(redact);
        self.inner.record(records)
    }

    fn record_dropped(&self, mut record: JournalRecord) {
        redact(&mut record);
        self.inner.record_dropped(record);
    }

    fn take_problem(&self) -> Option<String> {
        self.inner.take_problem()
    }
}
