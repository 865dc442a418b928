//! The tools for background tasks: start one, list them, look at one, stop one.

use std::error::Error;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tenterhook_protocol::ToolResult;

use crate::failure::ToolFailure;
use crate::tool::ToolContext;
use crate::toolbox::Toolbox;
use crate::transfer_task::{Agents, with_expectation};
use crate::typed_tool::TypedTool;

/// The name of the tool that starts a task.
pub const RUN: &str = "run_background_agent";
const LIST: &str = "list_background_agents";
const VIEW: &str = "view_background_agent";
const STOP: &str = "stop_background_agent";

/// The names of the tools.
pub const NAMES: [&str; 4] = [RUN, LIST, VIEW, STOP];

/// The category of the tools.
const CATEGORY: &str = "agent";

/// The longest time that a model may wait for a task, in seconds.
const MAX_WAIT: u64 = 600;

/// Adds the tools for background tasks of these agents, which are given by name and description.
pub fn add(toolbox: Toolbox, agents: &Agents) -> Toolbox {
    toolbox
        .with(RunBackgroundAgent(agents.clone()))
        .with(ListBackgroundAgents)
        .with(ViewBackgroundAgent)
        .with(StopBackgroundAgent)
}

/// Starts a task of another agent and returns at once.
///
/// None of these tools needs approval, because the other agent's calls pass the same gates as its parent's calls.
#[derive(Debug, Clone)]
struct RunBackgroundAgent(Agents);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunInput {
    /// The name of the agent.
    agent: String,
    /// The whole task: the agent sees nothing else of this conversation.
    task: String,
    /// What the answer should look like.
    expected_output: Option<String>,
}

impl TypedTool for RunBackgroundAgent {
    type Input = RunInput;

    fn name(&self) -> &str {
        RUN
    }

    fn description(&self) -> String {
        self.0.describe(
            "Gives a task to another agent, which works on it in the background, and returns the task's id at once.",
        )
    }

    fn category(&self) -> &'static str {
        CATEGORY
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn wants_approval(&self) -> bool {
        false
    }

    fn check_input(&self, input: &RunInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.0.check(&input.agent)?)
    }

    async fn run(
        &self,
        input: RunInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let task = with_expectation(input.task, input.expected_output);
        let id = context.delegate.start(&input.agent, task)?;
        Ok(ToolResult::text(format!(
            "The task runs in the background as `{id}`. `{VIEW}` shows its answer when there is one."
        )))
    }
}

/// Lists the background tasks.
#[derive(Debug, Clone, Copy)]
struct ListBackgroundAgents;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {}

impl TypedTool for ListBackgroundAgents {
    type Input = ListInput;

    fn name(&self) -> &str {
        LIST
    }

    fn description(&self) -> String {
        "Lists the background tasks with their states.".to_owned()
    }

    fn category(&self) -> &'static str {
        CATEGORY
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn may_repeat(&self) -> bool {
        true
    }

    async fn run(&self, _: ListInput, context: ToolContext<'_>) -> Result<ToolResult, ToolFailure> {
        context.delegate.list().map(ToolResult::text)
    }
}

/// Shows one background task.
#[derive(Debug, Clone, Copy)]
struct ViewBackgroundAgent;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ViewInput {
    /// The id that the task was given.
    task_id: String,
    /// How many seconds to wait for its end, at most 600. The default is 0.
    wait: Option<u64>,
}

impl TypedTool for ViewBackgroundAgent {
    type Input = ViewInput;

    fn name(&self) -> &str {
        VIEW
    }

    fn description(&self) -> String {
        "Shows the state of a background task, and its answer when there is one.".to_owned()
    }

    fn category(&self) -> &'static str {
        CATEGORY
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn may_repeat(&self) -> bool {
        true
    }

    fn check_input(&self, input: &ViewInput) -> Result<(), Box<dyn Error + Send + Sync>> {
        match input.wait {
            Some(seconds) if seconds > MAX_WAIT => {
                Err(format!("`wait` is {seconds} seconds, expected at most {MAX_WAIT}").into())
            }
            _ => Ok(()),
        }
    }

    async fn run(
        &self,
        input: ViewInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let wait = Duration::from_secs(input.wait.unwrap_or_default());
        let view = context.delegate.view(&input.task_id, wait);
        let viewed = context.cancel.run_until_cancelled(view).await;
        let text = viewed.ok_or_else(|| ToolFailure::new("the wait was cancelled"))??;
        Ok(ToolResult::text(text))
    }
}

/// Cancels one background task.
#[derive(Debug, Clone, Copy)]
struct StopBackgroundAgent;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StopInput {
    /// The id that the task was given.
    task_id: String,
}

impl TypedTool for StopBackgroundAgent {
    type Input = StopInput;

    fn name(&self) -> &str {
        STOP
    }

    fn description(&self) -> String {
        "Cancels a background task.".to_owned()
    }

    fn category(&self) -> &'static str {
        CATEGORY
    }

    fn is_read_only(&self) -> bool {
        false
    }

    fn wants_approval(&self) -> bool {
        false
    }

    async fn run(
        &self,
        input: StopInput,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        context
            .delegate
            .stop(&input.task_id)
            .await
            .map(ToolResult::text)
    }
}
