//! The fields of payloads, as the catalogue lists them.
//!
//! [`schema`](crate::schema) describes payloads in full. This table has only what a program needs
//! to check field names or to build an example, so that it works without the feature `schema`.

use std::path::PathBuf;

use serde_json::Value;

use crate::JsonObject;

/// A field of an event's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldInfo {
    /// The field's name.
    pub name: &'static str,
    /// The type of the field's values.
    pub value: FieldType,
    /// The allowed values in the order of their declaration. Empty if values are not limited to
    /// certain words.
    pub words: &'static [&'static str],
    /// Whether every payload of the event has the field.
    pub is_required: bool,
}

/// The type of a field's values in JSON. An optional field has the type of the values that it
/// accepts in addition to `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// Any text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list.
    List,
    /// An object with any keys.
    Map,
    /// An id, one of the field's words, an object with declared fields, or any JSON value.
    Other,
}

impl FieldType {
    /// Returns the zero value of the type: the empty text, list or map, 0, or `false`. Returns
    /// `None` for [`FieldType::Other`].
    ///
    /// ```
    /// use tenterhook_protocol::EventKind;
    ///
    /// let fields = EventKind::PreToolUse.info().fields.unwrap_or_default();
    /// let name = fields.iter().find(|field| field.name == "tool_name");
    /// assert_eq!(name.and_then(|field| field.value.zero()), Some("".into()));
    /// ```
    pub fn zero(self) -> Option<Value> {
        match self {
            Self::Text => Some(Value::String(String::new())),
            Self::Number => Some(Value::from(0)),
            Self::Boolean => Some(Value::Bool(false)),
            Self::List => Some(Value::Array(Vec::new())),
            Self::Map => Some(Value::Object(JsonObject::new())),
            Self::Other => None,
        }
    }
}

impl FieldInfo {
    pub(crate) const fn new<T: FieldValue>(name: &'static str, is_required: bool) -> Self {
        Self {
            name,
            value: T::TYPE,
            words: T::WORDS,
            is_required,
        }
    }
}

/// A Rust type of a payload's field.
pub(crate) trait FieldValue {
    const TYPE: FieldType;
    const WORDS: &'static [&'static str] = &[];
}

impl<T: FieldValue> FieldValue for Option<T> {
    const TYPE: FieldType = T::TYPE;
}

impl<T> FieldValue for Vec<T> {
    const TYPE: FieldType = FieldType::List;
}

/// Declares the types of fields.
macro_rules! field_values {
    ($( $kind:ident: $($type:ty),+; )+) => { $($(
        impl $crate::field_info::FieldValue for $type {
            const TYPE: $crate::FieldType = $crate::FieldType::$kind;
        }
    )+)+ };
}
pub(crate) use field_values;

field_values! {
    Text: String, PathBuf;
    Number: u16, u32, i32, u64, i64, f64;
    Boolean: bool;
    Map: JsonObject;
    Other: Value;
}
