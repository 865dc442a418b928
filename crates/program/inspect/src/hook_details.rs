//! The payloads and raw answers of the newest dispatches, without their secrets.
//!
//! A journal has neither. An observer of the engine passes them to a thread, which removes secrets and drops the oldest
//! dispatches when there are too many. A dispatch never waits for that thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tenterhook_engine::{EventRef, HookObserver, HookRun, HookVerdict, LeftOutHook, RawExchange};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::shown_sessions::ShownSessions;

use self::kept::{DetailLimits, KeptDetails, LeftOutDetails, StepDetails};

mod kept;
mod payload;

/// How many hook runs may wait for the thread. Further ones have no details.
const MAX_WAITING: usize = 256;

/// How much may wait for the thread, in KiB: what hooks received and returned. Further hook runs have no details.
const MAX_WAITING_KIB: usize = 32 << 10;

/// How much room an event takes whose size is not known, in bytes. Only hooks in other processes receive it as text, and
/// to measure it would take time of the dispatch.
const EVENT_SIZE: usize = 64 << 10;

/// The maximum size of a reason, in bytes.
const MAX_REASON: usize = 16 << 10;

/// How long a request may wait for the thread.
const PATIENCE: Duration = Duration::from_secs(5);

/// The payloads and raw answers of the newest dispatches. Give it to an engine as its observer.
#[derive(Debug)]
pub struct HookDetails {
    queue: mpsc::Sender<DetailMessage>,
    /// The room for what waits, one permit for each KiB.
    room: Arc<Semaphore>,
    /// The number of hook runs that have no details, because too many waited.
    lost: Arc<AtomicU64>,
    sessions: ShownSessions,
}

enum DetailMessage {
    Step(Box<CapturedStep>),
    Ended(EventRef, LeftOutDetails, OwnedSemaphorePermit),
    Find(String, oneshot::Sender<Option<Box<RawValue>>>),
}

/// What an observer knows about one hook run.
struct CapturedStep {
    event: EventRef,
    rewritten: Option<EventRef>,
    exchange: Option<RawExchange>,
    began: Instant,
    step: StepDetails,
    room: OwnedSemaphorePermit,
}

impl HookDetails {
    /// Starts the thread. It ends when the details are dropped.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started.
    pub fn start() -> io::Result<Self> {
        let (details, messages) = Self::new();
        std::thread::Builder::new()
            .name("inspector".to_owned())
            .spawn(move || keep(messages))?;
        Ok(details)
    }

    /// Creates the details, and what the thread receives.
    fn new() -> (Self, mpsc::Receiver<DetailMessage>) {
        let (queue, messages) = mpsc::channel(MAX_WAITING);
        let details = Self {
            queue,
            room: Arc::new(Semaphore::new(MAX_WAITING_KIB)),
            lost: Arc::default(),
            sessions: ShownSessions::default(),
        };
        (details, messages)
    }

    /// Keeps nothing of the events of other sessions.
    #[must_use]
    pub fn showing(self, sessions: ShownSessions) -> Self {
        Self { sessions, ..self }
    }

    fn shows(&self, event: &EventRef) -> bool {
        let session = &event.envelope().origin.session_id;
        self.sessions.shows(Some(session), event.info().name)
    }

    /// Returns what is known about a dispatch, or `None` if it is not kept. It includes every hook run that ended
    /// before the call.
    pub async fn find(&self, event_id: &str) -> Option<Box<RawValue>> {
        let asked = self.ask_thread(event_id);
        tokio::time::timeout(PATIENCE, asked).await.ok()?
    }

    /// Does the same, however long the thread takes.
    async fn ask_thread(&self, event_id: &str) -> Option<Box<RawValue>> {
        let (reply, found) = oneshot::channel();
        let message = DetailMessage::Find(event_id.to_owned(), reply);
        self.queue.send(message).await.ok()?;
        found.await.ok()?
    }

