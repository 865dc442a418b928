//! Reads back the events that hooks of docker-agent get on stdin. It is the inverse of [`write`](super::write).

use tenterhook_engine::{EventKind, EventName, ReadError};

use super::dialect::DockerAgent;
use super::event::{Field, From, row};
use super::message::from_docker;
use crate::form::definition::{Form, Substitute};
use crate::form::reading::{Reading, text, text_content};

/// The form of hooks in agent files.
pub(crate) static FORM: Form = Form {
    name: "docker-agent",
    marks: &["hook_event_name"],
    lacks: &["event_id"],
    keys: |_| Vec::new(),
    names: |event| {
        let own = row(event.kind()).map(|row| row.name);
        // Guards with `preempt_yolo` see the public name.
        let preempt = (event.kind() == EventKind::ToolGuard).then_some("pre_tool_use");
        own.into_iter().chain(preempt).collect()
    },
    dialect: |event| row(event.kind()).map(|_| DockerAgent::agent_file()),
    read,
    omits_zeros: true,
    not_carried: &[(EventKind::SubagentStop, "task_id", Substitute::Text(""))],
};

fn read(event: &EventName, reading: &mut Reading<'_>) -> Result<(), ReadError> {
    read_base(event, reading);
    for field in row(event.kind()).map_or(&[][..], |row| row.fields) {
        read_field(field, reading)?;
    }
    Ok(())
}

/// Reads the keys that every event has.
pub(crate) fn read_base(event: &EventName, reading: &mut Reading<'_>) {
    reading.copy_origin("cwd", "cwd");
    if event.kind() == EventKind::SubagentStop {
        // On this event, `session_id` and `agent_name` belong to the child.
        reading.copy_origin("parent_session_id", "session_id");
        return;
    }
    reading.copy_origin("session_id", "session_id");
    reading.copy_agent("agent_name");
}

pub(crate) fn read_field(
    field: &'static Field,
    reading: &mut Reading<'_>,
) -> Result<(), ReadError> {
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

/// Reads the limit from the text of the notification.
fn iteration_cap(text: &str) -> Result<u64, ReadError> {
    let digits = text
        .split(|character: char| !character.is_ascii_digit())
        .find(|part| !part.is_empty());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| {
            let problem = format!(
                "`notification_message` is {text:?}, expected text that contains the limit"
            );
            ReadError::invalid(problem)
        })
}
