//! The agents of an agent file, for a program that runs them.

use std::path::PathBuf;

use super::permission::PermissionRules;
use super::toolset::{self, Toolset};
use super::value::{read_boolean, read_count, read_names};
use crate::report::Report;
use crate::tree::{Entry, Node};

/// The name of the agent whose hooks apply to all agents.
const ROOT: &str = "root";

/// The agents of an agent file, for a program that runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The agents, in the order of the file.
    pub agents: Vec<AgentDefinition>,
    /// The permission rules for the tool calls of all agents.
    pub permissions: PermissionRules,
}

impl AgentFile {
    /// Returns the agent that a session starts with: the agent named `root`, or else the first one.
    pub fn root(&self) -> Option<&AgentDefinition> {
        let named = self.agents.iter().find(|agent| agent.name == ROOT);
        named.or_else(|| self.agents.first())
    }
}

/// One agent of an agent file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentDefinition {
    /// The name.
    pub name: String,
    /// The model.
    pub model: Option<String>,
    /// What the agent is for.
    pub description: Option<String>,
    /// The system prompt.
    pub instruction: Option<String>,
    /// The agents that it may transfer tasks to.
    pub sub_agents: Vec<String>,
    /// The agent's toolsets: its own, then the ones that `use_toolsets` names. `None` if the file has
    /// neither key.
    pub toolsets: Option<Vec<Toolset>>,
    /// Whether the agent has only tools that change nothing.
    pub read_only: bool,
    /// The largest number of model calls in one run; `None` if the file sets no limit, or 0.
    pub max_iterations: Option<u32>,
    /// How often in a row the model may make the same tool call before the run ends; `None` if the file
    /// sets no limit, or 0.
    pub max_consecutive_tool_calls: Option<u32>,
}

/// Reads one agent. `shared` holds the named toolsets of the file.
pub(super) fn read(report: &mut Report, entry: &Entry, shared: Option<&Node>) -> AgentDefinition {
    let name = entry.key.clone();
    if entry.value.as_table().is_none() {
        // An empty agent is valid. For anything else, the report already has the problem.
        return AgentDefinition {
            name,
            ..AgentDefinition::default()
        };
    }
    let get = |key| {
        let entry = entry.value.entry(key).map(|entry| &entry.value);
        entry.filter(|node| !node.is_null())
    };
    let text = |key| get(key).and_then(Node::as_text).map(str::to_owned);
    let own = get("toolsets").map(|node| toolset::read(report, node));
    let used = get("use_toolsets").map(|node| toolset::read_shared(report, node, shared));
    let toolsets = match (own, used) {
        (None, None) => None,
        (own, used) => Some(own.into_iter().chain(used).flatten().collect()),
    };
    let is_read_only = get("readonly").map(|node| read_boolean(report, "readonly", node));
    let mut count = |key| get(key).and_then(|node| read_count(report, key, node));
    AgentDefinition {
        name,
        model: text("model"),
        description: text("description"),
        instruction: text("instruction"),
        toolsets,
        read_only: is_read_only.unwrap_or(false),
        max_iterations: count("max_iterations"),
        max_consecutive_tool_calls: count("max_consecutive_tool_calls"),
        sub_agents: get("sub_agents")
            .map_or_else(Vec::new, |node| read_names(report, "sub_agents", node)),
    }
}
