//! Writes an event as the object that a handler in a worker gets, and reads it back. A table lists the
//! fields and where their values come from. Absent values are left out, so that the handler's object has
//! its defaults for them.

use std::borrow::Cow;

use serde_json::Value;
use tenterhook_engine::event::{PostToolUse, SessionStart};
use tenterhook_engine::{EventKind, EventRef, ReadError, WriteError};
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::SessionSource;

use crate::form::reading::Reading;

/// One field of an event.
#[derive(Debug)]
pub(crate) struct Field {
    /// The system's name of the field.
    pub(crate) key: &'static str,
    pub(crate) from: From,
}

/// Where the value of a field comes from.
#[derive(Debug)]
pub(crate) enum From {
    /// The payload's field with this name.
    Payload(&'static str),
    /// The payload's field with this name. The pairs translate our words to the system's words.
    Worded(&'static str, &'static [(&'static str, &'static str)]),
    /// The directory of the session.
    Directory,
    /// The result of a function, with a second function that reads it back into the payload.
    Made(fn(Source<'_>) -> Option<Value>, ReadField),
}

/// Reads the value of a key into the payload.
pub(crate) type ReadField = fn(&Value, &mut JsonObject) -> Result<(), ReadError>;

/// The reasons why a session starts, for systems in which a session cannot be cleared. When read back, a
/// word becomes the first reason that maps to it.
pub(crate) const START_REASONS: &[(&str, &str)] = &[("new", "new"), ("clear", "new")];
/// The reasons why a session ends, for systems in which a session is never cleared and never ends with an
/// error.
pub(crate) const END_REASONS: &[(&str, &str)] = &[
    ("new", "new"),
    ("quit", "quit"),
    ("clear", "new"),
    ("error", "quit"),
];

/// Returns whether Operator and pi would fire this event. In these systems, a denied call has no result,
/// and a compaction does not start a new session.
pub(crate) fn has(event: &EventRef) -> bool {
    if let Some(event) = event.downcast::<PostToolUse>() {
        return !event.blocked;
    }
    event
        .downcast::<SessionStart>()
        .is_none_or(|event| event.source != SessionSource::Compact)
}

/// The source of field values: the event and its payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) event: &'a EventRef,
    payload: &'a JsonObject,
}

impl<'a> Source<'a> {
    /// Returns a field of the payload, unless it is null.
    pub(crate) fn get(self, key: &str) -> Option<&'a Value> {
        self.payload.get(key).filter(|value| !value.is_null())
    }
}

/// Creates a field with the same name as in the payload.
pub(crate) const fn same(key: &'static str) -> Field {
    renamed(key, key)
}

/// Creates a field with the payload's value under another name.
pub(crate) const fn renamed(key: &'static str, payload: &'static str) -> Field {
    Field {
        key,
        from: From::Payload(payload),
    }
}

/// Creates a field whose words differ from the payload's words.
pub(crate) const fn worded(
    key: &'static str,
    payload: &'static str,
    words: &'static [(&'static str, &'static str)],
) -> Field {
    Field {
        key,
        from: From::Worded(payload, words),
    }
}

/// Creates a field that one function writes and another one reads back.
pub(crate) const fn made(
    key: &'static str,
    make: fn(Source<'_>) -> Option<Value>,
    read: ReadField,
) -> Field {
    Field {
        key,
        from: From::Made(make, read),
    }
}

/// Creates a field with the directory of the session.
pub(crate) const fn directory(key: &'static str) -> Field {
    Field {
        key,
        from: From::Directory,
    }
}

/// The name and the fields of an event in one system.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) dialect: &'static str,
    pub(crate) name: &'static str,
    pub(crate) kind: EventKind,
    pub(crate) fields: &'static [Field],
    /// Written after the type, if present.
    pub(crate) turn: Option<String>,
}

/// Writes an event: its `type` and its fields.
pub(crate) fn write(shape: &Shape, event: &EventRef) -> Result<Vec<u8>, WriteError> {
    if event.info().kind != shape.kind {
        return Err(WriteError::NoSuchEvent {
            dialect: shape.dialect,
            event: event.event().name().to_owned(),
        });
    }
    let source = Source {
        event,
        payload: event.payload()?,
    };
    // Borrow keys and values instead of copying them, because payloads can be large.
    let mut entries: Vec<(&str, Cow<'_, Value>)> = vec![("type", Cow::Owned(shape.name.into()))];
    let turn = shape.turn.as_deref().map(Value::from);
    entries.extend(turn.map(|turn| ("turn", Cow::Owned(turn))));
    for Field { key, from } in shape.fields {
        entries.extend(value(from, source).map(|value| (*key, value)));
    }
    let mut bytes = Vec::with_capacity(256);
    let mut serializer = serde_json::Serializer::new(&mut bytes);
    serde::Serializer::collect_map(&mut serializer, entries).map_err(WriteError::Payload)?;
    Ok(bytes)
}

fn value<'a>(from: &From, source: Source<'a>) -> Option<Cow<'a, Value>> {
    Some(match from {
        From::Payload(key) => Cow::Borrowed(source.get(key)?),
        From::Worded(key, words) => {
            let value = source.get(key)?;
            match words.iter().find(|(own, _)| value == own) {
                Some((_, theirs)) => Cow::Owned((*theirs).into()),
                None => Cow::Borrowed(value),
            }
        }
        From::Directory => {
            let origin = &source.event.envelope().origin;
            Cow::Owned(origin.cwd.to_string_lossy().into())
        }
        From::Made(make, _) => Cow::Owned(make(source)?),
    })
}

/// Reads the fields of an event back into the payload and the origin.
pub(crate) fn read(fields: &'static [Field], reading: &mut Reading<'_>) -> Result<(), ReadError> {
    for Field { key, from } in fields {
        let Some(value) = reading.get(key) else {
            continue;
        };
        match from {
            From::Payload(field) => reading.copy(key, field),
            From::Worded(field, words) => {
                reading.copy(key, field);
                if let Some((own, _)) = words.iter().find(|(_, theirs)| value == theirs) {
                    reading.payload.insert((*field).to_owned(), (*own).into());
                }
            }
            From::Directory => reading.copy_origin(key, "cwd"),
            From::Made(_, read) => read(value, &mut reading.payload)?,
        }
    }
    Ok(())
}
