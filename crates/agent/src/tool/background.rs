//! The tools for tasks in the background: give one, list them, look at one, stop one.

use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolResult};

use super::transfer::Agents;
use super::{InvalidInput, Tool, ToolContext, ToolFailure, Toolbox, read_input, schema_of};

/// The name of the tool that gives a task.
pub(crate) const RUN: &str = "run_background_agent";
const LIST: &str = "list_background_agents";
const VIEW: &str = "view_background_agent";
const STOP: &str = "stop_background_agent";

/// The names of the tools.
pub(crate) const NAMES: [&str; 4] = [RUN, LIST, VIEW, STOP];

/// The longest time that a model may wait for a task, in seconds.
const LONGEST_WAIT: u64 = 600;

/// One of the tools; what it does is looked up by its name.
#[derive(Debug, Clone)]
struct BackgroundTool {
    name: &'static str,
    agents: Agents,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    /// The name of the agent.
    agent: String,
    /// The whole task: the agent sees nothing else of this conversation.
    task: String,
    /// What the answer should look like.
    expected_output: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {
    /// The id that the task was given.
    task_id: String,
    /// How many seconds to wait for its end, at most 600. The default is 0.
    wait: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Which {
    /// The id that the task was given.
    task_id: String,
}

/// Adds the tools for background tasks of these agents, given by name and description.
pub(crate) fn add(toolbox: Toolbox, agents: &Agents) -> Toolbox {
    NAMES.into_iter().fold(toolbox, |toolbox, name| {
        toolbox.with(BackgroundTool {
            name,
            agents: agents.clone(),
        })
    })
}

impl Tool for BackgroundTool {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> String {
        match self.name {
            RUN => self.agents.describe(
                "Gives a task to another agent, which works on it in the background, and returns the task's id at once.",
            ),
            LIST => "Lists the background tasks with their states.".to_owned(),
            VIEW => "Shows what became of a background task, and its answer when there is one.".to_owned(),
            _ => "Cancels a background task.".to_owned(),
        }
    }

    fn schema(&self) -> Value {
        match self.name {
            RUN => schema_of::<Order>(),
            LIST => schema_of::<Nothing>(),
            VIEW => schema_of::<Look>(),
            _ => schema_of::<Which>(),
        }
    }

    fn category(&self) -> &'static str {
        "agent"
    }

    fn is_read_only(&self) -> bool {
        [LIST, VIEW].contains(&self.name)
    }

    /// Each call of the subagent passes the same gates as one of its parent's.
    fn wants_approval(&self) -> bool {
        false
    }

    fn may_repeat(&self) -> bool {
        self.is_read_only()
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        match self.name {
            RUN => {
                let order: Order = read_input(RUN, input)?;
                self.agents.check(RUN, &order.agent)
            }
            LIST => read_input::<Nothing>(LIST, input).map(drop),
            VIEW => {
                let look: Look = read_input(VIEW, input)?;
                match look.wait {
                    Some(seconds) if seconds > LONGEST_WAIT => Err(InvalidInput {
                        tool: VIEW.to_owned(),
                        problem: format!(
                            "`wait` is {seconds} seconds, expected at most {LONGEST_WAIT}"
                        ),
                    }),
                    _ => Ok(()),
                }
            }
            name => read_input::<Which>(name, input).map(drop),
        }
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(async move {
            let tasks = context.delegate;
            let text = match self.name {
                RUN => {
                    let order: Order = read_input(RUN, &input)?;
                    let mut task = order.task;
                    if let Some(expected) = order.expected_output {
                        task.push_str("\n\nThe answer that is expected: ");
                        task.push_str(&expected);
                    }
                    let id = tasks.begin(&order.agent, task)?;
                    format!(
                        "The task runs in the background as `{id}`. `{VIEW}` shows its answer when there is one."
                    )
                }
                LIST => tasks.background()?.list(),
                VIEW => {
                    let look: Look = read_input(VIEW, &input)?;
                    let wait = Duration::from_secs(look.wait.unwrap_or_default());
                    let view = tasks.background()?.view(&look.task_id, wait);
                    let viewed = context.cancel.run_until_cancelled(view).await;
                    viewed.ok_or_else(|| ToolFailure::new("the wait was cancelled"))??
                }
                name => {
                    let which: Which = read_input(name, &input)?;
                    tasks.background()?.stop(&which.task_id).await?
                }
            };
            Ok(ToolResult::text(text))
        })
    }
}
