//! The forms in which hook systems show an event to their hooks, read back into an event of the catalogue.
//!
//! A dialect writes events for hooks. A form is the way back: it turns what a hook read, captured on its standard
//! input, into the event and its origin, so that the event can be sent through other hooks. Each system's folder
//! declares its own [`Form`]; this module recognises forms and does what all of them share.
//!
//! ```
//! use serde_json::json;
//! use tenterhook_dialects::form::Form;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let captured = json!({
//!     "event": "before_tool_call", "conv_id": "c1", "cwd": "/srv/app", "invoked_by": "main",
//!     "tool_name": "deploy", "tool_input": { "target": "production" }, "tool_user_id": "call_1",
//! });
//! let captured = captured.as_object().ok_or("not an object")?;
//! let event = "pre_tool_use".parse()?;
//! let form = Form::recognise(&event, captured)?;
//! assert_eq!(form.name, "kodelet");
//! let read = form.read(&event, captured)?;
//! assert_eq!(read.event.subject(), Some("deploy"));
//! assert_eq!(read.origin.session_id.as_str(), "c1");
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tenterhook::{
    AnyEvent, Dialect, EventKind, EventName, JsonObject, Origin, ReadError, ToolNames, parse_event,
};

use crate::{docker_agent, kodelet, kodelet_extension, morphix, operator, own, pi, tools};

/// How one system shows events to its hooks.
pub struct Form {
    /// The name of the form, as in `--from kodelet`.
    pub name: &'static str,
    /// Keys that every event in this form has. The first one names the event.
    pub(crate) marks: &'static [&'static str],
    /// Keys that no event in this form has.
    pub(crate) lacks: &'static [&'static str],
    /// What keys a payload of the event may have, if the form has the event. Needed only where forms share their marks.
    pub(crate) keys: fn(EventKind) -> Vec<&'static str>,
    /// The system's names for an event; none where the system does not have the event.
    pub(crate) names: for<'a> fn(&'a EventName) -> Vec<&'a str>,
    /// What writes an event in this form.
    pub(crate) dialect: fn(&EventName) -> Option<Arc<dyn Dialect>>,
    /// Translates the keys of an event.
    pub(crate) read: fn(&EventName, &mut Reading<'_>) -> Result<(), ReadError>,
    /// The form leaves out what is zero, false or empty.
    pub(crate) omits_zeros: bool,
    /// Fields that an event must have and this form does not carry, and the values they get.
    pub(crate) not_carried: &'static [(EventKind, &'static str, Substitute)],
}

/// The value of a field that a form does not carry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Substitute {
    Text(&'static str),
    Zero,
}

/// Every form, our own payload first.
pub static FORMS: [&Form; 8] = [
    &own::FORM,
    &docker_agent::NATIVE_FORM,
    &docker_agent::FORM,
    &kodelet::FORM,
    &kodelet_extension::FORM,
    &operator::FORM,
    &morphix::FORM,
    &pi::FORM,
];

/// An event that was read back, and where it comes from.
#[derive(Debug)]
pub struct ReadBack {
    /// The event.
    pub event: Box<dyn AnyEvent>,
    /// Its origin. What the form does not carry has its default.
    pub origin: Origin,
    /// The tools of the system that wrote the payload, where they are not canonical. The event has its names.
    pub tools: Option<Arc<dyn ToolNames>>,
}

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormError {
    /// The keys do not say which form it is.
    Ambiguous {
        /// The forms that it may be.
        forms: Vec<&'static str>,
    },
    /// The payload names another event than the one that was asked for.
    OtherEvent {
        /// The form.
        form: &'static str,
        /// The key that names the event.
        key: &'static str,
        /// The name it has.
        found: String,
        /// The event that was asked for.
        event: String,
        /// The names that would have fitted.
        expected: Vec<String>,
    },
    /// The system has no such event.
    NoSuchEvent {
        /// The form.
        form: &'static str,
        /// The event.
        event: String,
        /// The events that the system has.
        available: Vec<&'static str>,
    },
    /// A value is missing, or has the wrong type, or a key is unknown.
    Invalid {
        /// The form.
        form: &'static str,
        /// The event.
        event: String,
        /// What does not fit.
        problem: String,
        /// The fields of the event, where our own payload was expected.
        fields: Vec<String>,
    },
}

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous { forms } => {
                write!(f, "the input may be in the form of {}", list(forms, " or "))
            }
            Self::OtherEvent {
                key,
                found,
                event,
                expected,
                ..
            } => {
                write!(
                    f,
                    "`{key}` of the input is `{found}`, but the event is `{event}`"
                )?;
                if expected.iter().any(|name| name != event) {
                    write!(f, " (expected {})", list(expected, " or "))?;
                }
                Ok(())
            }
            Self::NoSuchEvent { form, event, .. } => {
                write!(f, "{form} has no event that is `{event}` here")
            }
            Self::Invalid { form, event, .. } if *form == own::FORM.name => {
                write!(f, "the input is not a `{event}` event")
            }
            Self::Invalid { form, event, .. } => {
                write!(
                    f,
                    "the input is not a `{event}` event in the form of {form}"
                )
            }
        }
    }
}

