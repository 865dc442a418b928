//! The result of the hooks for an event of a host, before it is written in the host's form.

use tenterhook_engine::{Decision, ToolResult};
use tenterhook_protocol::JsonObject;

use super::denial::DecidingHook;

/// What the hooks want the host to do.
#[derive(Debug, Clone, PartialEq)]
pub struct HostVerdict {
    /// Whether the operation may happen. `Proceed` for observers.
    pub decision: Decision,
    /// More about the hook that decided, for the text of a denial.
    pub decided_by: Option<DecidingHook>,
    /// Whether a hook explicitly allowed the call, so that the host need not ask a person.
    pub is_allowed: bool,
    /// The changed arguments of the tool, with the host's names. All arguments are present.
    pub input: Option<JsonObject>,
    /// The changed prompt.
    pub prompt: Option<String>,
    /// The result that replaces the tool's result.
    pub result: Option<ToolResult>,
    /// Whether `result` hides something, because a hook that removes secrets failed or changed it.
    pub is_withheld: bool,
    /// Texts for the model.
    pub context: Vec<String>,
    /// Messages that keep the agent working after it wants to stop.
    pub follow_up: Vec<String>,
    /// The reason to end the agent's run.
    pub stop_run: Option<String>,
    /// Texts for the person.
    pub notices: Vec<String>,
}

impl Default for HostVerdict {
    /// A verdict without an opinion.
    fn default() -> Self {
        Self {
            decision: Decision::Proceed,
            decided_by: None,
            is_allowed: false,
            input: None,
            prompt: None,
            result: None,
            is_withheld: false,
            context: Vec::new(),
            follow_up: Vec::new(),
            stop_run: None,
            notices: Vec::new(),
        }
    }
}
