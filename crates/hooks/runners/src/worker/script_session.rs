//! What one conversation has started in a script, and what a process must do again before it can serve the
//! conversation. Nothing here waits or knows a process: a process is the number of the start of its worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::error::WorkerError;

/// How often a process may end, or not answer in time, while it handles a start again. Then it is not repeated any
/// more, because each attempt may cost other sessions their process.
const MAX_ATTEMPTS: u32 = 2;
/// How much memory a start takes in addition to its event, in bytes.
const START_SIZE: usize = 1 << 10;

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
    pub(super) is_of_subagent: bool,
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

/// A call that a process is about to receive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) session: &'a str,
    pub(super) role: CallRole,
    /// The number of the process.
    pub(super) process: u64,
}

/// What one conversation has started: a session with the subagents that work for it.
#[derive(Debug, Default)]
pub(super) struct ScriptSession {
    /// The number of its first start, which no other conversation has.
    pub(super) number: u64,
    /// Whether the host reported it as over. If it continues nevertheless, it still has its starts.
    pub(super) is_over: bool,
    /// Held while starts are repeated.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    /// In the order in which they were heard.
    starts: Vec<Start>,
    /// The ends that the script has received, by session.
    ends: BTreeMap<String, SessionEnds>,
}

/// The ends of one session that a script has received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SessionEnds {
    /// How often the script has begun or finished to handle an end.
    changes: u64,
    /// How many hooks handle an end right now.
    in_progress: u32,
}

impl SessionEnds {
    /// Returns whether a script handles an end right now.
    pub(super) fn is_in_progress(self) -> bool {
        self.in_progress > 0
    }
}

#[derive(Debug)]
struct Start {
    heard: HeardStart,
    standing: Standing,
    /// Whether the hook itself failed the first time. Then the script worked without what it prepares.
    has_failed_itself: bool,
    attempts: u32,
    /// The changes of the session's ends before the script began to handle this start.
    changes_before: u64,
}

/// Which process has handled a start.
#[derive(Debug)]
enum Standing {
    /// It is being handled for the first time.
    InProgress,
    /// No process has handled it.
    Unheard,
    /// This process has handled it, perhaps with a failure that was reported.
    Handled(u64, Option<String>),
    /// This process could not handle it again.
    Lost(u64, String),
}

impl Start {
    /// Returns whether a process must handle the start before a call. An error says why the process cannot be used.
    fn needs_replay(&self, caller: Caller<'_>, changes: u64) -> Result<bool, String> {
        if caller.role == CallRole::Start && self.heard.session == caller.session {
            return Ok(false);
        }
        // A script may drop its rules at the end of a session. If the session continues, it needs them again.
        let still_counts = caller.role == CallRole::End || changes == self.changes_before;
        match &self.standing {
            Standing::InProgress => Ok(false),
            Standing::Handled(by, _) => Ok(*by != caller.process || !still_counts),
            Standing::Lost(by, why) if *by == caller.process || self.attempts >= MAX_ATTEMPTS => {
                Err(why.clone())
            }
            Standing::Unheard | Standing::Lost(..) => Ok(true),
        }
    }

    /// Lets the script handle a start again that it has handled.
    fn hear_again(&mut self) {
        if matches!(self.standing, Standing::Handled(..)) {
            self.standing = Standing::Unheard;
        }
    }

