//! The session starts of one conversation, and which process has handled each of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use super::connection::Connection;
use super::error::WorkerError;

/// How many starts are kept: one for each hook of the session and of each subagent that works.
const MAX_STARTS: usize = 256;
/// The size of the largest event that is kept, in bytes.
const MAX_EVENT: usize = 64 << 10;
/// How often a process may end, or not answer in time, while it handles a start again. Then it is not repeated any
/// more, because each attempt may cost other sessions their process.
const MAX_ATTEMPTS: u32 = 2;

/// How a hook handled a start.
pub(super) type StartEnd = Result<(), WorkerError>;

/// A start of a session, as a hook has received it.
#[derive(Debug, Clone)]
pub(super) struct HeardStart {
    /// A number that no other start has.
    pub(super) serial: u64,
    pub(super) session: String,
    /// The index of the hook.
    pub(super) hook: usize,
    /// Whether it begins a new session, and does not continue one.
    pub(super) is_new: bool,
    /// The event as JSON.
    pub(super) event: Bytes,
    /// How long the hook may take to handle it again.
    pub(super) within: Duration,
}

/// What a call is to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallRole {
    /// The start of the session, or the switch to it, which the start follows. Earlier starts of the same session do not
    /// matter to it.
    Start,
    /// The end of the session. It does not matter to it whether the script has received another end.
    End,
    /// Anything else.
    Other,
}

/// The starts of one conversation, in the order in which they were heard.
#[derive(Debug, Default)]
pub(super) struct ConversationStarts {
    /// Held while starts are repeated.
    pub(super) replaying: tokio::sync::Mutex<()>,
    is_over: AtomicBool,
    kept: Mutex<KeptStarts>,
}

#[derive(Debug, Default)]
struct KeptStarts {
    list: Vec<Start>,
    /// The ends that were received, by the sessions of the starts.
    ends: BTreeMap<String, ReceivedEnds>,
    /// How often the script has begun or finished to handle an end.
    end_count: u64,
    /// Set once there were more than [`MAX_STARTS`]: the process that had handled all of them by then. No other process
    /// can hear the starts that are not kept.
    only_process: Option<Weak<Connection>>,
}

/// The ends of one session that a script has received.
#[derive(Debug, Default)]
struct ReceivedEnds {
    /// The number of the last change.
    last: u64,
    /// How many hooks handle an end right now.
    in_progress: u32,
    /// The process that may still handle an end for which no one waits any more.
    late: Option<Weak<Connection>>,
}

#[derive(Debug)]
struct Start {
    heard: HeardStart,
    /// Whether the event is kept.
    is_kept: bool,
    standing: Standing,
    /// Whether there is an earlier start of the same hook, which counts until this one is handled.
    replaces_earlier: bool,
    /// Whether the hook itself failed the first time. Then the script worked without what it prepares.
    has_failed_itself: bool,
    attempts: u32,
    /// The last end of the session before the script began to handle this start.
    end_before: u64,
}

/// Which process has handled a start.
#[derive(Debug)]
enum Standing {
    /// It is being handled for the first time.
    InProgress,
    /// No process has handled it.
    Unheard,
    /// This process has handled it, perhaps with a failure that was reported.
    Handled(Weak<Connection>, Option<String>),
    /// This process could not handle it again.
    Lost(Weak<Connection>, String),
}

/// What a process must do with a start.
enum Need<'a> {
    Nothing,
    Replay,
    Refusal(&'a str),
}

/// Which ends of a session a script has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionEnds {
    last: u64,
    /// Whether a hook may handle one right now.
    pub(super) is_in_progress: bool,
}

impl SessionEnds {
    /// Returns whether the script may have handled an end of the session between `self` and `now`.
    pub(super) fn has_ended_until(self, now: Self) -> bool {
        now.is_in_progress || self.last != now.last
    }
}

impl ReceivedEnds {
    /// Returns whether a process no longer handles an end for which no one waits.
    fn has_late_finished(&self) -> bool {
        let late = self.late.as_ref();
        late.is_some_and(|by| by.upgrade().is_none_or(|by| !by.has_overdue_calls()))
    }
}

