//! What an event is: the typed trait, the erased one, and the table row that describes it.

use std::any::Any;
use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::JsonObject;
use crate::capability::{Capabilities, Capability};
use crate::effect::AnyEffect;
use crate::event_kind::EventKind;
use crate::id::ToolUseId;
use crate::permission::Permission;

/// Whether an event can stop what it announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventClass {
    /// It can: a failing hook denies by default.
    Gate,
    /// It cannot: a failing hook is reported by default.
    Observer,
}

/// How the hooks of one event run beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// One after another; each sees the rewrites of those before it.
    Series,
    /// At once; folded in configured order all the same.
    Parallel,
}

/// How a rewrite changes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RewriteMode {
    /// The new value takes the place of the old one.
    Replace,
    /// The keys of the new object take the place of the same top-level keys of the old one.
    Merge,
}

/// A field of the payload that hooks may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RewriteInfo {
    /// The field's name in the effect.
    pub field: &'static str,
    /// Where the value stands in the payload; below a field, with dots between.
    pub target: &'static str,
    /// What happens to the value that was there.
    pub mode: RewriteMode,
    /// The field is a result on its way to the model, a person or a channel. A hook that fails closed withholds
    /// it, because that hook may be the one that takes secrets out of it.
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
    /// Series or parallel.
    pub run: Run,
    /// The payload field that matchers look at, if the event has one.
    pub subject: Option<&'static str>,
    /// The effects it honours beside rewrites, collections and a supplied product. Notices are always honoured.
    pub capabilities: Capabilities,
    /// The fields that hooks may change.
    pub rewrites: &'static [RewriteInfo],
    /// The lists that hooks may add to.
    pub collects: &'static [ListInfo],
    /// How to check the finished product that a hook may supply instead of the default one.
    pub supplies: Option<TypeCheck>,
}

/// Checks that a value has the type that the catalogue asks for; the error says what does not fit.
pub type TypeCheck = fn(&Value) -> Result<(), serde_json::Error>;

/// A list of the outcome that hooks may add to.
#[derive(Debug, Clone, Copy)]
pub struct ListInfo {
    /// The list's name in the effect.
    pub name: &'static str,
    /// The type of its items.
    pub item: TypeCheck,
}

/// A part of an effect that its event does not honour.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotHonoured {
    /// The event has no use for this part.
    #[error("`{event}` does not honour `{part}`")]
    Part {
        /// The event.
        event: &'static str,
        /// The key of the effect, or the field it names.
        part: String,
    },
    /// The part is honoured, with another type.
    #[error("`{part}` of `{event}` does not fit")]
    Type {
        /// The event.
        event: &'static str,
        /// The key of the effect, or the field it names.
        part: String,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
}

impl EventInfo {
    /// Says whether the event honours `capability`.
    pub const fn honours(&self, capability: Capability) -> bool {
        self.capabilities.contains(capability)
    }

    /// Returns whether a hook of this event can stop anything.
    pub const fn can_stop(&self) -> bool {
        self.honours(Capability::Permission)
            || self.honours(Capability::Block)
            || self.honours(Capability::StopRun)
    }

    /// Returns whether the event hands on a result that hooks may rewrite, so that a hook that fails closed withholds it.
    pub fn hands_on_result(&self) -> bool {
        self.rewrites.iter().any(|rewrite| rewrite.is_result)
    }

    /// Returns whether `on_error: block` has a meaning: a failing hook stops the operation or withholds a result.
    pub fn can_fail_closed(&self) -> bool {
        self.can_stop() || self.hands_on_result()
    }

    /// Says whether ending the run is the strongest stop of this gate.
    pub const fn stops_by_ending_the_run(&self) -> bool {
        matches!(self.class, EventClass::Gate)
            && self.honours(Capability::StopRun)
            && !self.honours(Capability::Permission)
            && !self.honours(Capability::Block)
    }

    /// Returns the strongest stop that the event honours, with `reason`; nothing where it honours none.
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

