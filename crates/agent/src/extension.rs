//! What extensions bring beside hooks: tools for the model and commands for the user, served by the processes that serve their hooks.

mod host;
mod wish;

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_handlers::worker::{
    CommandOutput, Extension, ExtensionCommand, ExtensionTool, Invocation, Lease, ScriptCommand,
    ScriptTool, Worker, WorkerError,
};
use tenterhook_protocol::{ContentBlock, JsonObject, SessionId, ToolResult};
use tokio_util::sync::CancellationToken;

pub(crate) use self::host::{Attached, View};
pub use self::host::{Question, ScriptHost, Spelling};
pub use self::wish::{PendingWish, Wish, WishError};
use crate::tool::{InvalidInput, Tool, ToolContext, ToolFailure};

/// How long a tool or a command of a script may take that says nothing of it; kodelet's.
const LONGEST: Duration = Duration::from_mins(10);

/// Who serves what an extension brings.
#[derive(Debug, Clone)]
enum Server {
    /// A worker, and what keeps the script in it.
    Script(Worker, Lease),
    /// A process of its own.
    Process(Extension),
}

/// A tool that an extension brings.
#[derive(Debug, Clone)]
pub struct ForeignTool {
    server: Server,
    name: String,
    description: String,
    schema: Value,
    timeout: Duration,
}

impl ForeignTool {
    /// Makes the tool of a script, which stays in its worker.
    pub fn of_script(worker: Worker, lease: Lease, tool: ScriptTool) -> Self {
        Self {
            server: Server::Script(worker, lease),
            name: tool.name,
            description: tool.description,
            schema: schema(tool.parameters),
            timeout: LONGEST,
        }
    }

    /// Makes the tool of an extension of kodelet.
    pub fn of_process(extension: Extension, tool: ExtensionTool) -> Self {
        let timeout = tool.timeout();
        Self {
            server: Server::Process(extension),
            name: tool.name,
            description: tool.description,
            schema: schema(tool.input_schema.into()),
            timeout,
        }
    }

    async fn run(
        &self,
        input: JsonObject,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let cancel = &context.cancel;
        let result = match &self.server {
            Server::Script(worker, lease) => worker
                .run_tool(
                    (lease.number(), &self.name),
                    (context.call.as_str(), &Value::Object(input)),
                    self.timeout,
                    cancel,
                )
                .await
                .map(ToolResult::from),
            Server::Process(extension) => {
                let session = session_context(context.session, context.cwd);
                let output = extension
                    .run_tool(&self.name, &input, &session, self.timeout, cancel)
                    .await;
                output.map(|output| {
                    if output.error.is_empty() {
                        ToolResult {
                            content: vec![ContentBlock::text(output.content)],
                            details: output.data,
                            ..ToolResult::default()
                        }
                    } else {
                        ToolResult::error(output.error)
                    }
                })
            }
        };
        result.map_err(|error| ToolFailure(format!("tool `{}`: {error}", self.name)))
    }
}

/// Returns a schema that services take: an object, whatever a tool left out.
fn schema(schema: Value) -> Value {
    let is_object = schema.get("type").is_some();
    if is_object {
        schema
    } else {
        json!({ "type": "object", "properties": {} })
    }
}

/// Says who asks, as kodelet's extensions are told it.
fn session_context(session: &SessionId, cwd: &std::path::Path) -> JsonObject {
    let mut context = JsonObject::new();
    for key in ["sessionId", "conversationId"] {
        context.insert(key.to_owned(), session.as_str().into());
    }
    context.insert("cwd".to_owned(), cwd.to_string_lossy().into());
    context.insert("invokedBy".to_owned(), "main".into());
    context
}

impl Tool for ForeignTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn category(&self) -> &'static str {
        "extension"
    }

    /// What it does is not known.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Looks for what the schema requires, and at the types of what is there.
    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        check(&self.schema, input).map_err(|problem| InvalidInput {
            tool: self.name.clone(),
            problem,
        })
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(self.run(input, context))
    }
}

