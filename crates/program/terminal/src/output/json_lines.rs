//! Writes JSON objects to stdout, one per line, for a program that follows the agent. The queue is bounded, so events
//! wait for a slow reader.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::json;
use tenterhook_agent::frontend::RESULT_EVENTS;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{
    Answer, AsyncHandler, Call, Engine, EventKind, EventRef, Handler, HookId, HookSpec,
    JournalSink, Matcher, OnError, Phase, Policy, Registration, Source, ToolResult,
};
use tokio::sync::{mpsc, oneshot};

use crate::interrupt::Interrupts;
use crate::output;

/// The maximum number of lines that may wait for the reader. Beyond that, events wait too.
const QUEUED_LINES: usize = 64;

/// The kind of the handler that writes events.
const KIND: &str = "feed";

/// The queue of lines. Clones write to the same queue.
#[derive(Debug, Clone)]
pub struct JsonLines {
    /// The lines; `None` is the end.
    lines: mpsc::Sender<Option<String>>,
}

/// The thread that writes the lines.
#[derive(Debug)]
pub struct JsonLinesWriter {
    end: oneshot::Receiver<()>,
}

/// Starts to write to stdout. If the reader closes stdout, the program shuts down cleanly.
pub fn start(interrupts: &Interrupts) -> (JsonLines, JsonLinesWriter) {
    let (lines, receiver) = mpsc::channel(QUEUED_LINES);
    let (ended, end) = oneshot::channel();
    let fail = {
        let interrupts = interrupts.clone();
        move |error| {
            interrupts.end();
            output::keep(Err(error));
        }
    };
    let on_error = fail.clone();
    let thread = std::thread::Builder::new().spawn(move || {
        if let Err(error) = write(receiver) {
            on_error(error);
        }
        ended.send(()).ok();
    });
    if let Err(error) = thread {
        fail(error);
    }
    (JsonLines { lines }, JsonLinesWriter { end })
}

fn write(mut lines: mpsc::Receiver<Option<String>>) -> io::Result<()> {
    let mut out = BufWriter::new(stdout()?);
    while let Some(Some(line)) = lines.blocking_recv() {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        // Lines that are already waiting are written together, but no written line waits for later ones.
        if lines.is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

/// Returns stdout without the standard library's lock and buffer, so that a slow reader blocks no other code.
#[cfg(unix)]
fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle as _;
    Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
}

impl JsonLines {
    /// Writes an object as a line. Waits while the queue is full. Returns whether there is a reader.
    pub async fn send(&self, value: &impl Serialize) -> bool {
        match serde_json::to_string(value) {
            Ok(line) => self.lines.send(Some(line)).await.is_ok(),
            Err(error) => {
                output::note(format_args!("error: cannot write JSON: {error}"));
                true
            }
        }
    }

    /// Writes an object as a line, if there is room in the queue.
    pub fn try_send(&self, value: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            self.lines.try_send(Some(line)).ok();
        }
    }

    /// Writes every event of an engine, converted by `form`, until the registration ends.
    pub fn follow(
        &self,
        engine: &Engine,
        form: fn(serde_json::Value) -> serde_json::Value,
    ) -> Registration {
        engine.register(HookSpec {
            event: None,
            id: HookId::new(KIND),
            matcher: Matcher::everything(),
            agent: None,
            includes_unnamed: false,
            handling: Handler::Async(Arc::new(EventWriter {
                feed: self.clone(),
                form,
                engine: engine.clone(),
            })),
            phase: Phase::Observe,
            priority: 0,
            order_within_layer: None,
            hears_stops: false,
            timeout: std::time::Duration::MAX,
            policy: Policy::new(
                OnError::Ignore,
                "a program that only reads events cannot stop anything",
            ),
            source: Source::CODE,
            tools: None,
            definition: None,
        })
    }
}

impl JsonLinesWriter {
    /// Waits until all lines of `feed` are written.
    pub async fn finish(self, feed: &JsonLines) {
        feed.lines.send(None).await.ok();
        self.end.await.ok();
    }
}

/// Writes events.
#[derive(Debug)]
struct EventWriter {
    feed: JsonLines,
    form: fn(serde_json::Value) -> serde_json::Value,
    /// The engine that holds this handler until the registration ends.
    engine: Engine,
}

impl EventWriter {
    /// Returns whether hooks may still remove something from the event's partial result.
    fn is_early(&self, event: &EventRef) -> bool {
        event.info().kind == EventKind::ToolExecutionUpdate
            && RESULT_EVENTS
                .into_iter()
                .any(|kind| self.engine.may_change(kind))
    }

    async fn write_event(&self, event: &EventRef) {
        if let Ok(mut json) = event.to_json() {
            if self.is_early(event)
                && let Some(partial) = json.get_mut("partial_result")
            {
                *partial = json!(ToolResult::default());
            }
            self.feed.send(&(self.form)(json)).await;
        }
    }
}

impl AsyncHandler for EventWriter {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn describe(&self) -> String {
        KIND.to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            self.write_event(&call.event).await;
            Ok(None)
        })
    }

    /// It must also write the events of cancelled dispatches, and a slow reader is not a failure.
    fn enforces_deadline(&self) -> bool {
        true
    }
}

/// Forwards the journal records of hooks, without the runs of the event writer.
#[derive(Debug)]
pub struct JournalWithoutFeed(pub Arc<dyn JournalSink>);

impl JournalSink for JournalWithoutFeed {
    fn record(&self, mut records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        let is_run = |record: &JournalRecord| matches!(record, JournalRecord::Run(_));
        records.retain(|record| !matches!(record, JournalRecord::Run(run) if run.handler == KIND));
        if records.iter().any(is_run) {
            self.0.record(records)
        } else {
            Box::pin(std::future::ready(()))
        }
    }

    fn record_dropped(&self, record: JournalRecord) {
        self.0.record_dropped(record);
    }

    fn record_at_once(&self, record: JournalRecord) {
        self.0.record_at_once(record);
    }

    fn take_problem(&self) -> Option<String> {
        self.0.take_problem()
    }
}
