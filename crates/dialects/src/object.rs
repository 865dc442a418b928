//! Writing an event as the object that a handler in a worker gets: a table of fields, each with what it is made of. What is absent is
//! left out, so that the object has its default there.

use std::borrow::Cow;

use serde_json::Value;
use tenterhook::event::{PostToolUse, SessionStart};
use tenterhook::{EventKind, EventRef, ReadError, WriteError};
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::SessionSource;

use crate::form::Reading;

/// One field of an event.
#[derive(Debug)]
pub(crate) struct Field {
    /// The system's name.
    pub(crate) key: &'static str,
    pub(crate) from: From,
}

/// Where the value of a field comes from.
#[derive(Debug)]
pub(crate) enum From {
    /// The payload's field of this name.
    Payload(&'static str),
    /// The payload's field of this name, in the system's words.
    Worded(&'static str, &'static [(&'static str, &'static str)]),
    /// The directory of the session.
    Directory,
    /// What a function makes of the event, and what makes fields of the payload of that again.
    Made(fn(Source<'_>) -> Option<Value>, ReadField),
}

/// Reads the value of a key into the payload.
pub(crate) type ReadField = fn(&Value, &mut JsonObject) -> Result<(), ReadError>;

/// Why a session starts, in the words of systems that know no clearing. A word is read back as the first that it stands for.
pub(crate) const START_REASONS: &[(&str, &str)] = &[("new", "new"), ("clear", "new")];
/// Why a session ends, in the words of systems that know no clearing and no errors.
pub(crate) const END_REASONS: &[(&str, &str)] = &[
    ("new", "new"),
    ("quit", "quit"),
    ("clear", "new"),
    ("error", "quit"),
];

/// Says whether Operator and pi have this occurrence of an event: a call that was denied has no result there, and a session goes on
/// through a compaction.
pub(crate) fn has(event: &EventRef) -> bool {
    if let Some(event) = event.downcast::<PostToolUse>() {
        return !event.blocked;
    }
    event
        .downcast::<SessionStart>()
        .is_none_or(|event| event.source != SessionSource::Compact)
}

/// What fields are made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) event: &'a EventRef,
    payload: &'a JsonObject,
}

impl<'a> Source<'a> {
    /// Returns a field of the payload that is not null.
    pub(crate) fn get(self, key: &str) -> Option<&'a Value> {
        self.payload.get(key).filter(|value| !value.is_null())
    }
}

/// Makes a field that is named as the payload's.
pub(crate) const fn same(key: &'static str) -> Field {
    renamed(key, key)
}

/// Makes a field that has the payload's value under another name.
pub(crate) const fn renamed(key: &'static str, payload: &'static str) -> Field {
    Field {
        key,
        from: From::Payload(payload),
    }
}

/// Makes a field whose words are others than the payload's.
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

/// Makes a field that a function makes, and another one reads back.
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

/// Makes a field that is the directory of the session.
pub(crate) const fn directory(key: &'static str) -> Field {
    Field {
        key,
        from: From::Directory,
    }
}

/// What an event is called, and what it has.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) dialect: &'static str,
    pub(crate) name: &'static str,
    pub(crate) kind: EventKind,
    pub(crate) fields: &'static [Field],
    /// Written behind the type where it is there.
    pub(crate) turn: Option<String>,
}

/// Writes an event: its `type`, and its fields.
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
    // Keys and values stay where they are until they are written.
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

/// Reads the fields of an event back.
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
