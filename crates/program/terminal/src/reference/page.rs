//! Everything about one event, as data.

use serde::Serialize;
use serde_json::Value;
use tenterhook_engine::{EventInfo, EventKind, EventName, JsonObject};
use tenterhook_protocol::{EventClass, Run};
use tenterhook_systems::example::example;

use crate::reference::answer::{self, AnswerExample};
use crate::reference::field::{FieldRow, ObjectType, Payload, ordered};
use crate::reference::firing;
use crate::reference::group::Group;
use crate::reference::names::{NamesInSystem, names_in_systems};

/// The reference page of one event.
///
/// `tenterhook events NAME --json` prints it as JSON.
#[derive(Debug, Clone, Serialize)]
pub struct EventPage {
    /// The name.
    pub name: &'static str,
    /// What the event is, in one or two sentences.
    pub meaning: String,
    /// The group, which is also the name of the page in `docs/reference/events/`.
    pub group: &'static str,
    /// Gate or observer.
    pub class: EventClass,
    /// Whether hooks run in series or in parallel.
    pub run: Run,
    /// The field that matchers look at, if there is one.
    pub subject: Option<&'static str>,
    /// When the event fires.
    pub when: &'static str,
    /// Whether `tenterhook run` fires it.
    #[serde(rename = "fired_by_run")]
    pub is_fired_by_run: bool,
    /// Whether `tenterhook gateway run` fires it. Other events are for programs that embed the engine.
    #[serde(rename = "fired_by_gateway")]
    pub is_fired_by_gateway: bool,
    /// Whether the payload may have any key. It has no fixed fields then.
    #[serde(rename = "open_payload")]
    pub has_open_payload: bool,
    /// The fields of the payload in the order of their declaration, without `extra`, which every event may have.
    pub fields: Vec<FieldRow>,
    /// The types of the objects in the fields.
    pub objects: Vec<ObjectType>,
    /// An example payload.
    pub example: JsonObject,
    /// What hooks may answer.
    pub answers: Vec<AnswerExample>,
    /// What happens if a hook fails.
    pub on_failure: String,
    /// The event's names in other hook systems.
    pub names: Vec<NamesInSystem>,
    /// The JSON Schema of the payload.
    pub schema: Value,
}

impl EventPage {
    /// Makes the page of an event.
    pub fn of(kind: EventKind) -> Self {
        let info = kind.info();
        let schema = payload_schema(kind);
        let payload = Payload::of(kind, &schema);
        Self {
            name: info.name,
            group: Group::of(kind).name,
            class: info.class,
            run: info.run,
            subject: info.subject,
            when: firing::when(kind),
            is_fired_by_run: firing::is_fired_by_run(kind),
            is_fired_by_gateway: firing::is_fired_by_gateway(kind),
            has_open_payload: info.has_open_payload(),
            example: ordered(&example(&EventName::Known(kind)), &payload.fields),
            meaning: payload.meaning,
            fields: payload.fields,
            objects: payload.objects,
            answers: answer::answers(info),
            on_failure: on_failure(info),
            names: names_in_systems(kind),
            schema,
        }
    }

    /// Returns the first sentence of the meaning, for lists of events.
    pub fn summary(&self) -> &str {
        let end = self.meaning.find(". ");
        let sentence = end.and_then(|end| self.meaning.get(..=end));
        sentence.unwrap_or(&self.meaning)
    }

