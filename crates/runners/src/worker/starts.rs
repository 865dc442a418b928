//! How a script handled the starts of sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::connection::Connection;

/// What is wrong with a script whose worker ended during a session.
const LOST: &str = "its worker ended, so it lacks what it prepared when the session started";

/// The session, if the script has a state for each, and the index of the hook.
type StartedHook = (Option<String>, usize);

/// How the hooks of a script handled the starts of the sessions that are open.
#[derive(Debug, Default)]
pub(super) struct SessionStarts {
    failed: BTreeMap<StartedHook, String>,
    /// The connections to the processes that have the states which the hooks prepared.
    prepared: BTreeMap<StartedHook, Weak<Connection>>,
}

impl SessionStarts {
    /// Records how a hook handled a start: the connection that it used, or why it failed.
    pub(super) fn record(
        &mut self,
        (session, hook): (Option<&str>, usize),
        end: Result<&Arc<Connection>, String>,
    ) {
        let started = (session.map(str::to_owned), hook);
        match end {
            Ok(connection) => {
                self.failed.remove(&started);
                self.prepared.insert(started, Arc::downgrade(connection));
            }
            Err(failure) => {
                self.prepared.remove(&started);
                let failure = format!("it failed when the session started: {failure}");
                self.failed.insert(started, failure);
            }
        }
    }

    /// Records that calls of a session use a connection. If hooks prepared the session's state in another process, that
    /// state is lost. Returns how, the first time.
    pub(super) fn use_connection(
        &mut self,
        session: Option<&str>,
        connection: &Arc<Connection>,
    ) -> Option<&'static str> {
        let current = Arc::downgrade(connection);
        let lost = self.prepared.extract_if(.., |(own, _), prepared| {
            own.as_deref() == session && !prepared.ptr_eq(&current)
        });
        let before = self.failed.len();
        self.failed
            .extend(lost.map(|(started, _)| (started, LOST.to_owned())));
        (self.failed.len() > before).then_some(LOST)
    }

    /// Returns why a session cannot rely on the script.
    pub(super) fn failure_in(&self, session: Option<&str>) -> Option<&str> {
        let mut failed = self.failed.iter();
        let found = failed.find(|((own, _), _)| own.as_deref() == session);
        found.map(|(_, failure)| failure.as_str())
    }

    /// Returns why one of the sessions cannot rely on the script.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failed.values().next().map(String::as_str)
    }

    /// Forgets a session that is over.
    pub(super) fn forget(&mut self, session: &str) {
        self.failed
            .retain(|(own, _), _| own.as_deref() != Some(session));
        self.prepared
            .retain(|(own, _), _| own.as_deref() != Some(session));
    }
}
