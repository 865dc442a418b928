//! Reads goose's events and writes the answers to them.

use tenterhook_engine::{ReadError, ToolResult};

use crate::command_hook::{AnswerObject, EventReader, Keys, joined, renamed, stop_reason};
use crate::host::answer::HostAnswer;
use crate::host::capability::HostEffect;
use crate::host::verdict::HostVerdict;
use crate::host::{HostCall, HostEvent, HostInput, HostMode};

/// The directory, for events that do not name it.
const DIRECTORY: &str = "PWD";

pub(super) const VARIABLES: &[&str] = &[DIRECTORY];

static KEYS: Keys = Keys {
    tool_use_id: "tool_call_id",
    read: &[
        "cwd",
        "hook_event_name",
        "prompt",
        "last_assistant_message",
        "matcher_context",
    ],
    ..Keys::SNAKE_CASE
};

/// The keys that have other names elsewhere.
const NAMES: [(&str, &str); 3] = [
    ("event", "hook_event_name"),
    ("working_dir", "cwd"),
    ("message", "prompt"),
];

/// Reads an event. Results of tools are empty, because goose does not hand them over.
pub(super) fn read(event: &HostEvent, input: &HostInput<'_>) -> Result<HostCall, ReadError> {
    let mut object = renamed(input.object, &NAMES);
    if let (None, Some(directory)) = (object.get("cwd"), input.variable(DIRECTORY)) {
        object.insert("cwd".to_owned(), directory.into());
    }
    let input = HostInput {
        object: &object,
        variables: input.variables,
    };
    let reader = EventReader::new(event, &input, &KEYS)?;
    let is_error = event.name == "PostToolUseFailure";
    reader.call(HostMode::Interactive, |_| {
        Ok(ToolResult::default().with_is_error(is_error))
    })
}

/// Writes an answer: a block, or nothing.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the signature is shared with hosts that cannot write every verdict"
)]
pub(super) fn write(
    event: &HostEvent,
    _input: &HostInput<'_>,
    verdict: &HostVerdict,
) -> Result<HostAnswer, HostEffect> {
    let mut answer = AnswerObject::default();
    if !verdict.follow_up.is_empty() {
        answer.block(&joined(&verdict.follow_up));
    } else if let Some(reason) = stop_reason(verdict) {
        answer.block(reason);
    }
    Ok(answer.print(event))
}