    /// Checks that the event honours every part of `effect`. Rewrites are checked by name only: their
    /// types are checked where they are applied.
    ///
    /// # Errors
    /// With the first part that it does not honour, or that has the wrong type.
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

/// A lifecycle event. The catalogue alone implements it.
pub trait Event: AnyEvent + Clone + Serialize + DeserializeOwned + Sized {
    /// The event's row of the catalogue.
    const INFO: &'static EventInfo;
}

/// Events that can stop what they announce. Their outcome has a [decision](crate::Outcome::decision).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is an observer event: it stops nothing, so its outcome has no decision",
    label = "not a gate event"
)]
pub trait GateEvent: Event {}

/// Events for which a hook may supply a finished product.
#[diagnostic::on_unimplemented(
    message = "hooks cannot supply a product for `{Self}`",
    label = "nothing to supply for this event"
)]
pub trait Supplies: Event {
    /// The product.
    type Product: Serialize + DeserializeOwned;
}

/// A lifecycle event of any kind. The catalogue alone implements it.
pub trait AnyEvent: Any + Send + Sync + fmt::Debug + private::Sealed {
    /// Returns the event's row of the catalogue.
    fn info(&self) -> &'static EventInfo;

    /// Returns the event's name; for a user-defined event the name that its author chose.
    fn name(&self) -> &str {
        self.info().name
    }

    /// Returns the value that matchers look at, if the event has one.
    fn subject(&self) -> Option<&str>;

    /// Returns the tool call that the event belongs to, if it belongs to one.
    fn tool_use_id(&self) -> Option<&ToolUseId> {
        None
    }

    /// Returns the tool and the arguments that the event is about, if it is about a tool call. Some events have no
    /// arguments.
    fn tool_call(&self) -> Option<(&str, Option<&JsonObject>)> {
        None
    }

    /// Gives the event another tool and other arguments. An event that is not about a tool call stays as it is.
    fn set_tool_call(&mut self, _name: String, _input: JsonObject) {}

    /// Returns the payload as JSON. Absent values are left out.
    ///
    /// # Errors
    /// When a value of the payload has no JSON form.
    fn payload(&self) -> Result<JsonObject, serde_json::Error>;

    /// Changes one field.
    ///
    /// # Errors
    /// When the event has no such field to change, or `value` has the wrong type. The field is then as it was.
    fn rewrite(&mut self, field: &str, value: Value) -> Result<(), RewriteError>;

    /// Replaces every field that is a result by `notice`, in the form that the field's type has for it. Does nothing
    /// where the event hands on no result.
    fn withhold(&mut self, _notice: &str) {}

    /// Returns the event for a downcast.
    fn as_any(&self) -> &dyn Any;

    /// Returns a copy that can be changed while others look at this one.
    fn boxed_clone(&self) -> Box<dyn AnyEvent>;
}

/// A rewrite that the event does not take.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The event has no such field to change.
    #[error("`{event}` has no field `{field}` that a hook may change")]
    UnknownField {
        /// The event.
        event: String,
        /// The field named by the hook.
        field: String,
    },
    /// The tool call was made in another form, which cannot be changed this way.
    #[error("{problem}")]
    ToolCall {
        /// What was found and what was expected.
        problem: String,
    },
    /// The new value has the wrong type.
    #[error("the new value of `{field}` does not fit")]
    WrongType {
        /// The field named by the hook.
        field: String,
        /// What does not fit.
        #[source]
        source: serde_json::Error,
    },
}

pub(crate) mod private {
    /// Only this crate's events implement it.
    pub trait Sealed {}
}

/// Replaces `slot` by `value`.
pub(crate) fn replace<T: DeserializeOwned>(
    slot: &mut T,
    field: &str,
    value: Value,
) -> Result<(), RewriteError> {
    *slot = serde_json::from_value(value).map_err(|source| RewriteError::WrongType {
        field: field.to_owned(),
        source,
    })?;
    Ok(())
}

