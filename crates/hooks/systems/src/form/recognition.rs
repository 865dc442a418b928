//! Recognises the form of a payload, and reads it back into an event of the catalogue.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::Dialect;
use tenterhook_engine::{
    AnyEvent, EventKind, EventName, JsonObject, Origin, ReadError, ToolNames, parse_event,
};

use super::definition::{Form, Substitute, list};
use super::reading::Reading;
use crate::native::recorded;
use crate::take_key::take_key;
use crate::{SYSTEMS, tools};

/// Returns every form. The form of our own payload is the first one.
pub fn forms() -> impl Iterator<Item = &'static Form> + Clone {
    SYSTEMS.iter().flat_map(|system| system.forms).copied()
}

/// An event that was read back, with its origin.
#[derive(Debug)]
pub struct ReadBack {
    /// The event.
    pub event: Box<dyn AnyEvent>,
    /// The origin of the event. Fields that the form does not carry have their defaults.
    pub origin: Origin,
    /// The tools of the system that wrote the payload. The event uses the names of that system.
    /// `None` if they are the canonical tools.
    pub tools: Option<Arc<dyn ToolNames>>,
}

/// Why a payload cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormError {
    /// The keys fit more than one form.
    Ambiguous {
        /// The forms that fit.
        forms: Vec<&'static str>,
    },
    /// The payload names a different event than the caller.
    OtherEvent {
        /// The form.
        form: &'static str,
        /// The key that names the event.
        key: &'static str,
        /// The value of this key.
        found: String,
        /// The event that the caller expects.
        event: String,
        /// The names that the form has for the expected event.
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
    /// A value is missing or has the wrong type, or a key is unknown.
    Invalid {
        /// The form.
        form: &'static str,
        /// The event.
        event: String,
        /// The problem.
        problem: String,
        /// The fields of the event, if the form is our own payload. Empty for other forms.
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
                write!(f, "{form} has no event that corresponds to `{event}`")
            }
            Self::Invalid { form, event, .. } if *form == recorded::FORM.name => {
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

impl Form {
    /// Returns the form with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        forms().find(|form| form.name == name)
    }

    /// Recognises the form of a payload by keys that only one form has. A payload without such keys is our own.
    ///
    /// # Errors
    /// Fails if the keys fit several forms.
    pub fn recognise(event: &EventName, object: &JsonObject) -> Result<&'static Self, FormError> {
        let kind = event.kind();
        let is_open = kind.info().has_open_payload();
        let has = |key: &&str| object.contains_key(*key);
        let mut candidates: Vec<&'static Self> = forms()
            .filter(|form| !form.marks.is_empty())
            .filter(|form| form.marks.iter().all(has) && !form.lacks.iter().any(has))
            // The payload of an open event may have any keys, so ignore forms that do not have the event.
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
            [] => Ok(&recorded::FORM),
            [form] => Ok(form),
            several => Err(FormError::Ambiguous {
                forms: several.iter().map(|form| form.name).collect(),
            }),
        }
    }

    /// Returns the system's names for an event of the catalogue.
    fn event_names(&self, kind: EventKind) -> Vec<SystemEventName> {
        let event = EventName::Known(kind);
        let names = (self.names)(&event).into_iter();
        names
            .map(|name| SystemEventName {
                system: self.name,
                name: name.to_owned(),
                kind,
            })
            .collect()
    }

    /// Returns the dialect that writes the event in this form, if the system has the event.
    pub fn dialect(&self, event: &EventName) -> Option<Arc<dyn Dialect>> {
        (self.dialect)(event)
    }

    /// Reads a payload in this form as an event.
    ///
    /// # Errors
    /// Fails if the system has no such event, the payload names a different event, or a value is invalid.
    pub fn read(&self, event: &EventName, object: &JsonObject) -> Result<ReadBack, FormError> {
        self.check_name(event, object)?;
        let kind = event.kind();
        let invalid = |problem: String| FormError::Invalid {
            form: self.name,
            event: event.to_string(),
            problem,
            fields: if self.name == recorded::FORM.name {
                fields_of(kind)
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

    /// Refuses a payload that names a different event, or whose system does not have the event.
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

    /// Refuses a payload that does not name its event and has the keys of another form. If it were read
    /// in this form, its tool would be unknown, and guards for the tool would not see the call.
    fn check_not_of_another_form(
        &self,
        event: &EventName,
        key: &str,
        object: &JsonObject,
    ) -> Result<(), FormError> {
        let other = forms().find(|other| {
            let has = |key: &&str| object.contains_key(*key);
            other.name != self.name && !other.marks.is_empty() && other.marks.iter().all(has)
        });
        match other {
            None => Ok(()),
            Some(other) => Err(FormError::Invalid {
                form: self.name,
                event: event.to_string(),
                problem: format!(
                    "`{key}` is missing, but {} are keys of {}",
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
            None => recorded::is_stamped(event.kind(), object).then_some(recorded::NAME_KEY),
        }
    }

    /// Adds the required fields that the form leaves out.
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
                // A tool name is never empty, so a payload without one is incomplete.
                if field != "tool_name" && !reading.payload.contains_key(field) {
                    reading.payload.insert(field.to_owned(), zero);
                }
            }
        } else if !self.marks.is_empty() && kind.info().has_field("tool_input") {
            let input = reading.payload.get("tool_input");
            if !input.is_some_and(Value::is_object) {
                return Err("the arguments of the tool are missing or not an object".to_owned());
            }
        }
        Ok(())
    }
}

/// Reads an object. The error names the key whose value is invalid.
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
    // Serde's message does not name the key. To find it, remove one key at a time: without the culprit,
    // the error differs.
    let is_culprit = |key: &&String| {
        let mut others = object.clone();
        take_key(&mut others, key);
        read(Value::Object(others)).map_or_else(|other| other.to_string() != error, |_| true)
    };
    Err(match object.keys().find(is_culprit) {
        Some(key) => format!("`{}`: {error}", named(key)),
        None => error,
    })
}

/// A hook system's name for an event of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemEventName {
    /// The name of the form in which the system's hooks are shown the event, as in `--from kodelet`.
    pub system: &'static str,
    /// The system's name for the event.
    pub name: String,
    /// The event.
    pub kind: EventKind,
}

