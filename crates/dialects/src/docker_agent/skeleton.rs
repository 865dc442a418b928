//! The keys of an event before it happens, for templates that name them.

use std::sync::OnceLock;

use serde_json::{Value, json};
use tenterhook::EventKind;
use tenterhook_protocol::JsonObject;

use super::Speaker;
use super::event::{From, row};

/// The keys that every event is written with.
const BASE: [&str; 4] = ["session_id", "cwd", "hook_event_name", "agent_name"];
/// The texts that native hooks get beside them.
const ENVELOPE: [&str; 6] = [
    "event_id",
    "timestamp",
    "invoked_by",
    "parent_agent_id",
    "workspace",
    "recipe",
];

/// Returns the keys with what they stand for where they are left out; `None` for events with open payloads.
pub(super) fn skeleton(speaker: Speaker, kind: EventKind) -> Option<JsonObject> {
    let row = match speaker {
        Speaker::Native | Speaker::AgentFile => row(kind),
        Speaker::Preempt => row(EventKind::PreToolUse),
    };
    let payload = payload(kind);
    let mut keys: JsonObject = BASE
        .map(|key| (key.to_owned(), json!("")))
        .into_iter()
        .collect();
    if speaker == Speaker::Native {
        keys.extend(ENVELOPE.map(|key| (key.to_owned(), json!(""))));
        keys.insert("sequence".to_owned(), json!(0));
        keys.extend(payload?.clone());
    }
    let row = match (speaker, row) {
        (Speaker::Native, row) => row,
        (_, row) => Some(row?),
    };
    for field in row.map_or(&[][..], |row| row.fields) {
        let empty = match field.from {
            From::Payload(name) => payload.and_then(|payload| payload.get(name)),
            From::Messages(_) => Some(&Value::Array(Vec::new())),
            From::ResultIsError => Some(&Value::Bool(false)),
            From::ResultText | From::Text(_) | From::IterationCap | From::Worded(..) => None,
        };
        let empty = empty.cloned().unwrap_or_else(|| json!(""));
        keys.insert(field.key.to_owned(), empty);
    }
    Some(keys)
}

/// The fields of each event's payload with the zero of their types; `None` where it may hold anything. A schema
/// takes its time, and many hooks are of one event.
static PAYLOADS: [OnceLock<Option<JsonObject>>; EventKind::COUNT] =
    [const { OnceLock::new() }; EventKind::COUNT];

fn payload(kind: EventKind) -> Option<&'static JsonObject> {
    let slot = PAYLOADS.get(kind.index())?;
    slot.get_or_init(|| payload_of(kind)).as_ref()
}

fn payload_of(kind: EventKind) -> Option<JsonObject> {
    if kind == EventKind::Custom {
        return None;
    }
    let schema = kind.payload_schema().to_value();
    let properties = schema.get("properties")?.as_object()?;
    let zeros = properties
        .iter()
        .map(|(name, property)| (name.clone(), zero(property)));
    Some(zeros.collect())
}

/// Returns the zero of a type; an optional one has that of what it may hold.
fn zero(property: &Value) -> Value {
    let named = property.get("type");
    let first = named.and_then(|named| named.as_array()?.first());
    match first.or(named).and_then(Value::as_str) {
        Some("boolean") => json!(false),
        Some("integer" | "number") => json!(0),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(""),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use tenterhook::event::{PostToolUse, PreToolUse, Stop};
    use tenterhook::{EventRef, Origin};
    use tenterhook_protocol::{AnyEvent, Envelope};

    use super::*;
    use crate::docker_agent::write::write;

    fn written(speaker: Speaker, event: Arc<dyn AnyEvent>) -> BTreeSet<String> {
        let origin = Origin {
            session_id: "s".into(),
            cwd: "/w".into(),
            workspace: Some("w".to_owned()),
            recipe: Some("r".to_owned()),
            ..Origin::default()
        };
        let event = EventRef::new(event, Arc::new(Envelope::new(Arc::new(origin), 1)));
        let bytes = write(speaker, &event).unwrap();
        let keys: JsonObject = serde_json::from_slice(&bytes).unwrap();
        keys.into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn every_key_that_is_written_is_known_before() {
        let call = PreToolUse {
            tool_name: "shell".to_owned(),
            ..PreToolUse::default()
        };
        let result = PostToolUse {
            tool_name: "shell".to_owned(),
            ..PostToolUse::default()
        };
        let stop = Stop {
            response: "done".to_owned(),
            ..Stop::default()
        };
        let events: [Arc<dyn AnyEvent>; 3] = [Arc::new(call), Arc::new(result), Arc::new(stop)];
        for event in events {
            for speaker in [Speaker::Native, Speaker::AgentFile] {
                let known = skeleton(speaker, event.info().kind).unwrap();
                for key in written(speaker, Arc::clone(&event)) {
                    assert!(known.contains_key(&key), "{speaker:?} {event:?}: {key}");
                }
            }
        }
    }

    #[test]
    fn zeros_have_the_types_of_their_keys() {
        let keys = skeleton(Speaker::AgentFile, EventKind::PostToolUse).unwrap();
        assert_eq!(keys["tool_name"], json!(""));
        assert_eq!(keys["tool_input"], json!({}));
        assert_eq!(keys["tool_error"], json!(false));
        assert!(!keys.contains_key("result"));
        let keys = skeleton(Speaker::Native, EventKind::BeforeLlmCall).unwrap();
        assert_eq!(keys["iteration"], json!(0));
        assert_eq!(keys["messages"], json!([]));
    }

    #[test]
    fn open_payloads_have_no_known_keys() {
        for kind in [EventKind::Custom, EventKind::TaskCreated] {
            assert_eq!(skeleton(Speaker::Native, kind), None, "{kind:?}");
        }
        assert_eq!(skeleton(Speaker::AgentFile, EventKind::TaskCreated), None);
        let keys = skeleton(Speaker::AgentFile, EventKind::WorktreeCreate).unwrap();
        assert!(keys.contains_key("worktree_path"));
    }
}
