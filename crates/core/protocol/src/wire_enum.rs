//! A macro for enums that are written as fixed words in JSON.

/// Declares an enum whose variants have the same spelling in JSON, in Rust and in the schema. The
/// literal after `reads` is another spelling that is read, but never written.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal $(reads $also:literal)? ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name { $( $(#[$vmeta])* #[serde(rename = $text $(, alias = $also)?)] $variant ),+ }

        impl $name {
            /// Every value, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// Returns the spelling in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }
        }

        impl $crate::field_info::FieldValue for $name {
            const TYPE: $crate::FieldType = $crate::FieldType::Other;
            const WORDS: &'static [&'static str] = &[$( $text ),+];
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str { self.as_str() }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.pad(self.as_str()) }
        }
    };
}
pub(crate) use wire_enum;