fn check(schema: &Value, input: &JsonObject) -> Result<(), String> {
    let required = schema.get("required").and_then(Value::as_array);
    for key in required.into_iter().flatten().filter_map(Value::as_str) {
        if !input.contains_key(key) {
            return Err(format!("missing field `{key}`"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, declared) in properties.into_iter().flatten() {
        let (Some(value), Some(expected)) = (input.get(key), declared.get("type")) else {
            continue;
        };
        let is_one = |kind: &Value| kind.as_str().is_none_or(|kind| is_of(kind, value));
        let fits = match expected.as_array() {
            Some(kinds) => kinds.iter().any(is_one),
            None => is_one(expected),
        };
        if !fits {
            return Err(format!("`{key}` is {value}, expected {expected}"));
        }
    }
    Ok(())
}

/// Says whether a value has a type of JSON Schema. One that is not known there fits.
fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// A command that an extension brings.
#[derive(Debug, Clone)]
pub struct ForeignCommand {
    server: Server,
    /// What the user calls it, without the slash; the first one is its own name.
    pub names: Vec<String>,
    /// What the user is told of it.
    pub description: String,
    timeout: Duration,
}

/// What becomes of a line that was a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandEnd {
    /// The command did its work.
    Done,
    /// There is a text for the user.
    Respond(String),
    /// There is a prompt for the agent.
    Prompt(String),
    /// It was not meant; the line is looked at further.
    Passed,
}

/// A command that could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("command `/{name}`: {problem}")]
pub struct CommandFailure {
    /// The command.
    pub name: String,
    /// What went wrong.
    pub problem: String,
}

impl ForeignCommand {
    /// Makes the command of a script, which stays in its worker.
    pub fn of_script(worker: Worker, lease: Lease, command: ScriptCommand) -> Self {
        Self {
            server: Server::Script(worker, lease),
            names: vec![command.name],
            description: command.description,
            timeout: LONGEST,
        }
    }

    /// Makes the command of an extension of kodelet.
    pub fn of_process(extension: Extension, command: ExtensionCommand) -> Self {
        let timeout = command.timeout();
        let mut names = vec![command.name];
        names.extend(command.aliases);
        Self {
            server: Server::Process(extension),
            names,
            description: command.description,
            timeout,
        }
    }

    /// Runs the command on a line that begins with one of its names behind a slash.
    ///
    /// # Errors
    /// When it failed, or gave no answer.
    pub async fn run(
        &self,
        line: &str,
        (session, cwd): (&SessionId, &std::path::Path),
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, CommandFailure> {
        let (used, args) = split(line);
        let name = self.names.first().map_or(used, String::as_str);
        let failure = |problem: String| CommandFailure {
            name: name.to_owned(),
            problem,
        };
        let told = |error: WorkerError| failure(error.to_string());
        match &self.server {
            Server::Script(worker, lease) => {
                let run = worker.run_command((lease.number(), name), args, self.timeout, cancel);
                run.await.map_err(told)?;
                Ok(CommandEnd::Done)
            }
            Server::Process(extension) => {
                let (input, invocation) = invocation(line, used, args);
                let context = session_context(session, cwd);
                let given = (&input, &invocation);
                let run = extension.run_command(name, given, &context, self.timeout, cancel);
                match run.await.map_err(told)? {
                    CommandOutput::Pass => Ok(CommandEnd::Passed),
                    CommandOutput::Respond { response } => Ok(CommandEnd::Respond(response)),
                    CommandOutput::RunAgent { prompt, .. } => Ok(CommandEnd::Prompt(prompt)),
                    CommandOutput::Other { action } => Err(failure(format!(
                        "it answered the action `{}`, expected `pass`, `respond` or `runAgent`",
                        action.escape_debug()
                    ))),
                }
            }
        }
    }
}

/// Splits a line into the name of the command and what stands behind it.
fn split(line: &str) -> (&str, &str) {
    let line = line.strip_prefix('/').unwrap_or(line);
    let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (name, args.trim())
}

/// Returns the words of a line as kodelet has them: those that are `name=value` are the input.
fn invocation(line: &str, used: &str, args: &str) -> (JsonObject, Invocation) {
    let words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    let flags: JsonObject = words
        .iter()
        .filter_map(|word| word.trim_start_matches('-').split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let invocation = Invocation {
        raw: line.to_owned(),
        command_name: used.to_owned(),
        args: words,
        flags: flags.clone(),
    };
    (flags, invocation)
}

impl fmt::Display for ForeignCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.names.first().map(String::as_str).unwrap_or_default();
        write!(f, "/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked_against_what_the_schema_says_of_them() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer" },
                "either": { "type": ["string", "null"] },
                "any": {},
            },
            "required": ["name"],
        });
        for (input, problem) in [
            (json!({ "name": "ada" }), None),
            (json!({}), Some("missing field `name`")),
            (
                json!({ "name": 7 }),
                Some("`name` is 7, expected \"string\""),
            ),
            (
                json!({ "name": "a", "count": 2.5 }),
                Some("`count` is 2.5, expected \"integer\""),
            ),
            (
                json!({ "name": "a", "count": 2.0, "either": null, "any": [] }),
                None,
            ),
            (json!({ "name": "a", "more": true }), None),
        ] {
            let found = check(&schema, input.as_object().unwrap()).err();
            assert_eq!(found.as_deref(), problem, "{input}");
        }
    }

    #[test]
    fn a_line_is_a_name_and_what_stands_behind_it() {
        assert_eq!(split("/hello"), ("hello", ""));
        assert_eq!(split("/hello  to  all "), ("hello", "to  all"));
        let (input, invocation) = invocation("/review a --base=main", "review", "a --base=main");
        assert_eq!(Value::from(input), json!({ "base": "main" }));
        assert_eq!(invocation.args, ["a", "--base=main"]);
    }
}