impl std::error::Error for FormError {}

/// Quotes names and joins them.
fn list(names: &[impl fmt::Display], between: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(between)
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Form {
    /// Returns the form of this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        FORMS.into_iter().find(|form| form.name == name)
    }

    /// Returns the keys by which the form is recognised, in words.
    pub fn deciding_keys(&self) -> String {
        let mut text = list(self.marks, " and ");
        if !self.lacks.is_empty() {
            text = format!("{text} without {}", list(self.lacks, ", "));
        }
        text
    }

    /// Recognises the form of a payload by the keys that only one form has. A payload with no such key is our own.
    ///
    /// # Errors
    /// When the keys fit several forms.
    pub fn recognise(event: &EventName, object: &JsonObject) -> Result<&'static Self, FormError> {
        let kind = event.kind();
        let is_open = is_open(kind);
        let has = |key: &&str| object.contains_key(*key);
        let mut candidates: Vec<&'static Self> = FORMS
            .into_iter()
            .filter(|form| !form.marks.is_empty())
            .filter(|form| form.marks.iter().all(has) && !form.lacks.iter().any(has))
            // The payload of an open event may have any key, so keys of forms without that event mean nothing.
            .filter(|form| !is_open || !(form.names)(event).is_empty())
            .collect();
        if candidates.len() > 1 {
            let all = candidates.clone();
            let has_exclusive = |form: &Self| {
                let others = || all.iter().filter(|other| other.name != form.name);
                (form.keys)(kind)
                    .into_iter()
                    .filter(has)
                    .any(|key| !others().any(|other| (other.keys)(kind).contains(&key)))
            };
            let decided: Vec<_> = all
                .iter()
                .copied()
                .filter(|form| has_exclusive(form))
                .collect();
            if !decided.is_empty() {
                candidates = decided;
            }
        }
        match candidates.as_slice() {
            [] => Ok(&own::FORM),
            [form] => Ok(form),
            several => Err(FormError::Ambiguous {
                forms: several.iter().map(|form| form.name).collect(),
            }),
        }
    }

    /// Returns the dialect that writes the event in this form, if the system has the event.
    pub fn dialect(&self, event: &EventName) -> Option<Arc<dyn Dialect>> {
        (self.dialect)(event)
    }

    /// Reads an event of a payload in this form.
    ///
    /// # Errors
    /// When the system has no such event, the payload names another one, or a value does not fit.
    pub fn read(&self, event: &EventName, object: &JsonObject) -> Result<ReadBack, FormError> {
        self.check_name(event, object)?;
        let kind = event.kind();
        let invalid = |problem: String| FormError::Invalid {
            form: self.name,
            event: event.to_string(),
            problem,
            fields: if self.name == own::FORM.name {
                fields(kind)
            } else {
                Vec::new()
            },
        };
        let mut reading = Reading::new(object);
        (self.read)(event, &mut reading).map_err(|error| {
            if let ReadError::Invalid { problem } = error {
                invalid(problem)
            } else {
                invalid(error.to_string())
            }
        })?;
        self.substitute(kind, &mut reading).map_err(invalid)?;
        let Reading {
            payload,
            origin,
            keys,
            ..
        } = reading;
        let named = |key: &str| {
            let foreign = keys.iter().find(|(field, _)| *field == key);
            foreign.map_or(key, |(_, key)| key).to_owned()
        };
        let origin = parse(&origin, &named, serde_json::from_value).map_err(invalid)?;
        let dialect = self.dialect(event);
        let event = parse(&payload, &named, |payload| parse_event(event, payload));
        Ok(ReadBack {
            event: event.map_err(invalid)?,
            origin,
            tools: dialect.and_then(|dialect| tools::of_hooks(&*dialect)),
        })
    }

    /// Refuses a payload that names another event, or whose system does not have the event.
    fn check_name(&self, event: &EventName, object: &JsonObject) -> Result<(), FormError> {
        let names = (self.names)(event);
        if names.is_empty() {
            return Err(FormError::NoSuchEvent {
                form: self.name,
                event: event.to_string(),
                available: EventKind::ALL
                    .iter()
                    .filter(|kind| **kind != EventKind::Custom)
                    .filter(|kind| !(self.names)(&EventName::Known(**kind)).is_empty())
                    .map(|kind| kind.info().name)
                    .collect(),
            });
        }
        let Some(key) = self.name_key(event, object) else {
            return Ok(());
        };
        let found = match object.get(key) {
            None => return self.check_not_of_another_form(event, key, object),
            Some(Value::String(name)) if names.contains(&name.as_str()) => return Ok(()),
            Some(Value::String(name)) => name.clone(),
            Some(other) => other.to_string(),
        };
        Err(FormError::OtherEvent {
            form: self.name,
            key,
            found,
            event: event.to_string(),
            expected: names.into_iter().map(str::to_owned).collect(),
        })
    }

    /// Refuses a payload that does not name its event and has the keys of another form: read in this one, its tool
    /// would be unknown and its guards would not see it.
    fn check_not_of_another_form(
        &self,
        event: &EventName,
        key: &str,
        object: &JsonObject,
    ) -> Result<(), FormError> {
        let other = FORMS.into_iter().find(|other| {
            let has = |key: &&str| object.contains_key(*key);
            other.name != self.name && !other.marks.is_empty() && other.marks.iter().all(has)
        });
        match other {
            None => Ok(()),
            Some(other) => Err(FormError::Invalid {
                form: self.name,
                event: event.to_string(),
                problem: format!(
                    "`{key}` is missing, and {} are keys of {}",
                    list(other.marks, " and "),
                    other.name
                ),
                fields: Vec::new(),
            }),
        }
    }

    /// Returns the key that names the event.
    fn name_key(&self, event: &EventName, object: &JsonObject) -> Option<&'static str> {
        match self.marks.first() {
            Some(key) => Some(key),
            None => own::is_stamped(event.kind(), object).then_some(own::NAME_KEY),
        }
    }

    /// Adds the fields that the form leaves out.
    fn substitute(&self, kind: EventKind, reading: &mut Reading<'_>) -> Result<(), String> {
        for (of, field, value) in self.not_carried {
            if *of == kind && !reading.payload.contains_key(*field) {
                let value = match value {
                    Substitute::Text(text) => (*text).into(),
                    Substitute::Zero => json!(0),
                };
                reading.payload.insert((*field).to_owned(), value);
            }
        }
        if self.omits_zeros {
            for (field, zero) in required_zeros(kind) {
                // No call has an empty name, so a call without one was not captured whole.
                if field != "tool_name" && !reading.payload.contains_key(&field) {
                    reading.payload.insert(field, zero);
                }
            }
        } else if !self.marks.is_empty() && has_field(kind, "tool_input") {
            let input = reading.payload.get("tool_input");
            if !input.is_some_and(Value::is_object) {
                return Err("the arguments of the tool are missing or not an object".to_owned());
            }
        }
        Ok(())
    }
}

