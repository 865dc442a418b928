//! What an event honours. Each capability is a value ([`Capability`], for tables and messages) and a
//! marker trait of the same name ([`honours`]), for which an event must be listed before the methods
//! of [`Effect`](crate::Effect) and [`Outcome`](crate::Outcome) exist.

use serde::Serialize;

macro_rules! capabilities {
    ($( $(#[$meta:meta])* $name:ident = $key:literal, $verb:literal );+ $(;)?) => {
        /// One kind of effect that an event may honour.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Capability { $( $(#[$meta])* $name ),+ }

        impl Capability {
            /// Every capability, in the order of the catalogue.
            pub const ALL: &'static [Self] = &[$( Self::$name ),+];

            /// Returns the key of the effect on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => $key ),+ }
            }
        }

        /// Marker traits: the events that honour a capability. The catalogue alone implements them.
        pub mod honours {
            $(
                #[doc = concat!("Events that honour `", $key, "`.")]
                #[diagnostic::on_unimplemented(
                    message = $verb,
                    label = "not honoured by this event",
                    note = "the event catalogue says what each event honours"
                )]
                pub trait $name: crate::Event {}
            )+
        }
    };
}

capabilities! {
    /// Allow, ask or deny.
    Permission = "permission", "`{Self}` takes no permission: it cannot be allowed, asked or denied";
    /// Stop the operation.
    Block = "block", "`{Self}` cannot be blocked";
    /// Text for the model.
    Context = "context", "`{Self}` takes no context for the model";
    /// Whole messages for the model.
    Inject = "inject", "`{Self}` takes no messages for the model";
    /// User messages that keep the agent going.
    FollowUp = "follow_up", "`{Self}` takes no follow-up messages";
    /// The hook did the work itself.
    Handled = "handled", "`{Self}` cannot be handled by a hook";
    /// End the agent run after this step.
    StopRun = "stop_run", "`{Self}` cannot stop the run";
}

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u16);

impl Capabilities {
    /// Makes a set of the given capabilities.
    pub const fn of(list: &[Capability]) -> Self {
        let mut bits = 0;
        let mut rest = list;
        while let [first, tail @ ..] = rest {
            bits |= 1 << (*first as u16);
            rest = tail;
        }
        Self(bits)
    }

    /// Says whether `capability` is in the set.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << (capability as u16)) != 0
    }

    /// Returns the members in the order of the catalogue.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL
            .iter()
            .copied()
            .filter(move |capability| self.contains(*capability))
    }
}
