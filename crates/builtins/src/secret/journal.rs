//! A journal sink that removes secrets.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{HookId, JournalSink};

use super::Redactor;

/// Removes secrets from records before it passes them to another sink. It covers reasons, causes and subjects, which
/// hooks, processes and models write, the fields that a host adds to events, and the names of hooks and files.
#[derive(Debug)]
pub struct RedactingJournal {
    inner: Arc<dyn JournalSink>,
}

impl RedactingJournal {
    /// Creates a sink that passes redacted records to `inner`.
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
            texts.extend(&mut run.problems);
            texts.push(&mut run.source);
            hooks.push(&mut run.hook);
        }
        JournalRecord::Dispatch(dispatch) => {
            texts.extend(dispatch.reason.iter_mut().chain(&mut dispatch.subject));
            texts.push(&mut dispatch.agent);
            for (name, value) in dispatch.extra.iter_mut().chain(&mut dispatch.origin_extra) {
                redactor.redact_field(name, value);
            }
            for failure in &mut dispatch.failures {
                texts.push(&mut failure.cause);
                hooks.push(&mut failure.hook);
            }
        }
        JournalRecord::Source(source) => texts.push(&mut source.path),
        JournalRecord::Output(output) => texts.push(&mut output.line),
        JournalRecord::ModelCall(call) => {
            texts.extend(call.error.iter_mut().chain(&mut call.agent));
        }
        JournalRecord::Host(host) => {
            texts.extend(host.downgrades.iter_mut().chain(&mut host.problem));
        }
        JournalRecord::Reload(reload) => {
            let changes = &mut reload.changes;
            let names = changes.added.iter_mut().chain(&mut changes.changed);
            texts.extend(names.chain(&mut changes.removed).chain(&mut reload.problem));
        }
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

    fn record_at_once(&self, mut record: JournalRecord) {
        redact(&mut record);
        self.inner.record_at_once(record);
    }

    fn take_problem(&self) -> Option<String> {
        self.inner.take_problem()
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
