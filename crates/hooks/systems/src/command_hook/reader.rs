//! Reads the events of hosts.

use serde_json::Value;
use tenterhook_engine::event::{
    CompactionSource, Notification, NotificationLevel, PermissionRequest, PreCompact, SessionEnd,
    SessionSource, SessionStart, Stop, SubagentStart, SubagentStop, UserPromptSubmit,
};
use tenterhook_engine::{
    AgentRef, AnyEvent, ContentBlock, EventKind, InvokedBy, JsonObject, Origin, ReadError,
    ToolCall, ToolResult,
};

use crate::form::reading;
use crate::host::{HostCall, HostEvent, HostInput, HostMode, HostedEvent};

/// The argument that stands for the whole text, if a tool takes a text instead of named arguments.
pub(crate) const TEXT: &str = "input";

/// A host's names of the fields that events have.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) session_id: &'static str,
    pub(crate) tool_name: &'static str,
    pub(crate) tool_input: &'static str,
    /// Empty if the host has no ids of tool calls.
    pub(crate) tool_use_id: &'static str,
    pub(crate) agent_id: &'static str,
    pub(crate) agent_type: &'static str,
    /// Fields that are read from events of this host, and therefore not copied to the origin's `extra`.
    pub(crate) read: &'static [&'static str],
    /// The host's words for the reasons why a session starts that are not ours.
    pub(crate) sources: &'static [(&'static str, SessionSource)],
}

impl Keys {
    /// The names that most hosts have.
    pub(crate) const SNAKE_CASE: Self = Self {
        session_id: "session_id",
        tool_name: "tool_name",
        tool_input: "tool_input",
        tool_use_id: "tool_use_id",
        agent_id: "agent_id",
        agent_type: "agent_type",
        read: &[
            "cwd",
            "hook_event_name",
            "prompt",
            "tool_response",
            "error",
            "duration_ms",
            "source",
            "custom_instructions",
            "trigger",
            "stop_hook_active",
            "last_assistant_message",
            "message",
        ],
        sources: &[],
    };
}

/// Reads one kind of event.
type ReadOther = fn(&EventReader<'_>) -> Result<Box<dyn AnyEvent>, ReadError>;

/// The kinds of events that are not about the judgement or the result of a tool call.
const READERS: &[(EventKind, ReadOther)] = &[
    (EventKind::SessionStart, |it| {
        Ok(Box::new(SessionStart::new(it.source()?)))
    }),
    (EventKind::SessionEnd, |it| {
        let reason = it.optional_text("reason")?;
        Ok(Box::new(SessionEnd::new(reason.unwrap_or_default())))
    }),
    (EventKind::UserPromptSubmit, |it| {
        Ok(Box::new(UserPromptSubmit::new(it.text("prompt")?)))
    }),
    (EventKind::PermissionRequest, |it| {
        Ok(Box::new(it.permission_request()?))
    }),
    (EventKind::Stop, |it| Ok(Box::new(it.stop()?))),
    (EventKind::SubagentStart, |it| {
        let label = it.optional_text(it.keys.agent_type)?.unwrap_or_default();
        Ok(Box::new(SubagentStart::new(
            it.text(it.keys.agent_id)?,
            label,
        )))
    }),
    (EventKind::SubagentStop, |it| {
        Ok(Box::new(it.subagent_stop()?))
    }),
    (EventKind::PreCompact, |it| Ok(Box::new(it.pre_compact()?))),
    (EventKind::Notification, |it| {
        Ok(Box::new(it.notification()?))
    }),
];

/// An event of a host that is being read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventReader<'a> {
    event: &'a HostEvent,
    object: &'a JsonObject,
    keys: &'static Keys,
}

impl<'a> EventReader<'a> {
    /// Starts to read an event.
    ///
    /// # Errors
    /// Fails if the object says that it is another event.
    pub(crate) fn new(
        event: &'a HostEvent,
        input: &HostInput<'a>,
        keys: &'static Keys,
    ) -> Result<Self, ReadError> {
        let reader = Self {
            event,
            object: input.object,
            keys,
        };
        match reader.get("hook_event_name") {
            Some(found) if found != event.name => Err(ReadError::invalid(format!(
                "`hook_event_name` is {found}, expected \"{}\"",
                event.name
            ))),
            _ => Ok(reader),
        }
    }

