//! The event traits, and the catalogue row that describes each event.

use std::any::Any;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::JsonObject;
use crate::any_effect::AnyEffect;
use crate::capability::{Capabilities, Capability};
use crate::event_kind::EventKind;
use crate::field_info::FieldInfo;
use crate::id::ToolUseId;
use crate::permission::Permission;

/// Whether an event can stop what it announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EventClass {
    /// Hooks can stop it. By default, a hook that fails denies.
    Gate,
    /// Hooks can only watch it. By default, a hook that fails is only reported.
    Observer,
}

/// How the hooks of one event run in relation to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// One after another. Each sees the changes made by the hooks before it.
    Series,
    /// At the same time. Their effects are still combined in configured order.
    Parallel,
}

/// How a rewrite changes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewriteMode {
    /// The new value replaces the old one.
    Replace,
    /// Keys of the new object replace the same top-level keys of the old object. Other keys are
    /// kept.
    Merge,
}

/// A field of the payload that hooks may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RewriteInfo {
    /// The field's name in the effect.
    pub field: &'static str,
    /// The path of the value in the payload, with dots between its parts.
    pub target: &'static str,
    /// How the new value is combined with the old one.
    pub mode: RewriteMode,
    /// Whether the field holds a result on its way to the model, a person or a channel. If a hook
    /// that fails closed fails, the field is withheld, because that hook may be the one that
    /// removes secrets.
    pub is_result: bool,
}

/// One row of the event catalogue.
#[derive(Debug, Clone, Copy)]
pub struct EventInfo {
    /// The event.
    pub kind: EventKind,
    /// The canonical name.
    pub name: &'static str,
    /// Gate or observer.
    pub class: EventClass,
    /// The payload's fields in the order of their declaration, followed by `extra`, which the host
    /// fills. `None` if the payload may have any key.
    pub fields: Option<&'static [FieldInfo]>,
    /// Series or parallel.
    pub run: Run,
    /// Whether a run can fire the event before it asks the model. The events of the model's answers and of the gateway
    /// are `false`.
    pub precedes_model: bool,
    /// The payload field that matchers check, if the event has one.
    pub subject: Option<&'static str>,
    /// The effects that the event honours, in addition to rewrites, lists and a supplied product.
    /// Notices are always honoured.
    pub capabilities: Capabilities,
    /// The fields that hooks may change.
    pub rewrites: &'static [RewriteInfo],
    /// The lists that hooks may add items to.
    pub collects: &'static [ListInfo],
    /// Checks the finished product that a hook may supply instead of the default one.
    pub supplies: Option<TypeCheck>,
}

/// Checks that a value has the type that the catalogue requires. The error describes the mismatch.
pub type TypeCheck = fn(&Value) -> Result<(), serde_json::Error>;

/// A list in the outcome that hooks may add items to.
#[derive(Debug, Clone, Copy)]
pub struct ListInfo {
    /// The list's name in the effect.
    pub name: &'static str,
    /// Checks the type of one item.
    pub item: TypeCheck,
}

/// A part of an effect that its event does not honour.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotHonoured {
    /// The event never honours this part.
    #[error("`{event}` does not honour `{part}`")]
    Part {
        /// The event.
        event: &'static str,
        /// The key of the effect, or the name of the field.
        part: String,
    },
    /// The event honours this part, but the value has the wrong type.
    #[error("`{part}` of `{event}` does not fit")]
    Type {
        /// The event.
        event: &'static str,
        /// The key of the effect, or the name of the field.
        part: String,
        /// The mismatch.
        #[source]
        source: serde_json::Error,
    },
}

impl EventInfo {
    /// Returns whether the payload may have any key, instead of a fixed set of fields.
    pub const fn has_open_payload(&self) -> bool {
        self.fields.is_none()
    }

