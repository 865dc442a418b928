//! Constructors and `with_…` methods for structs that may get more fields.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::JsonObject;

/// A value that can be assigned to a field of type `T`.
///
/// It works like `Into<T>`, with two differences: a number needs no suffix, and an optional field
/// accepts the plain value as well as an [`Option`].
///
/// ```
/// use tenterhook_protocol::event::{PostToolUse, UserInput};
///
/// let event = PostToolUse::new("shell").with_duration_ms(12).with_role("reviewer");
/// assert_eq!(event.role.as_deref(), Some("reviewer"));
/// assert_eq!(UserInput::new("hello").with_images(None).images, None);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given to a field of type `{T}`",
    note = "convert the value first, for example with `{T}::from`"
)]
pub trait IntoField<T> {
    /// Returns the value of the field.
    fn into_field(self) -> T;
}

impl<T> IntoField<T> for T {
    fn into_field(self) -> T {
        self
    }
}

impl<T> IntoField<Option<T>> for T {
    fn into_field(self) -> Option<T> {
        Some(self)
    }
}

/// Declares which other types a field accepts.
macro_rules! into_field {
    ($( $type:ty: $($given:ty),+; )+) => { $($(
        impl $crate::field::IntoField<$type> for $given {
            fn into_field(self) -> $type { self.into() }
        }

        impl $crate::field::IntoField<Option<$type>> for $given {
            fn into_field(self) -> Option<$type> { Some(self.into()) }
        }
    )+)+ };
}

into_field! {
    String: &str, &String;
    PathBuf: &str, String, &Path, &PathBuf;
}

impl<K: Into<String>, V: Into<Value>, const N: usize> IntoField<JsonObject> for [(K, V); N] {
    fn into_field(self) -> JsonObject {
        self.into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    }
}

/// Declares the `with_…` methods of a struct, one for each field that its constructor does not
/// take.
macro_rules! setters {
    ($name:ident { $( $field:ident ($with:ident): $type:ty ),* $(,)? }) => {
        impl $name {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $with(mut self, value: impl $crate::field::IntoField<$type>) -> Self {
                    self.$field = value.into_field();
                    self
                }
            )*
        }
    };
}

/// Declares `with_extra` for a struct that has a field `extra`.
macro_rules! extra_setter {
    ($name:ident) => {
        impl $name {
            /// Adds a value to [`extra`](Self#structfield.extra). Replaces an earlier value with
            /// the same key.
            #[must_use]
            pub fn with_extra(
                mut self,
                key: impl Into<String>,
                value: impl Into<serde_json::Value>,
            ) -> Self {
                self.extra.insert(key.into(), value.into());
                self
            }
        }
    };
}

pub(crate) use {extra_setter, into_field, setters};
