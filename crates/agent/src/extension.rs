//! What extensions bring beside hooks: tools for the model and commands for the user, served by the processes that serve their hooks.

mod host;
mod wish;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_handlers::worker::{
    CommandOutput, Extension, ExtensionCommand, ExtensionTool, Invocation, Lease, ScriptCommand,
    ScriptTool, ToolSnapshots, ToolUpdates, Worker, WorkerError,
};
use tenterhook_protocol::{ContentBlock, JsonObject, SessionId, ToolResult};
use tokio_util::sync::CancellationToken;

pub(crate) use self::host::{Attached, View};
pub use self::host::{Question, ScriptHost, Spelling};
pub use self::wish::{PendingWish, Wish, WishError};
pub use crate::tool::SchemaProblem;
use crate::tool::{ArgumentSchema, InvalidInput, Progress, Tool, ToolContext, ToolFailure};

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
    arguments: ArgumentSchema,
    timeout: Duration,
}

impl ForeignTool {
    /// Makes the tool of a script, which stays in its worker.
    ///
    /// # Errors
    /// When its schema is none that arguments can be checked against.
    pub fn of_script(
        worker: Worker,
        lease: Lease,
        tool: ScriptTool,
    ) -> Result<Self, SchemaProblem> {
        Ok(Self {
            server: Server::Script(worker, lease),
            arguments: ArgumentSchema::compile(&tool.name, tool.parameters)?,
            name: tool.name,
            description: tool.description,
            timeout: LONGEST,
        })
    }

    /// Makes the tool of an extension of kodelet.
    ///
    /// # Errors
    /// When its schema is none that arguments can be checked against.
    pub fn of_process(extension: Extension, tool: ExtensionTool) -> Result<Self, SchemaProblem> {
        let timeout = tool.timeout();
        Ok(Self {
            server: Server::Process(extension),
            arguments: ArgumentSchema::compile(&tool.name, tool.input_schema.into())?,
            name: tool.name,
            description: tool.description,
            timeout,
        })
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
                    updates(&context.progress),
                    self.timeout,
                    cancel,
                )
                .await
                .map(ToolResult::from),
            Server::Process(extension) => {
                let session = session_context(context.session, context.cwd);
                let output = extension
                    .run_tool(
                        (&self.name, &input),
                        &session,
                        snapshots(&context.progress),
                        self.timeout,
                        cancel,
                    )
                    .await;
                output.map(|output| {
                    if output.error.is_empty() {
                        text_with(output.content, output.data)
                    } else {
                        ToolResult::error(output.error)
                    }
                })
            }
        };
        // No protocol of extensions can say that a failure is permanent.
        result.map_err(|error| ToolFailure::new(format!("tool `{}`: {error}", self.name)))
    }
}

/// Returns who hears what a tool of a script has so far.
fn updates(progress: &Progress) -> Option<ToolUpdates> {
    let progress = progress.is_wanted().then(|| progress.clone())?;
    Some(Arc::new(move |partial| progress.report(partial.into())))
}

/// Returns who hears what a tool of an extension of kodelet has so far.
fn snapshots(progress: &Progress) -> Option<ToolSnapshots> {
    let progress = progress.is_wanted().then(|| progress.clone())?;
    Some(Arc::new(move |snapshot| {
        progress.report(text_with(snapshot.content, snapshot.data));
    }))
}

fn text_with(text: String, details: Option<JsonObject>) -> ToolResult {
    ToolResult {
        content: vec![ContentBlock::text(text)],
        details,
        ..ToolResult::default()
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
        self.arguments.schema().clone()
    }

    fn category(&self) -> &'static str {
        "extension"
    }

    /// What it does is not known.
    fn is_read_only(&self) -> bool {
        false
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        self.arguments.check(input).map_err(|problem| InvalidInput {
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_a_name_and_what_stands_behind_it() {
        assert_eq!(split("/hello"), ("hello", ""));
        assert_eq!(split("/hello  to  all "), ("hello", "to  all"));
        let (input, invocation) = invocation("/review a --base=main", "review", "a --base=main");
        assert_eq!(Value::from(input), json!({ "base": "main" }));
        assert_eq!(invocation.args, ["a", "--base=main"]);
    }
}