    /// Returns whether the catalogue declares a payload field of this name.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields
            .is_some_and(|fields| fields.iter().any(|field| field.name == name))
    }

    /// Returns whether the event honours `capability`.
    pub const fn honours(&self, capability: Capability) -> bool {
        self.capabilities.contains(capability)
    }

    /// Returns whether a hook of this event can stop the operation or the run.
    pub const fn can_stop(&self) -> bool {
        self.honours(Capability::Permission)
            || self.honours(Capability::Block)
            || self.honours(Capability::StopRun)
    }

    /// Returns whether the event carries a result that hooks may rewrite. If a hook that fails
    /// closed fails, such a result is withheld.
    pub fn hands_on_result(&self) -> bool {
        self.rewrites.iter().any(|rewrite| rewrite.is_result)
    }

    /// Returns whether `on_error: block` has an effect: a hook that fails stops the operation or
    /// withholds a result.
    pub fn can_fail_closed(&self) -> bool {
        self.can_stop() || self.hands_on_result()
    }

    /// Returns whether the strongest way to stop this gate is to end the run.
    pub const fn stops_by_ending_the_run(&self) -> bool {
        matches!(self.class, EventClass::Gate)
            && self.honours(Capability::StopRun)
            && !self.honours(Capability::Permission)
            && !self.honours(Capability::Block)
    }

    /// Returns the strongest stop that the event honours, with `reason`. The effect is empty if the
    /// event cannot be stopped.
    pub fn stopping_effect(&self, reason: String) -> AnyEffect {
        let mut effect = AnyEffect::default();
        if self.honours(Capability::Permission) {
            effect.set_permission(Permission::Deny, Some(reason));
        } else if self.honours(Capability::Block) {
            effect.block = Some(reason);
        } else if self.honours(Capability::StopRun) {
            effect.stop_run = Some(reason);
        }
        effect
    }

    /// Checks that the event honours every part of `effect`. Rewrites are checked by name only.
    /// Their types are checked when they are applied.
    ///
    /// # Errors
    /// Returns the first part that the event does not honour, or that has the wrong type.
    pub fn check(&self, effect: &AnyEffect) -> Result<(), NotHonoured> {
        let refused = |part: &str| NotHonoured::Part {
            event: self.name,
            part: part.to_owned(),
        };
        let wrong = |part: &str, source| NotHonoured::Type {
            event: self.name,
            part: part.to_owned(),
            source,
        };
        if let Some(capability) = effect
            .capabilities()
            .find(|capability| !self.honours(*capability))
        {
            return Err(refused(capability.as_str()));
        }
        if let Some(field) = effect
            .rewrite
            .keys()
            .find(|key| !self.rewrites.iter().any(|r| r.field == key.as_str()))
        {
            return Err(refused(field));
        }
        for (name, items) in &effect.collect {
            let list = self
                .collects
                .iter()
                .find(|list| list.name == name)
                .ok_or_else(|| refused(name))?;
            let checked = Vec::<Value>::deserialize(items)
                .and_then(|items| items.iter().try_for_each(list.item));
            checked.map_err(|source| wrong(name, source))?;
        }
        match (&effect.supply, self.supplies) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(refused("supply")),
            (Some(product), Some(check)) => {
                check(product).map_err(|source| wrong("supply", source))
            }
        }
    }
}

/// A lifecycle event. Only the catalogue implements this trait.
pub trait Event: AnyEvent + Clone + Serialize + DeserializeOwned + Sized {
    /// The event's row of the catalogue.
    const INFO: &'static EventInfo;
}

/// An event that can stop what it announces. Its outcome has a
/// [decision](crate::Outcome::decision).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is an observer event: hooks cannot stop it, so its outcome has no decision",
    label = "not a gate event"
)]
pub trait GateEvent: Event {}

/// An event for which a hook may supply a finished product.
#[diagnostic::on_unimplemented(
    message = "hooks cannot supply a product for `{Self}`",
    label = "nothing to supply for this event"
)]
pub trait Supplies: Event {
    /// The product.
    type Product: Serialize + DeserializeOwned;
}

