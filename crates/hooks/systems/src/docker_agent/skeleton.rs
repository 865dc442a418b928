//! The keys that an event will have, so that templates can be checked before the event happens.

use serde_json::{Value, json};
use tenterhook_engine::EventKind;
use tenterhook_protocol::{FieldInfo, JsonObject};

use super::contract::Contract;
use super::event::{From, row};

/// The keys that every event has.
const BASE: [&str; 4] = ["session_id", "cwd", "hook_event_name", "agent_name"];

/// Returns the keys of an event, each with the value that it has if it is left out. Returns `None` for
/// events with open payloads.
pub(crate) fn skeleton(contract: &Contract, kind: EventKind) -> Option<JsonObject> {
    let row = row(contract.shown_as.unwrap_or(kind));
    let payload = payload(kind);
    let mut keys: JsonObject = BASE
        .map(|key| (key.to_owned(), json!("")))
        .into_iter()
        .collect();
    if let Some(extension) = &contract.extension {
        let zeros = (extension.zeros)().into_iter();
        keys.extend(zeros.map(|(key, zero)| (key.to_owned(), zero)));
        keys.extend(payload.clone()?);
    } else if row.is_none() {
        return None;
    }
    for field in row.map_or(&[][..], |row| row.fields) {
        let empty = match field.from {
            From::Payload(name) | From::Worded(name, _) => {
                payload.as_ref().and_then(|payload| payload.get(name))
            }
            From::Messages(_) => Some(&Value::Array(Vec::new())),
            From::ResultIsError => Some(&Value::Bool(false)),
            From::ResultText | From::Text(_) | From::IterationCap => None,
        };
        let empty = empty.cloned().unwrap_or_else(|| json!(""));
        keys.insert(field.key.to_owned(), empty);
    }
    Some(keys)
}

/// Returns the fields of an event's payload with the zero values of their types, or `None` for open
/// payloads.
fn payload(kind: EventKind) -> Option<JsonObject> {
    let zero = |field: &FieldInfo| {
        let zero = field.value.zero().unwrap_or_else(|| json!(""));
        (field.name.to_owned(), zero)
    };
    Some(kind.info().fields?.iter().map(zero).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop};
    use tenterhook_engine::{EventRef, Origin};
    use tenterhook_protocol::{AnyEvent, Envelope};

    use super::*;
    use crate::docker_agent::dialect::AGENT_FILE;
    use crate::docker_agent::write::write;

    fn written(event: Arc<dyn AnyEvent>) -> BTreeSet<String> {
        let origin = Origin::new("s", "/w").with_workspace("w").with_recipe("r");
        let event = EventRef::new(event, Arc::new(Envelope::new(Arc::new(origin), 1)));
        let bytes = write(&AGENT_FILE, &event).unwrap();
        let keys: JsonObject = serde_json::from_slice(&bytes).unwrap();
        keys.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn every_key_that_is_written_is_known_before() {
        let call = PreToolUse::new("shell");
        let result = PostToolUse::new("shell");
        let stop = Stop::new().with_response("done");
        let events: [Arc<dyn AnyEvent>; 3] = [Arc::new(call), Arc::new(result), Arc::new(stop)];
        for event in events {
            let known = skeleton(&AGENT_FILE, event.info().kind).unwrap();
            for key in written(Arc::clone(&event)) {
                assert!(known.contains_key(&key), "{event:?}: {key}");
            }
        }
    }

    #[test]
    fn zeros_have_the_types_of_their_keys() {
        let keys = skeleton(&AGENT_FILE, EventKind::PostToolUse).unwrap();
        assert_eq!(keys["tool_name"], json!(""));
        assert_eq!(keys["tool_input"], json!({}));
        assert_eq!(keys["tool_error"], json!(false));
        assert!(!keys.contains_key("result"));
    }

    #[test]
    fn open_payloads_have_no_known_keys() {
        assert_eq!(skeleton(&AGENT_FILE, EventKind::TaskCreated), None);
        let keys = skeleton(&AGENT_FILE, EventKind::WorktreeCreate).unwrap();
        assert!(keys.contains_key("worktree_path"));
    }
}