/// Returns the names that the other hook systems have for the events of the catalogue: system by system, and each in the
/// order of the catalogue.
pub fn system_event_names() -> impl Iterator<Item = SystemEventName> {
    let others = SYSTEMS
        .iter()
        .filter(|system| system.name != tools::NATIVE_SYSTEM);
    let forms = others.flat_map(|system| system.forms).copied();
    forms.flat_map(|form| {
        let kinds = EventKind::ALL.iter().copied();
        kinds
            .filter(|kind| *kind != EventKind::Custom)
            .flat_map(move |kind| form.event_names(kind))
    })
}

/// Returns the event that any system knows by this name.
pub fn event_of_system(name: &str) -> Option<EventKind> {
    let has_name = |kind: &EventKind| {
        let event = EventName::Known(*kind);
        forms().any(|form| (form.names)(&event).contains(&name))
    };
    EventKind::ALL
        .iter()
        .copied()
        .filter(|kind| *kind != EventKind::Custom)
        .find(has_name)
}

/// Returns the names of an event's fields. The list is empty if the payload may have any fields.
fn fields_of(kind: EventKind) -> Vec<String> {
    let fields = kind.info().fields.unwrap_or_default();
    fields.iter().map(|field| field.name.to_owned()).collect()
}

/// Returns the required fields of an event that have a zero value, with this value.
fn required_zeros(kind: EventKind) -> impl Iterator<Item = (&'static str, Value)> {
    let fields = kind.info().fields.unwrap_or_default();
    let required = fields.iter().filter(|field| field.is_required);
    required.filter_map(|field| Some((field.name, field.value.zero()?)))
}