/// Replaces a result by what a hook made of it.
pub(crate) fn result<T: DeserializeOwned>(
    slot: &mut T,
    field: &str,
    value: Value,
) -> Result<(), RewriteError> {
    replace(slot, field, value)
}

/// Puts the keys of `value` over those of `slot`.
pub(crate) fn merge(slot: &mut JsonObject, field: &str, value: Value) -> Result<(), RewriteError> {
    let mut patch = JsonObject::new();
    replace(&mut patch, field, value)?;
    slot.extend(patch);
    Ok(())
}

/// Declares one event: its struct, its row of the catalogue, and the typed methods of its effect.
macro_rules! event {
    (
        $(#[$meta:meta])*
        $name:ident = $text:literal, $class:ident, $run:ident
        $(, subject $subject:ident)?
        $(, call $call:ident)?
        $(, honours [$($capability:ident),* $(,)?])?
        {
            $( $(#[$fmeta:meta])* $field:ident : $ftype:ty ),* $(,)?
        }
        $( rewrites {
            $( $mode:ident $setter:ident => $($path:ident).+ ),* $(,)?
        } )?
        $( collects {
            $( $(#[$cmeta:meta])* $adder:ident, $getter:ident (Vec<$ctype:ty>) ),* $(,)?
        } )?
        $( supplies $product:ty )?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $ftype ),*
        }

        impl $crate::catalogue::private::Sealed for $name {}

        impl $crate::Event for $name {
            const INFO: &'static $crate::EventInfo = &$crate::EventInfo {
                kind: $crate::EventKind::$name,
                name: $text,
                class: $crate::EventClass::$class,
                run: $crate::Run::$run,
                subject: $crate::catalogue::first_subject(&[$(stringify!($subject))?]),
                capabilities: $crate::capability::Capabilities::of(
                    &[$($($crate::capability::Capability::$capability),*)?]
                ),
                rewrites: &[$($($crate::RewriteInfo {
                    field: $crate::rewritable::$setter::FIELD,
                    target: stringify!($($path).+),
                    mode: $crate::catalogue::$mode!(mode),
                    is_result: $crate::catalogue::$mode!(is_result),
                }),*)?],
                collects: &[$($($crate::catalogue::ListInfo {
                    name: stringify!($getter),
                    item: $crate::catalogue::check_type::<$ctype>,
                }),*)?],
                supplies: $crate::catalogue::first_check(&[$($crate::catalogue::check_type::<$product>)?]),
            };
        }

        impl $crate::AnyEvent for $name {
            fn info(&self) -> &'static $crate::EventInfo { <Self as $crate::Event>::INFO }

            fn subject(&self) -> Option<&str> {
                $crate::catalogue::first_subject(&[$(self.$subject.as_ref())?])
            }

            $crate::catalogue::tool_call_methods!([$($subject)?] [$($field)*]);

            $( fn tool_use_id(&self) -> Option<&$crate::ToolUseId> { Some(&self.$call) } )?

            fn payload(&self) -> Result<$crate::JsonObject, serde_json::Error> {
                $crate::catalogue::payload_of(self)
            }

            fn rewrite(&mut self, field: &str, value: serde_json::Value) -> Result<(), $crate::RewriteError> {
                match field {
                    $($( $crate::rewritable::$setter::FIELD => $crate::catalogue::$mode(&mut self.$($path).+, field, value), )*)?
                    _ => {
                        drop(value);
                        Err($crate::RewriteError::UnknownField { event: $text.to_owned(), field: field.to_owned() })
                    }
                }
            }

            $(
                fn withhold(&mut self, notice: &str) {
                    let _ = notice;
                    $( $crate::catalogue::$mode!(withhold self.$($path).+, notice); )*
                }
            )?

            fn as_any(&self) -> &dyn std::any::Any { self }

            fn boxed_clone(&self) -> Box<dyn $crate::AnyEvent> { Box::new(self.clone()) }
        }

        $crate::catalogue::class!($class $name);

        $($( impl $crate::capability::honours::$capability for $name {} )*)?

        $($( impl $crate::rewritable::$setter::Rewritable for $name {} )*)?

        $( impl $crate::Effect<$name> {
            $(
                $(#[$cmeta])*
                #[must_use]
                pub fn $adder(self, value: $ctype) -> Self { self.collecting(stringify!($getter), &value) }
            )*
        }

        impl $crate::Outcome<$name> {
            $(
                $(#[$cmeta])*
                pub fn $getter(&self) -> Vec<$ctype> { self.collected(stringify!($getter)) }
            )*
        } )?

        $( impl $crate::Supplies for $name { type Product = $product; } )?
    };
}
pub(crate) use event;

/// Declares how the tool call of an event is read and changed: of events whose subject is `tool_name`.
macro_rules! tool_call_methods {
    ([tool_name] [tool_input $($rest:ident)*]) => {
        fn tool_call(&self) -> Option<(&str, Option<&$crate::JsonObject>)> {
            Some((&self.tool_name, Some(&self.tool_input)))
        }

        fn set_tool_call(&mut self, name: String, input: $crate::JsonObject) {
            self.tool_name = name;
            self.tool_input = input;
        }
    };
    ([tool_name] [$other:ident $($rest:ident)*]) => {
        $crate::catalogue::tool_call_methods!([tool_name] [$($rest)*]);
    };
    ([tool_name] []) => {
        fn tool_call(&self) -> Option<(&str, Option<&$crate::JsonObject>)> {
            Some((&self.tool_name, None))
        }

        fn set_tool_call(&mut self, name: String, _input: $crate::JsonObject) {
            self.tool_name = name;
        }
    };
    ([$($subject:ident)?] [$($field:ident)*]) => {};
}
pub(crate) use tool_call_methods;

/// Marks the events that are gates.
macro_rules! class {
    (Gate $name:ident) => {
        impl $crate::GateEvent for $name {}
    };
    (Observer $name:ident) => {};
}
pub(crate) use class;

/// What a `replace` row does.
macro_rules! replace_mode {
    (mode) => {
        $crate::RewriteMode::Replace
    };
    (is_result) => {
        false
    };
    (withhold $slot:expr, $notice:expr) => {};
}
/// What a `result` row does: hooks replace it like any other field, and a hook that fails closed withholds it.
macro_rules! result_mode {
    (mode) => {
        $crate::RewriteMode::Replace
    };
    (is_result) => {
        true
    };
    (withhold $slot:expr, $notice:expr) => {
        $crate::withhold::Withhold::withhold(&mut $slot, $notice)
    };
}
/// What a `merge` row does.
macro_rules! merge_mode {
    (mode) => {
        $crate::RewriteMode::Merge
    };
    (is_result) => {
        false
    };
    (withhold $slot:expr, $notice:expr) => {};
}
pub(crate) use {merge_mode as merge, replace_mode as replace, result_mode as result};

/// Returns the only element, if there is one. A row has at most one subject.
pub(crate) const fn first_subject<'a>(list: &[&'a str]) -> Option<&'a str> {
    match list {
        [first, ..] => Some(*first),
        [] => None,
    }
}

/// Returns the only check, if there is one. A row has at most one product.
pub(crate) const fn first_check(list: &[TypeCheck]) -> Option<TypeCheck> {
    match list {
        [first, ..] => Some(*first),
        [] => None,
    }
}

/// Checks that `value` is a `T`.
pub(crate) fn check_type<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

/// Serialises a payload and leaves out what is absent.
pub(crate) fn payload_of<T: Serialize>(event: &T) -> Result<JsonObject, serde_json::Error> {
    match serde_json::to_value(event)? {
        Value::Object(mut object) => {
            object.retain(|_, value| !value.is_null());
            Ok(object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(serde::ser::Error::custom("a payload is a JSON object"))
        }
    }
}
