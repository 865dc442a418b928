//! The session starts that a script has heard, and how it hears them again after its process has ended.
//!
//! A script may prepare its rules in variables when a session starts. They are lost with its process. So the script
//! hears the start again, and finishes it, before it gets anything else of that session. If it cannot, its calls fail
//! with [`WorkerError::NotReady`], on which gates deny.
//!
//! Starts are kept by conversation: a session with the subagents that work for it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tenterhook_engine::event::{SessionSource, SessionStart};
use tenterhook_engine::{Call, EventClass};
use tenterhook_process::CancellationToken;
use tokio::time::{Instant, timeout_at};

use super::connection::Connection;
use super::conversation_starts::{ConversationStarts, HeardStart, StartEnd};
use super::error::WorkerError;
use super::host::Host;

/// How many conversations are kept. The oldest one is forgotten.
const MAX_CONVERSATIONS: usize = 256;
/// How long a hook may take at most to handle a start again.
const MAX_REPLAY: Duration = Duration::from_secs(30);

/// Lets a script handle a start again, on the connection that is being prepared.
pub(super) type Replay =
    Box<dyn Fn(HeardStart) -> BoxFuture<'static, Result<(), WorkerError>> + Send + Sync>;

/// Something that a session asks of a script.
pub(super) struct Use<'a> {
    pub(super) session: &'a str,
    /// Whether it is the start of the session. Then earlier starts of the same session do not matter.
    pub(super) is_start: bool,
    pub(super) deadline: Instant,
    pub(super) cancel: &'a CancellationToken,
}

/// The starts that the hooks of one script have heard.
#[derive(Debug)]
pub(super) struct SessionStarts {
    /// The file name of the script.
    name: String,
    host: Arc<dyn Host>,
    /// Whether a start was ever heard. Most scripts hear none, and pay nothing.
    has_any: AtomicBool,
    serial: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_name: BTreeMap<String, Arc<ConversationStarts>>,
    /// The process that prepared the first conversation that was forgotten although it may continue.
    forgotten: Option<Weak<Connection>>,
}

/// A start that is being handled for the first time. If it is dropped, the start counts as not handled.
#[derive(Debug)]
pub(super) struct StartInProgress {
    conversation: Arc<ConversationStarts>,
    serial: u64,
    session: Option<String>,
    is_over: bool,
}

impl Drop for StartInProgress {
    fn drop(&mut self) {
        if !self.is_over {
            let cancelled = Err(WorkerError::Cancelled);
            self.conversation.record_first(self.serial, None, cancelled);
        }
    }
}

