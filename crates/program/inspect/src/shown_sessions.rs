//! The sessions whose contents an inspector shows.
//!
//! The user of an inspector is not always one of the people whose words its hooks see. What an event contains is then
//! left out when it is recorded, so that nothing that reads the records can show it. How often hooks run, how long they
//! take and what they decide is kept.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::RwLock;
use tenterhook_engine::SessionId;
use tenterhook_engine::journal::{DispatchRecord, JournalRecord, RunRecord};
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
        let shown = records.iter().filter_map(|record| {
            if let JournalRecord::Dispatch(dispatch) = record
                && self.shows(Some(&dispatch.session_id), &dispatch.event)
            {
                return Some(dispatch.event_id);
            }
            None
        });
        let shown: HashSet<_> = shown.collect();
        for record in &mut records {
            // The runs of a dispatch are recorded together with it.
            if let JournalRecord::Run(run) = record {
                if !shown.contains(&run.event_id) && !self.shows(None, &run.event) {
                    clear_run(run);
                }
            } else if let JournalRecord::Dispatch(dispatch) = record {
                if !shown.contains(&dispatch.event_id) {
                    clear_dispatch(dispatch);
                }
            } else if let JournalRecord::ModelCall(call) = record {
                if !self.shows(call.session_id.as_ref(), "") {
                    clear(&mut call.error);
                }
            } else if let JournalRecord::Host(host) = record
                && !self.shows(host.session_id.as_ref(), "")
            {
                clear(&mut host.problem);
            }
        }
        records
    }
}

/// What is shown instead of a text.
const LEFT_OUT: &str = "left out, because it belongs to a chat of someone else";

fn clear(text: &mut Option<String>) {
    if text.is_some() {
        *text = Some(LEFT_OUT.to_owned());
    }
}

fn clear_run(run: &mut RunRecord) {
    clear(&mut run.reason);
    clear(&mut run.cause);
    run.problems.clear();
}

fn clear_dispatch(dispatch: &mut DispatchRecord) {
    clear(&mut dispatch.reason);
    clear(&mut dispatch.read_as_shell);
    dispatch.extra = JsonObject::new();
    dispatch.origin_extra = JsonObject::new();
    for failure in &mut dispatch.failures {
        LEFT_OUT.clone_into(&mut failure.cause);
    }
    if dispatch.event.starts_with(MESSAGE_EVENT) {
        dispatch.subject = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn records(session: &str, event: &str) -> Vec<JournalRecord> {
        let run = json!({
            "record": "run", "v": 1, "event_id": "0198c0de-0000-7000-8000-000000000001",
            "event": event, "hook": "guard", "source": "hooks.yaml", "handler": "command",
            "status": "failed", "cause": "private words", "effect": "deny",
            "reason": "private words", "duration_ms": 1.0, "problems": ["private words"],
        });
        let dispatch = json!({
            "record": "dispatch", "v": 1, "event_id": "0198c0de-0000-7000-8000-000000000001",
            "event": event, "sequence": 1, "timestamp": "2026-01-01T00:00:00Z",
            "session_id": session, "agent": "root", "subject": "shell", "permission": "deny",
            "stopped": true, "reason": "private words", "hooks": 1, "duration_ms": 1.0,
            "failures": [{"hook": "guard", "cause": "private words", "let_through": false}],
            "extra": {"text": "private words"}, "origin_extra": {"who": "private words"},
        });
        let call = json!({
            "record": "model_call", "v": 1, "timestamp": "2026-01-01T00:00:00Z",
            "model": "a/b", "session_id": session, "error": "private words", "duration_ms": 1.0,
        });
        let read = |value| serde_json::from_value(value).unwrap();
        vec![read(run), read(dispatch), read(call)]
    }

    fn text(records: &[JournalRecord]) -> String {
        serde_json::to_string(records).unwrap()
    }

    #[test]
    fn what_is_said_in_the_chats_of_others_is_left_out() {
        let own = "0198c0de-0000-7000-8000-00000000000a";
        let others = "0198c0de-0000-7000-8000-00000000000b";
        let shown = ShownSessions::listed();
        let JournalRecord::Dispatch(dispatch) = &records(own, "pre_tool_use")[1] else {
            panic!("not a dispatch");
        };
        shown.add(&dispatch.session_id);
        let of = |session: &str, event: &str| shown.without_contents(records(session, event));
        assert_eq!(of(own, "pre_tool_use"), records(own, "pre_tool_use"));
        let left = text(&of(others, "message_receive"));
        assert!(!left.contains("private words"), "{left}");
        // What an operator needs stays: which hook decided what, and how long it took.
        for kept in ["guard", "deny", "duration_ms", LEFT_OUT] {
            assert!(left.contains(kept), "{kept}: {left}");
        }
        // A run that is recorded without its dispatch belongs to no known session.
        let alone = shown.without_contents(records(own, "pre_tool_use")[..1].to_vec());
        assert!(!text(&alone).contains("private words"));
        assert!(text(&of(others, "gateway_error")).contains("private words"));
        let all = ShownSessions::default().without_contents(records(others, "pre_tool_use"));
        assert_eq!(all, records(others, "pre_tool_use"));
    }
}
