//! A project hook, and whether it may run.

use std::sync::Arc;

use tenterhook_engine::{EventClass, EventName};

use crate::item::ApprovalItem;
use crate::state::TrustState;

/// A project hook, and whether it may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectHook {
    /// The definition and its files. A trusted hook's files are without their bytes.
    pub item: ApprovalItem,
    /// Whether it may run.
    pub state: TrustState,
    /// The events that it is for. Empty for an untrusted executable, because asking would run it.
    pub events: Vec<EventName>,
    /// Whether another version of it was approved and is in force.
    pub is_approved_in_force: bool,
}

impl ProjectHook {
    /// Creates a hook. Drops the bytes of a trusted hook's files, because the copies have them.
    pub fn new(item: ApprovalItem, state: TrustState, events: Vec<EventName>) -> Self {
        let mut item = item;
        if state == TrustState::Trusted {
            for file in &mut item.files {
                file.bytes = Arc::from(&b""[..]);
            }
        }
        Self {
            item,
            state,
            events,
            is_approved_in_force: false,
        }
    }

    /// Returns whether neither this version nor an approved version runs.
    pub fn is_withheld(&self) -> bool {
        self.state != TrustState::Trusted && !self.is_approved_in_force
    }

    /// Returns whether it could stop an operation. A hook with unknown events could.
    pub fn is_gate(&self) -> bool {
        let is_gate = |event: &EventName| event.info().class == EventClass::Gate;
        self.events.is_empty() || self.events.iter().any(is_gate)
    }

    /// Returns the reason why neither this version nor an approved version runs, for a message. `None` if one of them runs.
    pub fn reason(&self) -> Option<String> {
        self.is_withheld().then(|| self.state.denial_reason())
    }
}
