//! What hosts do with the effects of hooks, as measured.

use super::event::HostMode;

/// An effect of hooks that a host may honour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostEffect {
    /// Denying a tool call, or stopping what another gate announces.
    Deny,
    /// Showing the reason of a denial to the model.
    DenyReason,
    /// Asking a person about a tool call.
    Ask,
    /// Allowing a tool call without asking a person.
    Allow,
    /// Changing the arguments of a tool.
    Rewrite,
    /// Adding text for the model.
    Context,
    /// Replacing the result of a tool.
    ReplaceResult,
    /// Blocking a prompt.
    BlockPrompt,
    /// Changing a prompt.
    RewritePrompt,
    /// Making the agent continue when it wants to stop.
    Continue,
    /// Ending the agent's run.
    StopRun,
}

/// What a host does with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Support {
    /// The host does what the hook wants.
    Honoured,
    /// The host ignores the effect.
    Lost,
    /// The host does something worse than ignoring it: it hangs, runs the tool, or drops the decision of another hook.
    Dangerous,
}

/// One measured fact: what a host does with one effect on one of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapabilityRow {
    /// The host's name for the event.
    pub event: &'static str,
    /// The mode in which it was measured; `None` for both.
    pub mode: Option<HostMode>,
    /// The effect.
    pub effect: HostEffect,
    /// What the host does.
    pub support: Support,
    /// What was seen, for the page of the host. May be empty.
    pub note: &'static str,
}

impl CapabilityRow {
    /// Creates a row for both modes.
    pub const fn new(event: &'static str, effect: HostEffect, support: Support) -> Self {
        Self {
            event,
            mode: None,
            effect,
            support,
            note: "",
        }
    }

    /// Restricts the row to the mode in which it was measured.
    #[must_use]
    pub const fn in_mode(self, mode: HostMode) -> Self {
        Self {
            mode: Some(mode),
            ..self
        }
    }

    /// Sets what was seen.
    #[must_use]
    pub const fn noted(self, note: &'static str) -> Self {
        Self { note, ..self }
    }
}

/// Something that the model of a host can do and that no hook can see or change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlindSpot {
    /// What hooks do not see, for example `` `delegate`: the calls of a subagent ``.
    pub what: &'static str,
    /// What to switch off instead, as a sentence without a full stop.
    pub instead: &'static str,
}
