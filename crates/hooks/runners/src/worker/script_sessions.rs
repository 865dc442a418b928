//! The sessions that a script has started, and how it hears their starts again after its process or a session has ended.
//!
//! A script may prepare its rules in variables when a session starts. They are lost with its process, and it may drop
//! them when the session ends. A program of the agent can report such an end although the session continues. So the
//! script hears the start again, and finishes it, before it gets anything else of that session. If it cannot, its calls
//! fail with [`WorkerError::NotReady`], on which gates deny.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use tenterhook_engine::event::{SessionEnd, SessionSource, SessionStart};
use tenterhook_engine::{Call, EventClass};
use tenterhook_process::CancellationToken;
use tokio::time::{Instant, timeout_at};

use super::error::WorkerError;
use super::host::Host;
use super::script_session::{CallRole, Caller, HeardStart, ScriptSession, SessionEnds, StartEnd};

/// How much memory the starts of one script may take, in bytes.
const MAX_SIZE: usize = 16 << 20;
/// How long a hook may take at most to handle a start again.
const MAX_REPLAY: Duration = Duration::from_secs(30);

/// Lets a script handle a start again, in the process that is being prepared.
pub(super) type Replay =
    Box<dyn Fn(HeardStart) -> BoxFuture<'static, Result<(), WorkerError>> + Send + Sync>;

/// Something that a session asks of a script.
pub(super) struct Use<'a> {
    pub(super) session: &'a str,
    pub(super) role: CallRole,
    pub(super) deadline: Instant,
    pub(super) cancel: &'a CancellationToken,
}

/// The sessions that one script has started.
#[derive(Debug)]
pub(super) struct ScriptSessions {
    /// The file name of the script.
    name: String,
    host: Arc<dyn Host>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_name: BTreeMap<String, ScriptSession>,
    /// The number of the last start.
    last_start: u64,
    /// The hooks that have ever heard a start.
    start_hooks: BTreeSet<usize>,
    /// Whether starts are missing because there were too many. Then any other conversation may lack one.
    has_forgotten: bool,
}

/// A conversation at one time. Another conversation may get its name later.
#[derive(Debug)]
struct ConversationRef {
    sessions: Arc<ScriptSessions>,
    name: String,
    number: u64,
}

impl ConversationRef {
    /// Changes the conversation, if it is still kept.
    fn change(&self, change: impl FnOnce(&mut ScriptSession)) {
        let mut kept = self.sessions.kept.lock();
        let found = kept.by_name.get_mut(&self.name);
        if let Some(conversation) = found.filter(|it| it.number == self.number) {
            change(conversation);
        }
    }
}

/// A start that is being handled for the first time. If it is dropped, the start counts as not handled.
#[derive(Debug)]
pub(super) struct StartInProgress {
    conversation: ConversationRef,
    serial: u64,
    /// The session whose state of the script is used.
    state: Option<String>,
}

impl Drop for StartInProgress {
    fn drop(&mut self) {
        self.record(None, Err(WorkerError::Cancelled));
    }
}

impl StartInProgress {
    /// Records how the start was handled. Only the first record counts.
    fn record(&self, process: Option<u64>, end: StartEnd) {
        self.conversation
            .change(|it| it.record_first(self.serial, process, end));
    }
}

/// An end of a session that a hook handles, and during which the script may drop its rules. It is dropped when the
/// process has answered the call or has ended, even if no one waits for it any more.
#[derive(Debug)]
pub(super) struct EndInProgress {
    conversation: ConversationRef,
    session: String,
}

impl Drop for EndInProgress {
    fn drop(&mut self) {
        self.conversation.change(|it| it.finish_end(&self.session));
    }
}

/// The ends of a session that a script had received when its gate began to judge.
#[derive(Debug)]
pub(super) struct EndWatch {
    conversation: String,
    session: String,
    before: SessionEnds,
}