/// An event that is being read: what was captured, and what was made of it so far.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    pub(crate) object: &'a JsonObject,
    pub(crate) payload: JsonObject,
    pub(crate) origin: JsonObject,
    /// Fields of ours, and the keys they were read from.
    keys: Vec<(&'static str, &'static str)>,
}

impl<'a> Reading<'a> {
    fn new(object: &'a JsonObject) -> Self {
        Self {
            object,
            payload: JsonObject::new(),
            origin: JsonObject::new(),
            keys: Vec::new(),
        }
    }

    /// Returns the value of a key that is not null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    /// Copies the value of `key` into the payload's `field`.
    pub(crate) fn copy(&mut self, key: &'static str, field: &'static str) {
        if let Some(value) = self.get(key) {
            self.payload.insert(field.to_owned(), value.clone());
            self.keys.push((field, key));
        }
    }

    /// Copies the value of `key` into the origin's `field`.
    pub(crate) fn copy_origin(&mut self, key: &'static str, field: &'static str) {
        if let Some(value) = self.get(key) {
            self.origin.insert(field.to_owned(), value.clone());
            self.keys.push((field, key));
        }
    }

    /// Copies the name of the agent.
    pub(crate) fn copy_agent(&mut self, key: &'static str) {
        if let Some(value) = self.get(key) {
            self.origin
                .insert("agent".to_owned(), json!({ "name": value }));
            self.keys.push(("agent", key));
        }
    }

    /// Sets a field of the payload's tool result.
    pub(crate) fn set_in(
        &mut self,
        object: &str,
        field: &str,
        value: Value,
    ) -> Result<(), ReadError> {
        set_in(&mut self.payload, object, field, value)
    }
}

