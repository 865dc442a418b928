//! `transfer_task`: gives a task to a subagent.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolResult};

use super::{InvalidInput, Tool, ToolContext, ToolFailure, read_input, schema_of};

/// The tool's name.
pub(crate) const NAME: &str = "transfer_task";

/// Gives a task to one of the configured subagents and returns its answer.
///
/// The tool itself does nothing that needs approval: each call of the subagent passes the same gates
/// as one of its parent's.
#[derive(Debug, Clone)]
pub struct TransferTask {
    agents: Vec<(String, String)>,
}

impl TransferTask {
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
        let mut text =
            "Gives a task to another agent and returns its answer. The agents:".to_owned();
        for (name, description) in &self.agents {
            text.push_str("\n- ");
            text.push_str(name);
            if !description.is_empty() {
                text.push_str(": ");
                text.push_str(description);
            }
        }
        text
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
        if self.agents.iter().any(|(name, _)| *name == input.agent) {
            return Ok(());
        }
        let names: Vec<String> = self
            .agents
            .iter()
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        Err(InvalidInput {
            tool: NAME.to_owned(),
            problem: format!(
                "there is no agent `{}`, expected one of {}",
                input.agent,
                names.join(", ")
            ),
        })
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
