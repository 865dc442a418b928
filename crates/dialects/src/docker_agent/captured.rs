//! Reading back what hooks of docker-agent, and native command hooks, get on their standard input: the inverse of
//! [`write`](super::write).

use serde_json::json;
use tenterhook::{EventKind, EventName, ReadError};

use super::DockerAgent;
use super::event::{Field, From, row};
use super::message::from_docker;
use crate::form::{Form, Reading, Substitute, has_field, is_open, text, text_content};

/// The form of hooks of agent files.
pub(crate) static FORM: Form = Form {
    name: "docker-agent",
    marks: &["hook_event_name"],
    lacks: &["event_id"],
    keys: |_| Vec::new(),
    names: |event| {
        let own = row(event.kind()).map(|row| row.name);
        // Guards of the preempt lane are told the public name.
        let preempt = (event.kind() == EventKind::ToolGuard).then_some("pre_tool_use");
        own.into_iter().chain(preempt).collect()
    },
    dialect: |event| row(event.kind()).map(|_| DockerAgent::agent_file()),
    read,
    omits_zeros: true,
    not_carried: &[(EventKind::SubagentStop, "task_id", Substitute::Text(""))],
};

/// The form of native command hooks: docker-agent's keys and the whole payload.
pub(crate) static NATIVE_FORM: Form = Form {
    name: "native",
    marks: &["hook_event_name", "event_id"],
    lacks: &[],
    keys: |_| Vec::new(),
    names: |event| vec![event.as_str()],
    dialect: |_| Some(DockerAgent::native()),
    read: read_native,
    omits_zeros: true,
    not_carried: &[],
};

/// What hooks are told beside the payload.
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
];

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    read_base(event, reading);
    for field in row(event.kind()).map_or(&[][..], |row| row.fields) {
        read_field(field, reading)?;
    }
    Ok(())
}

fn read_native(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let kind = event.kind();
    read_base(event, reading);
    reading.copy_origin("invoked_by", "invoked_by");
    reading.copy_origin("workspace", "workspace");
    reading.copy_origin("recipe", "recipe");
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
        let is_docker = rows.iter().any(|field| field.key == key) && !has_field(kind, key);
        let is_payload = has_field(kind, key)
            || (!ENVELOPE.contains(&key.as_str()) && (is_open(kind) || !is_docker));
        if is_payload {
            reading.payload.insert(key.clone(), value.clone());
        }
    }
    // docker-agent's keys repeat the payload, except that its messages replace ours.
    for field in rows {
        let says_more = match field.from {
            From::Messages(_) => true,
            From::Payload(name) | From::Worded(name, _) => !reading.payload.contains_key(name),
            From::ResultText | From::ResultIsError => {
                has_field(kind, "result") && !reading.payload.contains_key("result")
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

/// Reads what every event carries.
fn read_base(event: &EventName, reading: &mut Reading<'_>) {
    reading.copy_origin("cwd", "cwd");
    if event.kind() == EventKind::SubagentStop {
        // `session_id` and `agent_name` are those of the child here.
        reading.copy_origin("parent_session_id", "session_id");
        return;
    }
    reading.copy_origin("session_id", "session_id");
    reading.copy_agent("agent_name");
}

fn read_field(field: &'static Field, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    let Field { key, from } = field;
    let Some(value) = reading.get(key) else {
        return Ok(());
    };
    match from {
        From::Payload(name) => reading.copy(key, name),
        From::Worded(name, words) => {
            reading.copy(key, name);
            if let Some((own, _)) = words.iter().find(|(_, theirs)| value == theirs) {
                reading.payload.insert((*name).to_owned(), (*own).into());
            }
        }
        From::Messages(name) => {
            let messages = from_docker(key, value)?;
            reading.payload.insert((*name).to_owned(), messages);
        }
        From::ResultText => {
            let content = text_content(text(value, key)?);
            reading.set_in("result", "content", content)?;
        }
        From::ResultIsError => reading.set_in("result", "is_error", value.clone())?,
        From::Text(_) => {}
        From::IterationCap => {
            let limit = iteration_cap(text(value, key)?)?;
            reading.payload.insert("limit".to_owned(), limit.into());
        }
    }
    Ok(())
}

/// Reads the limit off the text that announces it.
fn iteration_cap(text: &str) -> Result<u64, ReadError> {
    let digits = text
        .split(|character: char| !character.is_ascii_digit())
        .find(|part| !part.is_empty());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            let problem =
                format!("`notification_message` is {text:?}, expected a text with the limit");
            ReadError::invalid(problem)
        })
}