/// Sets a field of an object that is itself a field of the payload.
pub(crate) fn set_in(
    payload: &mut JsonObject,
    object: &str,
    field: &str,
    value: Value,
) -> Result<(), ReadError> {
    let slot = payload
        .entry(object)
        .or_insert_with(|| Value::Object(JsonObject::new()));
    let slot = slot
        .as_object_mut()
        .ok_or_else(|| ReadError::invalid(format!("`{object}` is not an object")))?;
    slot.insert(field.to_owned(), value);
    Ok(())
}

/// Returns the text of a value.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, ReadError> {
    value
        .as_str()
        .ok_or_else(|| ReadError::invalid(format!("`{key}` is {value}, expected a string")))
}

/// Returns the object of a value.
pub(crate) fn object<'a>(value: &'a Value, key: &str) -> Result<&'a JsonObject, ReadError> {
    value
        .as_object()
        .ok_or_else(|| ReadError::invalid(format!("`{key}` is {value}, expected an object")))
}

/// Returns the content of a tool result with one text.
pub(crate) fn text_content(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

/// Reads an object; the error names the key whose value does not fit.
fn parse<T>(
    object: &JsonObject,
    named: &impl Fn(&str) -> String,
    read: impl Fn(Value) -> Result<T, serde_json::Error>,
) -> Result<T, String> {
    let error = match read(Value::Object(object.clone())) {
        Ok(read) => return Ok(read),
        Err(error) => error.to_string(),
    };
    if ["unknown field", "missing field"]
        .iter()
        .any(|start| error.starts_with(start))
    {
        return Err(error);
    }
    // The message does not say where the value stands: it is below the key without which there is another one.
    let is_culprit = |key: &&String| {
        let mut others = object.clone();
        others.shift_remove(*key);
        read(Value::Object(others)).map_or_else(|other| other.to_string() != error, |_| true)
    };
    Err(match object.keys().find(is_culprit) {
        Some(key) => format!("`{}`: {error}", named(key)),
        None => error,
    })
}

/// The fields of each event's payload; `None` where it may have any. A schema takes its time, and is asked often.
static PROPERTIES: [OnceLock<Option<JsonObject>>; EventKind::COUNT] =
    [const { OnceLock::new() }; EventKind::COUNT];

/// Returns the fields of an event's payload; `None` where it may have any.
fn properties(kind: EventKind) -> Option<&'static JsonObject> {
    let slot = PROPERTIES.get(kind.index())?;
    slot.get_or_init(|| properties_of(kind)).as_ref()
}

fn properties_of(kind: EventKind) -> Option<JsonObject> {
    if kind == EventKind::Custom {
        return None;
    }
    let schema = kind.payload_schema().to_value();
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => Some(properties.clone()),
        // An event without fields has a closed schema without properties.
        None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
            Some(JsonObject::new())
        }
        None => None,
    }
}

/// Returns whether the payload of an event may have any key.
pub(crate) fn is_open(kind: EventKind) -> bool {
    properties(kind).is_none()
}

/// Returns whether the payload of an event has a field of this name.
pub fn has_field(kind: EventKind, field: &str) -> bool {
    properties(kind).is_some_and(|properties| properties.contains_key(field))
}

/// Returns the names of an event's fields; none where the payload may have any.
pub fn fields(kind: EventKind) -> Vec<String> {
    let names = properties(kind).into_iter().flat_map(JsonObject::keys);
    names.cloned().collect()
}

/// Returns the event that a system knows by this name.
pub fn event_of_system(name: &str) -> Option<EventKind> {
    let has_name = |kind: &EventKind| {
        let event = EventName::Known(*kind);
        FORMS
            .iter()
            .any(|form| (form.names)(&event).contains(&name))
    };
    EventKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != EventKind::Custom)
        .find(has_name)
}

/// Returns the fields that an event must have, each with the zero of its type.
fn required_zeros(kind: EventKind) -> Vec<(String, Value)> {
    if kind == EventKind::Custom {
        return Vec::new();
    }
    let schema = kind.payload_schema().to_value();
    let required = schema.get("required").and_then(Value::as_array);
    let zero = |name: &str| match schema.get("properties")?.get(name)?.get("type")?.as_str()? {
        "string" => Some(json!("")),
        "integer" | "number" => Some(json!(0)),
        "boolean" => Some(json!(false)),
        "array" => Some(json!([])),
        "object" => Some(json!({})),
        _ => None,
    };
    required
        .into_iter()
        .flatten()
        .filter_map(|name| {
            let name = name.as_str()?;
            Some((name.to_owned(), zero(name)?))
        })
        .collect()
}
