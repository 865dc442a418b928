//! The macro that declares an event, and what its expansion uses.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::JsonObject;
use crate::catalogue::RewriteError;

/// Declares one event: its struct, its row of the catalogue, and the typed methods of its effect.
///
/// `field: Type` is a required field: `new` takes it. `field (with_field): Type` is an optional
/// field. `= 1` after it sets a default other than the default of its type.
///
/// `not before_model` says that no run fires the event before it asks the model.
///
/// `derives { text = text_of(parts) }` sets `text` after hooks have changed `parts`, even if the
/// same answer also changed `text`.
macro_rules! event {
    (
        $(#[$meta:meta])*
        $name:ident = $text:literal, $class:ident, $run:ident
        $(, subject $subject:ident)?
        $(, call $call:ident)?
        $(, not $before:ident)?
        $(, honours [$($capability:ident),* $(,)?])?
        {
            $( $(#[$fmeta:meta])* $field:ident $(($with:ident): $otype:ty $(= $initial:literal)?)? $(: $rtype:ty)? ),* $(,)?
        }
        $( rewrites {
            $( $mode:ident $setter:ident => $($path:ident).+ ),* $(,)?
        } )?
        $( derives { $derived:ident = $derive:ident($source:ident) } )?
        $( collects {
            $( $(#[$cmeta:meta])* $adder:ident, $getter:ident (Vec<$ctype:ty>) ),* $(,)?
        } )?
        $( supplies $product:ty )?
    ) => {
        $(#[$meta])*
        #[doc = ""]
        #[doc = concat!("| event | `", $text, "` |")]
        #[doc = "|---|---|"]
        #[doc = concat!("| class | [`", stringify!($class), "`](crate::EventClass::", stringify!($class), ") |")]
        #[doc = concat!("| hooks run | [`", stringify!($run), "`](crate::Run::", stringify!($run), ") |")]
        $( #[doc = concat!("| matchers look at | `", stringify!($subject), "` |")] )?
        $( #[doc = concat!("| effects |" $(, " [`", stringify!($capability), "`](crate::capability::Capability::", stringify!($capability), ")")*, " |")] )?
        $( #[doc = concat!("| rewrites |" $(, " [`", stringify!($setter), "`](crate::Effect::", stringify!($setter), ")")*, " |")] )?
        $( #[doc = concat!("| lists |" $(, " [`", stringify!($adder), "`](crate::Effect::", stringify!($adder), ")")*, " |")] )?
        $( #[doc = concat!("| supplies | `", stringify!($product), "` |")] )?
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        #[non_exhaustive]
        pub struct $name {
            $( $(#[$fmeta])* pub $field: $($otype)? $($rtype)?, )*
            /// Values that the host adds and that the catalogue does not define, such as `turn_id` or
            /// `model`. Hooks can read but not change them. Omitted from the JSON when empty.
            #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
            pub extra: $crate::JsonObject,
        }

        impl $name {
            /// Creates the event from its required fields.
            pub fn new($($( $field: impl $crate::field::IntoField<$rtype> ,)?)*) -> Self {
                Self {
                    $($( $field: $crate::field::IntoField::<$rtype>::into_field($field), )?)*
                    ..Self::default()
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $crate::event_macro::initial!($($($initial)?)?), )*
                    extra: $crate::JsonObject::new(),
                }
            }
        }

        $crate::field::setters! { $name { $($( $field ($with): $otype, )?)* } }
        $crate::field::extra_setter! { $name }

        impl $crate::catalogue::private::Sealed for $name {}

        impl $crate::Event for $name {
            const INFO: &'static $crate::EventInfo = &$crate::EventInfo {
                kind: $crate::EventKind::$name,
                name: $text,
                class: $crate::EventClass::$class,
                fields: Some(&[
                    $( $crate::FieldInfo::new::<$($otype)? $($rtype)?>(
                        stringify!($field),
                        $crate::event_macro::only::<&str>(&[$(stringify!($rtype))?]).is_some(),
                    ), )*
                    $crate::FieldInfo::new::<$crate::JsonObject>($crate::catalogue::EXTRA, false),
                ]),
                run: $crate::Run::$run,
                precedes_model: $crate::event_macro::only::<&str>(&[$(stringify!($before))?]).is_none(),
                subject: $crate::event_macro::only(&[$(stringify!($subject))?]),
                capabilities: $crate::capability::Capabilities::of(
                    &[$($($crate::capability::Capability::$capability),*)?]
                ),
                rewrites: &[$($($crate::RewriteInfo {
                    field: $crate::rewritable::$setter::FIELD,
                    target: stringify!($($path).+),
                    mode: $crate::event_macro::$mode!(mode),
                    is_result: $crate::event_macro::$mode!(is_result),
                }),*)?],
                collects: &[$($($crate::ListInfo {
                    name: stringify!($getter),
                    item: $crate::event_macro::check_type::<$ctype>,
                }),*)?],
                supplies: $crate::event_macro::only::<$crate::TypeCheck>(&[$($crate::event_macro::check_type::<$product>)?]),
            };
        }

        impl $crate::AnyEvent for $name {
            fn info(&self) -> &'static $crate::EventInfo { <Self as $crate::Event>::INFO }

            fn subject(&self) -> Option<&str> {
                $crate::event_macro::only(&[$(self.$subject.as_ref())?])
            }

            $crate::event_macro::tool_call_methods!([$($subject)?] [$($field)*]);

            $( fn tool_use_id(&self) -> Option<&$crate::ToolUseId> { Some(&self.$call) } )?

            fn extra(&self) -> Option<&$crate::JsonObject> {
                Some(&self.extra).filter(|extra| !extra.is_empty())
            }

            fn payload(&self) -> Result<$crate::JsonObject, serde_json::Error> {
                $crate::event_macro::payload_of(self)
            }

            fn rewrite(&mut self, field: &str, value: serde_json::Value) -> Result<(), $crate::RewriteError> {
                match field {
                    $($( $crate::rewritable::$setter::FIELD => $crate::event_macro::$mode(&mut self.$($path).+, field, value), )*)?
                    _ => {
                        drop(value);
                        Err($crate::RewriteError::UnknownField { event: $text.to_owned(), field: field.to_owned() })
                    }
                }
            }

            $( fn update_derived_fields(&mut self, changed: &$crate::JsonObject) {
                if changed.contains_key(stringify!($source)) {
                    self.$derived = $derive(&self.$source);
                }
            } )?

            $(
                fn withhold(&mut self, notice: &str) {
                    let _ = notice;
                    $( $crate::event_macro::$mode!(withhold self.$($path).+, notice); )*
                }
            )?

            fn as_any(&self) -> &dyn std::any::Any { self }

            fn boxed_clone(&self) -> Box<dyn $crate::AnyEvent> { Box::new(self.clone()) }
        }

        $crate::event_macro::class!($class $name);

        $($( impl $crate::honours::$capability for $name {} )*)?

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

/// Implements access to the tool call of events whose subject is `tool_name`.
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
        $crate::event_macro::tool_call_methods!([tool_name] [$($rest)*]);
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

/// Evaluates to the default of a field.
macro_rules! initial {
    () => {
        Default::default()
    };
    ($value:literal) => {
        $value
    };
}
pub(crate) use initial;

/// Implements [`GateEvent`] for gates.
macro_rules! class {
    (Gate $name:ident) => {
        impl $crate::GateEvent for $name {}
    };
    (Observer $name:ident) => {};
}
pub(crate) use class;

/// Implements a row of the form `replace`.
macro_rules! replace_mode {
    (mode) => {
        $crate::RewriteMode::Replace
    };
    (is_result) => {
        false
    };
    (withhold $slot:expr, $notice:expr) => {};
}
/// Implements a row of the form `result`: hooks replace the field like any other, and a hook that
/// fails closed withholds it when it fails.
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
/// Implements a row of the form `merge`.
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

/// Replaces `slot` with `value`.
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

/// Replaces a result with the value that a hook returned.
pub(crate) fn result<T: DeserializeOwned>(
    slot: &mut T,
    field: &str,
    value: Value,
) -> Result<(), RewriteError> {
    replace(slot, field, value)
}

/// Copies the keys of `value` to `slot`. Replaces keys that exist.
pub(crate) fn merge(slot: &mut JsonObject, field: &str, value: Value) -> Result<(), RewriteError> {
    let mut patch = JsonObject::new();
    replace(&mut patch, field, value)?;
    slot.extend(patch);
    Ok(())
}

/// Returns the only element of `list`, if there is one. The macros write optional parts as lists.
pub(crate) const fn only<T: Copy>(list: &[T]) -> Option<T> {
    match list {
        [first, ..] => Some(*first),
        [] => None,
    }
}

/// Checks that `value` is a `T`.
pub(crate) fn check_type<T: DeserializeOwned>(value: &Value) -> Result<(), serde_json::Error> {
    T::deserialize(value).map(drop)
}

/// Serialises a payload and omits absent values.
pub(crate) fn payload_of<T: Serialize>(event: &T) -> Result<JsonObject, serde_json::Error> {
    without_nulls(serde_json::to_value(event)?)
}

/// A separate function, because [`payload_of`] is compiled once for every event.
fn without_nulls(payload: Value) -> Result<JsonObject, serde_json::Error> {
    let Value::Object(mut object) = payload else {
        return Err(serde::ser::Error::custom(
            "expected the payload to be a JSON object",
        ));
    };
    object.retain(|_, value| !value.is_null());
    Ok(object)
}
