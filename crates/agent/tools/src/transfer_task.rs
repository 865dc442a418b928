//! `transfer_task`: gives a task to a subagent.

use std::error::Error;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;

use crate::failure::ToolFailure;
use crate::tool::ToolContext;
use crate::typed_tool::TypedTool;

/// The tool's name.
pub const NAME: &str = "transfer_task";

/// The agents that can be given tasks, by name and description.
#[derive(Debug, Clone)]
pub struct Agents(Vec<(String, String)>);

impl FromIterator<(String, String)> for Agents {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(agents: I) -> Self {
        Self(agents.into_iter().collect())
    }
}

impl Agents {
    /// Returns the description of a tool: `what` it does, then the available agents.
    pub(crate) fn describe(&self, what: &str) -> String {
        if self.0.is_empty() {
            return what.to_owned();
        }
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

    /// Fails if there is no agent called `agent`.
    pub(crate) fn check(&self, agent: &str) -> Result<(), String> {
        if self.0.iter().any(|(name, _)| name == agent) {
            return Ok(());
        }
        let names: Vec<String> = self.0.iter().map(|(name, _)| format!("`{name}`")).collect();
        Err(format!(
            "there is no agent `{agent}`, expected one of {}",
            names.join(", ")
        ))
    }
}

/// Gives a task to one of the configured subagents and returns its answer.
///
/// The tool needs no approval, because each call of the subagent passes the same gates as its parent's calls.
#[derive(Debug, Clone)]
pub struct TransferTask {
    agents: Agents,
}

impl TransferTask {
    /// Creates the tool for these agents.
    pub fn for_agents(agents: Agents) -> Self {
        Self { agents }
    }

    /// Creates the tool for agents given by name and description.
    pub fn new(agents: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            agents: agents.into_iter().collect(),
        }
    }
}

/// Returns a task with a description of the answer that is expected, if there is one.
pub(crate) fn with_expectation(task: String, expected: Option<String>) -> String {
    match expected {
        Some(expected) if !expected.trim().is_empty() => {
            format!("{task}\n\nExpected answer: {expected}")
        }
        _ => task,
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferTaskInput {
    /// The name of the agent.
    agent: String,
    /// The whole task: the agent sees nothing else of this conversation.
    task: String,
    /// What the answer should look like.
    expected_output: Option<String>,
}

impl TypedTool for TransferTask {
    type Input = TransferTaskInput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        self.agents
            .describe("Gives a task to another agent and returns its answer.")
    }

    fn category(&self) -> &'static str {
        "agent"
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn delegates(&self) -> bool {
        true
    }

    fn wants_approval(&self) -> bool {
        false
    }

    /// The subagent notices the cancellation, and everything that it waits for has a time limit. If it were dropped, it
    /// could not close what it opened.
    fn ends_itself(&self) -> bool {
        true
    }

    fn check_input(&self, input: &TransferTaskInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.agents.check(&input.agent)?)
    }

    async fn run(
        &self,
        input: TransferTaskInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let task = with_expectation(input.task, input.expected_output);
        let answer = context.delegate.transfer(&input.agent, task).await?;
        Ok(ToolResult::text(answer))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::Tool;

    #[test]
    fn only_configured_agents_are_taken() {
        let tool = TransferTask::new([("helper".to_owned(), "helps".to_owned())]);
        assert!(Tool::description(&tool).ends_with("\n- helper: helps"));
        let input = |agent: &str| {
            json!({"agent": agent, "task": "t"})
                .as_object()
                .unwrap()
                .clone()
        };
        assert_eq!(tool.check(&input("helper")), Ok(()));
        let call = json!({"agent": "helper", "task": "t", "expected_output": "one line"});
        assert_eq!(tool.check(call.as_object().unwrap()), Ok(()));
        let error = tool.check(&input("other")).unwrap_err().to_string();
        assert!(
            error.ends_with("there is no agent `other`, expected one of `helper`"),
            "{error}"
        );
    }

    #[test]
    fn the_expected_answer_is_part_of_the_task() {
        let task = |expected: Option<&str>| with_expectation("t".into(), expected.map(Into::into));
        assert_eq!(task(None), "t");
        assert_eq!(task(Some(" ")), "t");
        assert_eq!(task(Some("one line")), "t\n\nExpected answer: one line");
    }
}
