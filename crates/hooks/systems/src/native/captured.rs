//! Reads back the events that native command hooks get on stdin. It is the inverse of the
//! [dialect](super::dialect).

use serde_json::json;
use tenterhook_engine::{EventName, ReadError};

use super::dialect::Native;
use crate::docker_agent::captured::{read_base, read_field};
use crate::docker_agent::event::{From, row};
use crate::form::definition::Form;
use crate::form::reading::Reading;

/// The form of native command hooks: docker-agent's keys and the whole payload.
pub(crate) static FORM: Form = Form {
    name: "native",
    marks: &["hook_event_name", "event_id"],
    lacks: &[],
    keys: |_| Vec::new(),
    names: |event| vec![event.as_str()],
    dialect: |_| Some(Native::new()),
    read,
    omits_zeros: true,
    not_carried: &[],
};

/// The keys that hooks receive in addition to the payload.
const ENVELOPE: &[&str] = &[
    "session_id",
    "cwd",
    "hook_event_name",
    "agent_name",
    "event_id",
    "sequence",
    "timestamp",
    "invoked_by",
    "parent_agent_id",
    "workspace",
    "recipe",
    "origin_extra",
];

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let kind = event.kind();
    read_base(event, reading);
    reading.copy_origin("invoked_by", "invoked_by");
    reading.copy_origin("workspace", "workspace");
    reading.copy_origin("recipe", "recipe");
    reading.copy_origin("origin_extra", "origin_extra");
    if let Some(parent) = reading.get("parent_agent_id") {
        let parent = parent.clone();
        let agent = reading
            .origin
            .entry("agent")
            .or_insert_with(|| json!({ "name": "" }));
        if let Some(agent) = agent.as_object_mut() {
            agent.insert("parent_id".to_owned(), parent);
        }
    }
    let rows = row(kind).map_or(&[][..], |row| row.fields);
    for (key, value) in reading.object {
        let is_docker = rows.iter().any(|field| field.key == key) && !kind.info().has_field(key);
        let is_payload = kind.info().has_field(key)
            || (!ENVELOPE.contains(&key.as_str())
                && (kind.info().has_open_payload() || !is_docker));
        if is_payload {
            reading.payload.insert(key.clone(), value.clone());
        }
    }
    // docker-agent's keys repeat fields of the payload, so use them only for missing fields. Messages are
    // the exception: only docker-agent's form of them is written.
    for field in rows {
        let says_more = match field.from {
            From::Messages(_) => true,
            From::Payload(name) | From::Worded(name, _) => !reading.payload.contains_key(name),
            From::ResultText | From::ResultIsError => {
                kind.info().has_field("result") && !reading.payload.contains_key("result")
            }
            From::Text(_) => false,
            From::IterationCap => !reading.payload.contains_key("limit"),
        };
        if says_more {
            read_field(field, reading)?;
        }
    }
    Ok(())
}
