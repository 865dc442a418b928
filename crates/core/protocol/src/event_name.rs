//! The names of events, and what belongs to each: its row of the catalogue and its payload.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::catalogue::{AnyEvent, Event, EventInfo};
use crate::event;
use crate::event_kind::{EventKind, each_event};
use crate::id::{CustomName, InvalidName};

macro_rules! by_kind {
    ($($name:ident),+ $(,)?) => {
        impl EventKind {
            /// Returns the event's row of the catalogue.
            pub const fn info(self) -> &'static EventInfo {
                match self { $( Self::$name => <event::$name as Event>::INFO ),+ }
            }

            fn parse(self, payload: Value) -> Result<Box<dyn AnyEvent>, serde_json::Error> {
                Ok(match self { $( Self::$name => Box::new(serde_json::from_value::<event::$name>(payload)?) ),+ })
            }

            /// Returns the JSON Schema of the payload. Requires the feature `schema`.
            #[cfg(feature = "schema")]
            pub fn payload_schema(self) -> schemars::Schema {
                let schema = match self { $( Self::$name => schemars::schema_for!(event::$name) ),+ };
                without_table(schema)
            }
        }
    };
}

each_event! { by_kind }

/// Returns every row of the catalogue except the row of user-defined events.
pub fn events() -> impl Iterator<Item = &'static EventInfo> {
    EventKind::ALL
        .iter()
        .filter(|kind| **kind != EventKind::Custom)
        .map(|kind| kind.info())
}

/// The name of an event: a name of the catalogue, or `x-<vendor>.<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventName {
    /// An event of the catalogue.
    Known(EventKind),
    /// A user-defined event.
    Custom(CustomName),
}

impl EventName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(kind) => kind.info().name,
            Self::Custom(name) => name.as_str(),
        }
    }

    /// Returns the kind. All user-defined events have the same kind.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Known(kind) => *kind,
            Self::Custom(_) => EventKind::Custom,
        }
    }

    /// Returns the event's row of the catalogue.
    pub fn info(&self) -> &'static EventInfo {
        self.kind().info()
    }
}

impl From<EventKind> for EventName {
    fn from(kind: EventKind) -> Self {
        Self::Known(kind)
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The error for text that is not the name of an event.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseEventNameError {
    /// The name is not in the catalogue.
    #[error("unknown event `{found}`")]
    Unknown {
        /// What was given.
        found: String,
    },
    /// The name starts like the name of a user-defined event, but is invalid.
    #[error(transparent)]
    Custom(#[from] InvalidName),
}

impl FromStr for EventName {
    type Err = ParseEventNameError;

    fn from_str(text: &str) -> Result<Self, ParseEventNameError> {
        if text.starts_with("x-") {
            return Ok(Self::Custom(text.parse()?));
        }
        events()
            .find(|info| info.name == text)
            .map(|info| Self::Known(info.kind))
            .ok_or_else(|| ParseEventNameError::Unknown {
                found: text.to_owned(),
            })
    }
}

impl Serialize for EventName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for EventName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EventName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<&str> = events().map(|info| info.name).collect();
        schemars::json_schema!({
            "anyOf": [
                { "enum": names },
                { "type": "string", "pattern": r"^x-[a-z0-9_-]+(\.[a-z0-9_-]+)+$" },
            ]
        })
    }
}

/// Creates an event from its name and its payload.
///
/// # Errors
/// Fails if the payload does not match the event: a field is missing, unknown, or of the wrong
/// type.
pub fn parse_event(
    name: &EventName,
    payload: Value,
) -> Result<Box<dyn AnyEvent>, serde_json::Error> {
    match name {
        EventName::Known(kind) => kind.parse(payload),
        EventName::Custom(name) => {
            let mut event = event::Custom::gate(name.clone());
            event.payload = serde_json::from_value(payload)?;
            Ok(Box::new(event))
        }
    }
}

/// Removes the catalogue's table from the description. Its links only work in the documentation of
/// the crate, and the schema states the same facts next to the payload.
#[cfg(feature = "schema")]
fn without_table(mut schema: schemars::Schema) -> schemars::Schema {
    let description = schema.get("description").and_then(Value::as_str);
    let text = description.and_then(|text| text.split_once("\n\n| event |"));
    if let Some((text, _)) = text {
        let text = text.to_owned();
        schema.insert("description".to_owned(), text.into());
    }
    schema
}