/// A lifecycle event of any kind. Only the catalogue implements this trait.
pub trait AnyEvent: Any + Send + Sync + fmt::Debug + private::Sealed {
    /// Returns the event's row of the catalogue.
    fn info(&self) -> &'static EventInfo;

    /// Returns the event's name. For a user-defined event, that is the name that its author chose.
    fn name(&self) -> &str {
        self.info().name
    }

    /// Returns the value that matchers check, if the event has one.
    fn subject(&self) -> Option<&str>;

    /// Returns the id of the tool call that the event belongs to, if any.
    fn tool_use_id(&self) -> Option<&ToolUseId> {
        None
    }

    /// Returns the tool's name and its arguments, if the event is about a tool call. Some of these
    /// events have no arguments.
    fn tool_call(&self) -> Option<(&str, Option<&JsonObject>)> {
        None
    }

    /// Replaces the tool's name and arguments. Does nothing if the event is not about a tool call.
    fn set_tool_call(&mut self, _name: String, _input: JsonObject) {}

    /// Returns the payload's `extra`: values that the host added and that the catalogue does not
    /// define. Returns `None` if there are none.
    fn extra(&self) -> Option<&JsonObject>;

    /// Returns the payload as JSON. Absent values are left out.
    ///
    /// # Errors
    /// Fails if a value of the payload cannot be represented in JSON.
    fn payload(&self) -> Result<JsonObject, serde_json::Error>;

    /// Changes one field.
    ///
    /// # Errors
    /// Fails if hooks may not change `field`, or if `value` has the wrong type. The field is then
    /// unchanged.
    fn rewrite(&mut self, field: &str, value: Value) -> Result<(), RewriteError>;

    /// Updates the fields that follow from other fields, after hooks changed the fields named in
    /// `changed`. Does nothing if none of them decides another field.
    fn update_derived_fields(&mut self, _changed: &JsonObject) {}

    /// Replaces every field that holds a result with `notice`, in the form that fits the field's
    /// type. Does nothing if the event carries no result.
    fn withhold(&mut self, _notice: &str) {}

    /// Returns the event as [`Any`], for a downcast.
    fn as_any(&self) -> &dyn Any;

    /// Returns a copy that can be changed while others read this one.
    fn boxed_clone(&self) -> Box<dyn AnyEvent>;
}

/// A rewrite that the event rejects.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// Hooks may not change a field of this name.
    #[error("`{event}` has no field `{field}` that a hook may change")]
    UnknownField {
        /// The event.
        event: String,
        /// The field that the hook named.
        field: String,
    },
    /// The model made the tool call in another form, which cannot be changed this way.
    #[error("{problem}")]
    ToolCall {
        /// What was found and what was expected.
        problem: String,
    },
    /// The new value has the wrong type.
    #[error("the new value of `{field}` does not fit")]
    WrongType {
        /// The field that the hook named.
        field: String,
        /// The mismatch.
        #[source]
        source: serde_json::Error,
    },
}

pub(crate) mod private {
    /// Implemented only by the events of this crate.
    pub trait Sealed {}
}

/// The payload key below which a host passes values that the catalogue does not define. Hooks
/// cannot change it.
pub(crate) const EXTRA: &str = "extra";

/// Returns the `extra` of an event whose payload may have any key.
pub(crate) fn extra_of_open(payload: &JsonObject) -> Option<&JsonObject> {
    let extra = payload.get(EXTRA)?.as_object()?;
    Some(extra).filter(|extra| !extra.is_empty())
}

/// Adds a value to the `extra` of an event whose payload may have any key. Replaces an earlier
/// value with the same key.
pub(crate) fn add_extra_to_open(payload: &mut JsonObject, key: String, value: Value) {
    let slot = payload.entry(EXTRA).or_insert(Value::Null);
    if let Value::Object(extra) = slot {
        extra.insert(key, value);
    } else {
        *slot = Value::Object(JsonObject::from_iter([(key, value)]));
    }
}
