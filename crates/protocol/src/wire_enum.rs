//! One macro for closed sets of words on the wire.

/// Declares an enum whose variants have one spelling on the wire, in Rust and in the schema.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum $name { $( $(#[$vmeta])* #[serde(rename = $text)] $variant ),+ }

        impl $name {
            /// Every value, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$( Self::$variant ),+];

            /// Returns the spelling on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $text ),+ }
            }
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
