//! The kinds of effects that events honour.
//!
//! Each capability is a value ([`Capability`], for tables and messages) and a marker trait of the
//! same name ([`honours`](crate::honours)). The matching methods of [`Effect`](crate::Effect) and
//! [`Outcome`](crate::Outcome) exist only for events that implement the trait.

use serde::Serialize;

/// Calls a macro with the list: each capability's name, its key in JSON, and what the compiler says about an event that
/// does not honour it.
macro_rules! each_capability {
    ($callback:ident) => {
        $callback! {
            /// Allows or denies the operation, or asks the user.
            Permission = "permission", "`{Self}` does not accept a permission: hooks cannot allow, ask or deny";
            /// Stops the operation.
            Block = "block", "`{Self}` cannot be blocked";
            /// Adds text for the model.
            Context = "context", "`{Self}` does not accept context for the model";
            /// Adds complete messages for the model.
            Inject = "inject", "`{Self}` does not accept messages for the model";
            /// Adds user messages that keep the agent working.
            FollowUp = "follow_up", "`{Self}` does not accept follow-up messages";
            /// Declares that the hook did the work itself.
            Handled = "handled", "`{Self}` cannot be handled by a hook";
            /// Ends the agent run after this step.
            StopRun = "stop_run", "`{Self}` cannot stop the run";
        }
    };
}
pub(crate) use each_capability;

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

            /// Returns the effect's key in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $( Self::$name => $key ),+ }
            }
        }
    };
}

each_capability! { capabilities }

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u16);

impl Capabilities {
    /// Creates a set from the given capabilities.
    pub const fn of(list: &[Capability]) -> Self {
        let mut bits = 0;
        let mut rest = list;
        while let [first, tail @ ..] = rest {
            bits |= 1 << (*first as u16);
            rest = tail;
        }
        Self(bits)
    }

    /// Returns whether `capability` is in the set.
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
