//! A tool of a script that replaces one of the agent's own tools.
//!
//! The model, the hooks, the permission rules and the protected files see the agent's tool, with its name and its
//! arguments. Only the work is done by the script, which receives the arguments in its own form. So every guard of the
//! agent's tool holds for the replacement.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_engine::ToolInputError;
use tenterhook_protocol::{JsonObject, ToolResult};
use tenterhook_tools::{
    InvalidInput, Tool, ToolContext, ToolFailure, ToolRetry, Toolbox, blocking,
};

use super::{ForeignTool, Spelling};

/// Adds the tool of a script or an extension to a toolbox. If it has the name of a built-in tool in its hook system, or
/// of the agent's own tool, it replaces the agent's tool with the same meaning.
#[must_use]
pub fn add_script_tool(toolbox: Toolbox, tool: ForeignTool, spelling: &Spelling) -> Toolbox {
    let (name, arguments, write_input) = match (spelling.replaced)(tool.name()) {
        Some((name, arguments)) => {
            let arguments = arguments.into_iter().map(str::to_owned).collect();
            (name.to_owned(), arguments, spelling.replaced_input)
        }
        None => match Toolbox::standard().get(tool.name()) {
            Some(own) => {
                let unchanged: WriteInput = |_, input, _| Ok(input.clone());
                (own.name().to_owned(), arguments_of(own.as_ref()), unchanged)
            }
            None => return toolbox.with(tool),
        },
    };
    // The agent's own tool has the guards, also if the agent does not have it or another script has replaced it.
    let standard = Toolbox::standard();
    let replaced = standard.get(&name).or_else(|| toolbox.get(&name)).cloned();
    toolbox.with(ReplacementTool {
        name,
        arguments,
        replaced,
        tool,
        write_input,
    })
}

/// Returns the names of a tool's arguments.
fn arguments_of(tool: &dyn Tool) -> Vec<String> {
    let schema = tool.schema();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(|properties| properties.keys().cloned())
        .collect()
}

/// Translates the arguments of the agent's tool for the script. The last argument is the schema of the script's tool.
type WriteInput = fn(&str, &JsonObject, &Value) -> Result<JsonObject, ToolInputError>;

#[derive(Debug)]
struct ReplacementTool {
    name: String,
    /// The arguments of the agent's tool that the script can receive.
    arguments: Vec<String>,
    /// The agent's tool. `None` if the agent has no tool with this meaning.
    replaced: Option<Arc<dyn Tool>>,
    tool: ForeignTool,
    write_input: WriteInput,
}

impl ReplacementTool {
    fn invalid(&self, problem: String) -> InvalidInput {
        InvalidInput {
            tool: self.name.clone(),
            problem,
        }
    }

    /// Translates the arguments, and checks them against the schema of the script's tool.
    fn script_input(&self, input: &JsonObject) -> Result<JsonObject, InvalidInput> {
        let written = (self.write_input)(&self.name, input, &self.tool.schema());
        let written = written.map_err(|error| self.invalid(error.to_string()))?;
        let checked = self.tool.check(&written);
        checked.map_err(|error| self.invalid(error.problem))?;
        Ok(written)
    }

    async fn run(
        &self,
        input: JsonObject,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        context.restrictions.check_replacement(&self.name, &input)?;
        if let Some(path) = self.changed_file(&input) {
            let (path, guard) = (context.cwd.join(path), context.write_guard.clone());
            let check = move || {
                let checked = guard.check_change(&path);
                checked.map_err(|error| {
                    ToolFailure::permanent(format!("cannot write `{}`: {error}", path.display()))
                })
            };
            blocking(check).await?;
        }
        let written = self.script_input(&input);
        let written = written.map_err(|error| ToolFailure::permanent(error.to_string()))?;
        Tool::run(&self.tool, written, context).await
    }
}

impl Tool for ReplacementTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        self.tool.description()
    }

    /// The schema of the agent's tool, without the arguments that the script cannot receive.
    fn schema(&self) -> Value {
        let Some(replaced) = &self.replaced else {
            return self.tool.schema();
        };
        let mut schema = replaced.schema();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.retain(|name, _| self.arguments.contains(name));
        }
        schema
    }

    fn category(&self) -> &'static str {
        let replaced = self.replaced.as_ref();
        replaced.map_or_else(|| self.tool.category(), |tool| tool.category())
    }

    /// It is not known whether the script changes anything.
    fn is_read_only(&self) -> bool {
        false
    }

    fn wants_approval(&self) -> bool {
        let replaced = self.replaced.as_ref();
        replaced.is_none_or(|tool| tool.wants_approval())
    }

    fn may_repeat(&self) -> bool {
        self.replaced.as_ref().is_some_and(|tool| tool.may_repeat())
    }

    fn retry(&self) -> ToolRetry {
        let replaced = self.replaced.as_ref();
        replaced.map_or_else(|| self.tool.retry(), |tool| tool.retry())
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        if let Some(replaced) = &self.replaced {
            // The script would ignore such an argument, although guards have judged the call with it.
            let is_known = |name: &&String| self.arguments.contains(name);
            if let Some(unknown) = input.keys().find(|name| !is_known(name)) {
                return Err(self.invalid(format!(
                    "unknown field `{unknown}`, expected one of `{}`",
                    self.arguments.join("`, `")
                )));
            }
            replaced.check(input)?;
        }
        self.script_input(input).map(drop)
    }

    fn changed_file<'a>(&self, input: &'a JsonObject) -> Option<&'a str> {
        self.replaced.as_ref()?.changed_file(input)
    }

    fn call_lines<'a>(&'a self, input: &'a JsonObject) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(async move {
            let written = self.script_input(input).ok()?;
            self.tool.call_lines(&written).await
        })
    }

    fn result_lines<'a>(&'a self, result: &'a ToolResult) -> BoxFuture<'a, Option<Vec<String>>> {
        Tool::result_lines(&self.tool, result)
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(self.run(input, context))
    }
}
