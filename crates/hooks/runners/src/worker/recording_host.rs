//! Records what hooks print, and the model calls of scripts, in the journal. In most output modes no one watches the
//! terminal, and model calls of scripts fire no events.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tenterhook_engine::journal::{JournalRecord, ModelCallRecord, OutputRecord};
use tenterhook_engine::{JournalSink, JsonObject};
use tenterhook_protocol::Usage;
use tokio::time::Instant;

use super::calls::MODEL_CALL;
use super::host::Host;
use super::refusal::Refusal;
use super::script_server::{ScriptAddition, ScriptServer};

/// How many lines are kept until the journal is open. Scripts print while they are loaded, which happens before.
const MAX_EARLY_LINES: usize = 256;

/// A host that records what scripts print, and passes everything on to another host.
#[derive(Debug)]
pub struct RecordingHost {
    inner: Arc<dyn Host>,
    recording: Mutex<Recording>,
}

#[derive(Debug)]
enum Recording {
    /// The journal is not open yet.
    Early(Vec<JournalRecord>),
    /// The call has a journal.
    To(Arc<dyn JournalSink>),
    /// The call has no journal.
    Off,
}

impl RecordingHost {
    /// Creates a host in front of `inner`. It keeps the first lines until [`record_in`](Self::record_in) names
    /// the journal.
    pub fn new(inner: Arc<dyn Host>) -> Self {
        Self {
            inner,
            recording: Mutex::new(Recording::Early(Vec::new())),
        }
    }

    /// Records all lines in `journal`, including the lines that have been printed so far. With `None`, no
    /// line is recorded.
    pub fn record_in(&self, journal: Option<Arc<dyn JournalSink>>) {
        let next = journal.clone().map_or(Recording::Off, Recording::To);
        let before = std::mem::replace(&mut *self.recording.lock(), next);
        if let (Recording::Early(lines), Some(journal)) = (before, journal) {
            for line in lines {
                journal.record_at_once(line);
            }
        }
    }

    fn record(&self, record: impl FnOnce() -> JournalRecord) {
        match &mut *self.recording.lock() {
            Recording::Early(lines) if lines.len() < MAX_EARLY_LINES => lines.push(record()),
            Recording::To(journal) => journal.record_at_once(record()),
            Recording::Early(_) | Recording::Off => {}
        }
    }

    /// Records a model call of a script. Of an invalid call, the model is unknown.
    fn record_model_call(&self, params: &Value, answer: &Result<Value, Refusal>, began: Instant) {
        let part = |key: &str| params.get("model")?.get(key)?.as_str();
        let model = format!(
            "{}/{}",
            part("provider").unwrap_or_default(),
            part("id").unwrap_or_default()
        );
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let record = ModelCallRecord::now(model, began.elapsed().as_secs_f64() * 1000.0);
        let record = match answer {
            Ok(answer) => ModelCallRecord {
                usage: answer
                    .get("usage")
                    .and_then(|it| Usage::deserialize(it).ok()),
                cost: answer.get("cost").and_then(Value::as_f64),
                error: answer.get("error").and_then(text),
                ..record
            },
            Err(refusal) => ModelCallRecord {
                error: Some(refusal.to_string()),
                ..record
            },
        };
        self.record(|| JournalRecord::ModelCall(record));
    }
}

impl Host for RecordingHost {
    fn has_ui(&self) -> bool {
        self.inner.has_ui()
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn script_session(&self, session: &str) -> Option<String> {
        self.inner.script_session(session)
    }

    fn main_session(&self, session: &str) -> Option<String> {
        self.inner.main_session(session)
    }

    fn flags(&self) -> JsonObject {
        self.inner.flags()
    }

    fn on_output(&self, worker: &str, line: &str) {
        self.record(|| JournalRecord::Output(OutputRecord::now(worker, line)));
        self.inner.on_output(worker, line);
    }

    fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        session: Option<&str>,
    ) -> Result<(), Refusal> {
        self.inner.add(script, addition, session)
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        if method != MODEL_CALL {
            return self.inner.answer(method, params);
        }
        Box::pin(async move {
            let began = Instant::now();
            let answer = self.inner.answer(method, params).await;
            self.record_model_call(params, &answer, began);
            answer
        })
    }
}
