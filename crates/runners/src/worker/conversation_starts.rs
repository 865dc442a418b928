//! The session starts of one conversation, and which process has handled each of them.

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
    /// The event as JSON.
    pub(super) event: Bytes,
    /// How long the hook may take to handle it again.
    pub(super) within: Duration,
}

/// The starts of one conversation, in the order in which they were heard.
#[derive(Debug, Default)]
pub(super) struct ConversationStarts {
    /// Held while starts are repeated.
    pub(super) replaying: tokio::sync::Mutex<()>,
    starts: Mutex<Vec<Start>>,
}

#[derive(Debug)]
struct Start {
    heard: HeardStart,
    /// Whether the event is kept.
    is_kept: bool,
    standing: Standing,
    /// Whether the hook itself failed the first time. Then the script worked without what it prepares.
    has_failed_itself: bool,
    attempts: u32,
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

impl Start {
    fn need(&self, connection: &Weak<Connection>) -> Need<'_> {
        match &self.standing {
            Standing::InProgress => Need::Nothing,
            Standing::Handled(by, _) if by.ptr_eq(connection) => Need::Nothing,
            Standing::Lost(by, why) if by.ptr_eq(connection) || self.attempts >= MAX_ATTEMPTS => {
                Need::Refusal(why)
            }
            _ if !self.is_kept => Need::Refusal("its `session_start` was too large to be kept"),
            Standing::Unheard | Standing::Handled(..) | Standing::Lost(..) => Need::Replay,
        }
    }

    fn failure(&self) -> Option<String> {
        match &self.standing {
            Standing::Handled(_, Some(failure)) => {
                Some(format!("it failed when the session started: {failure}"))
            }
            Standing::Lost(_, why) => Some(format!("its worker ended, and {why}")),
            Standing::InProgress | Standing::Unheard | Standing::Handled(_, None) => None,
        }
    }
}

impl ConversationStarts {
    fn starts(&self) -> MutexGuard<'_, Vec<Start>> {
        self.starts.lock()
    }

    /// Returns whether a hook has heard the start of a session.
    pub(super) fn has(&self, session: &str, hook: usize) -> bool {
        let starts = self.starts();
        let mut heard = starts.iter().map(|start| &start.heard);
        heard.any(|heard| heard.session == session && heard.hook == hook)
    }

    /// Adds a start, which replaces an earlier start of the session for that hook. Forgets the starts of subagents that
    /// are done.
    pub(super) fn begin(&self, heard: HeardStart, is_open: impl Fn(&str) -> bool) {
        let mut starts = self.starts();
        starts.retain(|start| {
            let known = &start.heard;
            let is_same = known.session == heard.session && known.hook == heard.hook;
            !is_same && is_open(&known.session)
        });
        let is_kept = heard.event.len() <= MAX_EVENT && starts.len() < MAX_STARTS;
        // Beyond the limit, one start that cannot be repeated stands for all of them.
        starts.truncate(MAX_STARTS);
        let event = if is_kept { heard.event } else { Bytes::new() };
        starts.push(Start {
            heard: HeardStart { event, ..heard },
            is_kept,
            standing: Standing::InProgress,
            has_failed_itself: false,
            attempts: 0,
        });
    }

    /// Records how a start was handled for the first time, and by which process.
    pub(super) fn record_first(
        &self,
        serial: u64,
        connection: Option<&Arc<Connection>>,
        end: StartEnd,
    ) {
        let mut starts = self.starts();
        let Some(start) = starts.iter_mut().find(|it| it.heard.serial == serial) else {
            return;
        };
        start.has_failed_itself = matches!(end, Err(WorkerError::Call { .. }));
        start.standing = match connection {
            Some(connection) => {
                let failure = end.err().map(|error| error.to_string());
                Standing::Handled(Arc::downgrade(connection), failure)
            }
            None => Standing::Unheard,
        };
    }

    /// Returns whether a process has handled all starts, ignoring the session `except`.
    pub(super) fn is_ready(&self, connection: &Arc<Connection>, except: Option<&str>) -> bool {
        let connection = Arc::downgrade(connection);
        let starts = self.starts();
        let mut others = starts
            .iter()
            .filter(|start| except != Some(&start.heard.session));
        others.all(|start| matches!(start.need(&connection), Need::Nothing))
    }

    /// Returns the next start that a process must handle again. An error says why the process cannot be used.
    pub(super) fn next(
        &self,
        connection: &Arc<Connection>,
        except: Option<&str>,
        is_open: impl Fn(&str) -> bool,
    ) -> Result<Option<HeardStart>, String> {
        let connection = Arc::downgrade(connection);
        let mut starts = self.starts();
        starts.retain(|start| is_open(&start.heard.session));
        for start in starts.iter() {
            if except == Some(&start.heard.session) {
                continue;
            }
            match start.need(&connection) {
                Need::Nothing => {}
                Need::Replay => return Ok(Some(start.heard.clone())),
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
        let mut starts = self.starts();
        let Some(start) = starts.iter_mut().find(|it| it.heard.serial == serial) else {
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
        self.starts().iter().find_map(Start::failure)
    }

    /// Returns the number of the first start.
    pub(super) fn first(&self) -> u64 {
        let starts = self.starts();
        starts.first().map_or(0, |start| start.heard.serial)
    }

    /// Returns the process that has handled the last start.
    pub(super) fn process(&self) -> Weak<Connection> {
        let starts = self.starts();
        match starts.last().map(|start| &start.standing) {
            Some(Standing::Handled(by, _) | Standing::Lost(by, _)) => by.clone(),
            Some(Standing::InProgress | Standing::Unheard) | None => Weak::new(),
        }
    }
}

/// Returns why a script could not handle a start again.
fn why(error: &WorkerError, within: Duration) -> String {
    match error {
        WorkerError::Call { message } => {
            format!("`session_start` failed in the new one: {message}")
        }
        WorkerError::TimedOut => {
            let seconds = within.as_secs_f64();
            format!("`session_start` did not finish within {seconds} s in the new one")
        }
        WorkerError::Ended { problem, .. } => {
            format!("the new one ended as well during `session_start`: {problem}")
        }
        error @ (WorkerError::Start { .. }
        | WorkerError::Broken { .. }
        | WorkerError::NotReady { .. }
        | WorkerError::Cancelled) => {
            format!("`session_start` could not run in the new one: {error}")
        }
    }
}
