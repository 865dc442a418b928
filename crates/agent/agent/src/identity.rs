//! The identity of an agent: the main agent, or a subagent that works on a task.

use tenterhook_protocol::{AgentId, SessionId};
use tenterhook_tools::Restrictions;

/// The identity of an agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentIdentity {
    pub(crate) name: String,
    pub(crate) instruction: String,
    /// The tools that it may use, or `None` for all.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) restrictions: Restrictions,
    /// How many times its task was delegated; 0 for the main agent.
    pub(crate) depth: u32,
    /// Whether it, or an agent that it works for, works on a background task.
    pub(crate) in_background: bool,
}

impl AgentIdentity {
    /// Returns the name if the agent is a subagent.
    pub(crate) fn subagent(&self) -> Option<&str> {
        (self.depth > 0).then_some(self.name.as_str())
    }
}

/// Creates a unique agent id.
pub(crate) fn fresh_agent_id() -> AgentId {
    AgentId::new(SessionId::generate().as_str())
}
