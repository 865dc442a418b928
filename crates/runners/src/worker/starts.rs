//! The session starts that a script has heard, and how it hears them again after its process or the session has ended.
//!
//! A script may prepare its rules in variables when a session starts. They are lost with its process, and it may drop
//! them when the session ends. A program of the agent can report such an end although the session continues. So the
//! script hears the start again, and finishes it, before it gets anything else of that session. If it cannot, its calls
//! fail with [`WorkerError::NotReady`], on which gates deny.
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
use tenterhook_engine::event::{SessionEnd, SessionSource, SessionStart};
use tenterhook_engine::{Call, EventClass};
use tenterhook_process::CancellationToken;
use tokio::time::{Instant, timeout_at};

use super::connection::Connection;
use super::conversation_starts::{CallRole, ConversationStarts, HeardStart, SessionEnds, StartEnd};
use super::error::WorkerError;
use super::forgotten_starts::ForgottenStarts;
use super::host::Host;

/// How many conversations are kept. The oldest one that is over is forgotten, or else the oldest one.
const MAX_CONVERSATIONS: usize = 256;
/// How long a hook may take at most to handle a start again.
const MAX_REPLAY: Duration = Duration::from_secs(30);

/// Lets a script handle a start again, on the connection that is being prepared.
pub(super) type Replay =
    Box<dyn Fn(HeardStart) -> BoxFuture<'static, Result<(), WorkerError>> + Send + Sync>;

/// Something that a session asks of a script.
pub(super) struct Use<'a> {
    pub(super) session: &'a str,
    pub(super) role: CallRole,
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
    /// The conversations that were removed although they may continue.
    forgotten: ForgottenStarts,
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

/// An end of a session that a hook handles. If it is dropped without [`finish`](Self::finish), the script may still
/// handle it, and drop its rules at any time.
#[derive(Debug)]
pub(super) struct EndInProgress {
    conversation: Arc<ConversationStarts>,
    session: String,
    /// The process that handles it, once there is one.
    by: Weak<Connection>,
    is_over: bool,
}

impl EndInProgress {
    /// Records which process handles the end.
    pub(super) fn set_process(&mut self, connection: &Arc<Connection>) {
        self.by = Arc::downgrade(connection);
    }

    /// Records that the script is done with the end, if it is.
    pub(super) fn finish(mut self, answer: Result<&Bytes, &WorkerError>) {
        let may_continue = matches!(answer, Err(WorkerError::TimedOut | WorkerError::Cancelled));
        self.is_over = !may_continue;
    }
}

impl Drop for EndInProgress {
    fn drop(&mut self) {
        let may_continue = !self.is_over && self.by.strong_count() > 0;
        let late = may_continue.then(|| self.by.clone());
        self.conversation.finish_end(&self.session, late);
    }
}

