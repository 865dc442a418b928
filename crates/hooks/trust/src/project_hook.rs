//! A project hook, and whether it may run.

use std::sync::Arc;

use serde::Serialize;
use tenterhook_engine::{EventClass, EventName};

use crate::item::ApprovalItem;

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
    pub fn new(mut item: ApprovalItem, state: TrustState, events: Vec<EventName>) -> Self {
        if state == TrustState::Trusted {
            for file in &mut item.files {
                file.bytes = Arc::default();
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

/// Whether a project hook may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// The user approved it as it is now.
    Trusted,
    /// The user never approved it in this project.
    Untrusted,
    /// It has changed since the user approved it.
    Changed,
    /// The user approved it while another repository was in this folder.
    Displaced,
}

impl TrustState {
    /// Returns the spelling for people and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Changed => "changed",
            Self::Displaced => "displaced",
        }
    }

    /// Returns the reason of a hook that denies in place of one in this state.
    pub fn denial_reason(self) -> String {
        let found = match self {
            Self::Changed => "has changed since it was approved",
            Self::Displaced => "was approved for another repository",
            Self::Untrusted | Self::Trusted => "is not trusted in this project",
        };
        format!("the hook {found}; read it with `tenterhook trust --show`")
    }
}
