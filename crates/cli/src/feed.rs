//! One JSON object a line on stdout, for a program that follows: bounded, and whoever has more to say waits.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::json;
use tenterhook::journal::JournalRecord;
use tenterhook::{
    Answer, Call, Engine, EventKind, EventRef, Handler, Handling, HookId, HookSpec, JournalSink,
    Matcher, OnError, Phase, Policy, Registration, Source, ToolResult,
};
use tenterhook_agent::frontend::RESULT_EVENTS;
use tokio::sync::{mpsc, oneshot};

use crate::interrupt::Interrupts;
use crate::output;

/// How many lines may wait for the reader before events wait too.
const QUEUED_LINES: usize = 64;

/// The kind of handler that follows events.
const KIND: &str = "feed";

/// Where lines go. Clones write to the same place.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    /// Nothing is the end.
    lines: mpsc::Sender<Option<String>>,
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    end: oneshot::Receiver<()>,
}

/// Starts to write to stdout. A reader that goes away ends the program in good order.
pub(crate) fn start(interrupts: &Interrupts) -> (Feed, Writer) {
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
    (Feed { lines }, Writer { end })
}

fn write(mut lines: mpsc::Receiver<Option<String>>) -> io::Result<()> {
    let mut out = BufWriter::new(stdout()?);
    while let Some(Some(line)) = lines.blocking_recv() {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        // What waits already goes with it; nothing that is written waits for what comes later.
        if lines.is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

/// Returns stdout without the lock and the buffer of the program's own: a reader that does not read holds nobody else up.
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

impl Feed {
    /// Writes an object as a line. Waits while the reader is behind; says whether there is a reader.
    pub(crate) async fn send(&self, value: &impl Serialize) -> bool {
        match serde_json::to_string(value) {
            Ok(line) => self.lines.send(Some(line)).await.is_ok(),
            Err(error) => {
                output::note(format_args!("error: cannot write JSON: {error}"));
                true
            }
        }
    }

    /// Writes an object as a line if there is room.
    pub(crate) fn try_send(&self, value: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(value) {
            self.lines.try_send(Some(line)).ok();
        }
    }

    /// Writes every event of an engine, as `form` has it, until the registration ends.
    pub(crate) fn follow(
        &self,
        engine: &Engine,
        form: fn(serde_json::Value) -> serde_json::Value,
    ) -> Registration {
        engine.register(HookSpec {
            event: None,
            id: HookId::new(KIND),
            matcher: Matcher::everything(),
            agent: None,
            handling: Handling::Waiting(Arc::new(Follower {
                feed: self.clone(),
                form,
                engine: engine.clone(),
            })),
            phase: Phase::Observe,
            priority: 0,
            among: None,
            timeout: std::time::Duration::MAX,
            policy: Policy::new(OnError::Ignore, "who follows stops nothing"),
            source: Source::CODE,
            tools: None,
            definition: None,
        })
    }
}

impl Writer {
    /// Waits until everything is written that `feed` was given.
    pub(crate) async fn finish(self, feed: &Feed) {
        feed.lines.send(None).await.ok();
        self.end.await.ok();
    }
}

/// Writes events.
#[derive(Debug)]
struct Follower {
    feed: Feed,
    form: fn(serde_json::Value) -> serde_json::Value,
    /// Holds this, until the registration ends.
    engine: Engine,
}

impl Follower {
    /// Says whether hooks may yet take something out of what an event tells.
    fn is_early(&self, event: &EventRef) -> bool {
        event.info().kind == EventKind::ToolExecutionUpdate
            && RESULT_EVENTS
                .into_iter()
                .any(|kind| self.engine.may_change(kind))
    }

    async fn tell(&self, event: &EventRef) {
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

impl Handler for Follower {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn describe(&self) -> String {
        KIND.to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            self.tell(&call.event).await;
            Ok(None)
        })
    }

    /// It is told of cancelled dispatches too, and a slow reader is no failure.
    fn is_bounded(&self) -> bool {
        true
    }
}

/// Passes on what hooks did, without what was only written here.
#[derive(Debug)]
pub(crate) struct WithoutFeed(pub(crate) Arc<dyn JournalSink>);

impl JournalSink for WithoutFeed {
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

    fn take_problem(&self) -> Option<String> {
        self.0.take_problem()
    }
}