    /// Returns the class as a word.
    pub(crate) const fn class_name(&self) -> &'static str {
        match self.class {
            EventClass::Gate => "gate",
            EventClass::Observer => "observer",
        }
    }

    /// Returns the class, how hooks run and what matchers look at, in sentences.
    pub(crate) fn class_sentences(&self) -> String {
        let class = match self.class {
            EventClass::Gate => "Gate: hooks can stop it.",
            EventClass::Observer if self.can_stop_run() => {
                "Observer: hooks cannot stop it, but they can end the run."
            }
            EventClass::Observer => "Observer: hooks cannot stop it.",
        };
        let run = match self.run {
            Run::Series => "Hooks run in series: each sees the changes of the hooks before it.",
            Run::Parallel => "Hooks run in parallel.",
        };
        let subject = match self.subject {
            Some(subject) => format!("Matchers look at `{subject}`."),
            None => "The event has no subject, so its hooks cannot have a matcher.".to_owned(),
        };
        format!("{class} {run} {subject}")
    }

    fn can_stop_run(&self) -> bool {
        self.answers.iter().any(|answer| answer.part == "stop_run")
    }

    /// Returns whether `tenterhook run` does not fire the event. The events that users define are left out,
    /// because their author knows which program fires them.
    pub(crate) fn is_missing_in_run(&self) -> bool {
        !self.is_fired_by_run && self.name != EventKind::Custom.info().name
    }

    /// Returns a sentence that says who fires the event, and when.
    pub(crate) fn firing_sentences(&self) -> String {
        if !self.is_missing_in_run() {
            return self.when.to_owned();
        }
        let by = if self.is_fired_by_gateway {
            "`tenterhook gateway run` fires it; `tenterhook run` has no channels."
        } else {
            "`tenterhook run` does not fire it; programs that embed the engine do."
        };
        format!("{} {by}", self.when)
    }

    /// Describes the keys of a payload that has no fixed keys.
    pub(crate) fn open_payload_sentence(&self) -> &'static str {
        if self.name == EventKind::Custom.info().name {
            "The payload may have any keys. If `subject` is a string, matchers look at it."
        } else {
            "The payload may have any keys. The example shows the keys that an agent typically writes."
        }
    }
}

/// Returns the JSON Schema of a payload. The payload of a user-defined event is defined elsewhere, so any
/// object is valid here.
fn payload_schema(kind: EventKind) -> Value {
    let mut schema = kind.payload_schema().to_value();
    if kind == EventKind::Custom
        && let Some(object) = schema.as_object_mut()
    {
        for key in ["properties", "required", "$defs"] {
            object.remove(key);
        }
        object.insert("additionalProperties".to_owned(), true.into());
        object.insert(
            "description".to_owned(),
            "An event that a program defines itself.".into(),
        );
    }
    schema
}

/// Returns what happens if a hook of the event fails.
fn on_failure(info: &EventInfo) -> String {
    let stop = if info.stops_by_ending_the_run() {
        "ends the run"
    } else if info.has_field("tool_name") {
        "denies the tool call"
    } else {
        "stops the operation"
    };
    let mut text = match info.class {
        EventClass::Gate => format!(
            "A hook that fails {stop}, because the event is a gate. With `on_error: warn` or `on_error: ignore`, \
             Tenterhook continues instead."
        ),
        EventClass::Observer => {
            "Tenterhook reports the failure and continues. With `on_error: ignore`, it reports nothing.".to_owned()
        }
    };
    if info.class == EventClass::Observer
        && let Some(blocked) = blocked_observer(info)
    {
        text = format!("{text} With `on_error: block`, Tenterhook {blocked}.");
    }
    text
}

/// Returns what a failure with `on_error: block` does on an observer, if it does more than report
/// the failure.
fn blocked_observer(info: &EventInfo) -> Option<String> {
    let results = info.rewrites.iter().filter(|rewrite| rewrite.is_result);
    let names: Vec<String> = results
        .map(|rewrite| format!("`{}`", rewrite.field))
        .collect();
    let pronoun = if names.len() > 1 { "them" } else { "it" };
    let withheld = (!names.is_empty()).then(|| {
        let names = names.join(" and ");
        format!("withholds {names}, so that a notice replaces {pronoun}")
    });
    match (withheld, info.can_stop()) {
        (Some(withheld), true) => Some(format!("{withheld}, and ends the run")),
        (Some(withheld), false) => Some(withheld),
        (None, true) => Some("ends the run".to_owned()),
        (None, false) => None,
    }
}
