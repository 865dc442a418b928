//! The sessions whose contents an inspector shows.
//!
//! The user of an inspector is not always one of the people whose words its hooks see. What an event contains is then
//! left out when it is recorded, so that nothing that reads the records can show it. How often hooks run, how long they
//! take and what they decide is kept.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::RwLock;
use tenterhook_engine::SessionId;
use tenterhook_engine::journal::{
    DispatchRecord, HostRecord, JournalRecord, ModelCallRecord, RunRecord,
};
use tenterhook_protocol::JsonObject;

/// The maximum number of sessions that are remembered. The contents of older ones are left out again.
const MAX_SESSIONS: usize = 10_000;

/// How the names of events begin that contain what people say, also outside of their sessions.
const MESSAGE_EVENT: &str = "message_";

/// The events that belong to no session of a chat: they are about channels.
const GATEWAY_EVENTS: [&str; 5] = [
    "gateway_start",
    "gateway_stop",
    "gateway_error",
    "channel_connect",
    "channel_disconnect",
];

/// The sessions whose contents an inspector shows. Clones share them. By default, they are all sessions.
#[derive(Debug, Clone, Default)]
pub struct ShownSessions(Option<Arc<RwLock<KnownSessions>>>);

#[derive(Debug, Default)]
struct KnownSessions {
    ids: HashSet<SessionId>,
    /// The sessions, the oldest first.
    order: VecDeque<SessionId>,
}

impl ShownSessions {
    /// Creates a list without sessions, to which [`add`](Self::add) adds some.
    pub fn listed() -> Self {
        Self(Some(Arc::default()))
    }

    /// Shows the contents of a session from now on.
    pub fn add(&self, session: &SessionId) {
        let Some(known) = &self.0 else {
            return;
        };
        let mut known = known.write();
        if !known.ids.insert(session.clone()) {
            return;
        }
        known.order.push_back(session.clone());
        if known.order.len() > MAX_SESSIONS
            && let Some(oldest) = known.order.pop_front()
        {
            known.ids.remove(&oldest);
        }
    }

    /// Returns whether what an event of a session contains is shown.
    pub(crate) fn shows(&self, session: Option<&SessionId>, event: &str) -> bool {
        let Some(known) = &self.0 else {
            return true;
        };
        GATEWAY_EVENTS.contains(&event)
            || session.is_some_and(|session| known.read().ids.contains(session))
    }

    /// Leaves out of records what the events of other sessions contain.
    pub(crate) fn without_contents(&self, mut records: Vec<JournalRecord>) -> Vec<JournalRecord> {
        if self.0.is_none() {
            return records;
        }
        let shown = records.iter().filter_map(|record| match record {
            JournalRecord::Dispatch(dispatch) => self
                .shows(Some(&dispatch.session_id), &dispatch.event)
                .then(|| dispatch.event_id.clone()),
            _ => None,
        });
        let shown: HashSet<_> = shown.collect();
        for record in &mut records {
            match record {
                // The runs of a dispatch are recorded together with it.
                JournalRecord::Run(run) => {
                    if !shown.contains(&run.event_id) && !self.shows(None, &run.event) {
                        clear_run(run);
                    }
                }
                JournalRecord::Dispatch(dispatch) => {
                    if !shown.contains(&dispatch.event_id) {
                        clear_dispatch(dispatch);
                    }
                }
                JournalRecord::ModelCall(ModelCallRecord {
                    session_id, error, ..
                }) => {
                    if !self.shows(session_id.as_ref(), "") {
                        *error = error.take().map(|_| LEFT_OUT.to_owned());
                    }
                }
                JournalRecord::Host(HostRecord {
                    session_id,
                    problem,
                    ..
                }) => {
                    if !self.shows(session_id.as_ref(), "") {
                        *problem = problem.take().map(|_| LEFT_OUT.to_owned());
                    }
                }
                _ => {}
            }
        }
        records
    }
}

/// What is shown instead of a text.
const LEFT_OUT: &str = "left out, because it belongs to a chat of someone else";

fn clear_run(run: &mut RunRecord) {
    run.reason = run.reason.take().map(|_| LEFT_OUT.to_owned());
    run.cause = run.cause.take().map(|_| LEFT_OUT.to_owned());
    run.problems.clear();
}

fn clear_dispatch(dispatch: &mut DispatchRecord) {
    dispatch.reason = dispatch.reason.take().map(|_| LEFT_OUT.to_owned());
    dispatch.read_as_shell = dispatch.read_as_shell.take().map(|_| LEFT_OUT.to_owned());
    dispatch.extra = JsonObject::new();
    dispatch.origin_extra = JsonObject::new();
    for failure in &mut dispatch.failures {
        failure.cause = LEFT_OUT.to_owned();
    }
    if dispatch.event.starts_with(MESSAGE_EVENT) {
        dispatch.subject = None;
    }
}