    fn is_in_progress(&self) -> bool {
        matches!(self.standing, Standing::InProgress)
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

impl ScriptSession {
    /// Returns whether a hook has heard the start of a session.
    pub(super) fn has(&self, session: &str, hook: usize) -> bool {
        self.starts.iter().any(|start| start.is_of(session, hook))
    }

    /// Returns whether no start of the session itself can be missing: the script is done with the start of a new one, or
    /// each of `hooks` is done with a start. It may have other hooks for a resumed session than for a new one.
    pub(super) fn is_prepared(&self, hooks: &BTreeSet<usize>) -> bool {
        let is_done = |start: &Start| !start.is_in_progress() && !start.heard.is_of_subagent;
        let done: Vec<_> = self.starts.iter().filter(|it| is_done(it)).collect();
        let has_heard = |hook: &usize| done.iter().any(|start| start.heard.hook == *hook);
        done.iter().any(|start| start.heard.is_new) || hooks.iter().all(has_heard)
    }

    /// Returns how much memory the starts take, in bytes.
    pub(super) fn size(&self) -> usize {
        let sizes = self.starts.iter();
        sizes
            .map(|start| start.heard.event.len() + START_SIZE)
            .sum()
    }

    /// Adds a start. Once it is handled, it replaces an earlier start of the session for that hook.
    pub(super) fn begin(&mut self, heard: HeardStart) {
        self.starts
            .retain(|start| !start.is_of(&heard.session, heard.hook) || !start.is_in_progress());
        let ends = self.ends.entry(heard.session.clone()).or_default();
        self.starts.push(Start {
            changes_before: ends.changes,
            heard,
            standing: Standing::InProgress,
            has_failed_itself: false,
            attempts: 0,
        });
    }

    /// Returns the sessions that have started.
    pub(super) fn sessions(&self) -> Vec<String> {
        self.ends.keys().cloned().collect()
    }

    /// Forgets sessions.
    pub(super) fn forget(&mut self, closed: &[String]) {
        self.starts
            .retain(|start| !closed.contains(&start.heard.session));
        self.ends.retain(|session, _| !closed.contains(session));
    }

    /// Records how a start was handled for the first time, and by which process. Only the first record counts.
    pub(super) fn record_first(&mut self, serial: u64, process: Option<u64>, end: StartEnd) {
        let Some(start) = self.find(serial).filter(|it| it.is_in_progress()) else {
            return;
        };
        start.has_failed_itself = matches!(end, Err(WorkerError::Call { .. }));
        let never_ran = matches!(
            end,
            Err(WorkerError::NotReady { .. } | WorkerError::Cancelled)
        );
        start.standing = match process {
            Some(process) if !never_ran => {
                Standing::Handled(process, end.err().map(|error| error.to_string()))
            }
            _ => Standing::Unheard,
        };
        let (session, hook) = (start.heard.session.clone(), start.heard.hook);
        self.starts
            .retain(|start| start.heard.serial >= serial || !start.is_of(&session, hook));
    }

    /// Records that a hook begins to handle the end of a session.
    pub(super) fn begin_end(&mut self, session: &str) {
        if let Some(ends) = self.ends.get_mut(session) {
            ends.changes += 1;
            ends.in_progress += 1;
        }
    }

    /// Records that a hook does not handle the end of a session any more.
    pub(super) fn finish_end(&mut self, session: &str) {
        if let Some(ends) = self.ends.get_mut(session) {
            ends.changes += 1;
            ends.in_progress = ends.in_progress.saturating_sub(1);
        }
    }

    /// Returns which ends of a session the script has received.
    pub(super) fn ends(&self, session: &str) -> SessionEnds {
        self.ends.get(session).copied().unwrap_or_default()
    }

    /// Returns whether a process has all starts that it needs for a call.
    pub(super) fn is_ready(&self, caller: Caller<'_>) -> bool {
        matches!(self.find_missing(caller), Ok(None))
    }

    /// Returns the index of the first start that a process must handle again before a call.
    fn find_missing(&self, caller: Caller<'_>) -> Result<Option<usize>, String> {
        for (index, start) in self.starts.iter().enumerate() {
            let changes = self.ends(&start.heard.session).changes;
            if start.needs_replay(caller, changes)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Returns the next start that a process must handle again before a call. An error says why the process cannot be
    /// used.
    pub(super) fn next(&mut self, caller: Caller<'_>) -> Result<Option<HeardStart>, String> {
        let Some(index) = self.find_missing(caller)? else {
            return Ok(None);
        };
        let mut missing = self.starts.iter_mut().skip(index);
        let Some(start) = missing.next() else {
            return Ok(None);
        };
        let heard = start.heard.clone();
        let ends = self.ends.get(&heard.session).copied();
        start.changes_before = ends.unwrap_or_default().changes;
        start.hear_again();
        // A later start of the session can change what this one prepares.
        let is_later = |it: &&mut Start| it.heard.session == heard.session;
        missing.filter(is_later).for_each(Start::hear_again);
        Ok(Some(heard))
    }

    /// Records how a process handled a start again. The error says why the process cannot be used.
    pub(super) fn record_replay(
        &mut self,
        serial: u64,
        process: u64,
        end: StartEnd,
    ) -> Result<(), String> {
        let Some(start) = self.find(serial) else {
            return Ok(());
        };
        let Err(error) = end else {
            start.attempts = 0;
            start.standing = Standing::Handled(process, None);
            return Ok(());
        };
        if let (true, WorkerError::Call { message }) = (start.has_failed_itself, &error) {
            // The script is in the same state as before.
            start.standing = Standing::Handled(process, Some(message.clone()));
            return Ok(());
        }
        if !matches!(error, WorkerError::Call { .. }) {
            start.attempts += 1;
        }
        let why = why(&error, start.heard.within);
        start.standing = Standing::Lost(process, why.clone());
        Err(why)
    }

    /// Returns why the conversation cannot rely on the script.
    pub(super) fn failure(&self) -> Option<String> {
        self.starts.iter().find_map(Start::failure)
    }

    fn find(&mut self, serial: u64) -> Option<&mut Start> {
        self.starts.iter_mut().find(|it| it.heard.serial == serial)
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
