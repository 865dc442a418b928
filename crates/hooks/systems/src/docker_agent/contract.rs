//! The variants of docker-agent's contract, as data.
//!
//! docker-agent itself has two variants. Native hooks use a third one, which extends docker-agent's
//! contract. The module of native hooks defines it.

use serde_json::Value;
use tenterhook_engine::{EventKind, EventRef};

/// How one variant of the contract differs from the others.
#[derive(Debug)]
pub(crate) struct Contract {
    /// The name of the dialect.
    pub(crate) name: &'static str,
    /// If set, hooks see the name and the keys of this event instead of the real one.
    pub(crate) shown_as: Option<EventKind>,
    /// The additions of the variant to docker-agent's contract.
    pub(crate) extension: Option<ContractExtension>,
}

/// The additions of a variant to docker-agent's contract.
///
/// Hooks get every event of the catalogue with its whole payload, and may answer with an `effect` of the
/// catalogue. Their answers on gates are read strictly.
#[derive(Debug)]
pub(crate) struct ContractExtension {
    /// Returns the keys that every event has in addition to docker-agent's keys.
    pub(crate) keys: fn(&EventRef) -> Vec<(&'static str, Value)>,
    /// Returns the same keys, each with the zero value of its type.
    pub(crate) zeros: fn() -> Vec<(&'static str, Value)>,
}

impl Contract {
    /// Returns whether the variant extends docker-agent's contract.
    pub(crate) const fn is_extended(&self) -> bool {
        self.extension.is_some()
    }
}
