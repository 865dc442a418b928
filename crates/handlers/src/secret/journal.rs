//! A journal without secrets.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook::journal::JournalRecord;
use tenterhook::{HookId, JournalSink};

use super::Redactor;

/// Takes secrets out of records before another sink gets them: out of reasons, causes and subjects, which hooks,
/// processes and models write, and out of names of hooks and files.
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
    let mut hooks: Vec<&mut HookId> = Vec::new();
    match record {
        JournalRecord::Run(run) => {
            texts.extend(run.cause.iter_mut().chain(&mut run.reason));
            texts.push(&mut run.source);
            hooks.push(&mut run.hook);
        }
        JournalRecord::Dispatch(dispatch) => {
            texts.extend(dispatch.reason.iter_mut().chain(&mut dispatch.subject));
            texts.push(&mut dispatch.agent);
            for failure in &mut dispatch.failures {
                texts.push(&mut failure.cause);
                hooks.push(&mut failure.hook);
            }
        }
        JournalRecord::Source(source) => texts.push(&mut source.path),
        _ => {}
    }
    for text in texts {
        redactor.redact_text(text);
    }
    for hook in hooks {
        if let Cow::Owned(redacted) = redactor.redact(hook.as_str()) {
            *hook = HookId::new(redacted);
        }
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
