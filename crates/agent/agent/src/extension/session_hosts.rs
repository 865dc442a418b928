//! The host of scripts that several sessions share, for a program with many agents at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId};
use tenterhook_runners::worker::{Host, NoHost, Refusal, ScriptAddition, ScriptServer};

use super::host::ScriptHost;

/// Stands between a session and the number of a state.
const BEFORE_NUMBER: char = '#';

/// Passes the requests of scripts to the host of the session that they belong to.
///
/// Scripts have a state of their own for each session, so the sessions do not see one another. A request that belongs
/// to no open session is answered as without one.
#[derive(Debug)]
pub struct SessionHosts {
    is_strict: bool,
    show_output: fn(&str, &str),
    /// By session.
    open: Mutex<BTreeMap<String, OpenHost>>,
    states: AtomicU64,
}

/// The host of an open session.
#[derive(Debug)]
struct OpenHost {
    /// The name of the state that scripts have for the session.
    state: String,
    host: Weak<ScriptHost>,
}

impl SessionHosts {
    /// Creates it without sessions. Gates of a script deny with `is_strict` if the script failed when a session started.
    /// `show_output` receives the lines that scripts print, with the name of the worker: they belong to no session that is
    /// known.
    pub fn new(is_strict: bool, show_output: fn(&str, &str)) -> Self {
        Self {
            is_strict,
            show_output,
            open: Mutex::default(),
            states: AtomicU64::new(0),
        }
    }

    /// Returns the name of a new state of scripts for a session. A session that is closed and opened again gets another
    /// one, because scripts may forget the state of the closed one at any time.
    pub fn new_state(&self, session: &SessionId) -> String {
        let number = self.states.fetch_add(1, Ordering::Relaxed);
        format!("{session}{BEFORE_NUMBER}{number}")
    }

    /// Opens a session with a state. It is over when the host is dropped.
    pub fn open(&self, session: &SessionId, state: String, host: &Arc<ScriptHost>) {
        let mut open = self.open.lock();
        open.retain(|_, open| open.host.strong_count() > 0);
        let host = Arc::downgrade(host);
        open.insert(session.to_string(), OpenHost { state, host });
    }

    /// Returns the host of the session that has a state.
    fn host(&self, state: &str) -> Option<Arc<ScriptHost>> {
        let (session, _) = state.rsplit_once(BEFORE_NUMBER)?;
        let open = self.open.lock();
        let open = open.get(session).filter(|open| open.state == state)?;
        open.host.upgrade()
    }

    fn host_of(&self, params: &Value) -> Option<Arc<ScriptHost>> {
        self.host(params.get("session")?.as_str()?)
    }
}

impl Host for SessionHosts {
    /// People in a chat see messages. A question that no one can answer has no answer.
    fn has_ui(&self) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        self.is_strict
    }

    fn flags(&self) -> JsonObject {
        JsonObject::new()
    }

    fn script_session(&self, session: &str) -> Option<String> {
        let open = self.open.lock();
        let own = open
            .get(session)
            .filter(|open| open.host.strong_count() > 0);
        let found = own.or_else(|| {
            let mut all = open.values();
            all.find(|open| {
                let host = open.host.upgrade();
                host.is_some_and(|host| host.has_subagent(session))
            })
        });
        found.map(|open| open.state.clone())
    }

    /// A subagent uses the state of its session.
    fn main_session(&self, _session: &str) -> Option<String> {
        None
    }

    fn on_output(&self, worker: &str, line: &str) {
        (self.show_output)(worker, line);
    }

    fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        session: Option<&str>,
    ) -> Result<(), Refusal> {
        match session.and_then(|session| self.host(session)) {
            Some(host) => host.add(script, addition, session),
            None => NoHost.add(script, addition, session),
        }
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let host = self.host_of(params);
        Box::pin(async move {
            match host {
                Some(host) => host.answer(method, params).await,
                None => NoHost.answer(method, params).await,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extension::host::Spelling;

    fn host() -> Arc<ScriptHost> {
        let spelling = Spelling::default();
        Arc::new(ScriptHost::new(true, JsonObject::new(), spelling))
    }

    #[test]
    fn a_subagent_uses_the_state_of_its_session_while_both_work() {
        let hosts = SessionHosts::new(false, |_, _| {});
        let (one, two, helper) = (
            SessionId::from("one"),
            SessionId::from("two"),
            SessionId::from("helper"),
        );
        let (first, second) = (host(), host());
        let open = |session, host| hosts.open(session, hosts.new_state(session), host);
        open(&one, &first);
        open(&two, &second);
        let state = |session: &SessionId| hosts.script_session(session.as_str());
        let before = state(&two);
        assert!(before.is_some() && state(&one).is_some() && before != state(&one));
        assert_eq!(state(&helper), None);
        let working = second.begin_subagent(&helper);
        assert_eq!(state(&helper), before);
        drop(working);
        assert_eq!(state(&helper), None);
        drop(first);
        assert_eq!(state(&one), None);
        assert_eq!(state(&two), before);
    }

    #[test]
    fn a_session_that_is_opened_again_has_another_state() {
        let hosts = SessionHosts::new(false, |_, _| {});
        let session = SessionId::from("one#1");
        let (first, second) = (host(), host());
        let old = hosts.new_state(&session);
        hosts.open(&session, old.clone(), &first);
        assert!(hosts.host(&old).is_some());
        let new = hosts.new_state(&session);
        hosts.open(&session, new.clone(), &second);
        assert!(hosts.host(&old).is_none());
        assert!(
            hosts
                .host(&new)
                .is_some_and(|found| Arc::ptr_eq(&found, &second))
        );
        assert_eq!(hosts.script_session(session.as_str()), Some(new));
    }
}