/// Notices whether a session ends while a gate judges.
#[derive(Debug)]
pub(super) struct EndWatch<'a> {
    session: &'a str,
    conversation: Arc<ConversationStarts>,
    before: SessionEnds,
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
        if let Some(previous) = &start.previous_session {
            // Any program of the agent can name any session here, so its starts are kept.
            self.mark_over(previous.as_str());
        }
        let conversation = {
            let mut kept = self.kept();
            kept.forgotten.add_hook(hook);
            kept.conversation(&name)
        };
        conversation.mark_over(false);
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
            is_new: matches!(
                start.source,
                SessionSource::Startup
                    | SessionSource::New
                    | SessionSource::Fork
                    | SessionSource::Clear
            ),
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

    /// Records that a hook handles the end of a session.
    pub(super) fn begin_end(&self, call: &Call) -> Option<EndInProgress> {
        if !self.has_any.load(Ordering::Relaxed) {
            return None;
        }
        call.event.downcast::<SessionEnd>()?;
        let session = call.event.envelope().origin.session_id.as_str();
        let name = self.conversation_of(session);
        let mut kept = self.kept();
        kept.forgotten.note_end(&name);
        let conversation = Arc::clone(kept.by_name.get(&name)?);
        drop(kept);
        conversation.begin_end(session);
        Some(EndInProgress {
            conversation,
            session: session.to_owned(),
            by: Weak::new(),
            is_over: false,
        })
    }

    /// Watches for the end of a session, if a gate is asked whose script has heard the start.
    ///
    /// # Errors
    /// Fails if the script handles an end of the session right now.
    pub(super) fn watch_end<'a>(
        &self,
        call: &'a Call,
    ) -> Result<Option<EndWatch<'a>>, WorkerError> {
        if call.event.info().class != EventClass::Gate {
            return Ok(None);
        }
        let session = call.event.envelope().origin.session_id.as_str();
        let Some(conversation) = self.find(session) else {
            return Ok(None);
        };
        let before = conversation.ends(session);
        if before.is_in_progress {
            return Err(self.ended_meanwhile());
        }
        Ok(Some(EndWatch {
            session,
            conversation,
            before,
        }))
    }

    /// Checks that a script still had what it prepared when its gate has judged.
    ///
    /// # Errors
    /// Fails if the script received the end of the session in the meantime.
    pub(super) fn check_end(&self, watch: &EndWatch<'_>) -> Result<(), WorkerError> {
        let now = watch.conversation.ends(watch.session);
        if !watch.before.has_ended_until(now) {
            return Ok(());
        }
        Err(self.ended_meanwhile())
    }

    fn ended_meanwhile(&self) -> WorkerError {
        WorkerError::NotReady {
            message: format!(
                "`{}` handled the end of the session while it judged; try again, or begin a new session, \
                 for example with `/new`",
                self.name
            ),
        }
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
        let Some(conversation) = self.find_for(&used, connection)? else {
            return Ok(false);
        };
        if conversation.is_ready(connection, (used.session, used.role)) {
            return Ok(false);
        }
        let (starts, on) = (Arc::clone(self), Arc::clone(connection));
        let (replay, session, role) = (replay(), used.session.to_owned(), used.role);
        let name = self.conversation_of(used.session);
        let replaying = tokio::spawn(async move {
            let conversation = (&*name, &*conversation);
            let work = starts.replay_all(conversation, &on, (&session, role), &replay);
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
        call: (&str, CallRole),
        replay: &Replay,
    ) -> Result<bool, WorkerError> {
        let _turn = conversation.replaying.lock().await;
        let is_open = |session: &str| self.conversation_of(session) == name;
        let mut has_replayed = false;
        loop {
            let next = conversation.next(connection, call, is_open);
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

    /// Returns the starts that matter for a call, if there are any.
    ///
    /// # Errors
    /// Fails if a process lacks starts that are no longer kept.
    fn find_for(
        &self,
        used: &Use<'_>,
        connection: &Arc<Connection>,
    ) -> Result<Option<Arc<ConversationStarts>>, WorkerError> {
        if !self.has_any.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let name = self.conversation_of(used.session);
        let kept = self.kept();
        let found = kept.by_name.get(&name).cloned();
        let is_lost =
            used.role == CallRole::Other && kept.forgotten.lacks(&name, found.as_ref(), connection);
        drop(kept);
        if is_lost {
            return Err(self.not_ready(&format!(
                "only the starts of the last {MAX_CONVERSATIONS} sessions are kept"
            )));
        }
        Ok(found)
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
                "`{}` lacks what it prepared when the session began, because its worker or session ended, and {why}; \
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
        let mut open = conversations.iter().filter(|it| !it.is_over());
        open.find_map(|it| it.failure())
    }

    /// Returns why a gate of the script must not be asked: the script failed when the session started, and the host is
    /// strict.
    pub(super) fn refusal(&self, call: &Call) -> Option<String> {
        let is_strict_gate = call.event.info().class == EventClass::Gate && self.host.is_strict();
        let session = call.event.envelope().origin.session_id.as_str();
        let found = is_strict_gate.then(|| self.find(session)).flatten();
        found?.failure()
    }

    /// Records that the host reports a conversation as over, given by its session. Its starts are kept, because an agent
    /// can report an end although its session continues.
    pub(super) fn mark_over(&self, session: &str) {
        let name = self.conversation_of(session);
        let found = self.kept().by_name.get(&name).cloned();
        if let Some(conversation) = found {
            conversation.mark_over(true);
        }
    }

    /// Forgets a conversation that cannot continue: its session, or the name of the state that scripts have for it.
    pub(super) fn forget(&self, conversation: &str) {
        self.kept().by_name.remove(conversation);
    }
}

impl Kept {
    fn conversation(&mut self, name: &str) -> Arc<ConversationStarts> {
        if !self.by_name.contains_key(name) && self.by_name.len() >= MAX_CONVERSATIONS {
            let oldest = self
                .by_name
                .iter()
                .min_by_key(|(_, it)| (!it.is_over(), it.first()));
            let oldest = oldest.map(|(name, _)| name.clone());
            if let Some(name) = oldest
                && let Some(conversation) = self.by_name.remove(&name)
            {
                self.forgotten.add(&name, &conversation);
            }
        }
        Arc::clone(self.by_name.entry(name.to_owned()).or_default())
    }
}