    /// Returns the value of a key, unless it is null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// Returns a value that must be present.
    pub(crate) fn required(&self, key: &str) -> Result<&'a Value, ReadError> {
        let missing = || ReadError::invalid(format!("`{key}` is missing"));
        self.get(key).ok_or_else(missing)
    }

    /// Returns a string that must be present.
    fn text(&self, key: &str) -> Result<&'a str, ReadError> {
        reading::text(self.required(key)?, key)
    }

    /// Returns a string that may be absent.
    pub(crate) fn optional_text(&self, key: &str) -> Result<Option<&'a str>, ReadError> {
        let value = self.get(key);
        value.map(|value| reading::text(value, key)).transpose()
    }

    /// Returns the origin: the session, the directory, and everything that only this host has.
    fn origin(&self) -> Result<Origin, ReadError> {
        let mut origin = Origin::new(self.text(self.keys.session_id)?, self.text("cwd")?);
        if let Some(id) = self.optional_text(self.keys.agent_id)? {
            let name = self
                .optional_text(self.keys.agent_type)?
                .unwrap_or_default();
            origin.agent = AgentRef::new(name).with_id(id);
            origin.invoked_by = InvokedBy::Subagent;
        }
        let keys = self.keys;
        let of_calls = [
            keys.session_id,
            keys.tool_name,
            keys.tool_input,
            keys.tool_use_id,
        ];
        let is_read = |key: &str| of_calls.contains(&key) || keys.read.contains(&key);
        let others = self.object.iter().filter(|(key, _)| !is_read(key));
        origin.extra = others.map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(origin)
    }

    /// Reads the event and its origin. `result` reads the result of a tool.
    pub(crate) fn call(
        &self,
        mode: HostMode,
        result: impl FnOnce(&Self) -> Result<ToolResult, ReadError>,
    ) -> Result<HostCall, ReadError> {
        let event = if self.event.kind == EventKind::PreToolUse {
            HostedEvent::ToolCall(self.tool_call()?)
        } else if self.event.kind == EventKind::PostToolUse {
            HostedEvent::ToolResult {
                call: self.tool_call()?,
                result: result(self)?,
                duration_ms: self.get("duration_ms").and_then(Value::as_u64),
            }
        } else {
            HostedEvent::Other(self.other()?)
        };
        self.completed(mode, event)
    }

    /// Completes an event with its origin.
    pub(crate) fn completed(
        &self,
        mode: HostMode,
        event: HostedEvent,
    ) -> Result<HostCall, ReadError> {
        Ok(HostCall {
            origin: self.origin()?,
            mode,
            event,
        })
    }

    /// Reads the tool call.
    pub(crate) fn tool_call(&self) -> Result<ToolCall, ReadError> {
        let keys = self.keys;
        let name = self.text(keys.tool_name)?;
        let given = self.required(keys.tool_input)?;
        let input = match given.as_str() {
            Some(text) => JsonObject::from_iter([(TEXT.to_owned(), text.into())]),
            None => reading::object(given, keys.tool_input)?.clone(),
        };
        let id = match keys.tool_use_id {
            "" => None,
            key => self.optional_text(key)?,
        };
        Ok(ToolCall::new(
            id.unwrap_or_default(),
            name,
            Value::Object(input),
        ))
    }

    /// Reads an event that is not about the judgement or the result of a tool call.
    fn other(&self) -> Result<Box<dyn AnyEvent>, ReadError> {
        let mut readers = READERS.iter();
        match readers.find(|(kind, _)| *kind == self.event.kind) {
            Some((_, read)) => read(self),
            None => Err(ReadError::invalid(format!(
                "`{}` cannot be read as `{}`",
                self.event.name,
                self.event.kind.info().name
            ))),
        }
    }

    fn source(&self) -> Result<SessionSource, ReadError> {
        let word = self.optional_text("source")?.unwrap_or_default();
        let own = self.keys.sources.iter().find(|(own, _)| *own == word);
        let ours = || SessionSource::ALL.iter().find(|it| it.as_str() == word);
        let found = own.map(|(_, source)| source).or_else(ours);
        Ok(found.copied().unwrap_or_default())
    }

    fn permission_request(&self) -> Result<PermissionRequest, ReadError> {
        let call = self.tool_call()?;
        let input = reading::object(&call.arguments, self.keys.tool_input)?;
        Ok(PermissionRequest::new(call.name)
            .with_tool_use_id(call.id)
            .with_tool_input(input.clone()))
    }

    fn stop(&self) -> Result<Stop, ReadError> {
        let is_active = self.get("stop_hook_active").and_then(Value::as_bool);
        let response = self.optional_text("last_assistant_message")?;
        let prompt = self.optional_text("prompt")?;
        Ok(Stop::new()
            .with_last_user_message(prompt.map(str::to_owned))
            .with_response(response.unwrap_or_default())
            .with_stop_hook_active(is_active.unwrap_or_default()))
    }

    fn subagent_stop(&self) -> Result<SubagentStop, ReadError> {
        let id = self.optional_text(self.keys.agent_id)?.unwrap_or_default();
        let label = self
            .optional_text(self.keys.agent_type)?
            .unwrap_or_default();
        let session = self.text(self.keys.session_id)?;
        let result = self.optional_text("last_assistant_message")?;
        Ok(SubagentStop::new(id, label, id, session).with_result(result.unwrap_or_default()))
    }

    fn pre_compact(&self) -> Result<PreCompact, ReadError> {
        let source = match self.optional_text("trigger")? {
            Some("auto") => CompactionSource::Auto,
            _ => CompactionSource::Manual,
        };
        let instructions = self.optional_text("custom_instructions")?;
        let instructions = instructions.filter(|text| !text.is_empty());
        Ok(PreCompact::new(source).with_custom_instructions(instructions.map(str::to_owned)))
    }

    fn notification(&self) -> Result<Notification, ReadError> {
        let message = self.optional_text("message")?.unwrap_or_default();
        let kind = self.optional_text("notification_type")?.unwrap_or_default();
        Ok(Notification::new(NotificationLevel::Info, message).with_kind(kind))
    }
}

/// Returns an event whose keys have the names that most hosts use. Each pair is the host's name and that name.
pub(crate) fn renamed(object: &JsonObject, names: &[(&str, &str)]) -> JsonObject {
    let rename = |key: &str| {
        let mut names = names.iter();
        let found = names.find(|(own, _)| *own == key);
        found.map_or_else(|| key.to_owned(), |(_, common)| (*common).to_owned())
    };
    let values = object.iter();
    values
        .map(|(key, value)| (rename(key), value.clone()))
        .collect()
}

/// Returns the content of a tool's result: a text, a list of blocks, or other JSON as a text.
pub(crate) fn content_of(value: &Value) -> Vec<ContentBlock> {
    match value.as_array() {
        None => vec![ContentBlock::text(text_of(value))],
        Some(blocks) => blocks.iter().map(block_of).collect(),
    }
}

fn block_of(block: &Value) -> ContentBlock {
    let known = serde_json::from_value(block.clone());
    known.unwrap_or_else(|_| ContentBlock::text(text_of(block)))
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
