//! The host of scripts that several sessions share, for a program with many agents at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId};
use tenterhook_runners::worker::{Host, NoHost, Refusal, ScriptAddition, ScriptServer};

use super::host::ScriptHost;

/// Passes the requests of scripts to the host of the session that they belong to.
///
/// Scripts have a state of their own for each session, so the sessions do not see one another. A request that belongs
/// to no open session is answered as without one.
#[derive(Debug, Default)]
pub struct SessionHosts {
    is_strict: bool,
    /// By session.
    open: Mutex<BTreeMap<String, Weak<ScriptHost>>>,
}

impl SessionHosts {
    /// Creates it without sessions. Gates of a script deny with `is_strict` if the script failed when a session started.
    pub fn new(is_strict: bool) -> Self {
        Self {
            is_strict,
            open: Mutex::default(),
        }
    }

    /// Opens a session. It is over when the host is dropped.
    pub fn open(&self, session: &SessionId, host: &Arc<ScriptHost>) {
        let mut open = self.open.lock();
        open.retain(|_, host| host.strong_count() > 0);
        open.insert(session.to_string(), Arc::downgrade(host));
    }

    /// Returns the host of an open session.
    fn host(&self, session: &str) -> Option<Arc<ScriptHost>> {
        self.open.lock().get(session)?.upgrade()
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
        let is_open = |host: &Weak<ScriptHost>| host.strong_count() > 0;
        if open.get(session).is_some_and(is_open) {
            return Some(session.to_owned());
        }
        let parent = open.iter().find(|(_, host)| {
            let host = host.upgrade();
            host.is_some_and(|host| host.has_subagent(session))
        });
        parent.map(|(parent, _)| parent.clone())
    }

    fn on_output(&self, _worker: &str, _line: &str) {
        // The line belongs to no session that is known. `RecordingHost` writes it to the journal.
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
        let hosts = SessionHosts::new(false);
        let (one, two, helper) = (
            SessionId::from("one"),
            SessionId::from("two"),
            SessionId::from("helper"),
        );
        let (first, second) = (host(), host());
        hosts.open(&one, &first);
        hosts.open(&two, &second);
        let state = |session: &SessionId| hosts.script_session(session.as_str());
        assert_eq!(state(&one).as_deref(), Some("one"));
        assert_eq!(state(&helper), None);
        let working = second.begin_subagent(&helper);
        assert_eq!(state(&helper).as_deref(), Some("two"));
        drop(working);
        assert_eq!(state(&helper), None);
        drop(first);
        assert_eq!(state(&one), None);
        assert_eq!(state(&two).as_deref(), Some("two"));
    }
}