    /// Returns the number of hook runs that have no details, because too many ended at once.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Sends a message of this size. It is not created if there is no room for it.
    fn send(&self, bytes: usize, message: impl FnOnce(OwnedSemaphorePermit) -> DetailMessage) {
        // More than there is: it never fits.
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(kib);
        let is_sent = room.is_ok_and(|room| self.queue.try_send(message(room)).is_ok());
        if !is_sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns how much memory the details of a run need until they are complete, in bytes.
fn size(run: &HookRun<'_>) -> usize {
    let exchanged = run.exchange.map_or(EVENT_SIZE, |exchange| {
        exchange.input_bytes + exchange.stdout.len() + exchange.stderr.len()
    });
    exchanged + MAX_REASON
}

impl HookObserver for HookDetails {
    fn hook_ended(&self, run: &HookRun<'_>, took: Duration, verdict: HookVerdict<'_>) {
        if !self.shows(run.event) {
            return;
        }
        let now = Instant::now();
        let (verdict, reason) = match verdict {
            HookVerdict::Answered { effect, reason } => (effect, reason),
            HookVerdict::Failed { cause } => ("failed", Some(cause)),
            HookVerdict::TimedOut { cause } => ("timed_out", Some(cause)),
            HookVerdict::Cancelled | _ => ("cancelled", None),
        };
        let reason =
            reason.map(|reason| tenterhook_protocol::excerpt::shortened(reason, MAX_REASON));
        self.send(size(run), |room| {
            DetailMessage::Step(Box::new(CapturedStep {
                event: run.event.clone(),
                rewritten: run.rewritten.cloned(),
                exchange: run.exchange.cloned(),
                began: now.checked_sub(took).unwrap_or(now),
                step: StepDetails::new(run, took, (verdict, reason)),
                room,
            }))
        });
    }

    fn event_ended(&self, event: &EventRef, left_out: &[LeftOutHook<'_>]) {
        if !self.shows(event) {
            return;
        }
        self.send(EVENT_SIZE, |room| {
            let left_out = LeftOutDetails::of(left_out);
            DetailMessage::Ended(event.clone(), left_out, room)
        });
    }

    fn requests_details(&self) -> bool {
        true
    }
}

fn keep(mut messages: mpsc::Receiver<DetailMessage>) {
    let mut kept = KeptDetails::new(DetailLimits::DEFAULT);
    while let Some(message) = messages.blocking_recv() {
        match message {
            DetailMessage::Step(captured) => {
                let CapturedStep {
                    event,
                    rewritten,
                    exchange,
                    began,
                    step,
                    room: _room,
                } = *captured;
                let step = step.complete(rewritten.as_ref(), exchange.as_ref());
                kept.add(&event, began, step);
            }
            DetailMessage::Ended(event, left_out, _room) => kept.end(&event, left_out.complete()),
            DetailMessage::Find(id, reply) => drop(reply.send(kept.find(&id))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::{BoxFuture, ready};
    use serde_json::json;
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::journal::JournalRecord;
    use tenterhook_engine::{
        Answer, AsyncHandler, Call, Engine, EventKind, Handler, HookId, HookSpec, Matcher,
        MemoryJournal, Origin, Phase, Source, native_policy,
    };

    use super::*;

    /// Returns a huge answer.
    #[derive(Debug)]
    struct Chatty;

    impl AsyncHandler for Chatty {
        fn kind(&self) -> &'static str {
            "chatty"
        }

        fn describe(&self) -> String {
            "chatty".to_owned()
        }

        fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
            let answer = vec![b'x'; 4 << 20];
            call.exchange.fill(|| RawExchange::new(10, &answer));
            Box::pin(ready(Ok(None)))
        }
    }

    fn chatty() -> HookSpec {
        let kind = EventKind::PreToolUse;
        HookSpec {
            event: Some(kind.into()),
            id: HookId::new("chatty"),
            matcher: Matcher::everything(),
            agent: None,
            includes_unnamed: false,
            handling: Handler::Async(Arc::new(Chatty)),
            phase: Phase::Main,
            priority: 0,
            order_within_layer: None,
            hears_stops: false,
            timeout: Duration::from_secs(20),
            policy: native_policy(kind.info(), None),
            source: Source::CODE,
            tools: None,
            definition: None,
        }
    }

    #[tokio::test]
    async fn the_details_name_the_matcher_that_hit_and_the_hooks_that_did_not_match() {
        let details = Arc::new(HookDetails::start().unwrap());
        let journal = Arc::new(MemoryJournal::new());
        let engine = Engine::builder()
            .observer(details.clone())
            .journal(journal.clone())
            .build();
        for (name, matcher) in [("guard", "shell|task"), ("reader", "read_file")] {
            engine.register(HookSpec {
                id: HookId::new(name),
                matcher: Matcher::parse(matcher).unwrap(),
                ..chatty()
            });
        }
        let dispatcher = engine.dispatcher(Origin::default());
        let outcome = dispatcher.dispatch(PreToolUse::new("shell")).await;
        assert!(outcome.decision().is_proceed());
        let Some(JournalRecord::Dispatch(dispatch)) = journal.take().pop() else {
            panic!("no dispatch was recorded");
        };
        let event_id = dispatch.event_id.to_string();
        let shown = details.ask_thread(&event_id).await.unwrap();
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!(shown["steps"][0]["matcher"], "shell|task");
        let left_out = json!({
            "hooks": [{ "hook": "reader", "matcher": "read_file", "reason": "matcher" }],
            "more": 0,
        });
        assert_eq!(shown["left_out"], left_out);
    }

    #[tokio::test]
    async fn a_flood_of_huge_answers_waits_within_a_limit_of_bytes() {
        let (details, mut messages) = HookDetails::new();
        let details = Arc::new(details);
        let engine = Engine::builder().observer(details.clone()).build();
        engine.register(chatty());
        let dispatcher = engine.dispatcher(Origin::default());
        for _ in 0..20 {
            let outcome = dispatcher.dispatch(PreToolUse::new("shell")).await;
            assert!(outcome.decision().is_proceed());
        }
        let mut bytes = 0;
        while let Ok(message) = messages.try_recv() {
            if let DetailMessage::Step(step) = message {
                bytes += step.exchange.unwrap().stdout.len();
            }
        }
        assert!(bytes > 4 << 20 && bytes <= MAX_WAITING_KIB << 10, "{bytes}");
        assert!(details.lost() > 0);
        assert_eq!(details.room.available_permits(), MAX_WAITING_KIB);
    }
}