impl ScriptSessions {
    pub(super) fn new(name: String, host: Arc<dyn Host>) -> Self {
        Self {
            name,
            host,
            kept: Mutex::default(),
        }
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

    /// Returns what `read` finds in the conversation of a session, if it has started.
    fn find<T>(&self, session: &str, read: impl FnOnce(&ScriptSession) -> T) -> Option<T> {
        // Most scripts hear no start, and pay nothing.
        if self.kept.lock().by_name.is_empty() {
            return None;
        }
        let name = self.conversation_of(session);
        self.kept.lock().by_name.get(&name).map(read)
    }

    /// Returns the subagents of a conversation that do not work for its session any more. The host has locks of its own, so
    /// it is asked without the lock.
    fn closed_sessions(&self, name: &str) -> Vec<String> {
        let started = self
            .kept
            .lock()
            .by_name
            .get(name)
            .map(ScriptSession::sessions);
        let mut started = started.unwrap_or_default();
        started.retain(|session| self.conversation_of(session) != name);
        started
    }

    /// Records that a hook handles an event from now on, if the event starts a session.
    pub(super) fn begin(
        self: &Arc<Self>,
        call: &Call,
        hook: usize,
        event: &Bytes,
    ) -> Option<StartInProgress> {
        let start = call.event.downcast::<SessionStart>()?;
        let session = call.event.envelope().origin.session_id.as_str();
        let name = self.conversation_of(session);
        if let Some(previous) = &start.previous_session {
            // Any program of the agent can name any session here, so its starts are kept.
            self.mark_over(previous.as_str());
        }
        let is_of_subagent = self.host.main_session(session).is_some();
        let closed = self.closed_sessions(&name);
        let mut kept = self.kept.lock();
        kept.start_hooks.insert(hook);
        if let Some(conversation) = kept.by_name.get_mut(&name) {
            conversation.is_over = false;
            // A compaction continues the session.
            if start.source == SessionSource::Compact && conversation.has(session, hook) {
                return None;
            }
        }
        kept.last_start += 1;
        let serial = kept.last_start;
        let heard = HeardStart {
            serial,
            session: session.to_owned(),
            hook,
            is_new: is_new(start.source),
            is_of_subagent,
            event: event.clone(),
            within: call.timeout.min(MAX_REPLAY),
        };
        let number = kept.begin(&name, heard, &closed);
        drop(kept);
        Some(StartInProgress {
            conversation: ConversationRef {
                sessions: Arc::clone(self),
                name,
                number,
            },
            serial,
            state: self.state_of(session),
        })
    }

    /// Records that a hook handles the end of a session.
    pub(super) fn begin_end(self: &Arc<Self>, call: &Call) -> Option<EndInProgress> {
        call.event.downcast::<SessionEnd>()?;
        let session = call.event.envelope().origin.session_id.as_str();
        let number = self.find(session, |conversation| conversation.number)?;
        let conversation = ConversationRef {
            sessions: Arc::clone(self),
            name: self.conversation_of(session),
            number,
        };
        conversation.change(|it| it.begin_end(session));
        Some(EndInProgress {
            conversation,
            session: session.to_owned(),
        })
    }

    /// Watches for the end of a session, if a gate is asked whose script has heard the start.
    ///
    /// # Errors
    /// Fails if the script handles an end of the session right now.
    pub(super) fn watch_end(&self, call: &Call) -> Result<Option<EndWatch>, WorkerError> {
        if call.event.info().class != EventClass::Gate {
            return Ok(None);
        }
        let session = call.event.envelope().origin.session_id.as_str();
        let Some(before) = self.find(session, |conversation| conversation.ends(session)) else {
            return Ok(None);
        };
        if before.is_in_progress() {
            return Err(self.ended_meanwhile());
        }
        Ok(Some(EndWatch {
            session: session.to_owned(),
            conversation: self.conversation_of(session),
            before,
        }))
    }

    /// Checks that a script still had what it prepared when its gate has judged.
    ///
    /// # Errors
    /// Fails if the script received the end of the session in the meantime.
    pub(super) fn check_end(&self, watch: &EndWatch) -> Result<(), WorkerError> {
        let kept = self.kept.lock();
        let conversation = kept.by_name.get(&watch.conversation);
        let now = conversation.map(|it| it.ends(&watch.session));
        if now == Some(watch.before) {
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
        start: StartInProgress,
        name: &str,
        process: Option<u64>,
        end: StartEnd,
    ) {
        let failure = end.as_ref().err().map(ToString::to_string);
        start.record(process, end);
        if let Some(failure) = failure {
            let message = format!(
                "`{name}` failed, so the other hooks of its script may not work: {failure}"
            );
            self.warn(start.state.as_deref(), &message).await;
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
        process: u64,
        replay: impl FnOnce() -> Replay,
    ) -> Result<bool, WorkerError> {
        let caller = Caller {
            session: used.session,
            role: used.role,
            process,
        };
        if self.is_ready(caller)? {
            return Ok(false);
        }
        let sessions = Arc::clone(self);
        let (replay, session, role) = (replay(), used.session.to_owned(), used.role);
        let replaying = tokio::spawn(async move {
            let caller = Caller {
                session: &session,
                role,
                process,
            };
            sessions.replay_all(caller, &replay).await
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

    /// Returns whether a process has everything that it needs for a call.
    ///
    /// # Errors
    /// Fails if the starts of the session may be missing because there were too many.
    fn is_ready(&self, caller: Caller<'_>) -> Result<bool, WorkerError> {
        {
            let kept = self.kept.lock();
            if kept.by_name.is_empty() && !kept.has_forgotten {
                return Ok(true);
            }
        }
        let name = self.conversation_of(caller.session);
        let kept = self.kept.lock();
        if kept.may_lack_starts(&name, caller.role) {
            return Err(self.too_many_sessions());
        }
        let conversation = kept.by_name.get(&name);
        Ok(conversation.is_none_or(|it| it.is_ready(caller)))
    }

    async fn replay_all(&self, caller: Caller<'_>, replay: &Replay) -> Result<bool, WorkerError> {
        let name = self.conversation_of(caller.session);
        let turn = self
            .kept
            .lock()
            .by_name
            .get(&name)
            .map(|it| Arc::clone(&it.turn));
        let turn = turn.unwrap_or_default();
        let _turn = turn.lock().await;
        let mut has_replayed = false;
        loop {
            let closed = self.closed_sessions(&name);
            let next = {
                let mut kept = self.kept.lock();
                if kept.may_lack_starts(&name, caller.role) {
                    return Err(self.too_many_sessions());
                }
                kept.next(&name, caller, &closed)
            };
            let Some((number, start)) = next.map_err(|why| self.not_ready(&why))? else {
                return Ok(has_replayed);
            };
            let (serial, state) = (start.serial, self.state_of(&start.session));
            let end = replay(start).await;
            let recorded = {
                let mut kept = self.kept.lock();
                let found = kept.by_name.get_mut(&name);
                let found = found.filter(|it| it.number == number);
                found.map_or(Ok(()), |it| it.record_replay(serial, caller.process, end))
            };
            if let Err(why) = recorded {
                let error = self.not_ready(&why);
                self.warn(state.as_deref(), &error.to_string()).await;
                return Err(error);
            }
            has_replayed = true;
        }
    }

    /// Returns why a script that cannot be reached is not ready for a session, if it has heard the session's start.
    pub(super) fn out_of_reach(&self, session: &str, error: &WorkerError) -> Option<WorkerError> {
        let is_over = *error == WorkerError::Cancelled || self.find(session, |_| ()).is_none();
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

    fn too_many_sessions(&self) -> WorkerError {
        WorkerError::NotReady {
            message: format!(
                "`{}` may lack what it prepared when the session began, because too many sessions have started; \
                 end some of them, then begin a new session, for example with `/new`",
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
        let kept = self.kept.lock();
        let mut open = kept.by_name.values().filter(|it| !it.is_over);
        open.find_map(ScriptSession::failure)
    }

    /// Returns why a gate of the script must not be asked: the script failed when the session started, and the host is
    /// strict.
    pub(super) fn refusal(&self, call: &Call) -> Option<String> {
        let is_strict_gate = call.event.info().class == EventClass::Gate && self.host.is_strict();
        let session = call.event.envelope().origin.session_id.as_str();
        is_strict_gate
            .then(|| self.find(session, ScriptSession::failure))
            .flatten()?
    }

    /// Records that the host reports a conversation as over, given by its session. Its starts are kept, because an agent
    /// can report an end although its session continues.
    pub(super) fn mark_over(&self, session: &str) {
        let name = self.conversation_of(session);
        if let Some(conversation) = self.kept.lock().by_name.get_mut(&name) {
            conversation.is_over = true;
        }
    }

    /// Forgets a conversation that cannot continue: its session, or the name of the state that scripts have for it.
    pub(super) fn forget(&self, conversation: &str) {
        self.kept.lock().by_name.remove(conversation);
    }
}

impl Kept {
    /// Adds a start to a conversation, and forgets the starts of its subagents that are done. Returns the number of the
    /// conversation. If there is no room, conversations that are over are forgotten, or else this one.
    fn begin(&mut self, name: &str, heard: HeardStart, closed: &[String]) -> u64 {
        let serial = heard.serial;
        let conversation = self.by_name.entry(name.to_owned()).or_default();
        if conversation.number == 0 {
            conversation.number = serial;
        }
        let number = conversation.number;
        conversation.forget(closed);
        conversation.begin(heard);
        while self
            .by_name
            .values()
            .map(ScriptSession::size)
            .sum::<usize>()
            > MAX_SIZE
        {
            let over = self.by_name.iter().filter(|(_, it)| it.is_over);
            let oldest = over.min_by_key(|(_, it)| it.number);
            let forgotten = oldest.map_or_else(|| name.to_owned(), |(name, _)| name.clone());
            self.by_name.remove(&forgotten);
            self.has_forgotten = true;
        }
        number
    }

    /// Returns whether a call needs starts that were forgotten.
    fn may_lack_starts(&self, name: &str, role: CallRole) -> bool {
        let is_prepared = |it: &ScriptSession| it.is_prepared(&self.start_hooks);
        self.has_forgotten
            && role == CallRole::Other
            && !self.by_name.get(name).is_some_and(is_prepared)
    }

    /// Returns the next start that a process must handle again before a call, and the number of its conversation.
    fn next(
        &mut self,
        name: &str,
        caller: Caller<'_>,
        closed: &[String],
    ) -> Result<Option<(u64, HeardStart)>, String> {
        let Some(conversation) = self.by_name.get_mut(name) else {
            return Ok(None);
        };
        conversation.forget(closed);
        let next = conversation.next(caller)?;
        Ok(next.map(|start| (conversation.number, start)))
    }
}

/// Returns whether a session that starts for this reason is not the continuation of another one.
fn is_new(source: SessionSource) -> bool {
    matches!(
        source,
        SessionSource::Startup | SessionSource::New | SessionSource::Fork | SessionSource::Clear
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(serial: u64, session: &str, size: usize) -> HeardStart {
        HeardStart {
            serial,
            session: session.to_owned(),
            hook: 0,
            is_new: true,
            is_of_subagent: false,
            event: vec![b' '; size].into(),
            within: MAX_REPLAY,
        }
    }

    /// Starts a session, which the first process handles.
    fn begin(kept: &mut Kept, session: &str) {
        kept.last_start += 1;
        let serial = kept.last_start;
        kept.start_hooks.insert(0);
        kept.begin(session, start(serial, session, 4 << 20), &[]);
        if let Some(conversation) = kept.by_name.get_mut(session) {
            conversation.record_first(serial, Some(1), Ok(()));
        }
    }

    fn is_denied(kept: &Kept, session: &str) -> bool {
        kept.may_lack_starts(session, CallRole::Other)
    }

    #[test]
    fn a_start_for_which_there_is_no_room_denies_and_takes_no_start_from_an_open_session() {
        let mut kept = Kept::default();
        for session in ["a", "b", "c"] {
            begin(&mut kept, session);
        }
        assert!(!is_denied(&kept, "never-started"));
        begin(&mut kept, "d");
        for session in ["a", "b", "c"] {
            assert!(!is_denied(&kept, session), "{session}");
        }
        for session in ["d", "never-started"] {
            assert!(is_denied(&kept, session), "{session}");
        }
    }

    #[test]
    fn sessions_that_are_over_make_room_and_are_denied_if_they_continue() {
        let mut kept = Kept::default();
        for session in ["a", "b", "c"] {
            begin(&mut kept, session);
        }
        kept.by_name.get_mut("b").unwrap().is_over = true;
        begin(&mut kept, "d");
        for session in ["a", "c", "d"] {
            assert!(!is_denied(&kept, session), "{session}");
        }
        assert!(is_denied(&kept, "b"));
        kept.by_name.remove("a");
        begin(&mut kept, "b");
        assert!(!is_denied(&kept, "b"));
    }
}
