//! `transfer_task`: gives a task to a subagent.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolResult};

use super::{InvalidInput, Tool, ToolContext, ToolFailure, read_input, schema_of};

/// The tool's name.
pub(crate) const NAME: &str = "transfer_task";

/// The agents that tasks can be given to, by name and description.
#[derive(Debug, Clone)]
pub(crate) struct Agents(Vec<(String, String)>);

impl FromIterator<(String, String)> for Agents {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(agents: I) -> Self {
        Self(agents.into_iter().collect())
    }
}

impl Agents {
    /// Says what a tool does, and which agents there are.
    pub(super) fn describe(&self, what: &str) -> String {
        let mut text = format!("{what} The agents:");
        for (name, description) in &self.0 {
            text.push_str("\n- ");
            text.push_str(name);
            if !description.is_empty() {
                text.push_str(": ");
                text.push_str(description);
            }
        }
        text
    }

    /// Fails if there is no agent of that name.
    pub(super) fn check(&self, tool: &str, agent: &str) -> Result<(), InvalidInput> {
        if self.0.iter().any(|(name, _)| name == agent) {
            return Ok(());
        }
        let names: Vec<String> = self.0.iter().map(|(name, _)| format!("`{name}`")).collect();
        Err(InvalidInput {
            tool: tool.to_owned(),
            problem: format!(
                "there is no agent `{agent}`, expected one of {}",
                names.join(", ")
            ),
        })
    }
}

/// Gives a task to one of the configured subagents and returns its answer.
///
/// The tool itself does nothing that needs approval: each call of the subagent passes the same gates
/// as one of its parent's.
#[derive(Debug, Clone)]
pub struct TransferTask {
    agents: Agents,
}

impl TransferTask {
    pub(crate) fn for_agents(agents: Agents) -> Self {
        Self { agents }
    }

    /// Makes the tool for agents given by name and description.
    pub fn new(agents: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            agents: agents.into_iter().collect(),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The name of the agent.
    agent: String,
    /// The whole task: the agent sees nothing else of this conversation.
    task: String,
}

impl Tool for TransferTask {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        self.agents
            .describe("Gives a task to another agent and returns its answer.")
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn category(&self) -> &'static str {
        "agent"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn wants_approval(&self) -> bool {
        false
    }

    /// The subagent sees the cancellation, and all that it waits for is bounded. Dropped, it could not
    /// close what it began.
    fn ends_itself(&self) -> bool {
        true
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        let input: Input = read_input(NAME, input)?;
        self.agents.check(NAME, &input.agent)
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(async move {
            let input: Input = read_input(NAME, &input)?;
            let answer = context.delegate.transfer(&input.agent, input.task).await?;
            Ok(ToolResult::text(answer))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_configured_agents_are_taken() {
        let tool = TransferTask::new([("helper".to_owned(), "helps".to_owned())]);
        assert!(tool.description().ends_with("\n- helper: helps"));
        let input = |agent: &str| {
            json!({"agent": agent, "task": "t"})
                .as_object()
                .unwrap()
                .clone()
        };
        assert_eq!(tool.check(&input("helper")), Ok(()));
        let error = tool.check(&input("other")).unwrap_err().to_string();
        assert!(
            error.ends_with("there is no agent `other`, expected one of `helper`"),
            "{error}"
        );
    }
}