impl SessionStarts {
    pub(super) fn new(name: String, host: Arc<dyn Host>) -> Self {
        Self {
            name,
            host,
            has_any: AtomicBool::new(false),
            serial: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }

    /// Returns the session whose state of the script is used for a call of `session`. `None` if there is only one state.
    pub(super) fn state_of(&self, session: &str) -> Option<String> {
        self.host.script_session(session)
    }

    /// Returns the name of the conversation that a session belongs to.
    fn conversation_of(&self, session: &str) -> String {
        let state = self.host.script_session(session);
        let main = state.or_else(|| self.host.main_session(session));
        main.unwrap_or_else(|| session.to_owned())
    }

    fn find(&self, session: &str) -> Option<Arc<ConversationStarts>> {
        if !self.has_any.load(Ordering::Relaxed) {
            return None;
        }
        let name = self.conversation_of(session);
        self.kept().by_name.get(&name).cloned()
    }

    /// Records that a hook handles an event from now on, if the event starts a session.
    pub(super) fn begin(&self, call: &Call, hook: usize, event: &Bytes) -> Option<StartInProgress> {
        let start = call.event.downcast::<SessionStart>()?;
        let session = call.event.envelope().origin.session_id.as_str();
        let name = self.conversation_of(session);
        let conversation = {
            let mut kept = self.kept();
            // The program has left that session.
            if let Some(previous) = &start.previous_session {
                kept.by_name.remove(previous.as_str());
            }
            kept.conversation(&name)
        };
        // A compaction continues the session.
        if start.source == SessionSource::Compact && conversation.has(session, hook) {
            return None;
        }
        self.has_any.store(true, Ordering::Relaxed);
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let heard = HeardStart {
            serial,
            session: session.to_owned(),
            hook,
            event: event.clone(),
            within: call.timeout.min(MAX_REPLAY),
        };
        conversation.begin(heard, |session| self.conversation_of(session) == name);
        Some(StartInProgress {
            conversation,
            serial,
            session: self.state_of(session),
            is_over: false,
        })
    }

    /// Records how a hook handled a start. If it failed, the user is warned, because other hooks of the script may lack
    /// what it prepares. Messages show the hook as `name`.
    pub(super) async fn end(
        &self,
        mut start: StartInProgress,
        name: &str,
        connection: Option<&Arc<Connection>>,
        end: StartEnd,
    ) {
        start.is_over = true;
        let failure = end.as_ref().err().map(ToString::to_string);
        start
            .conversation
            .record_first(start.serial, connection, end);
        if let Some(failure) = failure {
            let message = format!(
                "`{name}` failed, so the other hooks of its script may not work: {failure}"
            );
            self.warn(start.session.as_deref(), &message).await;
        }
    }

    /// Lets the script hear the starts again that its process has not heard. Returns whether there were any.
    ///
    /// `replay` makes what calls the hooks. The script hears the starts even if the caller does not wait any longer.
    ///
    /// # Errors
    /// Fails if the script cannot be used for the session.
    pub(super) async fn restore(
        self: &Arc<Self>,
        used: Use<'_>,
        connection: &Arc<Connection>,
        replay: impl FnOnce() -> Replay,
    ) -> Result<bool, WorkerError> {
        let except = used.is_start.then_some(used.session);
        let Some(conversation) = self.find(used.session) else {
            return self.check_forgotten(&used, connection).map(|()| false);
        };
        if conversation.is_ready(connection, except) {
            return Ok(false);
        }
        let (starts, on) = (Arc::clone(self), Arc::clone(connection));
        let (replay, except) = (replay(), except.map(str::to_owned));
        let name = self.conversation_of(used.session);
        let replaying = tokio::spawn(async move {
            let work = starts.replay_all((&name, &conversation), &on, except.as_deref(), &replay);
            work.await
        });
        tokio::select! {
            biased;
            () = used.cancel.cancelled() => Err(WorkerError::Cancelled),
            done = timeout_at(used.deadline, replaying) => match done {
                Ok(Ok(done)) => done,
                Ok(Err(_)) => Err(WorkerError::Cancelled),
                Err(_) => Err(self.not_ready("`session_start` is still running again")),
            },
        }
    }

    async fn replay_all(
        &self,
        (name, conversation): (&str, &ConversationStarts),
        connection: &Arc<Connection>,
        except: Option<&str>,
        replay: &Replay,
    ) -> Result<bool, WorkerError> {
        let _turn = conversation.replaying.lock().await;
        let is_open = |session: &str| self.conversation_of(session) == name;
        let mut has_replayed = false;
        loop {
            let next = conversation.next(connection, except, is_open);
            let Some(start) = next.map_err(|why| self.not_ready(&why))? else {
                return Ok(has_replayed);
            };
            let (serial, state) = (start.serial, self.state_of(&start.session));
            let end = replay(start).await;
            if let Err(why) = conversation.record_replay(serial, connection, end) {
                let error = self.not_ready(&why);
                self.warn(state.as_deref(), &error.to_string()).await;
                return Err(error);
            }
            has_replayed = true;
        }
    }

    fn check_forgotten(
        &self,
        used: &Use<'_>,
        connection: &Arc<Connection>,
    ) -> Result<(), WorkerError> {
        if used.is_start || !self.has_any.load(Ordering::Relaxed) {
            return Ok(());
        }
        let kept = self.kept();
        let forgotten = kept.forgotten.as_ref();
        if forgotten.is_none_or(|by| by.ptr_eq(&Arc::downgrade(connection))) {
            return Ok(());
        }
        Err(self.not_ready(&format!(
            "only the starts of the last {MAX_CONVERSATIONS} sessions are kept"
        )))
    }

    /// Returns why a script that cannot be reached is not ready for a session, if it has heard the session's start.
    pub(super) fn out_of_reach(&self, session: &str, error: &WorkerError) -> Option<WorkerError> {
        let is_over = *error == WorkerError::Cancelled || self.find(session).is_none();
        (!is_over).then(|| self.not_ready(&format!("it cannot be used now: {error}")))
    }

    /// Returns the error of a script that could not make its state for a session.
    pub(super) fn not_begun(&self, error: &WorkerError) -> WorkerError {
        WorkerError::NotReady {
            message: format!(
                "`{}` could not be set up for this session: {error}; \
                 begin a new session, for example with `/new`",
                self.name
            ),
        }
    }

    fn not_ready(&self, why: &str) -> WorkerError {
        WorkerError::NotReady {
            message: format!(
                "`{}` lacks what it prepared when the session began, because its worker ended, and {why}; \
                 begin a new session, for example with `/new`",
                self.name
            ),
        }
    }

    async fn warn(&self, state: Option<&str>, message: &str) {
        let notice = json!({ "message": message, "level": "error", "session": state });
        // Without a user interface, the journal and the list of hooks still have the failure.
        let _shown = self.host.answer("ui/notify", &notice).await;
    }

    /// Returns what is wrong with the script because it failed at the start of a session.
    pub(super) fn problem(&self) -> Option<String> {
        let conversations: Vec<_> = self.kept().by_name.values().cloned().collect();
        conversations.iter().find_map(|it| it.failure())
    }

    /// Returns why a gate of the script must not be asked: the script failed when the session started, and the host is
    /// strict.
    pub(super) fn refusal(&self, call: &Call) -> Option<String> {
        let is_strict_gate = call.event.info().class == EventClass::Gate && self.host.is_strict();
        let session = call.event.envelope().origin.session_id.as_str();
        let found = is_strict_gate.then(|| self.find(session)).flatten();
        found?.failure()
    }

    /// Forgets a conversation that is over: its session, or the name of the state that scripts have for it.
    pub(super) fn forget(&self, conversation: &str) {
        self.kept().by_name.remove(conversation);
    }
}

impl Kept {
    fn conversation(&mut self, name: &str) -> Arc<ConversationStarts> {
        if !self.by_name.contains_key(name) && self.by_name.len() >= MAX_CONVERSATIONS {
            let oldest = self.by_name.iter().min_by_key(|(_, it)| it.first());
            let oldest = oldest.map(|(name, _)| name.clone());
            if let Some(forgotten) = oldest.and_then(|name| self.by_name.remove(&name)) {
                self.forgotten.get_or_insert_with(|| forgotten.process());
            }
        }
        Arc::clone(self.by_name.entry(name.to_owned()).or_default())
    }
}