impl Start {
    /// Returns what a process must do before a call for a session. `last_end` is the last end of the start's session.
    fn need(
        &self,
        connection: &Weak<Connection>,
        (session, role): (&str, CallRole),
        last_end: u64,
    ) -> Need<'_> {
        if role == CallRole::Start && self.heard.session == session {
            return Need::Nothing;
        }
        // A script may drop its rules at the end of a session. If the session continues, it needs them again.
        let still_counts = role == CallRole::End || last_end == self.end_before;
        match &self.standing {
            Standing::InProgress => Need::Nothing,
            Standing::Handled(by, _) if by.ptr_eq(connection) && still_counts => Need::Nothing,
            Standing::Lost(by, why) if by.ptr_eq(connection) || self.attempts >= MAX_ATTEMPTS => {
                Need::Refusal(why)
            }
            _ if !self.is_kept => Need::Refusal("its `session_start` was too large to be kept"),
            Standing::Unheard | Standing::Handled(..) | Standing::Lost(..) => Need::Replay,
        }
    }

    /// Lets the script handle a start again that it has handled, if the event is kept.
    fn hear_again(&mut self) {
        if self.is_kept && matches!(self.standing, Standing::Handled(..)) {
            self.standing = Standing::Unheard;
        }
    }

    fn is_of(&self, session: &str, hook: usize) -> bool {
        self.heard.session == session && self.heard.hook == hook
    }

    fn failure(&self) -> Option<String> {
        match &self.standing {
            Standing::Handled(_, Some(failure)) => {
                Some(format!("it failed when the session started: {failure}"))
            }
            Standing::Lost(_, why) => Some(format!("its worker or session ended, and {why}")),
            Standing::InProgress | Standing::Unheard | Standing::Handled(_, None) => None,
        }
    }
}

impl KeptStarts {
    fn find(&mut self, serial: u64) -> Option<&mut Start> {
        self.list.iter_mut().find(|it| it.heard.serial == serial)
    }

    /// Returns the number of the last end of a session.
    fn last_end(&self, session: &str) -> u64 {
        self.ends.get(session).map_or(0, |ends| ends.last)
    }

    /// Forgets the ends of sessions without a start.
    fn prune_ends(&mut self) {
        let Self { list, ends, .. } = self;
        ends.retain(|session, _| list.iter().any(|start| start.heard.session == *session));
    }

    /// Records a change of the ends of a session.
    fn note_end(&mut self, session: &str, change: impl FnOnce(&mut ReceivedEnds)) {
        if self.only_process.is_some() {
            self.only_process = Some(Weak::new());
        }
        if let Some(ends) = self.ends.get_mut(session) {
            self.end_count += 1;
            ends.last = self.end_count;
            change(ends);
        }
    }

    /// Records which late ends are over. The script may have dropped its rules until then.
    fn finish_late_ends(&mut self) {
        let finished = self.ends.values_mut().filter(|it| it.has_late_finished());
        for ends in finished {
            self.end_count += 1;
            ends.last = self.end_count;
            ends.late = None;
        }
    }

    /// Returns the process that has handled these starts, if there is one. No end of their session followed.
    fn process_of<'a>(&self, starts: impl Iterator<Item = &'a Start>) -> Weak<Connection> {
        let mut processes = starts.map(|start| match &start.standing {
            Standing::Handled(by, _) if self.last_end(&start.heard.session) == start.end_before => {
                by.clone()
            }
            Standing::InProgress
            | Standing::Unheard
            | Standing::Handled(..)
            | Standing::Lost(..) => Weak::new(),
        });
        let first = self.only_process.clone().or_else(|| processes.next());
        let first = first.unwrap_or_default();
        if processes.all(|by| by.ptr_eq(&first)) {
            first
        } else {
            Weak::new()
        }
    }

    /// Returns an error if a process lacks starts that are not kept.
    fn check_process(&self, connection: &Weak<Connection>) -> Result<(), String> {
        let only = self.only_process.as_ref();
        if only.is_none_or(|only| only.ptr_eq(connection)) {
            return Ok(());
        }
        Err(format!(
            "only {MAX_STARTS} starts of a session and its subagents are kept"
        ))
    }
}

