//! pi as a host. An extension of Tenterhook's sends the events.

mod capabilities;
mod event;
mod headless;
mod installation;

use serde_json::Value;
use tenterhook_engine::{ReadError, ToolResult};

use super::message;
use super::tools::TOOLS;
use crate::command_hook::{EventReader, Keys};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{HostAgent, HostCall, HostEvent, HostInput, HostMode, in_process};

/// pi as a host.
pub static HOST: HostAgent = HostAgent {
    name: "pi",
    title: "pi",
    programs: &["pi"],
    processes: &[],
    measured_version: "0.87.1",
    tools: &TOOLS,
    events: event::EVENTS,
    variables: &[],
    project_variables: &[],
    read,
    write,
    capabilities: capabilities::CAPABILITIES,
    blind_spots: &[],
    installation: &installation::INSTALLATION,
    headless: Some(&headless::HEADLESS),
};

static KEYS: Keys = Keys {
    read: &[
        "cwd",
        "hook_event_name",
        "has_ui",
        "prompt",
        "source",
        "reason",
        "content",
        "details",
        "is_error",
        "last_assistant_message",
        "stop_hook_active",
    ],
    ..Keys::SNAKE_CASE
};

fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let reader = EventReader::new(event, input, &KEYS)?;
    let mode = match reader.get("has_ui") {
        Some(Value::Bool(false)) => HostMode::Headless,
        _ => HostMode::Interactive,
    };
    reader.call(mode, result)
}

fn result(reader: &EventReader<'_>) -> Result<ToolResult, ReadError> {
    let content = reader.get("content").map(message::read_blocks);
    let details = reader.get("details").and_then(Value::as_object);
    Ok(ToolResult::default()
        .with_content(content.transpose()?.unwrap_or_default())
        .with_details(details.cloned())
        .with_is_error(reader.get("is_error") == Some(&Value::Bool(true))))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with hosts that cannot write every verdict"
)]
fn write(
    event: &HostEvent,
    _input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    Ok(in_process::write(event, verdict, message::written_block))
}