impl ConversationStarts {
    fn kept(&self) -> MutexGuard<'_, KeptStarts> {
        self.kept.lock()
    }

    /// Returns whether a hook has heard the start of a session.
    pub(super) fn has(&self, session: &str, hook: usize) -> bool {
        let kept = self.kept();
        kept.list.iter().any(|start| start.is_of(session, hook))
    }

    /// Returns whether all these hooks have heard a start, and are done with it.
    pub(super) fn is_done_with<'a>(&self, mut hooks: impl Iterator<Item = &'a usize>) -> bool {
        let kept = self.kept();
        let done = |start: &Start| !matches!(start.standing, Standing::InProgress);
        hooks.all(|hook| {
            let mut list = kept.list.iter();
            list.any(|start| start.heard.hook == *hook && done(start))
        })
    }

    /// Returns whether a hook is done with the start of a new session.
    pub(super) fn has_begun(&self) -> bool {
        let kept = self.kept();
        let is_begun =
            |start: &Start| start.heard.is_new && !matches!(start.standing, Standing::InProgress);
        kept.list.iter().any(is_begun)
    }

    /// Records that the host reports the session as over. A session that continues nevertheless still has its starts.
    pub(super) fn mark_over(&self, is_over: bool) {
        self.is_over.store(is_over, Ordering::Relaxed);
    }

    /// Returns whether the host reported the session as over.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Adds a start. Once it is handled, it replaces an earlier start of the session for that hook. Forgets the starts
    /// of subagents that are done.
    pub(super) fn begin(&self, heard: HeardStart, is_open: impl Fn(&str) -> bool) {
        let mut kept = self.kept();
        let is_same = |start: &Start| start.is_of(&heard.session, heard.hook);
        kept.list.retain(|start| {
            let is_superseded = is_same(start) && matches!(start.standing, Standing::InProgress);
            !is_superseded && is_open(&start.heard.session)
        });
        let replaces_earlier = kept.list.iter().any(is_same);
        let others = kept.list.iter().filter(|start| !start.replaces_earlier);
        if !replaces_earlier && others.count() >= MAX_STARTS {
            let is_handled = |start: &&Start| !matches!(start.standing, Standing::InProgress);
            let process = kept.process_of(kept.list.iter().filter(is_handled));
            kept.only_process = Some(process);
            return;
        }
        let end_before = kept.last_end(&heard.session);
        kept.ends.entry(heard.session.clone()).or_default();
        let is_kept = heard.event.len() <= MAX_EVENT;
        let event = if is_kept { heard.event } else { Bytes::new() };
        kept.list.push(Start {
            heard: HeardStart { event, ..heard },
            is_kept,
            standing: Standing::InProgress,
            replaces_earlier,
            has_failed_itself: false,
            attempts: 0,
            end_before,
        });
        kept.prune_ends();
    }

    /// Records how a start was handled for the first time, and by which process.
    pub(super) fn record_first(
        &self,
        serial: u64,
        connection: Option<&Arc<Connection>>,
        end: StartEnd,
    ) {
        let mut kept = self.kept();
        let Some(start) = kept.find(serial) else {
            return;
        };
        start.replaces_earlier = false;
        start.has_failed_itself = matches!(end, Err(WorkerError::Call { .. }));
        let never_ran = matches!(
            end,
            Err(WorkerError::NotReady { .. } | WorkerError::Cancelled)
        );
        start.standing = match connection {
            Some(connection) if !never_ran => {
                let failure = end.err().map(|error| error.to_string());
                Standing::Handled(Arc::downgrade(connection), failure)
            }
            _ => Standing::Unheard,
        };
        let (session, hook) = (start.heard.session.clone(), start.heard.hook);
        // It never becomes known whether a process that need not answer late still handles an end.
        if connection.is_some_and(|it| !it.awaits_late_answers())
            && let Some(ends) = kept.ends.get_mut(&session)
        {
            ends.late = None;
        }
        kept.list
            .retain(|start| start.heard.serial >= serial || !start.is_of(&session, hook));
    }

    /// Records that a hook begins to handle the end of a session.
    pub(super) fn begin_end(&self, session: &str) {
        self.kept().note_end(session, |ends| ends.in_progress += 1);
    }

    /// Records that no one waits any more for a hook that handles the end of a session. `late` is the process that may
    /// still handle it.
    pub(super) fn finish_end(&self, session: &str, late: Option<Weak<Connection>>) {
        self.kept().note_end(session, |ends| {
            ends.in_progress = ends.in_progress.saturating_sub(1);
            ends.late = late.or(ends.late.take());
        });
    }

    /// Returns which ends of a session the script has received.
    pub(super) fn ends(&self, session: &str) -> SessionEnds {
        let mut kept = self.kept();
        kept.finish_late_ends();
        let ends = kept.ends.get(session);
        SessionEnds {
            last: ends.map_or(0, |ends| ends.last),
            is_in_progress: ends.is_some_and(|it| it.in_progress > 0 || it.late.is_some()),
        }
    }

    /// Returns whether a process has all starts that it needs for a call for a session.
    pub(super) fn is_ready(&self, connection: &Arc<Connection>, call: (&str, CallRole)) -> bool {
        let connection = Arc::downgrade(connection);
        let mut kept = self.kept();
        kept.finish_late_ends();
        let mut starts = kept.list.iter();
        let is_complete = kept.check_process(&connection).is_ok();
        is_complete
            && starts.all(|start| {
                let last_end = kept.last_end(&start.heard.session);
                matches!(start.need(&connection, call, last_end), Need::Nothing)
            })
    }

    /// Returns the next start that a process must handle again before a call for a session. An error says why the
    /// process cannot be used.
    pub(super) fn next(
        &self,
        connection: &Arc<Connection>,
        call: (&str, CallRole),
        is_open: impl Fn(&str) -> bool,
    ) -> Result<Option<HeardStart>, String> {
        let connection = Arc::downgrade(connection);
        let mut kept = self.kept();
        kept.check_process(&connection)?;
        kept.list.retain(|start| is_open(&start.heard.session));
        kept.prune_ends();
        let KeptStarts { list, ends, .. } = &mut *kept;
        let mut starts = list.iter_mut();
        while let Some(start) = starts.next() {
            let last_end = ends.get(&start.heard.session).map_or(0, |ends| ends.last);
            match start.need(&connection, call, last_end) {
                Need::Nothing => {}
                Need::Replay => {
                    start.end_before = last_end;
                    start.hear_again();
                    let heard = start.heard.clone();
                    // A later start of the session can change what this one prepares.
                    let is_later = |it: &&mut Start| it.heard.session == heard.session;
                    starts.filter(is_later).for_each(Start::hear_again);
                    return Ok(Some(heard));
                }
                Need::Refusal(why) => return Err(why.to_owned()),
            }
        }
        Ok(None)
    }

    /// Records how a process handled a start again. The error says why the process cannot be used.
    pub(super) fn record_replay(
        &self,
        serial: u64,
        connection: &Arc<Connection>,
        end: StartEnd,
    ) -> Result<(), String> {
        let by = Arc::downgrade(connection);
        let mut kept = self.kept();
        let Some(start) = kept.find(serial) else {
            return Ok(());
        };
        let error = match end {
            Ok(()) => {
                start.attempts = 0;
                start.standing = Standing::Handled(by, None);
                return Ok(());
            }
            Err(error) => error,
        };
        if let (true, WorkerError::Call { message }) = (start.has_failed_itself, &error) {
            // The script is in the same state as before.
            start.standing = Standing::Handled(by, Some(message.clone()));
            return Ok(());
        }
        if !matches!(error, WorkerError::Call { .. }) {
            start.attempts += 1;
        }
        let why = why(&error, start.heard.within);
        start.standing = Standing::Lost(by, why.clone());
        Err(why)
    }

    /// Returns why the conversation cannot rely on the script.
    pub(super) fn failure(&self) -> Option<String> {
        self.kept().list.iter().find_map(Start::failure)
    }

    /// Returns the number of the first start.
    pub(super) fn first(&self) -> u64 {
        let kept = self.kept();
        kept.list.first().map_or(0, |start| start.heard.serial)
    }

    /// Returns the process that needs no start again, if there is one.
    pub(super) fn ready_process(&self) -> Weak<Connection> {
        let kept = self.kept();
        kept.process_of(kept.list.iter())
    }
}

/// Returns why a script could not handle a start again.
fn why(error: &WorkerError, within: Duration) -> String {
    match error {
        WorkerError::Call { message } => {
            format!("`session_start` failed when repeated: {message}")
        }
        WorkerError::TimedOut => {
            let seconds = within.as_secs_f64();
            format!("the repeated `session_start` did not finish within {seconds} s")
        }
        WorkerError::Ended { problem, .. } => {
            format!("the worker ended during the repeated `session_start`: {problem}")
        }
        error @ (WorkerError::Start { .. }
        | WorkerError::Broken { .. }
        | WorkerError::NotReady { .. }
        | WorkerError::Cancelled) => {
            format!("`session_start` could not be repeated: {error}")
        }
    }
}
